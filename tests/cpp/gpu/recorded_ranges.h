// SPDX-License-Identifier: Apache-2.0
//
// A recording of this process' ranges, for tests: what was found by path.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "gpu/nvtx_ranges.h"

namespace pystrobe::gpu {

/// Ends with it.
class RecordedRanges {
 public:
  explicit RecordedRanges(const RangeOptions& options = {})
      : ranges_(**NvtxRanges::OfThisProcess()) {
    const auto begun = ranges_.BeginRecording(options);
    EXPECT_TRUE(begun) << begun.error().message;
    recording_ = begun.value_or(0);
  }
  ~RecordedRanges() { End(); }
  RecordedRanges(const RecordedRanges&) = delete;
  RecordedRanges& operator=(const RecordedRanges&) = delete;

  void Restart() { ranges_.RestartRecording(recording_); }
  const FoundRanges& End() {
    FoundRanges found = ranges_.EndRecording(recording_, MonotonicNow());
    if (!found.nodes.empty()) found_ = std::move(found);
    return found_;
  }
  /// "domain:name/domain:name" of a node, without the colon in the default domain.
  std::string PathOf(uint32_t node) const {
    const FoundRanges::Node& one = found_.nodes[node];
    const std::string domain(ranges_.domain(one.domain));
    const std::string name = domain.empty() ? one.name : domain + ":" + one.name;
    return one.parent == RangeNodes::kNone ? name : PathOf(one.parent) + "/" + name;
  }
  /// Of all that began, after End.
  std::map<std::string, uint64_t> Counts() const {
    std::map<std::string, uint64_t> counts;
    for (uint32_t i = 0; i < found_.nodes.size(); ++i) {
      if (found_.nodes[i].count > 0) counts[PathOf(i)] += found_.nodes[i].count;
    }
    return counts;
  }
  uint64_t HostOf(const std::string& path) const {
    for (uint32_t i = 0; i < found_.nodes.size(); ++i) {
      if (PathOf(i) == path) return found_.nodes[i].host_ns;
    }
    return 0;
  }

 private:
  NvtxRanges& ranges_;
  uint64_t recording_ = 0;
  FoundRanges found_;
};

}  // namespace pystrobe::gpu
