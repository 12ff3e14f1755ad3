// SPDX-License-Identifier: Apache-2.0
#include "profiler/write/range_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "profiler/write/timeline_part.h"

namespace pystrobe::write {
namespace {

using Slice = RangeTimeline::Slice;

// Of a file that was made to have them: an honest one has few streams for each thread.
constexpr size_t kMostLooks = size_t{1} << 24;
constexpr size_t kMostSlicesOfStreams = size_t{1} << 21;

/// Which lane a slice is nested in. They come in order of their begins, longer ones first.
class NestedLanes {
 public:
  /// `first`: the lowest one that there is.
  explicit NestedLanes(uint32_t first) : first_(first), ends_(size_t{first} + 1), free_{first} {}

  /// The first where it is free or what is open there lasts longer, so that few are elsewhere; else
  /// that of what lasts longer by least; else a free one.
  uint32_t Take(const Slice& slice, bool may_be_first) {
    CloseUntil(slice.begin_ns);
    const uint32_t lane = Choose(slice.end_ns, may_be_first);
    if (!ends_[lane].empty()) open_.erase({ends_[lane].back(), lane});
    free_.erase(lane);
    ends_[lane].push_back(slice.end_ns);
    open_.emplace(slice.end_ns, lane);
    return lane;
  }

 private:
  uint32_t Choose(int64_t end_ns, bool may_be_first) {
    const std::vector<int64_t>& of_first = ends_[first_];
    if (may_be_first && (of_first.empty() || of_first.back() >= end_ns)) return first_;
    for (auto open = open_.lower_bound({end_ns, 0}); open != open_.end(); ++open) {
      if (open->second != first_) return open->second;
    }
    const auto free = free_.upper_bound(first_);
    if (free != free_.end()) return *free;
    ends_.emplace_back();
    return static_cast<uint32_t>(ends_.size() - 1);
  }

  void CloseUntil(int64_t now_ns) {
    while (!open_.empty() && open_.begin()->first <= now_ns) {
      const uint32_t lane = open_.begin()->second;
      open_.erase(open_.begin());
      ends_[lane].pop_back();
      if (ends_[lane].empty()) {
        free_.insert(lane);
      } else {
        open_.emplace(ends_[lane].back(), lane);
      }
    }
  }

  uint32_t first_;
  std::vector<std::vector<int64_t>> ends_;       // by lane, of what is open in it, outermost first
  std::set<std::pair<int64_t, uint32_t>> open_;  // end of the innermost, lane
  std::set<uint32_t> free_;
};

auto RowOf(const Slice& slice) { return std::tuple(slice.place, slice.stream, slice.lane); }

/// By row; in it longer ones first, and of equal ones those that have others within them.
void Sort(std::span<Slice> slices) {
  std::ranges::sort(slices, {}, [](const Slice& slice) {
    return std::tuple(RowOf(slice), slice.begin_ns, -slice.end_ns, slice.range);
  });
}

/// Works by who launched them, stream and moment of that, and the extent of what follows each other
/// there.
class LaunchedWork {
 public:
  /// Works of one thread on one stream.
  struct Group {
    uint32_t tid = 0, device = 0, stream = 0;
    size_t begin = 0, end = 0;
  };
  struct Extent {
    int64_t begin_ns = std::numeric_limits<int64_t>::max();
    int64_t end_ns = std::numeric_limits<int64_t>::min();
  };

  LaunchedWork(const GpuRecord& record, std::vector<uint32_t> launched)
      : spans_(record.spans), works_(std::move(launched)) {
    const auto group_of = [&](uint32_t i) {
      const GpuSum& sum = record.sums[spans_[i].sum];
      return std::tuple(spans_[i].tid, sum.device, sum.stream);
    };
    std::ranges::sort(works_, {},
                      [&](uint32_t i) { return std::tuple(group_of(i), spans_[i].launch_ns, i); });
    for (size_t at = 0; at < works_.size(); ++at) {
      const auto [tid, device, stream] = group_of(works_[at]);
      if (at == 0 || group_of(works_[at - 1]) != group_of(works_[at])) {
        groups_.push_back({.tid = tid, .device = device, .stream = stream, .begin = at});
      }
      groups_.back().end = at + 1;
    }
    // A tree: each node has the extent of its two children, the works are its last half.
    tree_.resize(2 * works_.size());
    for (size_t at = 0; at < works_.size(); ++at) {
      tree_[works_.size() + at] = {spans_[works_[at]].begin_ns, spans_[works_[at]].end_ns};
    }
    for (size_t node = works_.size(); node-- > 1;) {
      tree_[node] = Both(tree_[2 * node], tree_[2 * node + 1]);
    }
  }

  std::span<const Group> GroupsOf(uint32_t tid) const {
    const auto found = std::ranges::equal_range(groups_, tid, {}, &Group::tid);
    return {found.begin(), found.end()};
  }

  /// Of what of the group was launched in this time; its begin is behind its end where nothing was.
  Extent Of(const Group& group, int64_t begin_ns, int64_t end_ns) const {
    const auto all = std::span(works_).subspan(group.begin, group.end - group.begin);
    const auto launch = [this](uint32_t i) { return spans_[i].launch_ns; };
    const auto first = std::ranges::lower_bound(all, begin_ns, {}, launch);
    const auto last = std::ranges::upper_bound(first, all.end(), end_ns, {}, launch);
    Extent extent;
    size_t low = works_.size() + group.begin + static_cast<size_t>(first - all.begin());
    size_t high = works_.size() + group.begin + static_cast<size_t>(last - all.begin());
    for (; low < high; low /= 2, high /= 2) {
      if (low % 2 == 1) extent = Both(extent, tree_[low++]);
      if (high % 2 == 1) extent = Both(extent, tree_[--high]);
    }
    return extent;
  }

