// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "cli/invoker.h"
#include "cli/message.h"
#include "cli/present.h"
#include "cli/signals.h"
#include "cli/verbs.h"

namespace pystrobe::cli {

int Report(const ReportOptions& options) {
  CleanUpOnSignals();
  auto recording = store::StrobeFile::Open(options.file);
  if (!recording) {
    Error error = recording.error();
    if (error.code == ErrorCode::kNotFound) {
      error.hint = "Give the path of a recording; to make one: pystrobe attach PID -o FILE.strobe";
    }
    PrintError(error);
    return ExitCodeFor(error);
  }
  // A table tells of it itself.
  const std::string& missing = (*recording)->cut_off();
  if (!missing.empty() && !options.outputs.empty()) {
    PrintNote(fmt::format("{}: {}", options.file, missing));
  }
  const auto invoker = FindInvoker(geteuid(), kProcessEnvironment);
  auto outputs = OpenOutputs(options.outputs, options.force, invoker, options.file);
  if (!outputs) {
    PrintError(outputs.error());
    return ExitCodeFor(outputs.error());
  }
  const PresentOptions present{
      .view = options.view, .file = options.file, .table = outputs->empty()};
  return Present(**recording, *outputs, present) ? kExitOk : kExitFailure;
}

}  // namespace pystrobe::cli
