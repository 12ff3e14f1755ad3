// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/promptness.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "sampler/remote/kernel_version.h"

namespace pystrobe::remote {
namespace {

constexpr uint32_t kLowestRealTime = 1;

bool SetScheduling(SchedAttr attributes) {
  attributes.size = sizeof attributes;
  return syscall(SYS_sched_setattr, 0, &attributes, 0) == 0;
}

bool IsRealTimePolicy(uint32_t policy) {
  return policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE;
}

}  // namespace

ScopedPromptness::ScopedPromptness(Urgency urgency)
    : timer_slack_(prctl(PR_GET_TIMERSLACK)),
      affinity_known_(sched_getaffinity(0, sizeof affinity_, &affinity_) == 0) {
  prctl(PR_SET_TIMERSLACK, 1);
  if (syscall(SYS_sched_getattr, 0, &before_, sizeof before_, 0) != 0) return;
  if (IsRealTimePolicy(before_.policy)) return;
  if (urgency == Urgency::kAtOnce) {
    SchedAttr real_time{};
    real_time.policy = SCHED_FIFO;
    real_time.priority = kLowestRealTime;
    changed_ = SetScheduling(real_time);
    if (changed_) return;
  }
  SchedAttr prompt{};
  prompt.policy = SCHED_OTHER;
  prompt.runtime = static_cast<uint64_t>(kShortestSlice.count());
  // Not a better one: a heavy thread draws the share of its group (autogroup, cgroup) to its own
  // CPU, and a target of that group is left next to nothing where it competes with other groups.
  prompt.nice = before_.nice;
  changed_ = SetScheduling(prompt);
}

ScopedPromptness::~ScopedPromptness() {
  if (changed_) SetScheduling(before_);
  prctl(PR_SET_TIMERSLACK, timer_slack_);
  if (affinity_known_) sched_setaffinity(0, sizeof affinity_, &affinity_);
}

void BeOrdinary() {
  constexpr unsigned long kUsualSlack = 50'000;  // ns, what a process begins with
  prctl(PR_SET_TIMERSLACK, kUsualSlack);
  SchedAttr usual{};
  if (syscall(SYS_sched_getattr, 0, &usual, sizeof usual, 0) != 0) return;
  if (usual.policy != SCHED_OTHER) return;
  usual.runtime = 0;  // the slice that others have
  SetScheduling(usual);
}

Result<void> PinTo(pid_t tid, int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (sched_setaffinity(tid, sizeof set, &set) == 0) return {};
  return FailErrno(errno, ErrorCode::kInvalidArgument, "entering CPU {}", cpu);
}

bool WaitsForSlices() {
  utsname name{};
  if (uname(&name) != 0) return false;
  return KernelVersionOf(name) >= std::pair(6, 6) && !IsRealTime(0);
}

bool IsRealTime(pid_t tid) {
  const int policy = sched_getscheduler(tid);
  return policy >= 0 && IsRealTimePolicy(static_cast<uint32_t>(policy & ~SCHED_RESET_ON_FORK));
}

}  // namespace pystrobe::remote
