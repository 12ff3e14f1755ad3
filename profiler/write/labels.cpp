// SPDX-License-Identifier: Apache-2.0
#include "profiler/write/labels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>

namespace pystrobe::write {
namespace {

// 12345678 -> "12,345,678": the eye counts groups, not digits.
std::string Grouped(uint64_t number) {
  std::string digits = fmt::format("{}", number);
  for (size_t end = digits.size(); end > 3; end -= 3) digits.insert(end - 3, 1, ',');
  return digits;
}

double Milliseconds(int64_t ns) { return static_cast<double>(ns) / 1e6; }

double Percent(int64_t part, int64_t whole) {
  return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::string ThreadLabel(const Thread& thread, const Tables& tables) {
  const std::string& name = tables.text(thread.name);
  std::string label = fmt::format("{} [{}", name.empty() ? "thread" : name, thread.tid);
  if (thread.interpreter != 0) label += fmt::format(", interpreter {}", thread.interpreter);
  return label + "]";
}

std::string Title(const Metadata& metadata, const WriteOptions& options) {
  if (!options.title.empty()) return options.title;
  if (!metadata.command.empty()) return fmt::format("{}", fmt::join(metadata.command, " "));
  return metadata.executable.empty() ? "pystrobe" : metadata.executable;
}

std::string_view FunctionName(const Function& function, const Tables& tables) {
  const std::string& name = tables.text(function.name);
  return name.empty() ? std::string_view("<unknown>") : std::string_view(name);
}

std::string QualityLine(const Metadata& metadata, const Quality& quality) {
  std::string line = fmt::format("{} samples", Grouped(quality.taken));
  const auto add = [&line]<typename... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(line), format, std::forward<Args>(args)...);
  };
  if (quality.duration_ns > 0) add(" at {:.1f} Hz", quality.achieved_rate_hz);
  if (metadata.wanted_rate_hz > 0) add(" (wanted {:g})", metadata.wanted_rate_hz);
  add(": {} proved exact, {} marked", Grouped(quality.proved), Grouped(quality.marked));
  if (quality.incomplete > 0) add(", {} incomplete", Grouped(quality.incomplete));
  add(", {} late, {} lost", Grouped(quality.late), Grouped(quality.lost));
  if (quality.unresolved > 0) add(", {} frames unresolved", Grouped(quality.unresolved));
  if (quality.duration_ns > 0) {
    add("; target held {:.1f} ms ({:.2f} %), own CPU {:.1f} ms ({:.1f} %)",
        Milliseconds(quality.held_ns), Percent(quality.held_ns, quality.duration_ns),
        Milliseconds(quality.own_cpu_ns), Percent(quality.own_cpu_ns, quality.duration_ns));
  }
  if (!quality.complete) line += "; cut off, figures as of the last block";
  return line;
}

std::string OriginLine(const Metadata& metadata) {
  std::string line = "pystrobe";
  if (!metadata.pystrobe_version.empty()) line += " " + metadata.pystrobe_version;
  if (!metadata.python_version.empty()) line += ", Python " + metadata.python_version;
  if (metadata.pid != 0) line += fmt::format(", process {}", metadata.pid);
  if (!metadata.host.empty()) line += " on " + metadata.host;
  if (!metadata.pause_mode.empty()) line += ", pause " + metadata.pause_mode;
  return line;
}

}  // namespace pystrobe::write
