// SPDX-License-Identifier: Apache-2.0
//
// How far a recording can be trusted, as the paragraph below its table. [any thread]
#pragma once

#include <string>
#include <string_view>

#include "profiler/model/recording.h"

namespace pystrobe::print {

struct QualityOptions {
  int width = 80;            ///< cells
  bool of_a_part = false;    ///< what is shown with it is not the whole recording
  std::string_view cut_off;  ///< what is missing of a file that was cut off, or empty
};

/// The quality line, how to get more samples where a limit kept the rate low, and what is missing.
/// Safe to print: a file may hold anything, also in the words of its quality.
std::string FormatQuality(const Metadata& metadata, const Quality& quality,
                          const QualityOptions& options);

}  // namespace pystrobe::print
