// SPDX-License-Identifier: Apache-2.0
#include "gpu/range_recorder.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace pystrobe::gpu {

Result<std::unique_ptr<RangeRecorder>> RangeRecorder::Make() {
  auto nodes = RangeNodes::Make();
  if (!nodes) return std::unexpected(nodes.error());
  auto instances = RangeInstances::Make();
  if (!instances) return std::unexpected(instances.error());
  return std::unique_ptr<RangeRecorder>(
      new RangeRecorder(*std::move(nodes), *std::move(instances)));
}

void RangeRecorder::Clear(const RangeOptions& options) {
  nodes_.Clear(options.max_names);
  instances_.Clear(options.instances);
  const std::lock_guard lock(spans_mutex_);
  max_spans_ = options.max_spans;
  spans_ = {};
  next_span_ = 0;
  spans_lost_ = 0;
}

FoundRanges RangeRecorder::Take() {
  FoundRanges found;
  found.nodes.reserve(nodes_.size());
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    const RangeNodes::Node& node = nodes_[i];
    found.nodes.push_back({.parent = node.parent,
                           .domain = node.domain,
                           .name = *node.name,
                           .count = node.count,
                           .host_ns = node.host_ns});
  }
  const std::lock_guard lock(spans_mutex_);
  found.spans_lost = spans_lost_;
  std::ranges::rotate(spans_, spans_.begin() + static_cast<std::ptrdiff_t>(next_span_));
  next_span_ = 0;
  found.spans = std::move(spans_);
  // Two threads note their ends in any order.
  std::ranges::stable_sort(found.spans, {}, &FoundRanges::Span::end_ns);
  return found;
}

RangeRecorder::Open RangeRecorder::Begin(const Open* within, uint32_t domain,
                                         std::string_view name) {
  Open range{.node = nodes_.FindOrAdd(within != nullptr ? within->around : RangeNodes::kNone,
                                      domain, name)};
  range.around = range.node;
  nodes_.Count(range.node);
  // Within another of them it is the same range still, whose time would count twice.
  range.is_timed =
      range.node != RangeNodes::kOther || within == nullptr || within->node != RangeNodes::kOther;
  const uint32_t parent = within != nullptr ? within->innermost : 0;
  if (range.is_timed) {
    range.instance = instances_.Begin(range.node, parent);
    range.begin_ns = MonotonicNow().count();
  }
  range.innermost = range.instance != 0 ? range.instance : parent;
  return range;
}

void RangeRecorder::End(const Open& range, Nanoseconds now, uint32_t tid) {
  if (!range.is_timed) return;
  if (range.instance != 0) instances_.End(range.instance);
  const int64_t end_ns = std::max(now.count(), range.begin_ns);
  nodes_.AddTime(range.node, static_cast<uint64_t>(end_ns - range.begin_ns));
  if (max_spans_ == 0) return;
  const FoundRanges::Span span{
      .begin_ns = range.begin_ns, .end_ns = end_ns, .node = range.node, .tid = tid};
  const std::lock_guard lock(spans_mutex_);
  if (spans_.size() < max_spans_) {
    try {
      spans_.push_back(span);
    } catch (const std::bad_alloc&) {
      ++spans_lost_;
    }
    return;
  }
  ++spans_lost_;
  spans_[next_span_] = span;
  next_span_ = (next_span_ + 1) % spans_.size();
}

// Else each of those that begin before the last one ends would be within all before it. And what is
// launched from now on is none of what has ended: hence another instance, which is not counted.
void RangeRecorder::Continue(Open& range, const Open* within, uint32_t domain,
                             std::string_view name) noexcept {
  try {
    range.around =
        nodes_.FindOrAdd(within != nullptr ? within->around : RangeNodes::kNone, domain, name);
  } catch (const std::bad_alloc&) {  // it stays where it was
  }
  const uint32_t parent = within != nullptr ? within->innermost : 0;
  if (range.instance != 0) {
    instances_.End(range.instance);
    range.instance = instances_.Begin(range.node, parent, true);
  }
  range.innermost = range.instance != 0 ? range.instance : parent;
}

void RangeRecorder::LockAll() {
  nodes_.mutex().lock();
  spans_mutex_.lock();
}

void RangeRecorder::UnlockAll() {
  spans_mutex_.unlock();
  nodes_.mutex().unlock();
}

}  // namespace pystrobe::gpu
