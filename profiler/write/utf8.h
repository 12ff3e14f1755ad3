// SPDX-License-Identifier: Apache-2.0
//
// Names come from the memory of another process and may hold anything; the formats want UTF-8.
// [any thread]
#pragma once

#include <string>
#include <string_view>

namespace pystrobe::write {

/// U+FFFD, what takes the place of bytes that are not UTF-8.
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

/// Length of the well-formed UTF-8 sequence at the start of `text` (1 to 4), or 0 when there is
/// none: stray or missing continuation bytes, overlong forms, surrogates, above U+10FFFF.
size_t Utf8SequenceLength(std::string_view text);

/// `text` with every byte that is not part of well-formed UTF-8 replaced by U+FFFD.
std::string ValidUtf8(std::string_view text);

/// The same with a space for each control character of ASCII, line ends among them.
std::string OnOneLine(std::string_view text);

}  // namespace pystrobe::write
