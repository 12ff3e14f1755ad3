// SPDX-License-Identifier: Apache-2.0
#include "gpu/activity_decoder.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace pystrobe::gpu {
namespace {

constexpr int kLooks = 8;

// As torch.profiler names them, so that tools which read its traces know ours.
std::string_view NameOfCopyKind(uint8_t kind) {
  constexpr std::array<std::string_view, 11> kNames{
      "Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};
  return kind < kNames.size() ? kNames[kind] : kNames[0];
}

std::string_view NameOfMemory(unsigned kind) {
  constexpr std::array<std::string_view, 8> kNames{"Unknown",       "Pageable",      "Pinned",
                                                   "Device",        "Array",         "Managed",
                                                   "Device Static", "Managed Static"};
  return kind < kNames.size() ? kNames[kind] : kNames[0];
}

template <typename Record>
const Record& As(const CUpti_Activity* record) {
  return *reinterpret_cast<const Record*>(record);
}

}  // namespace

std::optional<Nanoseconds> CuptiClockOffset(const CuptiApi& cupti) {
  Nanoseconds shortest = Nanoseconds::max();
  std::optional<Nanoseconds> offset;
  for (int i = 0; i < kLooks; ++i) {
    uint64_t theirs = 0;
    const Nanoseconds before = MonotonicNow();
    if (cupti.cuptiGetTimestamp(&theirs) != CUPTI_SUCCESS) continue;
    const Nanoseconds took = MonotonicNow() - before;
    if (took >= shortest) continue;
    shortest = took;
    offset = Nanoseconds(theirs) - before - took / 2;
  }
  return offset;
}

void ActivityDecoder::Decode(uint8_t* data, size_t bytes) {
  // Each time, since CUPTI's is the clock that people and NTP set.
  offset_ = CuptiClockOffset(cupti_);
  CUpti_Activity* record = nullptr;
  while (cupti_.cuptiActivityGetNextRecord(data, bytes, &record) == CUPTI_SUCCESS) {
    switch (record->kind) {
      case CUPTI_ACTIVITY_KIND_KERNEL:
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        AddKernel(record);
        break;
      case CUPTI_ACTIVITY_KIND_MEMCPY:
        AddCopy<CUpti_ActivityMemcpy5>(record);
        break;
      case CUPTI_ACTIVITY_KIND_MEMCPY2:
        AddCopy<CUpti_ActivityMemcpyPtoP4>(record);
        break;
      case CUPTI_ACTIVITY_KIND_MEMSET:
        AddSet(record);
        break;
      default:
        ++counts_.other;
        break;
    }
  }
}

template <typename Record>
GpuWork ActivityDecoder::Common(const Record& record, WorkKind kind) {
  GpuWork work{.kind = kind, .device = record.deviceId, .stream = record.streamId};
  work.origin = launches_.ring.Find(record.correlationId).value_or(kUnknownOrigin);
  if (record.graphNodeId != 0) {
    work.captured = launches_.graph_nodes.PathOf(record.graphNodeId).value_or(kNotCaptured);
  }
  work.launch = launches_.moments.Find(record.correlationId);
  if (offset_ && record.start != 0 && record.end != 0) {
    work.begin_ns = static_cast<int64_t>(record.start) - offset_->count();
    work.end_ns = static_cast<int64_t>(record.end) - offset_->count();
  }
  return work;
}

void ActivityDecoder::Add(const GpuWork& work) {
  if (since_ns_ && work.begin_ns != 0 && work.begin_ns < *since_ns_) return;
  ++counts_.records;
  if (work.captured) ++counts_.of_graphs;
  if (work.origin == kUnknownOrigin) ++counts_.unmatched;
  to_.kernels.Add(work);
  to_.idle.Add(work);
  to_.ranges.Add(work);
}

void ActivityDecoder::AddKernel(const CUpti_Activity* record) {
  const auto& kernel = As<CUpti_ActivityKernel9>(record);
  const auto unsign = [](int32_t value) { return static_cast<uint32_t>(value); };
  GpuWork work = Common(kernel, WorkKind::kKernel);
  work.name = kernel.name != nullptr ? kernel.name : "(no name)";
  work.grid = {unsign(kernel.gridX), unsign(kernel.gridY), unsign(kernel.gridZ)};
  work.shape = {.block = {unsign(kernel.blockX), unsign(kernel.blockY), unsign(kernel.blockZ)},
                .cluster = {kernel.clusterX, kernel.clusterY, kernel.clusterZ},
                .registers = kernel.registersPerThread,
                .static_shared = unsign(kernel.staticSharedMemory),
                .dynamic_shared = unsign(kernel.dynamicSharedMemory),
                .max_clusters = kernel.clusterX != 0 ? kernel.maxActiveClusters : 0};
  Add(work);
}

template <typename Record>
void ActivityDecoder::AddCopy(const CUpti_Activity* record) {
  const auto& copy = As<Record>(record);
  GpuWork work = Common(copy, WorkKind::kCopy);
  work.name = CopyName(copy.copyKind, copy.srcKind, copy.dstKind);
  work.bytes = copy.bytes;
  Add(work);
}

void ActivityDecoder::AddSet(const CUpti_Activity* record) {
  const auto& set = As<CUpti_ActivityMemset4>(record);
  GpuWork work = Common(set, WorkKind::kSet);
  work.name = SetName(set.memoryKind);
  work.bytes = set.bytes;
  Add(work);
}

const char* ActivityDecoder::CopyName(uint8_t kind, uint8_t from, uint8_t to) {
  std::string& name = names_[static_cast<uint32_t>(kind << 16 | from << 8 | to)];
  if (name.empty()) {
    name = fmt::format("Memcpy {} ({} -> {})", NameOfCopyKind(kind), NameOfMemory(from),
                       NameOfMemory(to));
  }
  return name.c_str();
}

const char* ActivityDecoder::SetName(uint16_t memory) {
  std::string& name = names_[uint32_t{1} << 31 | memory];
  if (name.empty()) name = fmt::format("Memset ({})", NameOfMemory(memory));
  return name.c_str();
}

}  // namespace pystrobe::gpu
