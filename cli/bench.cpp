// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <string>
#include <vector>

#include "cli/invoker.h"
#include "cli/message.h"
#include "cli/run_command.h"
#include "cli/spawn.h"
#include "cli/verbs.h"
#include "profiler/base/proc.h"

namespace pystrobe::cli {
namespace {

// What is measured runs inside of interpreters, so the package does it.
constexpr const char* kProgram = R"(import sys
try:
    from pystrobe.bench.__main__ import main
except ImportError as error:
    sys.exit(f"""pystrobe: {sys.executable}: {error}
bench needs a Python that has the package pystrobe: name it in PYSTROBE_PYTHON, or activate its
virtual environment. In one, from pystrobe's source: python3 -m pip install DIRECTORY""")
sys.exit(main()))";

}  // namespace

int Bench(const BenchOptions& options) {
  const std::string executable = ReadLink("/proc/self/exe").value_or("");
  std::vector<std::string> command{PythonWithPackage(kProcessEnvironment, executable), "-c",
                                   kProgram};
  command.insert(command.end(), options.words.begin(), options.words.end());
  PrintError(BecomeProgram(command, FindInvoker(geteuid(), kProcessEnvironment)));
  return kExitFailure;
}

}  // namespace pystrobe::cli
