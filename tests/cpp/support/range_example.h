// SPDX-License-Identifier: Apache-2.0
//
// Ranges that a program named, made up: those of the program of gpu_example.h.
#pragma once

#include "profiler/model/range_record.h"
#include "tests/cpp/support/memory_recording.h"

namespace pystrobe::testing {

/// Two steps from `start_ns` on, with `forward` and `backward` in each, a range of another domain
/// in one of them, and one that begins in the first step and ends in the second. Their works are
/// those that AddGpuSpans() adds.
inline RangeRecord MakeRangeExample(Tables& tables, int64_t start_ns, uint32_t tid) {
  const auto name = [&tables](std::string_view text) { return tables.Intern(text); };
  RangeRecord record;
  record.ranges = {
      {.name = name("step"), .count = 2, .host_ns = 3'500'000},
      {.parent = 0, .name = name("forward"), .count = 2, .host_ns = 240'000},
      {.parent = 0, .name = name("backward"), .count = 2, .host_ns = 100'000},
      {.parent = 2, .name = name("all_reduce"), .domain = name("NCCL"), .count = 1},
      {.name = name("load ahead"), .count = 1, .host_ns = 2'000'000},
  };
  record.ranges[3].host_ns = 20'000;
  record.streams = {
      {.range = 0, .stream = 7, .instances = 2, .span_ns = 1'402'064, .works = 4},
      {.range = 0, .stream = 13, .instances = 2, .span_ns = 2'500'064, .works = 2},
      {.range = 1, .stream = 7, .instances = 2, .span_ns = 1'210'064, .works = 2},
      {.range = 2, .stream = 7, .instances = 1, .span_ns = 100'032, .works = 1},
  };
  for (RangeOnStream& row : record.streams) row.busy_ns = row.span_ns;
  record.streams[0].busy_ns = 1'400'128;
  const auto open = [&](uint32_t range, int64_t begin_us, int64_t end_us) {
    record.spans.push_back({start_ns + begin_us * 1'000, start_ns + end_us * 1'000, range, tid});
  };
  open(1, 5, 55);
  open(3, 62, 64);
  open(2, 56, 70);
  open(0, 5, 1'500);
  open(4, 1'000, 3'000);
  open(1, 2'005, 2'060);
  open(2, 2'070, 2'080);
  open(0, 2'000, 3'600);
  return record;
}

}  // namespace pystrobe::testing
