// SPDX-License-Identifier: Apache-2.0
//
// What a mistyped word may have meant. [any thread]
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace pystrobe::cli {

/// The one of `known` that is nearest to `word`, by letters that were left out, added, exchanged or
/// swapped with their neighbour: one of these, or two in a word of more than five letters that
/// begins alike. Nullopt where there is none such.
std::optional<std::string_view> Nearest(std::string_view word,
                                        std::span<const std::string_view> known);

}  // namespace pystrobe::cli
