// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/permission.h"

#include <dlfcn.h>
#include <pwd.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <thread>
#include <utility>

#include "profiler/base/proc.h"

namespace pystrobe::remote {
namespace {

constexpr std::string_view kForContainers =
    "In a container: start it with --cap-add=SYS_PTRACE (docker, podman), or give the pod "
    "securityContext.capabilities.add: [\"SYS_PTRACE\"] (kubernetes; with shareProcessNamespace "
    "when pystrobe runs in another container of the pod).";
constexpr std::string_view kStartIt =
    "Start the program by `pystrobe run`, which needs no privilege.";

std::string UserName(uid_t uid) {
  std::array<char, 4096> buffer;
  passwd entry{}, *found = nullptr;
  if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) {
    return {};
  }
  return found->pw_name;
}

std::string User(uid_t uid, const std::string& name) {
  return name.empty() ? fmt::format("user {}", uid) : fmt::format("user {} ({})", name, uid);
}

bool IsDescendant(pid_t pid) {
  for (int generations = 0; pid > 1 && generations < 1000; ++generations) {
    if (pid == getpid()) return true;
    auto stat = ReadTaskStat(pid, pid);
    if (!stat) return false;
    pid = stat->parent;
  }
  return false;
}

bool SeesKernelThreads() {
  constexpr pid_t kKernelThreads = 2;
  auto stat = ReadTaskStat(kKernelThreads, kKernelThreads);
  return stat && stat->name == "kthreadd";
}

/// True also when it cannot be found out.
bool SharesMounts(pid_t a, pid_t b) {
  auto of_a = ReadLink(fmt::format("/proc/{}/ns/mnt", a));
  auto of_b = ReadLink(fmt::format("/proc/{}/ns/mnt", b));
  return !of_a || !of_b || *of_a == *of_b;
}

/// One line of a hint after the other.
struct Hint {
  std::string text;
  void Add(std::string_view line) {
    if (!text.empty()) text += '\n';
    text += line;
  }
};

std::string AsRoot(const RefusalFacts& facts, const Hint& before) {
  const std::string program = facts.our_executable.empty() ? "pystrobe" : facts.our_executable;
  return fmt::format("{} as root: sudo {} ... {}", before.text.empty() ? "Run" : "Or run", program,
                     facts.pid);
}

std::string BySetcap(const RefusalFacts& facts) {
  return fmt::format("Or give the executable the two capabilities it needs ({}): {}",
                     kSetcapPackage, SetcapCommand(facts.our_executable));
}

/// How to get CAP_SYS_PTRACE.
void AddPrivilege(const RefusalFacts& facts, Hint& hint) {
  const bool in_container = !facts.our_container.empty();
  if (facts.our_uid != 0) {
    hint.Add(AsRoot(facts, hint));
    hint.Add(BySetcap(facts));
  } else if (!in_container) {
    hint.Add(
        "You are root, but that capability was taken away (a container, systemd's "
        "CapabilityBoundingSet, capsh): start pystrobe from a shell that has it.");
  }
  if (in_container || facts.our_uid == 0) hint.Add(kForContainers);
}

Error ExplainYama(const RefusalFacts& facts, std::string message) {
  Hint hint;
  if (*facts.yama == 3) {
    message += "; Yama forbids it to everybody (kernel.yama.ptrace_scope = 3)";
    hint.Add(
        "This setting cannot be taken back until the next boot; choose 1 or 0 in /etc/sysctl.d.");
    return {ErrorCode::kPermission, std::move(message), std::move(hint.text)};
  }
  message +=
      fmt::format("; Yama lets only {} do that (kernel.yama.ptrace_scope = {})",
                  *facts.yama == 2 ? "processes with CAP_SYS_PTRACE" : "a program's own ancestors",
                  *facts.yama);
  if (*facts.yama == 1) {
    hint.Add(kStartIt);
    hint.Add("Or let the program allow it: prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY) in it.");
  }
  AddPrivilege(facts, hint);
  hint.Add("Or for all programs until the next boot: sudo sysctl kernel.yama.ptrace_scope=0");
  return {ErrorCode::kPermission, std::move(message), std::move(hint.text)};
}

Error ExplainOtherUser(const RefusalFacts& facts, std::string message) {
  message +=
      fmt::format("; it runs as {} and you are {} without CAP_SYS_PTRACE",
                  User(facts.their_uid, facts.their_name), User(facts.our_uid, facts.our_name));
  Hint hint;
  const bool root_in_container = !facts.our_container.empty() && facts.our_uid == 0;
  if (!root_in_container && facts.their_uid != 0 && !facts.their_uids_differ) {
    const std::string as =
        facts.their_name.empty() ? fmt::format("'#{}'", facts.their_uid) : facts.their_name;
    hint.Add(fmt::format("Run as that user: sudo -u {} {} ... {}", as,
                         facts.our_executable.empty() ? "pystrobe" : facts.our_executable,
                         facts.pid));
  }
  AddPrivilege(facts, hint);
  return {ErrorCode::kPermission, std::move(message), std::move(hint.text)};
}

Error ExplainPrivileged(const RefusalFacts& facts, std::string message) {
  Hint hint;
  message += " although you hold CAP_SYS_PTRACE";
  if (facts.our_seccomp == 2) {
    message += "; a seccomp filter is in force for pystrobe and may forbid the system call";
    hint.Add(
        "Run pystrobe outside the sandbox, or allow process_vm_readv and ptrace in its filter "
        "(docker: --cap-add=SYS_PTRACE or --security-opt seccomp=unconfined).");
  }
  hint.Add(
      "It may live in a user namespace above yours: run pystrobe on the host. Or a security "
      "module forbids it: see `dmesg` for AppArmor or SELinux denials.");
  return {ErrorCode::kPermission, std::move(message), std::move(hint.text)};
}

/// Whether this code is the executable's own, and not that of a library that it has loaded.
bool IsInTheExecutable() {
  Dl_info executable{}, ours{};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel gives addresses as numbers
  return dladdr(reinterpret_cast<void*>(getauxval(AT_PHDR)), &executable) != 0 &&
         dladdr(reinterpret_cast<void*>(&OurExecutable), &ours) != 0 &&
         executable.dli_fbase == ours.dli_fbase;
}

}  // namespace

