// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <unistd.h>

#include "cli/message.h"
#include "profiler/base/write_all.h"
#include "profiler/print/terminal.h"
#include "profiler/print/text.h"
#include "profiler/write/number_text.h"

namespace pystrobe::cli {

std::string ProgressText(const remote::Progress& progress, int width) {
  if (progress.stacks_left > 0) {
    const std::string left = write::GroupDigits(progress.stacks_left);
    return print::CutEnd(
        fmt::format("C functions of {} stacks are left to find  (Ctrl-C does without)", left),
        width, "");
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(progress.elapsed).count();
  const double elapsed = static_cast<double>(progress.elapsed.count()) / 1e9;
  const double rate = elapsed > 0 ? static_cast<double>(progress.quality.taken) / elapsed : 0;
  const std::string text =
      fmt::format("{}:{:02}  {} samples  {} Hz  (Ctrl-C stops and reports)", seconds / 60,
                  seconds % 60, write::GroupDigits(progress.quality.taken), write::RateText(rate));
  return print::CutEnd(text, width, "");
}

void ProgressLine::Show(const remote::Progress& progress) {
  // A run of a moment needs no progress.
  const bool is_worth_it = progress.elapsed >= std::chrono::seconds(1) || progress.stacks_left > 0;
  if (!enabled_ || !is_worth_it) return;
  const print::Terminal terminal = print::DescribeTerminal(STDERR_FILENO, kProcessEnvironment);
  (void)WriteAll(STDERR_FILENO, "\r\x1b[K" + ProgressText(progress, terminal.width - 1));
  shown_ = true;
}

void ProgressLine::Clear() {
  if (shown_) (void)WriteAll(STDERR_FILENO, "\r\x1b[K");
  shown_ = false;
}

}  // namespace pystrobe::cli
