// SPDX-License-Identifier: Apache-2.0
#include "profiler/write/gpu_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <queue>
#include <tuple>
#include <utility>

#include "profiler/write/labels.h"

namespace pystrobe::write {
namespace {

/// Which lane of a stream is free. Spans come in order of their begins.
class Lanes {
 public:
  /// The lowest that is free from `begin_ns` on, taken until `end_ns`.
  uint32_t Take(int64_t begin_ns, int64_t end_ns) {
    while (!taken_.empty() && taken_.top().first <= begin_ns) {
      free_.push(taken_.top().second);
      taken_.pop();
    }
    uint32_t lane = count_;
    if (free_.empty()) {
      ++count_;
    } else {
      lane = free_.top();
      free_.pop();
    }
    taken_.emplace(end_ns, lane);
    return lane;
  }

 private:
  template <typename T>
  using LeastFirst = std::priority_queue<T, std::vector<T>, std::greater<>>;

  LeastFirst<std::pair<int64_t, uint32_t>> taken_;  // until when, lane
  LeastFirst<uint32_t> free_;
  uint32_t count_ = 0;
};

/// Without the directory of all packages, which is the longest part of most.
std::string_view WithoutPackages(std::string_view file) {
  for (const std::string_view packages : {"/site-packages/", "/dist-packages/"}) {
    const size_t at = file.rfind(packages);
    if (at != std::string_view::npos) return file.substr(at + packages.size());
  }
  return file;
}

}  // namespace

GpuTimeline::GpuTimeline(const Profile& profile)
    : record_(profile.recording->gpu()), part_(profile) {
  if (record_ == nullptr) return;
  SortIntoRows();
  NumberLaunches();
}

void GpuTimeline::SortIntoRows() {
  const std::vector<GpuSpan>& spans = record_->spans;
  for (uint32_t i = 0; i < spans.size(); ++i) {
    if (part_.Meets(spans[i].begin_ns, spans[i].end_ns)) by_row_.push_back(i);
  }
  const auto stream_of = [&](uint32_t i) {
    const GpuSum& sum = record_->sums[spans[i].sum];
    return std::pair(sum.device, sum.stream);
  };
  std::ranges::sort(by_row_, {}, [&](uint32_t i) {
    return std::tuple(stream_of(i), spans[i].begin_ns, spans[i].end_ns, i);
  });
  std::vector<uint32_t> lane_of(spans.size());
  for (auto begin = by_row_.begin(); begin != by_row_.end();) {
    Lanes lanes;
    const auto stream = stream_of(*begin);
    for (; begin != by_row_.end() && stream_of(*begin) == stream; ++begin) {
      lane_of[*begin] = lanes.Take(spans[*begin].begin_ns, spans[*begin].end_ns);
    }
  }
  const auto row_of = [&](uint32_t i) { return std::pair(stream_of(i), lane_of[i]); };
  std::ranges::stable_sort(by_row_, {}, row_of);
  for (size_t at = 0; at < by_row_.size(); ++at) {
    const auto [stream, lane] = row_of(by_row_[at]);
    if (at == 0 || row_of(by_row_[at - 1]) != row_of(by_row_[at])) {
      rows_.push_back({.device = stream.first, .stream = stream.second, .lane = lane});
    }
    rows_.back().end = at + 1;
  }
}

void GpuTimeline::NumberLaunches() {
  const std::vector<GpuSpan>& spans = record_->spans;
  std::ranges::copy_if(by_row_, std::back_inserter(by_launch_),
                       [&](uint32_t i) { return spans[i].launch_ns != 0; });
  const auto launch = [&](uint32_t i) { return std::pair(spans[i].tid, spans[i].launch_ns); };
  std::ranges::sort(by_launch_, {},
                    [&](uint32_t i) { return std::tuple(launch(i), spans[i].begin_ns, i); });
  launch_of_.resize(spans.size());
  uint32_t number = 0;
  for (size_t at = 0; at < by_launch_.size(); ++at) {
    if (at == 0 || launch(by_launch_[at - 1]) != launch(by_launch_[at])) ++number;
    launch_of_[by_launch_[at]] = number;
  }
}

std::vector<uint32_t> GpuTimeline::LaunchingThreads() const {
  std::vector<uint32_t> threads;
  ForEachLaunch([&threads](const Launch& launch) {
    if (threads.empty() || threads.back() != launch.tid) threads.push_back(launch.tid);
  });
  return threads;
}

std::span<const uint32_t> GpuTimeline::FirstLaneOf(uint32_t device, uint32_t stream) const {
  const auto key = std::tuple(device, stream, 0U);
  const auto row = std::ranges::lower_bound(
      rows_, key, {}, [](const Row& one) { return std::tuple(one.device, one.stream, one.lane); });
  if (row == rows_.end() || row->device != device || row->stream != stream) return {};
  const size_t begin = row == rows_.begin() ? 0 : std::prev(row)->end;
  return std::span(by_row_).subspan(begin, row->end - begin);
}

void GpuTimeline::ForEachWork(FunctionRef<void(const Work&, size_t row)> visit) const {
  size_t row = 0;
  for (size_t at = 0; at < by_row_.size(); ++at) {
    if (at == rows_[row].end) ++row;
    const GpuSpan& span = record_->spans[by_row_[at]];
    const GpuSum& sum = record_->sums[span.sum];
    const int64_t begin_ns = part_.CutBegin(span.begin_ns);
    visit({.span = span,
           .sum = sum,
           .kernel = KernelOf(sum),
           .begin_ns = begin_ns,
           .end_ns = std::max(begin_ns, part_.CutEnd(span.end_ns)),
           .launch = launch_of_[by_row_[at]],
           .has_launch = span.launch_ns != 0 && part_.Has(span.launch_ns)},
          row);
  }
}

void GpuTimeline::ForEachLaunch(FunctionRef<void(const Launch&)> visit) const {
  for (size_t at = 0; at < by_launch_.size();) {
    const GpuSpan& span = record_->spans[by_launch_[at]];
    Launch launch{.number = launch_of_[by_launch_[at]],
                  .tid = span.tid,
                  .time_ns = part_.SinceStart(span.launch_ns),
                  .kernel = KernelOf(record_->sums[span.sum])};
    for (; at < by_launch_.size() && launch_of_[by_launch_[at]] == launch.number; ++at) {
      ++launch.works;
    }
    if (part_.Has(span.launch_ns)) visit(launch);
  }
}

std::string_view GpuCategory(GpuWorkKind kind) {
  switch (kind) {
    case GpuWorkKind::kKernel:
      return "kernel";
    case GpuWorkKind::kCopy:
      return "gpu_memcpy";
    case GpuWorkKind::kSet:
      return "gpu_memset";
  }
  return "";
}

std::string_view LaunchName(GpuWorkKind kind, bool is_graph) {
  if (is_graph) return "cuGraphLaunch";
  switch (kind) {
    case GpuWorkKind::kKernel:
      return "cuLaunchKernel";
    case GpuWorkKind::kCopy:
      return "cuMemcpyAsync";
    case GpuWorkKind::kSet:
      return "cuMemsetAsync";
  }
  return "";
}

std::string RowName(const GpuTimeline::Row& row) {
  if (row.lane == 0) return fmt::format("stream {}", row.stream);
  return fmt::format("stream {} ({})", row.stream, uint64_t{row.lane} + 1);
}

std::string DeviceName(const RecordingSource& recording, uint32_t device) {
  const std::vector<GpuDevice>& devices = recording.gpu()->devices;
  const auto found = std::ranges::find(devices, device, &GpuDevice::number);
  if (found == devices.end()) return fmt::format("GPU {}", device);
  return fmt::format("GPU {} {}", device, recording.tables().text(found->name));
}

std::string LaunchingThreadName(const Tables& tables, uint32_t tid) {
  for (uint32_t i = 0; i < tables.thread_count(); ++i) {
    const Thread& thread = tables.thread(ThreadIndex{i});
    if (thread.tid == tid && thread.name != kEmptyString) return tables.text(thread.name);
  }
  return fmt::format("thread {}", tid);
}

std::string StackText(StackId stack, const Tables& tables) {
  constexpr size_t kMostFrames = 64;
  std::vector<FrameId> frames;
  for (; stack != kEmptyStack && frames.size() < kMostFrames; stack = tables.stack(stack).parent) {
    frames.push_back(tables.stack(stack).frame);
  }
  std::string text = stack == kEmptyStack ? "" : "[more frames];";
  for (auto id = frames.rbegin(); id != frames.rend(); ++id) {
    const Frame& frame = tables.frame(*id);
    const Function& function = tables.function(frame.function);
    if (id != frames.rbegin()) text += ';';
    text += FunctionName(function, tables);
    const std::string& file = tables.text(function.file);
    if (file.empty()) continue;
    text += fmt::format(" ({}:{})", WithoutPackages(file), frame.line);
  }
  return text;
}

}  // namespace pystrobe::write