 private:
  static Extent Both(const Extent& a, const Extent& b) {
    return {std::min(a.begin_ns, b.begin_ns), std::max(a.end_ns, b.end_ns)};
  }

  const std::vector<GpuSpan>& spans_;
  std::vector<uint32_t> works_;  // indexes of spans
  std::vector<Group> groups_;
  std::vector<Extent> tree_;
};

/// Whether one of `works`, which follow each other, is partly in and partly out of the extent.
bool IsAcross(std::span<const uint32_t> works, const std::vector<GpuSpan>& spans,
              const Slice& slice) {
  const auto begin_of = [&spans](uint32_t i) { return spans[i].begin_ns; };
  const auto end_of_last_before = [&](int64_t time_ns) -> const GpuSpan* {
    const auto next = std::ranges::lower_bound(works, time_ns, {}, begin_of);
    return next == works.begin() ? nullptr : &spans[*std::prev(next)];
  };
  const GpuSpan* const at_begin = end_of_last_before(slice.begin_ns);
  if (at_begin != nullptr && at_begin->end_ns > slice.begin_ns) {
    return at_begin->end_ns < slice.end_ns;
  }
  const GpuSpan* const at_end = end_of_last_before(slice.end_ns);
  return at_end != nullptr && at_end->end_ns > slice.end_ns;
}

}  // namespace

RangeTimeline::RangeTimeline(const Profile& profile, const GpuTimeline& gpu, bool with_work)
    : record_(profile.recording->ranges()) {
  if (record_ == nullptr) return;
  AddThreads(profile);
  AddStreams(profile, gpu, with_work);
}

void RangeTimeline::AddThreads(const Profile& profile) {
  const TimelinePart part(profile);
  for (const RangeSpan& span : record_->spans) {
    if (!part.Meets(span.begin_ns, span.end_ns)) continue;
    const int64_t begin_ns = part.CutBegin(span.begin_ns);
    slices_.push_back({.begin_ns = begin_ns,
                       .end_ns = std::max(begin_ns, part.CutEnd(span.end_ns)),
                       .range = span.range,
                       .place = span.tid});
  }
  Sort(slices_);
  const uint32_t first = profile.recording->metadata().timeline ? 1 : 0;
  for (auto slice = slices_.begin(); slice != slices_.end();) {
    NestedLanes lanes(first);
    const uint32_t tid = slice->place;
    for (; slice != slices_.end() && slice->place == tid; ++slice) {
      slice->lane = lanes.Take(*slice, true);
    }
  }
  Sort(slices_);
  AddRows(false, 0);
}

void RangeTimeline::AddStreams(const Profile& profile, const GpuTimeline& gpu, bool with_work) {
  if (gpu.empty()) return;
  const GpuRecord& record = *profile.recording->gpu();
  const LaunchedWork launched(record, gpu.launched());
  const size_t first = slices_.size();
  size_t looks = 0;
  for (const RangeSpan& span : record_->spans) {
    const auto groups = launched.GroupsOf(span.tid);
    looks += groups.size();
    if (looks > kMostLooks || slices_.size() - first > kMostSlicesOfStreams) {
      ++left_out_;
      continue;
    }
    for (const LaunchedWork::Group& group : groups) {
      const auto [begin_ns, end_ns] = launched.Of(group, span.begin_ns, span.end_ns);
      if (begin_ns > end_ns) continue;
      slices_.push_back({.begin_ns = begin_ns,
                         .end_ns = end_ns,
                         .range = span.range,
                         .place = group.device,
                         .stream = group.stream});
    }
  }
  const auto of_streams = std::span(slices_).subspan(first);
  Sort(of_streams);
  const TimelinePart part(profile);
  for (auto slice = of_streams.begin(); slice != of_streams.end();) {
    NestedLanes lanes(with_work ? 0 : 1);
    const auto stream = std::pair(slice->place, slice->stream);
    const auto works = gpu.FirstLaneOf(stream.first, stream.second);
    for (; slice != of_streams.end() && std::pair(slice->place, slice->stream) == stream; ++slice) {
      slice->lane = lanes.Take(*slice, !with_work || !IsAcross(works, record.spans, *slice));
      slice->begin_ns = part.CutBegin(slice->begin_ns);
      slice->end_ns = std::max(slice->begin_ns, part.CutEnd(slice->end_ns));
    }
  }
  Sort(of_streams);
  AddRows(true, first);
}

void RangeTimeline::AddRows(bool is_stream, size_t first) {
  for (size_t at = first; at < slices_.size(); ++at) {
    const Slice& slice = slices_[at];
    if (at == first || RowOf(slices_[at - 1]) != RowOf(slice)) {
      rows_.push_back({.is_stream = is_stream,
                       .tid = is_stream ? 0 : slice.place,
                       .device = is_stream ? slice.place : 0,
                       .stream = slice.stream,
                       .lane = slice.lane});
    }
    rows_.back().end = at + 1;
  }
}

void RangeTimeline::ForEachSlice(FunctionRef<void(const Slice&, size_t row)> visit) const {
  size_t row = 0;
  for (size_t at = 0; at < slices_.size(); ++at) {
    if (at == rows_[row].end) ++row;
    visit(slices_[at], row);
  }
}

std::string RangeRowName(const RangeTimeline::Row& row, const Tables& tables) {
  const std::string of =
      row.is_stream ? fmt::format("stream {}", row.stream) : LaunchingThreadName(tables, row.tid);
  return fmt::format("{} ranges{}", of, row.lane > 1 ? fmt::format(" ({})", row.lane) : "");
}

}  // namespace pystrobe::write
