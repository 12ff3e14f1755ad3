// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "profiler/base/clock.h"
#include "profiler/base/proc.h"
#include "sampler/remote/doctor_checks.h"
#include "sampler/remote/identify.h"
#include "sampler/remote/kernel_version.h"
#include "sampler/remote/permission.h"
#include "sampler/remote/process_memory.h"
#include "sampler/remote/promptness.h"

namespace pystrobe::remote {
namespace {

/// A child of ours that does nothing, to read from.
class IdleChild {
 public:
  IdleChild() {
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ != 0) return;
    // In the child of a threaded process only async-signal-safe calls are allowed, as these are.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);
    while (true) pause();
  }
  ~IdleChild() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  IdleChild(const IdleChild&) = delete;
  IdleChild& operator=(const IdleChild&) = delete;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

Check CheckReading() {
  constexpr size_t kBytes = 4096;
  constexpr int kReads = 500;
  static std::array<char, kBytes> bytes;  // lies at the same address in the child
  Check check{.name = "reading memory"};
  IdleChild child;
  if (child.pid() < 0) {
    check.state = CheckState::kWarn;
    check.seen = fmt::format("no child could be started: {}", std::strerror(errno));
    check.meaning = "it could not be tried";
    check.cure =
        "Raise the limit on processes: `ulimit -u` shows it; in a container, its pids limit.";
    return check;
  }
  ProcessMemory memory(child.pid());
  std::array<char, kBytes> copy;
  pyabi::ReadRequest request{reinterpret_cast<uint64_t>(bytes.data()), copy.data(), kBytes};
  if (int error_number = memory.TryReadAll({&request, 1}); error_number != 0) {
    Error error = ExplainRefusal(child.pid(), "process_vm_readv of our own child", error_number);
    check.state = CheckState::kFail;
    check.seen = error.message;
    check.meaning = "without this call no process can be sampled";
    check.cure = error.hint;
    return check;
  }
  std::vector<Nanoseconds> prices;
  for (int i = 0; i < kReads; ++i) {
    Nanoseconds start = MonotonicNow();
    memory.TryReadAll({&request, 1});
    prices.push_back(MonotonicNow() - start);
  }
  std::nth_element(prices.begin(), prices.begin() + kReads / 2, prices.end());
  return CheckReadingTime(static_cast<double>(prices[kReads / 2].count()) / 1000);
}

Check CheckCapabilities(const ProcessStatus& status) {
  Check check{.name = "privilege"};
  bool have = HasCapability(status.effective_capabilities, kCapSysPtrace);
  check.seen = fmt::format("uid {}, CAP_SYS_PTRACE {}", status.effective_uid, have ? "yes" : "no");
  if (!have) {
    check.state = CheckState::kWarn;
    check.meaning = "only processes of this user can be sampled";
    const std::string executable = OurExecutable();
    check.cure =
        fmt::format("sudo {} ..., or once ({}): {}", executable.empty() ? "pystrobe" : executable,
                    kSetcapPackage, SetcapCommand(executable));
  }
  return check;
}

Check CheckSeccomp(const ProcessStatus& status) {
  Check check{.name = "seccomp"};
  check.seen = status.seccomp == 0 ? "none" : "a filter is in force";
  // "reading memory" tells whether it matters; here is only the fact.
  if (status.seccomp != 0) check.meaning = "see \"reading memory\" for whether it forbids anything";
  return check;
}

Check CheckCpus() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  return CheckCpuCount(CPU_COUNT(&allowed), sysconf(_SC_NPROCESSORS_ONLN));
}

Check CheckSchedstat() {
  Check check{.name = "CPU accounting"};
  auto text = ReadSmallFile("/proc/self/schedstat");
  auto stat = text ? ParseSchedStat(*text) : std::nullopt;
  if (stat && stat->cpu_ns > 0) {
    check.seen = "schedstat: exact to the nanosecond";
    return check;
  }
  check.state = CheckState::kWarn;
  check.seen = stat ? "schedstat counts nothing" : "no schedstat";
  check.meaning = fmt::format("CPU times come from stat, in ticks of {} ms",
                              1000 / std::max(1L, sysconf(_SC_CLK_TCK)));
  check.cure = "Boot a kernel with CONFIG_SCHED_INFO: those of all distributions have it.";
  return check;
}

/// Tried, not guessed: the capabilities of a user namespace do not count here.
bool PriorityMayBeRaised() {
  const ScopedPromptness prompt(Urgency::kAtOnce);
  return IsRealTime(0);
}

Check CheckContainer() {
  Check check{.name = "container"};
  std::string kind = ContainerKindOf(getpid());
  check.seen = kind.empty() ? "none" : kind;
  if (!kind.empty()) check.meaning = "only processes of this container can be seen and sampled";
  return check;
}

}  // namespace

