// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/doctor.h"

#include <unistd.h>

#include <algorithm>

#include "cli/message.h"
#include "cli/verbs.h"
#include "profiler/print/terminal.h"
#include "profiler/print/text.h"

namespace pystrobe::cli {
namespace {

using remote::Check;
using remote::CheckState;

std::string CheckText(const Check& check, int name_width, const print::Terminal& terminal) {
  const print::Palette palette(terminal.color);
  constexpr int kStateWidth = 4;
  const int indent = kStateWidth + 2 + name_width + 2;
  const std::string_view style = check.state == CheckState::kOk     ? palette.faint
                                 : check.state == CheckState::kFail ? palette.hot
                                                                    : palette.strong;
  std::string text =
      fmt::format("{}{:<{}}{}  {}  ", style, remote::CheckStateName(check.state), kStateWidth,
                  palette.reset, print::PadRight(check.name, name_width));
  const std::string seen = print::WrapLines(check.seen, terminal.width, indent);
  text += seen.empty() ? "\n" : seen.substr(static_cast<size_t>(indent));
  text += print::WrapLines(check.meaning, terminal.width, indent);
  text += print::WrapLines(check.cure, terminal.width, indent);
  return text;
}

}  // namespace

int Doctor(const DoctorOptions& options) {
  const std::vector<Check> checks = remote::RunChecks(options.pid);
  const print::Terminal terminal = print::DescribeTerminal(STDOUT_FILENO, kProcessEnvironment);
  int name_width = 0;
  for (const Check& check : checks) {
    name_width = std::max(name_width, print::DisplayWidth(check.name));
  }
  std::string text;
  for (const Check& check : checks) text += CheckText(check, name_width, terminal);
  const bool failed = std::any_of(checks.begin(), checks.end(), [](const Check& check) {
    return check.state == CheckState::kFail;
  });
  const bool warned = std::any_of(checks.begin(), checks.end(), [](const Check& check) {
    return check.state == CheckState::kWarn;
  });
  text += failed   ? "\nSomething above stops sampling.\n"
          : warned ? "\nSampling works, with the limits above.\n"
                   : "\nEverything is in order.\n";
  const bool printed = PrintToStdout(text);
  return failed || !printed ? kExitFailure : kExitOk;
}

}  // namespace pystrobe::cli
