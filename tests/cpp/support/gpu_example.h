// SPDX-License-Identifier: Apache-2.0
//
// What a GPU did, made up: two streams, kernels of several shapes, a copy and a set.
#pragma once

#include <bit>

#include "tests/cpp/support/memory_recording.h"

namespace pystrobe::testing {

/// `count` works of `each_ns`, one more of `longest_ns`.
inline GpuSum MakeGpuSum(StackId stack, uint32_t kernel, uint64_t count, uint64_t each_ns,
                         uint64_t longest_ns) {
  GpuSum sum{.stack = stack, .kernel = kernel, .stream = 7, .count = count + 1};
  sum.total_ns = count * each_ns + longest_ns;
  sum.min_ns = each_ns;
  sum.max_ns = longest_ns;
  sum.buckets[static_cast<size_t>(std::bit_width(each_ns))] += count;
  ++sum.buckets[static_cast<size_t>(std::bit_width(longest_ns))];
  return sum;
}

inline GpuKernel MakeGpuKernel(Tables& tables, GpuWorkKind kind, std::string_view name,
                               std::string_view short_name) {
  return {.kind = kind, .name = tables.Intern(name), .short_name = tables.Intern(short_name)};
}

/// Some of the example's works by themselves, two steps from `start_ns` on: a copy, and beside it
/// kernels on stream 7. The set, whose launch was not seen, runs beside the first of them, on the
/// same stream; in the second step both kernels are of one launch.
inline void AddGpuSpans(GpuRecord& record, int64_t start_ns, uint32_t tid) {
  const auto add = [&](uint32_t sum, int64_t launch_us, int64_t begin_us, int64_t us,
                       uint64_t bytes = 0) {
    const bool is_seen = launch_us >= 0;
    record.spans.push_back({.begin_ns = start_ns + begin_us * 1'000,
                            .end_ns = start_ns + (begin_us + us) * 1'000 + 32,
                            .sum = sum,
                            .tid = is_seen ? tid : 0,
                            .launch_ns = is_seen ? start_ns + launch_us * 1'000 + 7 : 0,
                            .bytes = bytes});
  };
  add(3, 10, 20, 1'000, uint64_t{64} << 20);
  add(4, -1, 300, 1);
  add(0, 50, 100, 600);
  add(1, 60, 701, 100);
  add(3, 2'010, 2'020, 1'500, 1'000);
  add(0, 2'050, 2'100, 610);
  add(1, 2'050, 2'711, 90);
}

/// A program that trains: `train` and below it `step` and `load`, all of app.py.
inline GpuRecord MakeGpuExample(Tables& tables) {
  const StackId step = MakeStack(tables, {{"<module>", 30}, {"train", 12}, {"step", 5}});
  const StackId load = MakeStack(tables, {{"<module>", 30}, {"train", 11}, {"load", 20}});
  GpuRecord record;
  record.devices = {{0, tables.Intern("NVIDIA H100"), 132}};
  GpuKernel gemm = MakeGpuKernel(tables, GpuWorkKind::kKernel, "void gemm<float, 128>(float*, int)",
                                 "gemm<float, 128>");
  gemm.block = {256, 1, 1};
  gemm.registers = 64;
  gemm.static_shared = 4096;
  GpuKernel narrow = gemm;
  narrow.block = {32, 1, 1};
  record.kernels = {
      gemm, narrow, MakeGpuKernel(tables, GpuWorkKind::kKernel, "void relu(float*)", "relu"),
      MakeGpuKernel(tables, GpuWorkKind::kCopy, "copy to the device", "copy to the device"),
      MakeGpuKernel(tables, GpuWorkKind::kSet, "set", "set")};
  record.sums = {MakeGpuSum(step, 0, 999, 600'000, 1'600'000),
                 MakeGpuSum(step, 1, 99, 100'000, 200'000), MakeGpuSum(step, 2, 999, 2'000, 3'000),
                 MakeGpuSum(load, 3, 9, 1'000'000, 1'500'000),
                 MakeGpuSum(kEmptyStack, 4, 2, 1'000, 2'000)};
  record.sums[0].last_grid = {264, 1, 1};
  record.sums[0].occupancy = {
      {.blocks_per_multiprocessor = 4, .theoretical = 0.5, .waves = 0.5, .tail_efficiency = 0.5}};
  record.sums[0].advice = tables.Intern("the grid is small: half of the device has no work");
  record.sums[1].occupancy = {
      {.blocks_per_multiprocessor = 16, .theoretical = 0.25, .waves = 2, .tail_efficiency = 1}};
  record.sums[3].stream = 13;
  record.sums[3].bytes = 10 * (uint64_t{64} << 20);
  record.sums[4].untimed = 1;
  record.uses = {{.device = 0, .busy_ns = 700'000'000, .idle_ns = 1'200'000'000}};
  const auto idle = [&record](GpuIdleCause cause, StackId from, StackId to, uint64_t count,
                              uint64_t each_ns) {
    record.idles.push_back({.cause = cause,
                            .from = from,
                            .to = to,
                            .count = count,
                            .total_ns = count * each_ns,
                            .max_ns = 2 * each_ns});
  };
  const StackId item = MakeStack(tables, {{"<module>", 30}, {"train", 14}, {"item", 3}});
  idle(GpuIdleCause::kHost, item, load, 10, 70'000'000);
  idle(GpuIdleCause::kWait, item, load, 100, 3'000'000);
  idle(GpuIdleCause::kLaunches, step, step, 10'000, 19'000);
  idle(GpuIdleCause::kQueue, kEmptyStack, step, 5'000, 2'000);
  record.waits = {{.stack = item, .count = 110, .total_ns = 610'000'000, .max_ns = 9'000'000}};
  record.gaps = {{.begin_ns = 1'000'000'000, .end_ns = 1'070'000'000, .idle = 0, .tid = 4242},
                 {.begin_ns = 1'200'000'000, .end_ns = 1'340'000'000, .idle = 0, .tid = 4242}};
  record.quality = {.kernel_launches = 2'100,
                    .copies = 10,
                    .sets = 4,
                    .records = 2'114,
                    .duration_ns = 2'000'000'000,
                    .own_cpu_ns = 12'000'000,
                    .source = tables.Intern("CUPTI 13.0, driver for CUDA 13.0")};
  return record;
}

}  // namespace pystrobe::testing
