// SPDX-License-Identifier: Apache-2.0
#include "sampler/native/function_name.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>

#include "profiler/base/ascii.h"
#include "profiler/base/utf8.h"

// What abi::__cxa_demangle is made of, in GCC's libsupc++: hands over a name piece by piece. No
// header declares it.
extern "C" int __gcclibcxx_demangle_callback(  // NOLINT(bugprone-reserved-identifier)
    const char* symbol, void (*add)(const char* piece, size_t size, void* name), void* name);

namespace pystrobe::native {
namespace {

constexpr std::string_view kOperator = "operator";
// Those first of which another is the beginning.
constexpr std::array<std::string_view, 39> kSigns = {
    "()", "[]", "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "==", "!=", "&&",
    "||", "++", "--",  "+=",  "-=",  "*=",  "/=", "%=", "^=", "&=", "|=", "->", "+",
    "-",  "*",  "/",   "%",   "^",   "&",   "|",  "~",  "!",  "=",  ",",  "<",  ">"};
constexpr std::string_view kAnonymous = "(anonymous namespace)";

/// Reads a name from its beginning, bracket by bracket.
class Shortener {
 public:
  explicit Shortener(std::string_view name) : rest_(name) {}

  std::string Run() {
    while (!rest_.empty() && !is_broken_) Next();
    return is_broken_ ? std::string() : std::move(short_);
  }

 private:
  void Next() {
    if (rest_.starts_with(kOperator) && IsAtWord()) {
      TakeOperator();
    } else if (rest_.starts_with(kAnonymous)) {
      Take(kAnonymous.size());
    } else if (rest_[0] == '(') {
      Skip(Group());
    } else if (rest_[0] == '<' || rest_[0] == '{' || rest_[0] == '[') {
      Take(Group());
    } else if (rest_[0] == ' ') {
      TakeSpace();
    } else {
      Take(1);
    }
  }

  bool IsAtWord() const { return short_.empty() || short_.back() == ':' || short_.back() == ' '; }

  // Up to its parameters, or those of its template: "operator()", "operator<< <int>"; "operator
  // unsigned long", "operator new[]".
  void TakeOperator() {
    Take(kOperator.size());
    const auto sign = std::ranges::find_if(
        kSigns, [this](std::string_view one) { return rest_.starts_with(one); });
    if (sign != kSigns.end()) {
      Take(sign->size());
      if (rest_.starts_with(" <")) Take(1);
      return;
    }
    while (!rest_.empty() && rest_[0] != '(' && !is_broken_) Take(rest_[0] == '<' ? Group() : 1);
  }

  // Before it is the result, and behind the parameters are qualifiers.
  void TakeSpace() {
    if (has_parameters_) {
      rest_ = {};
    } else {
      Skip(1);
      short_.clear();
    }
  }

  // How long what begins with a bracket is, up to the one that closes it.
  size_t Group() {
    int depth = 0;
    for (size_t i = 0; i < rest_.size(); ++i) {
      const char c = rest_[i];
      if (c == '(' || c == '<' || c == '{' || c == '[') ++depth;
      const bool is_arrow = c == '>' && i > 0 && rest_[i - 1] == '-';
      if ((c == ')' || c == '>' || c == '}' || c == ']') && !is_arrow && --depth == 0) return i + 1;
    }
    is_broken_ = true;
    return rest_.size();
  }

  void Take(size_t count) {
    short_ += rest_.substr(0, count);
    rest_.remove_prefix(count);
    has_parameters_ = false;
  }

  void Skip(size_t count) {
    has_parameters_ = rest_[0] == '(';
    rest_.remove_prefix(count);
  }

