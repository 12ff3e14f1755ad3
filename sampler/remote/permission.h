// SPDX-License-Identifier: Apache-2.0
//
// Why the kernel refused to let us read a process, in words, with the least privilege that helps.
// Asked only after a real refusal: what the rules say beforehand is never the whole truth.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "profiler/base/error.h"

namespace pystrobe::remote {

/// What can be seen of a refusal from outside.
struct RefusalFacts {
  pid_t pid = 0;
  std::string refused;  ///< what was tried: "reading /proc/7/maps"
  int error_number = 0;
  uid_t our_uid = 0;     ///< effective
  std::string our_name;  ///< of that user, or empty
  uid_t their_uid = 0;   ///< real
  std::string their_name;
  bool their_uids_differ = false;  ///< real, effective and saved are not one (setuid)
  bool known = true;               ///< its status file could be read
  bool not_dumpable = false;       ///< its /proc files belong to root although it does not
  bool have_ptrace_capability = false;
  std::optional<int> yama;     ///< /proc/sys/kernel/yama/ptrace_scope
  bool is_descendant = false;  ///< we started it, or one of its ancestors
  int our_seccomp = 0;
  pid_t tracer = 0;
  std::string our_container;  ///< "docker", "kubernetes", ...; empty when in none
  std::string their_container;
  std::string
      our_executable;  ///< absolute path of `pystrobe`; empty: another program uses this code
};

RefusalFacts GatherRefusalFacts(pid_t pid, std::string refused, int error_number);

/// The kPermission error for these facts. Pure.
Error ExplainRefusal(const RefusalFacts& facts);

inline Error ExplainRefusal(pid_t pid, std::string refused, int error_number) {
  return ExplainRefusal(GatherRefusalFacts(pid, std::move(refused), error_number));
}

/// Who traces a process, as "strace (process 12)"; empty when nobody does.
std::string TracerOf(pid_t pid);
/// Fails with kPermission when another program traces the process for longer than a sampler does:
/// its threads cannot be stopped by ptrace then.
Result<void> CheckFreeToTrace(pid_t pid);

/// Absolute path of the running executable, whatever its name, if this code is its own: empty in a
/// Python that imports it, which must not be given rights, and where the file is gone.
std::string OurExecutable();
/// How to give `executable`, or the pystrobe of PATH if empty, the right to read other processes.
std::string SetcapCommand(const std::string& executable);
inline constexpr std::string_view kSetcapPackage = "setcap is in Debian's libcap2-bin";

/// Which kind of container a cgroup file speaks of: "kubernetes", "docker", "podman", "lxc",
/// "containerd"; empty for none.
std::string ContainerKind(std::string_view cgroup);
/// That of a process, also by what its file system has (/.dockerenv, /run/.containerenv).
std::string ContainerKindOf(pid_t pid);
/// Value of Yama's ptrace_scope; nullopt when the kernel has no Yama. `root`: what stands before
/// the path that is read.
std::optional<int> YamaScope(const std::string& root = {});

inline constexpr int kCapSysPtrace = 19;  // linux/capability.h
constexpr bool HasCapability(uint64_t set, int capability) { return (set >> capability) & 1; }

}  // namespace pystrobe::remote
