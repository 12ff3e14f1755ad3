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
  if (!enabled_ || progress.elapsed < std::chrono::seconds(1)) return;
  const print::Terminal terminal = print::DescribeTerminal(STDERR_FILENO, kProcessEnvironment);
  (void)WriteAll(STDERR_FILENO, "\r\x1b[K" + ProgressText(progress, terminal.width - 1));
  shown_ = true;
}

void ProgressLine::Clear() {
  if (shown_) (void)WriteAll(STDERR_FILENO, "\r\x1b[K");
  shown_ = false;
}

}  // namespace pystrobe::cli
