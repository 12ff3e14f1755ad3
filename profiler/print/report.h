// SPDX-License-Identifier: Apache-2.0
//
// A recording as text: the tables, and how far they can be trusted. [any thread]
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "profiler/analyze/profile.h"
#include "profiler/print/table.h"

namespace pystrobe::print {

struct ReportOptions {
  TableOptions table;
  bool with_table = true;             ///< else the quality alone
  bool of_a_part = false;             ///< what is shown is not the whole recording
  std::optional<std::string> thread;  ///< as it was folded: FoldOptions::thread
  std::string_view cut_off;           ///< what is missing of a file that was cut off, or empty
  std::string_view how_to_show_gpu;   ///< "pystrobe report FILE --gpu"; empty: not to be told
};

/// The table of functions; in Mode::kGpu those of kernels and of ranges too, else a line on the
/// work of a GPU where there is any, and of a recording without any GPU the ranges; and the quality
/// of what is shown.
std::string FormatReport(const Profile& profile, const ReportOptions& options);

}  // namespace pystrobe::print
