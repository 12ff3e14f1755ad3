// SPDX-License-Identifier: Apache-2.0
#include "pyext/launch/range_trace.h"

#include <algorithm>
#include <utility>

namespace pystrobe::launch {
namespace {

/// Nodes that were nothing are left out, so their numbers change.
class Translator {
 public:
  Translator(const gpu::NvtxRanges& ranges, const gpu::FoundRanges& found, Tables& tables)
      : ranges_(ranges), numbers_(found.nodes.size(), NamedRange::kNoParent), tables_(tables) {}

  void AddNode(uint32_t number, const gpu::FoundRanges::Node& node, bool has_sums) {
    if (node.count == 0 && !has_sums) return;
    numbers_[number] = static_cast<uint32_t>(record_.ranges.size());
    record_.ranges.push_back({.parent = NumberOf(node.parent),
                              .name = tables_.Intern(node.name),
                              .domain = tables_.Intern(ranges_.domain(node.domain)),
                              .count = node.count,
                              .host_ns = node.host_ns});
  }

  /// After all nodes.
  void AddSum(const gpu::RangeStreamSum& sum) {
    const uint32_t range = NumberOf(sum.node);
    if (range == NamedRange::kNoParent) return;
    record_.streams.push_back({.range = range,
                               .device = sum.device,
                               .stream = sum.stream,
                               .instances = sum.instances,
                               .span_ns = sum.span_ns,
                               .busy_ns = sum.busy_ns,
                               .works = sum.works});
  }

  void AddSpan(const gpu::FoundRanges::Span& span) {
    record_.spans.push_back({.begin_ns = span.begin_ns,
                             .end_ns = span.end_ns,
                             .range = NumberOf(span.node),
                             .tid = span.tid});
  }

  RangeRecord Take() { return std::move(record_); }

 private:
  uint32_t NumberOf(uint32_t node) const {
    return node < numbers_.size() ? numbers_[node] : NamedRange::kNoParent;
  }

  const gpu::NvtxRanges& ranges_;
  std::vector<uint32_t> numbers_;
  Tables& tables_;
  RangeRecord record_;
};

}  // namespace

Result<std::unique_ptr<RangeTrace>> RangeTrace::Start(size_t max_spans) {
  const auto ranges = gpu::NvtxRanges::OfThisProcess();
  if (!ranges) return std::unexpected(ranges.error());
  const auto recording = (*ranges)->BeginRecording({.max_spans = max_spans});
  if (!recording) return std::unexpected(recording.error());
  return std::unique_ptr<RangeTrace>(new RangeTrace(**ranges, *recording));
}

Result<const gpu::RangeInstances*> RangeTrace::Instances() {
  const auto ranges = gpu::NvtxRanges::OfThisProcess();
  if (!ranges) return std::unexpected(ranges.error());
  return &(*ranges)->instances();
}

void RangeTrace::Restart() {
  ranges_.RestartRecording(recording_);
  begin_ = MonotonicNow();
}

RangeRecord RangeTrace::ToRecord(const gpu::FoundRanges& found,
                                 const std::vector<gpu::RangeStreamSum>& sums, Tables& tables) {
  const auto ranges = gpu::NvtxRanges::OfThisProcess();
  if (!ranges) return {};
  Translator translator(**ranges, found, tables);
  const bool has_other =
      std::ranges::find(sums, gpu::RangeNodes::kOther, &gpu::RangeStreamSum::node) != sums.end();
  for (uint32_t i = 0; i < found.nodes.size(); ++i) {
    // Sums that there was no room for are of the node for those, which may itself be nothing.
    const bool has_sums = i == gpu::RangeNodes::kOther && has_other;
    translator.AddNode(i, found.nodes[i], has_sums);
  }
  for (const gpu::RangeStreamSum& sum : sums) translator.AddSum(sum);
  for (const gpu::FoundRanges::Span& span : found.spans) translator.AddSpan(span);
  RangeRecord record = translator.Take();
  record.spans_lost = found.spans_lost;
  if (!found.nodes.empty()) record.overflowed = found.nodes[gpu::RangeNodes::kOther].count;
  return record;
}

}  // namespace pystrobe::launch
