// SPDX-License-Identifier: Apache-2.0
#include "pyext/launch/gpu_records.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "gpu/device.h"
#include "gpu/kernel_name.h"
#include "gpu/kernel_sums.h"
#include "gpu/occupancy.h"
#include "profiler/base/hash_map.h"
#include "pyext/launch/python_paths.h"

namespace pystrobe::launch {
namespace {

GpuWorkKind ToKind(gpu::WorkKind kind) {
  switch (kind) {
    case gpu::WorkKind::kKernel:
      return GpuWorkKind::kKernel;
    case gpu::WorkKind::kCopy:
      return GpuWorkKind::kCopy;
    case gpu::WorkKind::kSet:
      return GpuWorkKind::kSet;
  }
  return GpuWorkKind::kKernel;
}

class Translator {
 public:
  /// `unknown`: name of the path of kUnknownOrigin.
  Translator(const gpu::KernelSums& from, std::string_view unknown, Tables& tables, GpuRecord& to)
      : from_(from), unknown_(unknown), tables_(tables), to_(to) {}

  void Add(size_t number) {
    const gpu::SumKey& key = from_.key(number);
    const gpu::WorkSum& sum = from_.sum(number);
    if (sum.count + sum.untimed == 0) return;
    numbers_.emplace(static_cast<uint32_t>(number), static_cast<uint32_t>(to_.sums.size()));
    GpuSum& added = to_.sums.emplace_back();
    added.stack = StackOf(key);
    added.kernel = KernelOf(key);
    added.device = key.device;
    static_assert(GpuSum::kNoStream == gpu::kNoStream);
    added.stream = key.stream;
    added.count = sum.count;
    added.untimed = sum.untimed;
    added.total_ns = sum.total_ns;
    added.min_ns = sum.count == 0 ? 0 : sum.min_ns;
    added.max_ns = sum.max_ns;
    added.bytes = sum.bytes;
    added.last_grid = sum.last_grid;
    static_assert(GpuSum::kBuckets == gpu::WorkSum::kBuckets);
    added.buckets = sum.buckets;
    const bool has_shape = key.kernel != gpu::KernelTable::kOtherKernels;
    const auto* const limits = LimitsOf(key.device);
    if (key.kind == gpu::WorkKind::kKernel && has_shape && limits != nullptr) {
      AddOccupancy(*limits, from_.kernels().shape(key.kernel), added);
    }
  }

  /// After all sums.
  void Add(const gpu::WorkSpan& span) {
    const gpu::LaunchMoment launch = span.launch.value_or(gpu::LaunchMoment{});
    to_.spans.push_back({.begin_ns = span.begin_ns,
                         .end_ns = span.end_ns,
                         .sum = numbers_.at(span.sum),
                         .tid = launch.tid,
                         .launch_ns = launch.time_ns,
                         .bytes = span.bytes});
  }

 private:
  StackId StackOf(const gpu::SumKey& key) {
    const StackId launch = key.origin == gpu::kUnknownOrigin ? PushName(kEmptyStack, unknown_)
                                                             : StackId{key.origin.path};
    if (!key.captured) return launch;
    return tables_.PushAll(PushName(launch, kGraph), StackId{*key.captured});
  }

  StackId PushName(StackId stack, std::string_view name) {
    const Function function{tables_.Intern(name), kEmptyString};
    return tables_.Push(stack, tables_.Intern(Frame{tables_.Intern(function)}));
  }

  uint32_t KernelOf(const gpu::SumKey& key) {
    const auto id = static_cast<uint64_t>(key.kernel) << 2 | static_cast<uint64_t>(key.kind);
    const auto [found, is_new] = kernels_.emplace(id, to_.kernels.size());
    if (!is_new) return static_cast<uint32_t>(found->second);
    const gpu::BlockShape& shape = from_.kernels().shape(key.kernel);
    const std::string name = gpu::Demangle(from_.kernels().name(key.kernel));
    const std::string short_name =
        key.kind == gpu::WorkKind::kKernel ? gpu::ShortKernelName(name) : name;
    to_.kernels.push_back({.kind = ToKind(key.kind),
                           .name = tables_.Intern(name),
                           .short_name = tables_.Intern(short_name),
                           .block = shape.block,
                           .cluster = shape.cluster,
                           .registers = shape.registers,
                           .static_shared = shape.static_shared,
                           .dynamic_shared = shape.dynamic_shared});
    return static_cast<uint32_t>(found->second);
  }