std::string TracerOf(pid_t pid) {
  const auto status = ReadStatus(pid);
  if (!status || status->tracer == 0) return {};
  const auto stat = ReadTaskStat(status->tracer, status->tracer);
  return fmt::format("{} (process {})", stat ? stat->name : "a program", status->tracer);
}

Result<void> CheckFreeToTrace(pid_t pid) {
  // Another pystrobe holds a thread for a fraction of a millisecond.
  constexpr int kLooks = 5;
  constexpr auto kPause = std::chrono::milliseconds(2);
  std::string tracer;
  for (int look = 0; look < kLooks; ++look) {
    tracer = TracerOf(pid);
    if (tracer.empty()) return {};
    std::this_thread::sleep_for(kPause);
  }
  return FailWithHint(
      ErrorCode::kPermission,
      fmt::format("End {}; or leave out what stops threads, --native or --pause ptrace.", tracer),
      "the threads of process {} cannot be stopped by ptrace: {} traces it, and there can be one "
      "tracer only",
      pid, tracer);
}

std::string OurExecutable() {
  if (!IsInTheExecutable()) return "";
  const auto path = ReadLink("/proc/self/exe");
  const bool can_be_named = path && path->starts_with('/') && access(path->c_str(), F_OK) == 0;
  return can_be_named ? *path : "";
}

std::string SetcapCommand(const std::string& executable) {
  return fmt::format("sudo setcap cap_sys_ptrace,cap_dac_read_search+ep {}",
                     executable.empty() ? "$(readlink -f $(command -v pystrobe))" : executable);
}

std::string ContainerKind(std::string_view cgroup) {
  constexpr std::pair<std::string_view, std::string_view> kMarks[] = {
      {"kubepods", "kubernetes"},
      {"docker", "docker"},
      {"libpod", "podman"},
      {"lxc", "lxc"},
      {"cri-containerd", "containerd"},
      {"containerd", "containerd"}};
  // The daemons themselves run in system slices named after them: containerd.service,
  // docker.service.
  for (auto [mark, kind] : kMarks) {
    size_t at = cgroup.find(mark);
    if (at != std::string_view::npos && !cgroup.substr(at + mark.size()).starts_with(".service") &&
        !cgroup.substr(at + mark.size()).starts_with(".socket")) {
      return std::string(kind);
    }
  }
  return {};
}

