// SPDX-License-Identifier: Apache-2.0
#include "sampler/native/function_name.h"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

namespace pystrobe::native {
namespace {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

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

}  // namespace

std::string ShortName(std::string_view demangled) {
  std::string name = Shortener(demangled).Run();
  return name.empty() ? std::string(demangled) : name;
}

std::string FunctionName(const char* symbol) {
  const std::string_view name(symbol);
  // "f.cold", "f.part.0", "f.constprop.0", "f@@GLIBC_2.17": f. What begins with a dot is the
  // compiler's own.
  const std::string whole(name.substr(0, name.find_first_of(".@", 1)));
  int status = 0;
  const std::unique_ptr<char, Free> demangled(
      abi::__cxa_demangle(whole.c_str(), nullptr, nullptr, &status));
  return status == 0 ? ShortName(demangled.get()) : whole;
}

}  // namespace pystrobe::native
