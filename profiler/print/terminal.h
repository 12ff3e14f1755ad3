// SPDX-License-Identifier: Apache-2.0
//
// What a stream can show.
#pragma once

#include <string_view>

#include "profiler/base/environment.h"

namespace pystrobe::print {

/// How text for one stream is laid out and coloured.
struct Terminal {
  bool is_terminal = false;
  int width = 80;  ///< cells; 80 when the stream is no terminal
  bool color = false;
  std::string_view ellipsis = "…";  ///< "..." where the locale says that UTF-8 is not understood
};

/// Colour only on a terminal that knows it. NO_COLOR (not empty) and CLICOLOR=0 turn it off,
/// CLICOLOR_FORCE (not empty, not "0") turns it on everywhere; NO_COLOR wins.
bool WantsColor(bool is_terminal, Environment environment);

/// Describes file descriptor `fd`.
Terminal DescribeTerminal(int fd, Environment environment);

/// The few styles there are, readable on dark and on light grounds. Empty strings without colour.
struct Palette {
  explicit Palette(bool color);
  std::string_view hot;     ///< what takes much time
  std::string_view strong;  ///< headings
  std::string_view faint;   ///< what may be overlooked
  std::string_view reset;
};

}  // namespace pystrobe::print