std::string_view CheckStateName(CheckState state) {
  switch (state) {
    case CheckState::kOk:
      return "ok";
    case CheckState::kWarn:
      return "warn";
    case CheckState::kFail:
      return "fail";
  }
  return "";
}

Check CheckKernel(const utsname& name) {
  Check check{.name = "kernel"};
  check.seen = fmt::format("{} {} {}", name.sysname, name.release, name.machine);
  const auto version = KernelVersionOf(name);
  if (version && *version < std::pair(4, 18)) {
    check.state = CheckState::kWarn;
    check.meaning =
        "older than 4.18, so without rseq: samples of running threads are checked through "
        "/proc, which costs more";
    check.cure = "Boot Linux 4.18 or later; until then sample less often, as with -r 50.";
  }
  return check;
}

Check CheckReadingTime(double microseconds) {
  constexpr double kSlow = 30;
  Check check{.name = "reading memory"};
  check.seen = fmt::format("process_vm_readv works; {:.1f} us for 4 KiB", microseconds);
  if (microseconds > kSlow) {
    check.state = CheckState::kWarn;
    check.meaning = "slow here (an emulated kernel?): high rates will not be reached";
    check.cure =
        "Sample less often, as with -r 50; or run program and pystrobe on Linux itself, in a "
        "container without gVisor (docker run --runtime=runc).";
  }
  return check;
}

Check CheckYama(bool privileged, const std::string& root) {
  Check check{.name = "Yama"};
  std::optional<int> scope = YamaScope(root);
  check.seen = scope ? fmt::format("kernel.yama.ptrace_scope = {}", *scope) : "not in this kernel";
  if (scope.value_or(0) == 3) {
    check.state = CheckState::kFail;
    check.meaning = "nobody may look into other processes until the next boot";
    check.cure = "Set 1 or 0 in /etc/sysctl.d and boot.";
  } else if (scope.value_or(0) != 0 && !privileged) {
    check.state = CheckState::kWarn;
    check.meaning = *scope == 1
                        ? "without CAP_SYS_PTRACE only programs started by `pystrobe run` can "
                          "be sampled"
                        : "only with CAP_SYS_PTRACE can programs be sampled";
    check.cure = "sudo pystrobe ..., or sudo sysctl kernel.yama.ptrace_scope=0";
  }
  return check;
}

Check CheckCpuCount(int usable, long online) {
  Check check{.name = "CPUs"};
  check.seen = fmt::format("{} of {} may be used", usable, online);
  if (usable == 1) {
    check.state = CheckState::kWarn;
    check.meaning = "the sampler shares its only CPU with the program: each sample costs it more";
    check.cure = "Sample less often, as with -r 50";
    check.cure += online > 1 ? fmt::format(
                                   "; or let pystrobe use others: taskset -c 0-{} pystrobe "
                                   "..., or a wider cpuset of the container.",
                                   online - 1)
                             : "; or give the machine a second CPU.";
  }
  return check;
}

Check CheckPriority(bool may_be_raised) {
  Check check{.name = "priority"};
  check.seen =
      may_be_raised ? "may be raised" : "may not be raised (needs CAP_SYS_NICE or RLIMIT_RTPRIO)";
  if (!may_be_raised) {
    check.state = CheckState::kWarn;
    check.meaning =
        "at rates above 1 kHz, and on a machine that is fully busy, samples come late or are lost; "
        "both are counted. On Linux 6.6 and later a second thread wakes on the program's CPU for "
        "each sample";
    check.cure =
        "Run as root; or let this user have priority 1: a line `USER - rtprio 1` in "
        "/etc/security/limits.conf, then log in again (`ulimit -r` shows it).\nIn a container: "
        "--cap-add=SYS_NICE or --ulimit rtprio=1 (docker, podman).";
  }
  return check;
}

std::vector<Check> CheckMachine() {
  ProcessStatus status = ReadStatus(getpid()).value_or(ProcessStatus{});
  bool privileged = HasCapability(status.effective_capabilities, kCapSysPtrace);
  utsname name{};
  uname(&name);
  std::vector<Check> checks = {
      CheckKernel(name),     CheckReading(),
      CheckYama(privileged), CheckCapabilities(status),
      CheckSeccomp(status),  CheckCpus(),
      CheckSchedstat(),      CheckPriority(PriorityMayBeRaised()),
      CheckContainer(),
  };
  if (auto gpu = CheckGpu()) checks.push_back(*std::move(gpu));
  return checks;
}

std::vector<Check> RunChecks(std::optional<pid_t> pid) {
  // Nearly all that there is to see is read from it.
  if (const auto error = WhyNoProc()) {
    return {{.name = "/proc",
             .state = CheckState::kFail,
             .seen = error->message,
             .meaning = "without it no process can be found or sampled",
             .cure = error->hint}};
  }
  std::vector<Check> checks = CheckMachine();
  if (pid) {
    for (Check& check : CheckProcess(*pid)) checks.push_back(std::move(check));
  }
  return checks;
}

}  // namespace pystrobe::remote
