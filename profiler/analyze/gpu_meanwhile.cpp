// SPDX-License-Identifier: Apache-2.0
#include "profiler/analyze/gpu_meanwhile.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "profiler/analyze/gpu_lines.h"
#include "profiler/base/wrapping.h"

namespace pystrobe {
namespace {

struct Interval {
  int64_t begin_ns, end_ns;
};
/// Apart from each other, in order.
using Intervals = std::vector<Interval>;

/// Since the start of the recording, as samples are.
std::map<uint32_t, Intervals> IntervalsOf(std::vector<GpuGap> gaps, int64_t start_ns) {
  std::map<uint32_t, Intervals> by_tid;
  std::ranges::sort(gaps, {}, &GpuGap::begin_ns);
  for (const GpuGap& gap : gaps) {
    const Interval found{WrappingSubtract(gap.begin_ns, start_ns),
                         WrappingSubtract(gap.end_ns, start_ns)};
    if (found.begin_ns >= found.end_ns) continue;  // in a file whose start may be any
    Intervals& intervals = by_tid[gap.tid];
    const bool is_apart = intervals.empty() || intervals.back().end_ns < found.begin_ns;
    if (is_apart) {
      intervals.push_back(found);
    } else {
      intervals.back().end_ns = std::max(intervals.back().end_ns, found.end_ns);
    }
  }
  return by_tid;
}

class Meanwhile {
 public:
  Meanwhile(const RecordingSource& recording, std::map<uint32_t, Intervals> by_tid)
      : tables_(recording.tables()),
        by_signals_(recording.metadata().pause_mode == kBySignals),
        by_tid_(std::move(by_tid)),
        lines_(analyze::PythonLinesOf(recording.tables())) {
    for (uint32_t i = 0; i < tables_.thread_count(); ++i) {
      const auto found = by_tid_.find(static_cast<uint32_t>(tables_.thread(ThreadIndex{i}).tid));
      of_thread_.push_back(found == by_tid_.end() ? nullptr : &found->second);
    }
  }

  void Add(const Sample& sample) {
    const uint32_t thread = ToIndex(sample.thread);
    const bool is_seen = (sample.flags & kSampleUnseen) == 0;
    if (thread >= of_thread_.size() || of_thread_[thread] == nullptr || !is_seen) return;
    const int64_t begin_ns = WrappingSubtract(sample.time_ns, static_cast<int64_t>(sample.wall_ns));
    const uint64_t part_ns = Overlap(*of_thread_[thread], begin_ns, sample.time_ns);
    const bool is_within = by_signals_ ? Has(*of_thread_[thread], sample.time_ns) : part_ns > 0;
    if (!is_within) return;
    MeanwhileRow& row = rows_[lines_[ToIndex(sample.stack)]];
    row.wall_ns += part_ns;
    row.cpu_ns += by_signals_ ? sample.cpu_ns : ShareOf(sample.cpu_ns, part_ns, sample.wall_ns);
  }

  GpuMeanwhile Take() const {
    GpuMeanwhile found;
    for (const auto& [tid, intervals] : by_tid_) {
      for (const Interval& one : intervals) {
        found.gaps_ns += static_cast<uint64_t>(WrappingSubtract(one.end_ns, one.begin_ns));
      }
    }
    for (const auto& [line, row] : rows_) {
      found.rows.push_back(row);
      found.rows.back().line = line;
      found.wall_ns += row.wall_ns;
      found.cpu_ns += row.cpu_ns;
    }
    std::ranges::stable_sort(found.rows, [](const MeanwhileRow& a, const MeanwhileRow& b) {
      return std::tie(a.wall_ns, a.cpu_ns) > std::tie(b.wall_ns, b.cpu_ns);
    });
    return found;
  }

 private:
  static Intervals::const_iterator FirstEndingAfter(const Intervals& intervals, int64_t time_ns) {
    return std::ranges::upper_bound(intervals, time_ns, {}, &Interval::end_ns);
  }
  static bool Has(const Intervals& intervals, int64_t time_ns) {
    const auto at = FirstEndingAfter(intervals, time_ns);
    return at != intervals.end() && at->begin_ns <= time_ns;
  }
  static uint64_t Overlap(const Intervals& intervals, int64_t begin_ns, int64_t end_ns) {
    uint64_t sum_ns = 0;
    if (begin_ns >= end_ns) return 0;
    for (auto at = FirstEndingAfter(intervals, begin_ns);
         at != intervals.end() && at->begin_ns < end_ns; ++at) {
      sum_ns += static_cast<uint64_t>(
          WrappingSubtract(std::min(end_ns, at->end_ns), std::max(begin_ns, at->begin_ns)));
    }
    return sum_ns;
  }
  static uint64_t ShareOf(uint64_t all, uint64_t part, uint64_t whole) {
    if (part >= whole) return all;
    const double product =
        static_cast<double>(all) * (static_cast<double>(part) / static_cast<double>(whole));
    return product < static_cast<double>(all) ? static_cast<uint64_t>(product) : all;
  }

  const Tables& tables_;
  const bool by_signals_;
  const std::map<uint32_t, Intervals> by_tid_;
  const std::vector<std::optional<FrameId>> lines_;
  std::vector<const Intervals*> of_thread_;  // null: none
  std::map<std::optional<FrameId>, MeanwhileRow> rows_;
};

}  // namespace

Result<GpuMeanwhile> MakeGpuMeanwhile(const RecordingSource& recording) {
  Meanwhile meanwhile(recording,
                      IntervalsOf(recording.gpu()->gaps, recording.metadata().start_monotonic_ns));
  // Those of traced calls are of no moment.
  if (HasCalls(recording.metadata())) return meanwhile.Take();
  const auto read = recording.ForEachSample([&](const Sample& sample) { meanwhile.Add(sample); });
  if (!read) return std::unexpected(read.error());
  return meanwhile.Take();
}

}  // namespace pystrobe
