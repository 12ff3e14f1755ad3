// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "cli/invoker.h"
#include "cli/message.h"
#include "cli/present.h"
#include "cli/verbs.h"

namespace pystrobe::cli {

int Report(const ReportOptions& options) {
  auto recording = store::StrobeFile::Open(options.file);
  if (!recording) {
    PrintError(recording.error());
    return ExitCodeFor(recording.error());
  }
  const auto invoker = FindInvoker(geteuid(), kProcessEnvironment);
  std::vector<OutputFile> outputs;
  for (const OutputRequest& request : options.outputs) {
    auto output = OutputFile::Open(request, options.force, invoker);
    if (!output) {
      PrintError(output.error());
      return ExitCodeFor(output.error());
    }
    outputs.push_back(*std::move(output));
  }
  const PresentOptions present{.view = options.view, .table = outputs.empty()};
  return Present(**recording, outputs, present) ? kExitOk : kExitFailure;
}

}  // namespace pystrobe::cli
