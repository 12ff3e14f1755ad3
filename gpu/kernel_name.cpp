// SPDX-License-Identifier: Apache-2.0
#include "gpu/kernel_name.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace pystrobe::gpu {
namespace {

constexpr std::string_view kAnonymous = "(anonymous namespace)";
constexpr std::string_view kOperator = "operator";

// Where what is at `open` and closed by its counterpart ends. Characters of operators inside of
// template arguments do not come in pairs, but the demangler puts such an expression in brackets.
size_t SkipBrackets(std::string_view text, size_t open) {
  int depth = 0, round = 0;
  for (size_t at = open; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '(' || c == '{' || c == '[') ++round;
    if (c == ')' || c == '}' || c == ']') --round;
    if (c == '<' && round == 0) ++depth;
    if (c == '>' && round == 0 && text[at - 1] != '-') --depth;
    if (depth == 0 && round == 0) return at + 1;
  }
  return text.size();
}

// Of "operator<" and the like, which are no brackets, the end; else `at`.
size_t SkipOperator(std::string_view text, size_t at) {
  if (!text.substr(at).starts_with(kOperator)) return at;
  size_t end = at + kOperator.size();
  if (text.substr(end).starts_with("()")) return end + 2;
  while (end < text.size() && std::string_view("<>=-").contains(text[end])) ++end;
  return end;
}

}  // namespace

std::string Demangle(std::string_view name) {
  if (!name.starts_with("_Z")) return std::string(name);
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? std::string(text.get()) : std::string(name);
}

std::string ShortKernelName(std::string_view demangled) {
  std::string name;
  for (size_t at = 0; at < demangled.size();) {
    const char c = demangled[at];
    const std::string_view rest = demangled.substr(at);
    if (rest.starts_with(kAnonymous)) {
      name += kAnonymous;
      at += kAnonymous.size();
    } else if (const size_t end = SkipOperator(demangled, at); end != at) {
      name += demangled.substr(at, end - at);
      at = end;
    } else if (c == '<') {
      at = SkipBrackets(demangled, at);
    } else if (c == '{') {
      const size_t close = SkipBrackets(demangled, at);
      name += demangled.substr(at, close - at);
      at = close;
    } else if (c == '(') {
      // The arguments, unless it goes on: what is inside of a function.
      at = SkipBrackets(demangled, at);
      if (!demangled.substr(at).starts_with("::")) break;
    } else if (c == ' ') {
      // What came before was what it returns.
      name.clear();
      ++at;
    } else {
      name += c;
      ++at;
    }
  }
  return name.empty() ? std::string(demangled) : name;
}

}  // namespace pystrobe::gpu
