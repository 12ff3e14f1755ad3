// SPDX-License-Identifier: Apache-2.0
//
// The verbs. Each takes its parsed options, does everything, prints what went wrong, and returns
// the exit status. [main thread]
#pragma once

#include "cli/command_line.h"

namespace pystrobe::cli {

int Attach(const AttachOptions& options);
int Run(const RunOptions& options);
int Dump(const DumpVerbOptions& options);
int Report(const ReportOptions& options);
int Doctor(const DoctorOptions& options);
int Bench(const BenchOptions& options);

}  // namespace pystrobe::cli
