// SPDX-License-Identifier: Apache-2.0
//
// The lines of what is printed.
#pragma once

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace pystrobe::testing {

inline std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// The first with such a part; empty if there is none.
inline std::string LineWith(const std::string& text, std::string_view part) {
  for (const std::string& line : LinesOf(text)) {
    if (line.find(part) != std::string::npos) return line;
  }
  return "";
}

}  // namespace pystrobe::testing
