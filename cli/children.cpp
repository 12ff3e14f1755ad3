// SPDX-License-Identifier: Apache-2.0
#include "cli/children.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <vector>

#include "profiler/base/proc.h"
#include "profiler/write/number_text.h"

namespace pystrobe::cli {
namespace {

constexpr uint64_t kNsPerTick = 10'000'000;
/// Less CPU time of children than this, or than a tenth of the process' own, is not worth a line.
constexpr uint64_t kWorthTicks = 10;
constexpr size_t kPidsListed = 8;

bool MayBePython(const std::string& executable, const std::string& parent) {
  if (executable == parent) return true;
  return executable.substr(executable.rfind('/') + 1).starts_with("python");
}

}  // namespace

ChildUse ReadChildUse(pid_t pid) {
  // Of the whole process: the file of a thread counts that thread alone.
  const auto text = ReadSmallFile(fmt::format("/proc/{}/stat", pid));
  const auto stat = text ? ParseTaskStat(*text) : std::nullopt;
  if (!stat) return {};
  return {stat->user_ticks + stat->system_ticks, stat->child_ticks};
}

std::string ChildTimeNote(const ChildUse& before, const ChildUse& now) {
  if (now.child_ticks <= before.child_ticks) return "";
  const uint64_t children = now.child_ticks - before.child_ticks;
  const uint64_t own = now.own_ticks - std::min(now.own_ticks, before.own_ticks);
  if (children < kWorthTicks || children < own / 10) return "";
  return fmt::format(
      "child processes that have ended used {} of CPU time and were not sampled; next time attach "
      "to them while they run, or start what they run with pystrobe run",
      write::TimeText(children * kNsPerTick));
}

std::string ChildrenNote(pid_t pid, const ChildUse& before) {
  const auto own = ReadLink(fmt::format("/proc/{}/exe", pid));
  std::vector<pid_t> children = own ? ListChildren(pid) : std::vector<pid_t>();
  std::erase_if(children, [&](pid_t child) {
    const auto executable = ReadLink(fmt::format("/proc/{}/exe", child));
    return !executable || !MayBePython(*executable, *own);
  });
  if (children.empty()) return ChildTimeNote(before, ReadChildUse(pid));
  const std::span shown(children.data(), std::min(children.size(), kPidsListed));
  return fmt::format("{} child {} not sampled; attach to {} by PID: {}{}", children.size(),
                     children.size() == 1 ? "process was" : "processes were",
                     children.size() == 1 ? "it" : "them", fmt::join(shown, ", "),
                     shown.size() < children.size() ? ", ..." : "");
}

}  // namespace pystrobe::cli
