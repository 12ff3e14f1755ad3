// SPDX-License-Identifier: Apache-2.0
//
// What the children recorded that a program made by fork: each in a file of its own, beside the
// program's. [main thread]
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/invoker.h"
#include "profiler/base/error.h"
#include "profiler/store/strobe.h"

namespace pystrobe::cli {

class ForkedChildren {
 public:
  /// Once the outputs are open and before the program begins: what is there already is of no child
  /// of it. Fails with kInvalidArgument where no output is a file. `options` must outlive this.
  static Result<ForkedChildren> Expect(const RecordOptions& options);

  /// The .strobe beside which each child writes its own while it runs, from the root:
  /// "/a/out.strobe" for /a/out.PID.strobe, or /a/out.PID-2.strobe where that is there.
  std::string place() const { return stem_ + ".strobe"; }

  /// After the program's end: writes the outputs asked for of each child, and tells their names.
  /// The .strobe of one that still runs stays, and goes on.
  void Report() const;

 private:
  ForkedChildren(const RecordOptions& options, const OutputRequest& beside);

  /// What stands in the names for the program's children: "1234", "1234-2".
  std::vector<std::string> ListTags() const;
  /// What there is of a child in the end, for people; nullopt: nothing.
  std::optional<std::string> ReportOne(const std::string& tag) const;

  /// What was asked for of a child; false where something of that could not be written.
  bool WriteOutputs(const store::StrobeFile& recording, int fd, const std::string& tag) const;

  const RecordOptions& options_;
  std::string beside_;  ///< the output whose name the recordings have
  bool is_stream_;      ///< it is what children write anyway
  std::string stem_;
  std::optional<Invoker> invoker_;
  std::set<std::string> before_;
};

}  // namespace pystrobe::cli
