// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/task_clock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <string_view>

namespace pystrobe::remote {
namespace {

ScopedFd OpenTaskFile(pid_t pid, pid_t tid, std::string_view name) {
  return ScopedFd(
      open(fmt::format("/proc/{}/task/{}/{}", pid, tid, name).c_str(), O_RDONLY | O_CLOEXEC));
}

template <size_t kSize>
std::string_view ReadInto(int fd, char (&buffer)[kSize]) {
  ssize_t length = pread(fd, buffer, kSize, 0);
  return {buffer, length > 0 ? static_cast<size_t>(length) : 0};
}

// A kernel without scheduler statistics lacks the file, or it says "0 0 0". So it does for a thread
// that has not run yet, but this one has.
bool KernelKeepsStatistics() {
  static const bool keeps = [] {
    ScopedFd own(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC));
    char text[128];
    return own.valid() && !ReadInto(own.get(), text).starts_with("0 0 0");
  }();
  return keeps;
}

}  // namespace

bool SaysAwake(std::string_view syscall_text) { return syscall_text.starts_with("running"); }

TaskClock::TaskClock(pid_t pid, pid_t tid) : pid_(pid), tid_(tid) {
  schedstat_ = OpenTaskFile(pid, tid, "schedstat");
  exact_ = KernelKeepsStatistics();
}

std::optional<SchedStat> TaskClock::Read() {
  if (!exact_) return ReadTicks();
  char text[128];
  return ParseSchedStat(ReadInto(schedstat_.get(), text));
}

std::optional<SchedStat> TaskClock::ReadTicks() {
  char text[1024];
  if (stat_fd() < 0) return std::nullopt;
  auto stat = ParseTaskStat(ReadInto(stat_.get(), text));
  if (!stat) return std::nullopt;
  static const auto kTickNs = uint64_t{1'000'000'000} / static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  return SchedStat{(stat->user_ticks + stat->system_ticks) * kTickNs, 0, 0};
}

bool TaskClock::Running() {
  char text[256];
  std::string_view says = ReadInto(syscall_fd(), text);
  if (!says.empty()) return SaysAwake(says);
  char stat_text[1024];
  if (stat_fd() < 0) return false;
  auto stat = ParseTaskStat(ReadInto(stat_.get(), stat_text));
  return stat && stat->state == 'R';
}

int TaskClock::syscall_fd() {
  if (!syscall_.valid()) syscall_ = OpenTaskFile(pid_, tid_, "syscall");
  return syscall_.get();
}

int TaskClock::stat_fd() {
  if (!stat_.valid()) stat_ = OpenTaskFile(pid_, tid_, "stat");
  return stat_.get();
}

}  // namespace pystrobe::remote
