// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/cpu_stay.h"

#include <sched.h>
#include <sys/resource.h>

namespace pystrobe::remote {
namespace {

// Away from the calling thread, of either kind.
int64_t ContextSwitches() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw + usage.ru_nivcsw;
}

}  // namespace

// The CPU is asked for last: a switch in between shows.
CpuStay::CpuStay()
    : has_flag_(SwitchFlag::Available()),
      flag_(SwitchFlag::OfThisThread()),
      switches_(has_flag_ ? 0 : ContextSwitches()) {
  flag_.Set();
  cpu_ = sched_getcpu();
}

bool CpuStay::Lasts() const {
  const bool unbroken = has_flag_ ? flag_.IsSet() : ContextSwitches() == switches_;
  return unbroken && sched_getcpu() == cpu_;
}

}  // namespace pystrobe::remote
