// SPDX-License-Identifier: Apache-2.0
#include "profiler/write/labels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "profiler/write/number_text.h"

namespace pystrobe::write {
namespace {

double Share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string Time(int64_t ns) { return TimeText(static_cast<uint64_t>(std::max<int64_t>(0, ns))); }

std::string Counted(uint64_t count, std::string_view one, std::string_view several) {
  return fmt::format("{} {}", GroupDigits(count), count == 1 ? one : several);
}

/// Whether max_overhead made the deadlines fewer, be it for a while.
bool Lowered(const Metadata& metadata, const Quality& quality) {
  if (metadata.max_overhead <= 0) return false;
  if (quality.final_rate_hz > 0 && quality.final_rate_hz < metadata.wanted_rate_hz * 0.995) {
    return true;
  }
  // Distances of deadlines are random: few of them prove nothing.
  constexpr double kEnough = 100;
  const double wanted = metadata.wanted_rate_hz * static_cast<double>(quality.duration_ns) / 1e9;
  return wanted >= kEnough && static_cast<double>(quality.deadlines) < 0.9 * wanted;
}

std::string Rate(const Metadata& metadata, const Quality& quality) {
  std::string text = fmt::format(" at {}", RateText(quality.achieved_rate_hz));
  if (metadata.wanted_rate_hz > 0) text += " of " + RateText(metadata.wanted_rate_hz);
  text += " Hz";
  if (Lowered(metadata, quality)) {
    text += fmt::format(", lowered to hold the target about {} % of its time",
                        PercentText(metadata.max_overhead));
  }
  return text;
}

std::string Trust(const Quality& quality) {
  if (quality.taken == 0) return "";
  if (quality.proved == quality.taken) return "; all proved exact";
  if (quality.proved == 0) return "; none proved exact: stacks may be torn";
  // Never rounds a doubt away.
  const double percent =
      100.0 * static_cast<double>(quality.proved) / static_cast<double>(quality.taken);
  std::string text = fmt::format("; {:.1f} % proved exact", std::min(percent, 99.9));
  if (quality.marked > 0)
    text += fmt::format(", {} marked as unproved", GroupDigits(quality.marked));
  return text;
}

std::string Misses(const Quality& quality) {
  std::string text =
      fmt::format("; {} late, {} lost", GroupDigits(quality.late), GroupDigits(quality.lost));
  constexpr uint64_t kWorthAWord = 10;
  if (quality.lost >= kWorthAWord && quality.lost > quality.deadlines / 10) {
    text += " (more deadlines than the machine could meet: ask for a lower rate, or free a CPU)";
  }
  return text;
}

std::string Cost(const Quality& quality) {
  std::string text = fmt::format("; target held {} ({} %)", Time(quality.held_ns),
                                 PercentText(Share(quality.held_ns, quality.duration_ns)));
  if (quality.run_delay_ns > 0) {
    text += fmt::format(", of {} that it waited for a CPU in all", Time(quality.run_delay_ns));
  }
  return text +
         fmt::format("; own CPU {} %", PercentText(Share(quality.own_cpu_ns, quality.duration_ns)));
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
  std::string line = Counted(quality.taken, "sample", "samples");
  line += Rate(metadata, quality) + Trust(quality) + Misses(quality);
  if (quality.incomplete > 0) {
    line += fmt::format(", {} incomplete", GroupDigits(quality.incomplete));
  }
  if (quality.unresolved > 0) {
    line += ", " + Counted(quality.unresolved, "frame without a name", "frames without a name");
  }
  line += Cost(quality);
  if (quality.cpu_source == "stat") line += "; CPU times from 10 ms ticks";
  if (!quality.complete) line += "; cut off: figures are as of the last block";
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
