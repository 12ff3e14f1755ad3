// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/task_clock.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace pystrobe::remote {
namespace {

// A kernel without scheduler statistics lacks the file, or it says "0 0 0". So it does for a thread
// that has not run yet, but this one has.
bool KernelKeepsStatistics() {
  static const bool keeps = [] {
    ScopedFd own(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC));
    if (!own.valid()) return errno != ENOENT;
    char text[128];
    return !ReadInto(own.get(), text).starts_with("0 0 0");
  }();
  return keeps;
}

}  // namespace

bool SaysAwake(std::string_view syscall_text) { return syscall_text.starts_with("running"); }

std::optional<Nanoseconds> ProcessCpuOf(pid_t pid) {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0)
    return std::nullopt;
  return std::chrono::seconds(time.tv_sec) + Nanoseconds(time.tv_nsec);
}

TaskClock::TaskClock(TaskFiles& files, pid_t pid, pid_t tid)
    : exact_(KernelKeepsStatistics()),
      schedstat_(files, pid, tid, "schedstat"),
      stat_(files, pid, tid, "stat"),
      syscall_(files, pid, tid, "syscall") {}

std::optional<SchedStat> TaskClock::Read() {
  char text[128];
  auto now = exact_ ? ParseSchedStat(schedstat_.Read(text)) : ReadTicks();
  if (now || !unknown()) last_ = now;
  return last_;
}

std::optional<SchedStat> TaskClock::ReadTicks() {
  char text[1024];
  auto stat = ParseTaskStat(stat_.Read(text));
  if (!stat) return std::nullopt;
  static const auto kTickNs = uint64_t{1'000'000'000} / static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  return SchedStat{(stat->user_ticks + stat->system_ticks) * kTickNs, 0, 0};
}

bool TaskClock::Running() {
  char text[256];
  std::string_view says = syscall_.Read(text);
  if (!says.empty()) return SaysAwake(says);
  char stat_text[1024];
  auto stat = ParseTaskStat(stat_.Read(stat_text));
  return stat ? stat->state == 'R' : stat_.unknown();
}

}  // namespace pystrobe::remote