  std::string_view rest_;
  std::string short_;
  bool has_parameters_ = false;  // just before
  bool is_broken_ = false;
};

// What compilers and linkers call the parts of a function, copies of it for some of its arguments
// and local ones of the same name; most have a number behind.
constexpr std::array<std::string_view, 9> kSuffixes = {
    "cold", "part", "constprop", "isra", "llvm", "lto_priv", "localalias", "clone", "resolver"};

// "f.cold", "f.constprop.0.isra.0", "f@@GLIBC_2.17": f. Other dots belong to the name, as in Go's
// and Rust's; what begins with one is the compiler's own.
std::string_view WithoutSuffixes(std::string_view name) {
  name = name.substr(0, name.find('@', 1));
  for (std::string_view rest = name;;) {
    const size_t dot = rest.rfind('.');
    if (dot == std::string_view::npos || dot == 0) return name;
    const std::string_view suffix = rest.substr(dot + 1);
    rest = rest.substr(0, dot);
    if (std::ranges::find(kSuffixes, suffix) != kSuffixes.end()) {
      name = rest;
    } else if (!IsNumber(suffix)) {
      return name;
    }
  }
}

// Names can double with each time that they refer to a part of themselves, so that 400 bytes of a
// symbol make terabytes: the demangler is left in the middle of such a one.
constexpr size_t kMostUnderstood = size_t{1} << 20;
constexpr size_t kMostShown = 4096;

struct TooLong {};

void AddPiece(const char* piece, size_t size, void* into) {
  std::string& name = *static_cast<std::string*>(into);
  if (size > kMostUnderstood - name.size()) throw TooLong();
  name.append(piece, size);
}

std::optional<std::string> Demangle(const std::string& symbol) {
  // Of anything else it makes a type: a function f of C would be a float.
  if (!symbol.starts_with("_Z")) return std::nullopt;
  std::string name;
  try {
    if (__gcclibcxx_demangle_callback(symbol.c_str(), AddPiece, &name) != 0) return std::nullopt;
  } catch (const TooLong&) {
    return std::nullopt;
  }
  return name;
}

std::string Cut(std::string name) {
  if (name.size() <= kMostShown) return name;
  name.resize(kMostShown);
  return name + "...";
}

// Rust up to the mangling "v0": C++'s, with a hash as the last part ("::h0123456789abcdef"), and
// what C++ has no letters for written out (rustc, symbol_mangling/legacy.rs).
constexpr size_t kRustHash = 3 + 16;

bool IsRust(std::string_view name) {
  if (name.size() <= kRustHash) return false;
  const std::string_view hash = name.substr(name.size() - kRustHash);
  return hash.starts_with("::h") && std::ranges::all_of(hash.substr(3), [](char c) {
           return IsDigit(c) || (c >= 'a' && c <= 'f');
         });
}

struct RustEscape {
  std::string_view written, meant;
};
constexpr std::array kRustEscapes = {
    RustEscape{"..", "::"},  RustEscape{"$LT$", "<"}, RustEscape{"$GT$", ">"},
    RustEscape{"$RF$", "&"}, RustEscape{"$BP$", "*"}, RustEscape{"$LP$", "("},
    RustEscape{"$RP$", ")"}, RustEscape{"$C$", ","},  RustEscape{"$SP$", "@"},
};

struct RustPart {
  std::string meant;
  size_t length = 1;  ///< as it is written
};

// "$u5b$": by its number in Unicode. None that moves a terminal's cursor.
std::optional<RustPart> NumberedCharacter(std::string_view text) {
  constexpr std::string_view kBegin = "$u";
  const size_t end = text.find('$', kBegin.size());
  if (!text.starts_with(kBegin) || end == std::string_view::npos) return std::nullopt;
  const std::string_view digits = text.substr(0, end).substr(kBegin.size());
  uint32_t number = 0;
  const auto [stop, error] = std::from_chars(digits.begin(), digits.end(), number, 16);
  const bool is_control = number < 0x20 || (number >= 0x7f && number < 0xa0);
  if (error != std::errc() || stop != digits.end() || is_control) return std::nullopt;
  return RustPart{ToUtf8(std::as_bytes(std::span(&number, 1)), sizeof number), end + 1};
}

RustPart FirstOf(std::string_view text) {
  for (const RustEscape& one : kRustEscapes) {
    if (text.starts_with(one.written)) return {std::string(one.meant), one.written.size()};
  }
  return NumberedCharacter(text).value_or(RustPart{std::string(1, text[0])});
}

std::string RustName(std::string_view name) {
  name.remove_suffix(kRustHash);
  std::string decoded;
  while (!name.empty()) {
    // A part may not begin with an escape, so that such a one has this before it.
    const bool begins_part = decoded.empty() || decoded.ends_with("::");
    if (begins_part && name.starts_with("_$")) name.remove_prefix(1);
    const RustPart part = FirstOf(name);
    decoded += part.meant;
    name.remove_prefix(part.length);
  }
  return decoded;
}

}  // namespace

std::string ShortName(std::string_view demangled) {
  std::string name = Shortener(demangled).Run();
  return name.empty() ? std::string(demangled) : name;
}

std::string FunctionName(const char* symbol) {
  const std::string whole(WithoutSuffixes(symbol));
  const std::optional<std::string> demangled = Demangle(whole);
  if (!demangled) return Cut(whole);
  if (IsRust(*demangled)) return Cut(RustName(*demangled));
  return Cut(ShortName(*demangled));
}

}  // namespace pystrobe::native
