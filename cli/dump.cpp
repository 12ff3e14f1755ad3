// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/dump.h"

#include <unistd.h>

#include "cli/dump_text.h"
#include "cli/message.h"
#include "cli/verbs.h"

namespace pystrobe::cli {

int Dump(const DumpVerbOptions& options) {
  const auto dump = remote::TakeDump(options.pid, {options.locals, options.pause, options.native});
  if (!dump) {
    PrintError(dump.error());
    return ExitCodeFor(dump.error());
  }
  if (options.locals) {
    PrintNote("local variables are shown; their values may be secret, look before you share them");
  }
  const std::string text =
      options.json ? DumpJson(*dump, options.locals)
                   : DumpText(*dump, print::DescribeTerminal(STDOUT_FILENO, kProcessEnvironment));
  return PrintToStdout(text) ? kExitOk : kExitFailure;
}

}  // namespace pystrobe::cli