std::string ContainerKindOf(pid_t pid) {
  auto cgroup = ReadSmallFile(fmt::format("/proc/{}/cgroup", pid));
  if (cgroup) {
    if (std::string kind = ContainerKind(*cgroup); !kind.empty()) return kind;
  }
  // Some virtual machines boot images made for containers; on a real host the kernel's own threads
  // can be seen, and processes of the host share the mounts of the first one.
  if (SeesKernelThreads() && SharesMounts(pid, 1)) return {};
  auto exists = [&](std::string_view name) {
    return access(fmt::format("/proc/{}/root/{}", pid, name).c_str(), F_OK) == 0;
  };
  if (exists(".dockerenv")) return "docker";
  if (exists("run/.containerenv")) return "podman";
  if (exists("var/run/secrets/kubernetes.io")) return "kubernetes";
  return {};
}

std::optional<int> YamaScope(const std::string& root) {
  auto text = ReadSmallFile(root + "/proc/sys/kernel/yama/ptrace_scope");
  int value = 0;
  if (!text ||
      std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc()) {
    return std::nullopt;
  }
  return value;
}

RefusalFacts GatherRefusalFacts(pid_t pid, std::string refused, int error_number) {
  RefusalFacts facts;
  facts.pid = pid;
  facts.refused = std::move(refused);
  facts.error_number = error_number;
  facts.our_uid = geteuid();
  facts.our_name = UserName(facts.our_uid);
  if (auto ours = ReadStatus(getpid())) {
    facts.have_ptrace_capability = HasCapability(ours->effective_capabilities, kCapSysPtrace);
    facts.our_seccomp = ours->seccomp;
  }
  auto theirs = ReadStatus(pid);
  facts.known = theirs.has_value();
  if (theirs) {
    facts.their_uid = theirs->real_uid;
    facts.their_name = UserName(facts.their_uid);
    facts.their_uids_differ =
        theirs->effective_uid != theirs->real_uid || theirs->saved_uid != theirs->real_uid;
    facts.tracer = theirs->tracer;
    struct stat info{};
    facts.not_dumpable = stat(fmt::format("/proc/{}/status", pid).c_str(), &info) == 0 &&
                         info.st_uid != theirs->effective_uid;
  }
  facts.yama = YamaScope();
  facts.is_descendant = IsDescendant(pid);
  facts.our_container = ContainerKindOf(getpid());
  facts.their_container = ContainerKindOf(pid);
  facts.our_executable = OurExecutable();
  return facts;
}

Error ExplainRefusal(const RefusalFacts& facts) {
  std::string message =
      fmt::format("{} was refused ({})", facts.refused, std::strerror(facts.error_number));
  if (facts.have_ptrace_capability && facts.yama.value_or(0) != 3) {
    return ExplainPrivileged(facts, std::move(message));
  }
  bool other_user = facts.known && (facts.their_uid != facts.our_uid || facts.their_uids_differ);
  if (other_user && facts.yama.value_or(0) != 3) return ExplainOtherUser(facts, std::move(message));
  if (facts.yama.value_or(0) >= 2 || (facts.yama.value_or(0) == 1 && !facts.is_descendant)) {
    return ExplainYama(facts, std::move(message));
  }
  Hint hint;
  if (facts.not_dumpable) {
    message +=
        "; the process protects itself (not dumpable: it changed its user or capabilities, or "
        "called prctl(PR_SET_DUMPABLE, 0))";
  } else if (facts.our_seccomp == 2) {
    message += "; a seccomp filter is in force for pystrobe and may forbid the system call";
  } else {
    message += "; you lack CAP_SYS_PTRACE";
  }
  AddPrivilege(facts, hint);
  return {ErrorCode::kPermission, std::move(message), std::move(hint.text)};
}

}  // namespace pystrobe::remote