  const gpu::DeviceLimits* LimitsOf(uint32_t device) {
    const auto [found, is_new] = limits_.emplace(device, std::nullopt);
    if (is_new) {
      auto read = gpu::ReadDeviceLimits(static_cast<int>(device));
      if (read) found.value() = *std::move(read);
    }
    const auto& limits = found->second;
    return limits ? &*limits : nullptr;
  }

  void AddOccupancy(const gpu::DeviceLimits& limits, const gpu::BlockShape& shape, GpuSum& sum) {
    const auto occupancy = gpu::OccupancyOf(limits, shape, sum.last_grid);
    if (!occupancy) return;
    sum.occupancy = GpuOccupancy{
        .blocks_per_multiprocessor = static_cast<uint32_t>(occupancy->blocks_per_multiprocessor),
        .theoretical = occupancy->theoretical,
        .waves = occupancy->waves,
        .tail_efficiency = occupancy->tail_efficiency};
    const auto advice = gpu::OccupancyAdvice(limits, shape, sum.last_grid, *occupancy);
    sum.advice = tables_.Intern(fmt::format("{}", fmt::join(advice, "; ")));
  }

  const gpu::KernelSums& from_;
  const std::string_view unknown_;
  Tables& tables_;
  GpuRecord& to_;
  HashMap<uint32_t, uint32_t> numbers_;  // of sums, here by there
  HashMap<uint64_t, size_t> kernels_;
  HashMap<uint32_t, std::optional<gpu::DeviceLimits>> limits_;
};

GpuIdleCause ToCause(gpu::IdleCause cause) {
  switch (cause) {
    case gpu::IdleCause::kQueue:
      return GpuIdleCause::kQueue;
    case gpu::IdleCause::kLaunch:
      return GpuIdleCause::kLaunch;
    case gpu::IdleCause::kLaunches:
      return GpuIdleCause::kLaunches;
    case gpu::IdleCause::kWait:
      return GpuIdleCause::kWait;
    case gpu::IdleCause::kHost:
      return GpuIdleCause::kHost;
    case gpu::IdleCause::kUnknown:
      return GpuIdleCause::kUnknown;
  }
  return GpuIdleCause::kUnknown;
}

void AddIdleTime(const gpu::IdleTime& idle, GpuRecord& record) {
  for (const gpu::DeviceUse& use : idle.devices()) {
    record.uses.push_back({.device = use.device, .busy_ns = use.busy_ns, .idle_ns = use.idle_ns});
  }
  HashMap<uint32_t, uint32_t> numbers;  // of sums, here by there
  for (size_t number = 0; number < idle.size(); ++number) {
    const gpu::IdleKey& key = idle.key(number);
    const gpu::TimeSum& sum = idle.sum(number);
    if (sum.count == 0) continue;
    numbers.emplace(static_cast<uint32_t>(number), static_cast<uint32_t>(record.idles.size()));
    record.idles.push_back({.device = key.device,
                            .cause = ToCause(key.cause),
                            .from = StackId{key.from},
                            .to = StackId{key.to},
                            .count = sum.count,
                            .total_ns = sum.total_ns,
                            .max_ns = sum.max_ns});
  }
  for (const gpu::IdleGap& gap : idle.gaps()) {
    record.gaps.push_back({.begin_ns = gap.begin_ns,
                           .end_ns = gap.end_ns,
                           .idle = numbers.at(gap.sum),
                           .tid = gap.tid});
  }
  std::ranges::sort(record.gaps, {}, &GpuGap::begin_ns);
  for (const gpu::WaitSum& wait : idle.waits()) {
    if (wait.time.count == 0) continue;
    record.waits.push_back({.stack = StackId{wait.path},
                            .count = wait.time.count,
                            .total_ns = wait.time.total_ns,
                            .max_ns = wait.time.max_ns});
  }
}

void AddDevices(Tables& tables, GpuRecord& record) {
  if (record.sums.empty()) return;
  const auto devices = gpu::ListDevices();
  if (!devices) return;
  for (const gpu::Device& device : *devices) {
    const auto number = static_cast<uint32_t>(device.index);
    if (std::ranges::find(record.sums, number, &GpuSum::device) == record.sums.end()) continue;
    record.devices.push_back({.number = number,
                              .name = tables.Intern(device.name),
                              .multiprocessors = static_cast<uint32_t>(device.multiprocessors)});
  }
}

// cuptiGetVersion counted releases until 12, and has the version itself from then on.
std::string VersionText(uint32_t version) {
  if (version < 100000) return fmt::format("CUPTI of CUDA 12 (version {})", version);
  return fmt::format("CUPTI {}.{}", version / 10000, version / 100 % 100);
}

void Add(const gpu::CuptiSession& session, FunctionRef<void()> paths, bool spans, Tables& tables,
         GpuRecord& record) {
  const gpu::CuptiFacts facts = session.Facts();
  // Every launch was seen that is counted where it is launched.
  const std::string_view unknown = facts.launches_only ? kOtherPaths : kLaunchNotSeen;
  session.Read([&](const gpu::KernelSums& sums, const gpu::IdleTime& idle) {
    paths();
    Translator translator(sums, unknown, tables, record);
    for (size_t number = 0; number < sums.size(); ++number) translator.Add(number);
    if (spans) {
      for (const gpu::WorkSpan& span : sums.Spans()) translator.Add(span);
      record.spans_lost = sums.spans_lost();
    }
    record.quality.overflowed = sums.overflowed();
    AddIdleTime(idle, record);
  });
  AddDevices(tables, record);
  const auto launches = [&](gpu::LaunchKind kind) {
    return facts.launches.launches[static_cast<size_t>(kind)];
  };
  GpuQuality& quality = record.quality;
  quality.launches_only = facts.launches_only;
  quality.kernel_launches = launches(gpu::LaunchKind::kKernel);
  quality.graph_launches = launches(gpu::LaunchKind::kGraph);
  quality.copies = launches(gpu::LaunchKind::kCopy);
  quality.sets = launches(gpu::LaunchKind::kSet);
  quality.failed = facts.launches.failed;
  quality.captured = facts.launches.captured;
  quality.of_graphs = facts.of_graphs;
  quality.records = facts.records;
  quality.unmatched = facts.unmatched;
  quality.dropped = facts.dropped;
  quality.own_cpu_ns = facts.decoder_cpu.count();
  std::string source = fmt::format("{}, driver for CUDA {}.{}", VersionText(facts.cupti_version),
                                   facts.driver_version / 1000, facts.driver_version % 1000 / 10);
  if (facts.discarded_bytes > 0) {
    source += fmt::format("; {} bytes of records were not read, as all buffers were in use",
                          facts.discarded_bytes);
  }
  if (facts.lost_waits > 0) {
    source += fmt::format("; {} waits for a GPU were too many to be kept", facts.lost_waits);
  }
  quality.source = tables.Intern(source);
}

}  // namespace

void AddRecords(const gpu::CuptiSession& session, Tables& tables, GpuRecord& record) {
  Add(session, [] {}, true, tables, record);
}

void AddRecordsSoFar(const gpu::CuptiSession& session, FunctionRef<void()> paths, Tables& tables,
                     GpuRecord& record) {
  Add(session, paths, false, tables, record);
}

void AddRemark(std::string_view remark, Tables& tables, GpuRecord& record) {
  StringId& source = record.quality.source;
  source = tables.Intern(fmt::format("{}; {}", tables.text(source), remark));
}

}  // namespace pystrobe::launch
