// SPDX-License-Identifier: Apache-2.0
//
// Letters and digits of ASCII, whatever the locale, for any char: those of <cctype> depend on the
// one and are undefined for negative values of the other. [any thread]
#pragma once

#include <algorithm>
#include <string_view>

namespace pystrobe {

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr char ToLower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}
constexpr bool IsLetter(char c) { return ToLower(c) >= 'a' && ToLower(c) <= 'z'; }

/// One digit or more, and nothing else.
constexpr bool IsNumber(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, IsDigit);
}

constexpr bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, ToLower, ToLower);
}

}  // namespace pystrobe
