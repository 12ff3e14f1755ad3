// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/last_run.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "profiler/base/proc.h"

namespace pystrobe::remote {
namespace {

// What has been awake for longer has had a CPU meanwhile; what has slept has done so for longer.
constexpr double kJustBeforeMs = 0.1;

std::optional<double> ExecStartOf(const std::string& thread) {
  const auto text = ReadSmallFile(fmt::format("/proc/{}/sched", thread));
  return text ? ParseExecStart(*text) : std::nullopt;
}

}  // namespace

std::optional<double> ParseExecStart(std::string_view sched_text) {
  constexpr std::string_view kName = "se.exec_start";
  const size_t name = sched_text.find(kName);
  if (name == std::string_view::npos) return std::nullopt;
  const size_t colon = sched_text.find(':', name);
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string line(sched_text.substr(colon + 1, sched_text.find('\n', colon) - colon - 1));
  char* end = nullptr;
  const double ms = std::strtod(line.c_str(), &end);
  if (end == line.c_str()) return std::nullopt;
  return ms;
}

std::optional<bool> HadCpuBefore(pid_t tid) {
  const auto its = ExecStartOf(fmt::format("{}", tid));
  const auto ours = ExecStartOf("thread-self");
  if (!its || !ours) return std::nullopt;
  return *its > *ours - kJustBeforeMs;
}

}  // namespace pystrobe::remote
