// SPDX-License-Identifier: Apache-2.0
#include "profiler/write/gpu_labels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "profiler/write/number_text.h"

namespace pystrobe::write {
namespace {

std::string Counted(uint64_t count, std::string_view one, std::string_view several) {
  return fmt::format("{} {}", GroupDigits(count), count == 1 ? one : several);
}

uint64_t Less(uint64_t from, uint64_t what) { return from - std::min(from, what); }

/// Calls that put one thing on a device each; a launch of a graph puts more.
uint64_t Launched(const GpuQuality& quality) {
  const uint64_t calls = quality.kernel_launches + quality.copies + quality.sets;
  return Less(calls, quality.failed + quality.captured);
}

uint64_t WithoutTimes(const GpuRecord& record) {
  uint64_t untimed = 0;
  for (const GpuSum& sum : record.sums) untimed += sum.untimed;
  return untimed;
}

/// Work without a record, of which graphs may have more; or launches that are in no sum.
uint64_t Missing(const GpuRecord& record) {
  const GpuQuality& quality = record.quality;
  if (quality.launches_only) {
    return Less(Launched(quality) + quality.graph_launches, WithoutTimes(record));
  }
  const uint64_t recorded = Less(quality.records, quality.of_graphs);
  return std::max(quality.dropped, Less(Launched(quality), recorded));
}

/// What ought to have times and has none.
uint64_t Untimed(const GpuRecord& record) {
  return record.quality.launches_only ? 0 : WithoutTimes(record);
}

/// What the figures are of.
uint64_t Seen(const GpuRecord& record) {
  return record.quality.launches_only ? WithoutTimes(record) : record.quality.records;
}

/// More than 1 %; one or two of a short run say nothing of it.
bool IsMuch(uint64_t part, uint64_t whole) { return part > 2 && part > whole / 100; }

/// Why it is not good; nullptr: it is. The first is the worst.
const char* Reservation(const GpuRecord& record) {
  const GpuQuality& quality = record.quality;
  const uint64_t seen = Seen(record);
  if (Missing(record) > 0) return quality.launches_only ? "launches missing" : "work missing";
  if (Untimed(record) > 0) return "times missing";
  if (IsMuch(quality.unmatched, seen)) return "launches not seen";
  if (IsMuch(quality.overflowed, seen)) return "too much to tell apart";
  if (seen == 0) return quality.launches_only ? "nothing launched" : "nothing recorded";
  return nullptr;
}

std::vector<std::string> Shortcomings(const GpuRecord& record) {
  const GpuQuality& quality = record.quality;
  std::vector<std::string> all;
  const auto add = [&all](uint64_t count, std::string_view what) {
    if (count > 0) all.push_back(fmt::format("{} {}", GroupDigits(count), what));
  };
  const uint64_t missing = Missing(record);
  if (missing > 0 && quality.launches_only) {
    all.push_back(Counted(missing, "launch is in no figure", "launches are in no figure"));
  } else if (missing > 0) {
    all.push_back(fmt::format("{}{} not recorded, and in no figure",
                              quality.graph_launches > 0 ? "at least " : "",
                              Counted(missing, "work was", "works were")));
  }
  add(quality.dropped, "of them dropped as they came faster than they could be read");
  add(Untimed(record), "without times, which the device did not tell");
  add(quality.unmatched, "whose launch was not seen, and so not its line");
  add(quality.overflowed, "summed up together, as there was no room to tell them apart");
  add(quality.failed, quality.failed == 1 ? "launch failed" : "launches failed");
  return all;
}

std::string RecordsText(const GpuRecord& record) {
  const GpuQuality& quality = record.quality;
  if (quality.launches_only) {
    return Counted(Seen(record), "launch", "launches") +
           " counted, and nobody asked what the device did";
  }
  const std::string recorded = Counted(quality.records, "work recorded", "works recorded");
  const std::string launches = Counted(Launched(quality), "launch", "launches");
  if (quality.graph_launches == 0) return fmt::format("{}, of {}", recorded, launches);
  return fmt::format("{}, {} of {} and {} of {}", recorded,
                     GroupDigits(Less(quality.records, quality.of_graphs)), launches,
                     GroupDigits(quality.of_graphs),
                     Counted(quality.graph_launches, "graph launch", "graph launches"));
}

}  // namespace

std::string_view GpuKindName(GpuWorkKind kind) {
  switch (kind) {
    case GpuWorkKind::kKernel:
      return "kernel";
    case GpuWorkKind::kCopy:
      return "copy";
    case GpuWorkKind::kSet:
      return "set";
  }
  return "";
}

std::string_view GpuIdleCauseText(GpuIdleCause cause) {
  switch (cause) {
    case GpuIdleCause::kQueue:
      return "launched in time, and waited for a stream or the device";
    case GpuIdleCause::kLaunch:
      return "in the launch itself";
    case GpuIdleCause::kLaunches:
      return "it was done before the next launch came";
    case GpuIdleCause::kWait:
      return "after the program had waited for it";
    case GpuIdleCause::kHost:
      return "the program launched nothing for it";
    case GpuIdleCause::kUnknown:
      return "before a launch that was not seen";
  }
  return "";
}

std::string_view GpuIdleCauseName(GpuIdleCause cause) {
  switch (cause) {
    case GpuIdleCause::kQueue:
      return "queue";
    case GpuIdleCause::kLaunch:
      return "launch";
    case GpuIdleCause::kLaunches:
      return "launches";
    case GpuIdleCause::kWait:
      return "wait";
    case GpuIdleCause::kHost:
      return "host";
    case GpuIdleCause::kUnknown:
      return "unknown";
  }
  return "";
}

std::string GpuSummary(const GpuTable& table) {
  constexpr std::string_view kSeveral[] = {"kernels", "copies", "sets"};
  const std::string_view launched = table.launches_only ? " launched" : "";
  std::vector<std::string> parts;
  for (size_t i = 0; i < table.kinds.size(); ++i) {
    const GpuKindSum& kind = table.kinds[i];
    if (kind.count == 0) continue;
    const std::string counted =
        Counted(kind.count, GpuKindName(static_cast<GpuWorkKind>(i)), kSeveral[i]);
    parts.push_back(
        table.launches_only ? counted : fmt::format("{} in {}", TimeText(kind.total_ns), counted));
  }
  return parts.empty() ? "nothing" : fmt::format("{}{}", fmt::join(parts, ", "), launched);
}

Verdict JudgeGpu(const GpuRecord& record) {
  const GpuQuality& quality = record.quality;
  const uint64_t all = std::max(Launched(quality), Seen(record));
  const uint64_t in_doubt = std::max({Missing(record), Untimed(record), quality.unmatched});
  if (IsMuch(in_doubt, all)) return Verdict::kDoubtful;
  return Reservation(record) == nullptr ? Verdict::kGood : Verdict::kFair;
}

std::string GpuQualityLine(const GpuRecord& record, const Tables& tables) {
  const GpuQuality& quality = record.quality;
  const char* reservation = Reservation(record);
  const Verdict verdict = JudgeGpu(record);
  std::string line =
      verdict == Verdict::kGood
          ? "good"
          : fmt::format("{} ({})", verdict == Verdict::kFair ? "fair" : "doubtful", reservation);
  line += "; " + RecordsText(record);
  const std::vector<std::string> shortcomings = Shortcomings(record);
  line += shortcomings.empty() ? "; nothing is missing"
                               : fmt::format("; {}", fmt::join(shortcomings, "; "));
  if (quality.duration_ns > 0) {
    const double share =
        static_cast<double>(quality.own_cpu_ns) / static_cast<double>(quality.duration_ns);
    line += fmt::format("; own CPU {} %", PercentText(share));
  }
  const std::string& source = tables.text(quality.source);
  return source.empty() ? line : line + "; told by " + source;
}

std::string WholeQualityLine(const RecordingSource& recording) {
  std::string samples = QualityLine(recording.metadata(), recording.quality());
  if (recording.gpu() == nullptr) return samples;
  const std::string gpu = GpuQualityLine(*recording.gpu(), recording.tables());
  return recording.metadata().pause_mode == kOfGpu ? gpu : samples + ". GPU: " + gpu;
}

Verdict JudgeWhole(const RecordingSource& recording) {
  const bool only_gpu = recording.metadata().pause_mode == kOfGpu;
  if (recording.gpu() == nullptr) return Judge(recording.quality());
  const Verdict gpu = JudgeGpu(*recording.gpu());
  if (!only_gpu) return std::max(gpu, Judge(recording.quality()));
  return recording.quality().complete ? gpu : Verdict::kDoubtful;
}

}  // namespace pystrobe::write
