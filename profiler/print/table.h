// SPDX-License-Identifier: Apache-2.0
//
// The table of functions: what a newcomer sees first. [any thread]
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "profiler/analyze/profile.h"
#include "profiler/print/dialect.h"
#include "profiler/print/terminal.h"

namespace pystrobe::print {

struct TableOptions {
  Mode mode = Mode::kWall;
  std::optional<uint32_t> top;  ///< rows; nullopt: 20 at most, and none that hardly matters
  Terminal terminal;
  std::string directory;  ///< paths below it are shown relative to it; may be empty
  Dialect dialect = Dialect::kCommandLine;
};

/// What was sampled, the rows by self time, what was left out or is in no function, regions, a
/// two-line legend, and FormatSplit. When there is nothing to show it says so, and why.
std::string FormatTable(const Profile& profile, const TableOptions& options);

}  // namespace pystrobe::print
