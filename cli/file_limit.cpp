// SPDX-License-Identifier: Apache-2.0
#include "cli/file_limit.h"

#include <sys/resource.h>

namespace pystrobe::cli {
namespace {

rlimit limit_before{};
bool raised = false;

}  // namespace

void RaiseFileLimit() {
  if (getrlimit(RLIMIT_NOFILE, &limit_before) != 0) return;
  rlimit most = limit_before;
  most.rlim_cur = most.rlim_max;
  raised = setrlimit(RLIMIT_NOFILE, &most) == 0;
}

void RestoreFileLimit() {
  if (raised) setrlimit(RLIMIT_NOFILE, &limit_before);
}

}  // namespace pystrobe::cli
