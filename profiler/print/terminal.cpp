// SPDX-License-Identifier: Apache-2.0
#include "profiler/print/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "profiler/base/ascii.h"

namespace pystrobe::print {
namespace {

constexpr int kLeastWidth = 40;
constexpr int kMostWidth = 400;

/// POSIX's order of precedence. No locale set at all is what bare containers have; their terminals
/// speak UTF-8 all the same.
bool SpeaksUtf8(Environment environment) {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string locale = environment(name).value_or("");
    if (locale.empty()) continue;
    std::ranges::transform(locale, locale.begin(), ToLower);
    return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  }
  return true;
}

}  // namespace

bool WantsColor(bool is_terminal, Environment environment) {
  if (!environment("NO_COLOR").value_or("").empty()) return false;
  const std::string force = environment("CLICOLOR_FORCE").value_or("");
  if (!force.empty() && force != "0") return true;
  if (environment("CLICOLOR") == "0" || environment("TERM") == "dumb") return false;
  return is_terminal;
}

Terminal DescribeTerminal(int fd, Environment environment) {
  Terminal terminal;
  terminal.is_terminal = isatty(fd) == 1;
  terminal.color = WantsColor(terminal.is_terminal, environment);
  winsize size{};
  if (terminal.is_terminal && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    terminal.width = std::clamp<int>(size.ws_col, kLeastWidth, kMostWidth);
  }
  if (!SpeaksUtf8(environment)) terminal.ellipsis = "...";
  return terminal;
}

Palette::Palette(bool color) {
  if (!color) return;
  hot = "\x1b[1;31m";
  strong = "\x1b[1m";
  faint = "\x1b[2m";
  reset = "\x1b[0m";
}

}  // namespace pystrobe::print
