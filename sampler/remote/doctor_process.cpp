// SPDX-License-Identifier: Apache-2.0
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "profiler/base/proc.h"
#include "profiler/base/thread.h"
#include "sampler/remote/doctor_checks.h"
#include "sampler/remote/identify.h"
#include "sampler/remote/permission.h"
#include "sampler/remote/promptness.h"
#include "sampler/remote/target.h"

namespace pystrobe::remote {
namespace {

Check FromError(std::string name, const Error& error) {
  return {std::move(name), CheckState::kFail, error.message, "this process cannot be sampled",
          error.hint};
}

Check CheckStateOf(pid_t pid) {
  Check check{.name = "process"};
  auto stat = ReadTaskStat(pid, pid);
  auto status = ReadStatus(pid);
  if (!stat || !status) {
    return FromError("process", {ErrorCode::kExited, fmt::format("process {} has ended", pid),
                                 "Give the pid of one that runs: `pgrep -af python` lists them."});
  }
  check.seen =
      fmt::format("{} ({}), uid {}, state {}, {} thread{}", pid, stat->name, status->real_uid,
                  stat->state, status->thread_count, status->thread_count == 1 ? "" : "s");
  if (stat->state == 'T' || stat->state == 't') {
    check.state = CheckState::kWarn;
    check.meaning = "it is stopped: every sample will show it where it stands";
    const std::string tracer = TracerOf(pid);
    check.cure = tracer.empty() ? fmt::format("kill -CONT {}", pid)
                                : fmt::format("let {} continue it, or end that", tracer);
  }
  return check;
}

Check CheckProcessContainer(pid_t pid) {
  Check check{.name = "its container"};
  std::string kind = ContainerKindOf(pid);
  auto status = ReadStatus(pid);
  check.seen = kind.empty() ? "none" : kind;
  if (status && status->namespace_pids.size() > 1) {
    check.seen += fmt::format(", in there its pid is {}", status->namespace_pids.back());
  }
  return check;
}

std::vector<Check> CheckInterpreter(const TargetInfo& info, size_t thread_count) {
  std::vector<Check> checks;
  Check executable{.name = "executable", .seen = info.executable};
  if (info.python_file_deleted) {
    executable.seen = info.python_file + " (deleted)";
    executable.meaning = "replaced on disk since the program started; sampled from memory";
  }
  checks.push_back(executable);
  checks.push_back({"interpreter",
                    CheckState::kOk,
                    fmt::format("Python {}{} in {}, found by {}", info.layout.version.ToString(),
                                info.layout.free_threaded ? " free-threaded" : "", info.python_file,
                                info.found_by),
                    {},
                    {}});
  checks.push_back(
      {"layout",
       CheckState::kOk,
       fmt::format("verified; {} Python thread{}", thread_count, thread_count == 1 ? "" : "s"),
       {},
       {}});
  checks.push_back(CheckRseq(info));
  return checks;
}

/// The CPUs that the process' threads may use and a thread of ours cannot enter.
Result<std::set<int>> ClosedCpus(const std::vector<pid_t>& tids) {
  cpu_set_t theirs;
  CPU_ZERO(&theirs);
  for (pid_t tid : tids) {
    cpu_set_t one;
    CPU_ZERO(&one);
    if (sched_getaffinity(tid, sizeof one, &one) == 0) CPU_OR(&theirs, &theirs, &one);
  }
  std::set<int> closed;
  // Tried by a thread of its own, so that no other thread's affinity is touched.
  auto thread = StartThread("trying the CPUs", [&] {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &theirs)) continue;
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      if (sched_setaffinity(0, sizeof one, &one) != 0) closed.insert(cpu);
    }
  });
  if (!thread) return std::unexpected(thread.error());
  thread->join();
  return closed;
}

Check CheckCpus(const std::vector<pid_t>& tids) {
  Check check{.name = "CPUs shared"};
  auto tried = ClosedCpus(tids);
  if (!tried) return FromError(check.name, tried.error());
  const std::set<int>& closed = *tried;
  check.seen = closed.empty() ? "all that it may use are open to the sampler"
                              : fmt::format("{} that it may use are closed to us, CPU {} first",
                                            closed.size(), *closed.begin());
  if (!closed.empty()) {
    check.state = CheckState::kWarn;
    check.meaning =
        "once a thread runs there, all are paused by ptrace instead of preemption, which holds "
        "them longer";
    check.cure = "Run pystrobe in the same cpuset (container) as the program.";
  }
  std::string isolated = ReadSmallFile("/sys/devices/system/cpu/isolated").value_or("");
  isolated.erase(std::find(isolated.begin(), isolated.end(), '\n'), isolated.end());
  if (!isolated.empty()) {
    check.meaning += fmt::format(
        "{}CPUs {} are isolated from the scheduler: the sampler enters them "
        "only while the program runs there",
        check.meaning.empty() ? "" : "; ", isolated);
  }
  return check;
}

}  // namespace

Check CheckTracer(const std::string& tracer) {
  Check check{.name = "tracer"};
  check.seen = "none";
  if (!tracer.empty()) {
    check.state = CheckState::kWarn;
    check.seen = fmt::format("{} traces it", tracer);
    check.meaning =
        "a debugger or strace is attached: --pause=ptrace cannot be used, and times are "
        "not those of the program alone";
    check.cure = fmt::format("End {}.", tracer);
  }
  return check;
}

Check CheckRseq(const TargetInfo& info) {
  Check check{.name = "rseq of the program"};
  if (info.rseq_offset) {
    check.seen = fmt::format("at offset {} of each thread", *info.rseq_offset);
    check.meaning = "samples of running threads can be proved exact at no extra cost";
  } else {
    check.state = CheckState::kWarn;
    check.seen = info.rseq_reason;
    check.meaning = "samples of running threads are checked through /proc, which costs more";
    check.cure =
        "Run the program with glibc 2.35 or later, without glibc.pthread.rseq=0 in "
        "GLIBC_TUNABLES; or sample less often, as with -r 50.";
  }
  return check;
}

Check CheckScheduling(pid_t pid, size_t real_time_threads) {
  Check check{.name = "scheduling"};
  check.seen = real_time_threads == 0 ? "ordinary"
                                      : fmt::format("{} real-time thread{}", real_time_threads,
                                                    real_time_threads == 1 ? "" : "s");
  if (real_time_threads > 0) {
    check.state = CheckState::kWarn;
    check.meaning =
        "they cannot be preempted by the sampler: once it comes to one, it pauses all threads "
        "by ptrace instead, which holds them longer";
    check.cure =
        fmt::format("If they may be ordinary: sudo chrt --all-tasks --other --pid 0 {}", pid);
  }
  return check;
}

std::vector<Check> CheckProcess(pid_t pid) {
  if (auto error = WhyNoProgram(pid)) return {FromError("process", *error)};
  std::vector<Check> checks{CheckStateOf(pid), CheckTracer(TracerOf(pid)),
                            CheckProcessContainer(pid)};
  auto target = Target::Open(pid);
  if (!target) {
    checks.push_back(FromError("interpreter", target.error()));
    return checks;
  }
  auto threads = target->ListThreads();
  for (Check& check : CheckInterpreter(target->info(), threads ? threads->threads.size() : 0)) {
    checks.push_back(std::move(check));
  }
  std::vector<pid_t> tids = ListTasks(pid).value_or(std::vector<pid_t>{});
  checks.push_back(CheckCpus(tids));
  const auto real_time = std::ranges::count_if(tids, IsRealTime);
  checks.push_back(CheckScheduling(pid, static_cast<size_t>(real_time)));
  return checks;
}

}  // namespace pystrobe::remote
