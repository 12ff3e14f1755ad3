// SPDX-License-Identifier: Apache-2.0
//
// The progress line: elapsed time, samples, rate, rewritten in place on stderr. [one thread]
#pragma once

#include <string>

#include "sampler/remote/sampler.h"

namespace pystrobe::cli {

/// "0:12  11,998 samples  1,000 Hz  (Ctrl-C stops and reports)", or what is left to do at
/// the end; at most `width` cells.
std::string ProgressText(const remote::Progress& progress, int width);

/// Shows nothing when disabled. Erases itself when it goes.
class ProgressLine {
 public:
  explicit ProgressLine(bool enabled) : enabled_(enabled) {}
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { Clear(); }

  void Show(const remote::Progress& progress);
  void Clear();

 private:
  bool enabled_;
  bool shown_ = false;
};

}  // namespace pystrobe::cli
