// SPDX-License-Identifier: Apache-2.0
//
// How a reader is told to ask for more: by the options of the command line, or by arguments from
// Python. [any thread]
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace pystrobe::print {

enum class Dialect : uint8_t { kCommandLine, kPython };

/// All `rows` of a table.
inline std::string AskForRows(Dialect dialect, size_t rows) {
  return fmt::format("{}{}", dialect == Dialect::kPython ? "top=" : "--top ", rows);
}
/// `mode`: "cpu".
inline std::string AskForMode(Dialect dialect, std::string_view mode) {
  return dialect == Dialect::kPython ? fmt::format("mode=\"{}\"", mode)
                                     : fmt::format("--mode {}", mode);
}
inline std::string_view AskForIdle(Dialect dialect) {
  return dialect == Dialect::kPython ? "include_idle=True" : "--idle";
}
/// The option itself.
inline std::string_view NameOfRate(Dialect dialect) {
  return dialect == Dialect::kPython ? "rate=" : "-r";
}

}  // namespace pystrobe::print
