// SPDX-License-Identifier: Apache-2.0
#include "sampler/signal/cpu_event.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "profiler/base/thread_sigevent.h"

namespace pystrobe::signals {
namespace {

// What the kernel makes of a thread id for a clock of that thread's CPU time
// (include/linux/posix-timers_types.h, make_thread_cpuclock, CPUCLOCK_SCHED).
clockid_t CpuClockOf(pid_t tid) {
  constexpr clockid_t kScheduled = 2, kPerThread = 4;
  return static_cast<clockid_t>((~static_cast<unsigned>(tid) << 3) | kScheduled | kPerThread);
}

Error WithoutRoom(int error_number, pid_t tid) {
  Error error = FailErrno(error_number, ErrorCode::kIo, "no CPU event for thread {}", tid).error();
  if (error_number == EMFILE || error_number == ENFILE) {
    error.message += " (see `ulimit -n`)";
    error.hint = "Each thread that is sampled takes a file descriptor.";
  } else if (error_number == EAGAIN) {
    error.message += " (see `ulimit -i`)";
    error.hint = "Each thread that is sampled takes a pending signal.";
  }
  return error;
}

Result<ScopedFd> OpenPerf(pid_t tid, Nanoseconds period, bool user_only) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_TASK_CLOCK;
  attributes.sample_period = static_cast<uint64_t>(period.count());
  attributes.exclude_kernel = user_only;
  attributes.exclude_hv = user_only;
  attributes.disabled = 1;
  attributes.wakeup_events = 1;
  const long fd = syscall(SYS_perf_event_open, &attributes, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (fd < 0) return std::unexpected(WithoutRoom(errno, tid));
  ScopedFd event(static_cast<int>(fd));
  const f_owner_ex owner{F_OWNER_TID, tid};
  if (fcntl(event.get(), F_SETFL, O_ASYNC) != 0 || fcntl(event.get(), F_SETSIG, kSignal) != 0 ||
      fcntl(event.get(), F_SETOWN_EX, &owner) != 0 ||
      ioctl(event.get(), PERF_EVENT_IOC_ENABLE, 0) != 0) {
    return std::unexpected(WithoutRoom(errno, tid));
  }
  return event;
}

Result<timer_t> StartTimer(pid_t tid, Nanoseconds period) {
  sigevent event = ThreadSigevent(tid, kSignal);
  timer_t timer{};
  if (timer_create(CpuClockOf(tid), &event, &timer) != 0) {
    return std::unexpected(WithoutRoom(errno == EINVAL ? ESRCH : errno, tid));
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(period);
  const timespec every{seconds.count(), (period - seconds).count()};
  const itimerspec times{every, every};
  if (timer_settime(timer, 0, &times, nullptr) != 0) {
    const int reason = errno;
    timer_delete(timer);
    return std::unexpected(WithoutRoom(reason, tid));
  }
  return timer;
}

}  // namespace

std::string_view CpuSourceName(CpuSource source) {
  switch (source) {
    case CpuSource::kPerf:
      return "perf task clock";
    case CpuSource::kPerfUser:
      return "perf task clock (user mode)";
    case CpuSource::kTimer:
      return "CPU timer";
  }
  return "?";
}

Result<CpuSource> FindCpuSource() {
  // Long enough that none of them ever sends anything.
  constexpr Nanoseconds kNever = std::chrono::hours(1);
  Error last{};
  for (const CpuSource source : {CpuSource::kPerf, CpuSource::kPerfUser, CpuSource::kTimer}) {
    const auto event = CpuEvent::Start(source, gettid(), kNever);
    if (event) return source;
    last = event.error();
    if (last.code != ErrorCode::kPermission && last.code != ErrorCode::kNotFound) break;
  }
  return std::unexpected(last);
}

Result<CpuEvent> CpuEvent::Start(CpuSource source, pid_t tid, Nanoseconds period) {
  if (source == CpuSource::kTimer) {
    const auto timer = StartTimer(tid, period);
    if (!timer) return std::unexpected(timer.error());
    return CpuEvent(ScopedFd(), *timer, std::nullopt);
  }
  auto event = OpenPerf(tid, period, source == CpuSource::kPerfUser);
  if (!event) return std::unexpected(event.error());
  if (source != CpuSource::kPerfUser) return CpuEvent(*std::move(event), {}, {});
  // Better than nothing is what there is without it.
  const auto timer = StartTimer(tid, TimerPeriod(period));
  return timer ? CpuEvent(*std::move(event), *timer, {})
               : CpuEvent(*std::move(event), {}, timer.error());
}

CpuEvent::CpuEvent(CpuEvent&& other) noexcept
    : event_(std::move(other.event_)),
      timer_(std::exchange(other.timer_, std::nullopt)),
      lack_(std::move(other.lack_)) {}

CpuEvent::~CpuEvent() {
  // A child made by fork may hold the descriptor too, and with it the event.
  if (IsEventOfOurs(event_.get())) {
    ioctl(event_.get(), PERF_EVENT_IOC_DISABLE, 0);
  } else {
    static_cast<void>(event_.release());
  }
  if (timer_) timer_delete(*timer_);
}

// ScopedFd cannot tell it from others without an inode of their own.
bool IsEventOfOurs(int fd) { return fd >= 0 && fcntl(fd, F_GETSIG) == kSignal; }

std::optional<Nanoseconds> CpuTimeOf(pid_t tid) {
  timespec time{};
  if (clock_gettime(CpuClockOf(tid), &time) != 0) return std::nullopt;
  return std::chrono::seconds(time.tv_sec) + Nanoseconds(time.tv_nsec);
}

Nanoseconds TimerPeriod(Nanoseconds period) {
  timespec tick{};
  if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick) != 0) return period;
  const Nanoseconds step = std::chrono::seconds(tick.tv_sec) + Nanoseconds(tick.tv_nsec);
  return std::max<int64_t>(1, (period + step - Nanoseconds(1)) / step) * step;
}

// F_SETSIG has the kernel say what poll(2) would (SIGPOLL codes, above 0 and below SI_KERNEL). A
// signal for which there was no room in the queue comes without any word of its sender.
bool MayBeOurs(const siginfo_t& info) {
  if (IsOfTimer(info)) return true;
  if (info.si_code == SI_USER) return info.si_pid == 0;
  return info.si_code > 0 && info.si_code < SI_KERNEL;  // which is that of urgent data
}

}  // namespace pystrobe::signals
