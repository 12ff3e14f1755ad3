// SPDX-License-Identifier: Apache-2.0
#include "cli/quality_text.h"

#include <algorithm>

#include "cli/values.h"

namespace pystrobe::cli {
namespace {

double Share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string Time(int64_t ns) { return TimeText(static_cast<uint64_t>(std::max<int64_t>(0, ns))); }

std::string Trust(const Quality& quality) {
  if (quality.taken == 0) return "";
  if (quality.marked == 0 && quality.proved == quality.taken) return "; all proved exact";
  const double proved = static_cast<double>(quality.proved) / static_cast<double>(quality.taken);
  if (quality.proved == 0) return "; none proved exact: stacks may be torn";
  // Never round a doubt away.
  const std::string percent = fmt::format("{:.1f}", std::min(proved * 100, 99.9));
  return fmt::format("; {} % proved exact, {} marked as unproved", percent,
                     GroupDigits(quality.marked));
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

std::string QualityText(const Metadata& metadata, const Quality& quality) {
  std::string text =
      fmt::format("Quality: {} {}, {} Hz of the {} wanted", GroupDigits(quality.taken),
                  quality.taken == 1 ? "sample" : "samples", RateText(quality.achieved_rate_hz),
                  RateText(metadata.wanted_rate_hz));
  const bool lowered =
      quality.final_rate_hz > 0 && quality.final_rate_hz < metadata.wanted_rate_hz * 0.995;
  if (lowered && metadata.max_overhead > 0) {
    text += fmt::format(" (lowered to {} Hz to hold the target at most {} % of its time)",
                        RateText(quality.final_rate_hz), PercentText(metadata.max_overhead));
  }
  text += Trust(quality);
  text += fmt::format("; {} late, {} lost", GroupDigits(quality.late), GroupDigits(quality.lost));
  if (quality.incomplete > 0) {
    text += fmt::format(", {} incomplete", GroupDigits(quality.incomplete));
  }
  if (quality.unresolved > 0) {
    text += fmt::format(", {} frames without a name", GroupDigits(quality.unresolved));
  }
  text += Cost(quality);
  if (quality.cpu_source == "stat") text += "; CPU times from 10 ms ticks";
  if (!quality.complete) text += "; cut off: figures are as of the last block";
  return text + ".";
}

}  // namespace pystrobe::cli
