// SPDX-License-Identifier: Apache-2.0
//
// What happens with a recording: the table, the quality line, the files. [main thread]
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/invoker.h"
#include "cli/output_file.h"
#include "profiler/store/strobe.h"

namespace pystrobe::cli {

struct PresentOptions {
  View view;
  std::string file;          ///< that was read; may be empty
  bool quiet = false;        ///< neither table nor "wrote" lines
  bool table = true;         ///< table and quality line
  bool gpu_too = false;      ///< of the table: what a GPU did is a table of its own, behind it
  bool table_is_all = true;  ///< else a table_fd that the caller closed says: files only
  int table_fd = 1;          ///< where table and quality line go; stderr for `run`
  int recording_fd = -1;     ///< copied to outputs of format .strobe that were not streamed to
};

/// Folds `recording`, prints the table (unless an output is standard output) and the quality line,
/// then writes `outputs`, each whatever became of those before it. Errors are printed. False when
/// anything failed; a reader that went away is no failure.
bool Present(const store::StrobeFile& recording, std::vector<OutputFile>& outputs,
             const PresentOptions& options);

}  // namespace pystrobe::cli
