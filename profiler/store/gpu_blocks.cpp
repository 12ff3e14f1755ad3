// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/gpu_blocks.h"

#include <cmath>
#include <limits>
#include <span>
#include <tuple>

#include "profiler/store/corrupt.h"

namespace pystrobe::store {
namespace {

/// Calls `visit` with references to every integer of a GpuQuality, in stored order.
template <typename Q, typename Visit>
void ForEachInteger(Q& q, Visit visit) {
  std::apply([&](auto&... field) { (visit(field), ...); },
             std::tie(q.kernel_launches, q.graph_launches, q.copies, q.sets, q.failed, q.records,
                      q.unmatched, q.dropped, q.overflowed, q.duration_ns, q.own_cpu_ns));
}

void AppendString(Bytes& out, StringId id) { AppendVarint(out, ToIndex(id)); }

void AppendThree(Bytes& out, const std::array<uint32_t, 3>& three) {
  for (const uint32_t one : three) AppendVarint(out, one);
}

void AppendKernel(Bytes& out, const GpuKernel& kernel) {
  AppendByte(out, static_cast<uint8_t>(kernel.kind));
  AppendString(out, kernel.name);
  AppendString(out, kernel.short_name);
  AppendThree(out, kernel.block);
  AppendThree(out, kernel.cluster);
  for (const uint32_t field : {kernel.registers, kernel.static_shared, kernel.dynamic_shared}) {
    AppendVarint(out, field);
  }
}

void AppendBuckets(Bytes& out, std::span<const uint64_t, GpuSum::kBuckets> buckets) {
  uint32_t filled = 0;
  for (size_t i = 0; i < buckets.size(); ++i) filled |= buckets[i] == 0 ? 0 : uint32_t{1} << i;
  AppendVarint(out, filled);
  for (const uint64_t bucket : buckets) {
    if (bucket != 0) AppendVarint(out, bucket);
  }
}

void AppendOccupancy(Bytes& out, size_t sum, const GpuOccupancy& occupancy) {
  AppendVarint(out, sum);
  AppendVarint(out, occupancy.blocks_per_multiprocessor);
  for (const double field : {occupancy.theoretical, occupancy.waves, occupancy.tail_efficiency}) {
    AppendDouble(out, field);
  }
}

void AppendGpuQuality(Bytes& out, const GpuQuality& quality) {
  ForEachInteger(quality, [&](auto field) { AppendVarint(out, static_cast<uint64_t>(field)); });
  AppendString(out, quality.source);
}

/// Rows of a column: numbers and ids that are checked as they are read, all() of them at once.
class RowReader {
 public:
  RowReader(ByteSpan column, const Tables& tables) : in_(column), tables_(tables) {}

  bool empty() const { return in_.empty(); }
  bool ok() const { return in_.ok() && in_range_; }

  ByteReader& bytes() { return in_; }
  /// One below `limit`.
  uint32_t Below(uint64_t limit) {
    const uint64_t number = in_.Varint();
    if (number < limit) return static_cast<uint32_t>(number);
    in_range_ = false;
    return 0;
  }
  uint32_t Number() { return Below(uint64_t{std::numeric_limits<uint32_t>::max()} + 1); }
  StringId String() { return StringId{Below(tables_.string_count())}; }
  std::array<uint32_t, 3> Three() {
    std::array<uint32_t, 3> three;
    for (uint32_t& one : three) one = Number();
    return three;
  }
  /// No writer's are negative or none at all.
  double Share() {
    const double number = in_.Double();
    if (!std::isfinite(number) || number < 0) in_range_ = false;
    return number;
  }

 private:
  ByteReader in_;
  const Tables& tables_;
  bool in_range_ = true;
};

GpuSum ReadSum(RowReader& in, size_t kernels) {
  GpuSum sum;
  sum.kernel = in.Below(kernels);
  sum.device = in.Number();
  sum.stream = in.Number();
  for (uint64_t* field :
       {&sum.count, &sum.untimed, &sum.total_ns, &sum.min_ns, &sum.max_ns, &sum.bytes}) {
    *field = in.bytes().Varint();
  }
  sum.last_grid = in.Three();
  sum.advice = in.String();
  const uint32_t filled = in.Number();
  for (size_t i = 0; i < sum.buckets.size(); ++i) {
    if ((filled >> i & 1) != 0) sum.buckets[i] = in.bytes().Varint();
  }
  return sum;
}

}  // namespace

bool GpuEncoder::Encode(size_t budget, Columns& columns) {
  if (!definitions_.Encode(tables_, budget, columns)) return false;
  const auto is_full = [&columns, budget] {
    return columns[kGpuDevices].size() + columns[kGpuKernels].size() + columns[kGpuSums].size() >=
           budget;
  };
  for (; devices_ < record_.devices.size() && !is_full(); ++devices_) {
    const GpuDevice& device = record_.devices[devices_];
    AppendVarint(columns[kGpuDevices], device.number);
    AppendString(columns[kGpuDevices], device.name);
    AppendVarint(columns[kGpuDevices], device.multiprocessors);
  }
  for (; kernels_ < record_.kernels.size() && !is_full(); ++kernels_) {
    AppendKernel(columns[kGpuKernels], record_.kernels[kernels_]);
  }
  for (; sums_ < record_.sums.size() && !is_full(); ++sums_) {
    EncodeSum(record_.sums[sums_], columns);
  }
  if (is_full()) return false;
  AppendGpuQuality(columns[kGpuQuality], record_.quality);
  return true;
}

void GpuEncoder::EncodeSum(const GpuSum& sum, Columns& columns) {
  AppendVarint(columns[kGpuStacks], Difference(ToIndex(sum.stack), ToIndex(last_stack_)));
  last_stack_ = sum.stack;
  Bytes& out = columns[kGpuSums];
  for (const uint64_t field :
       {uint64_t{sum.kernel}, uint64_t{sum.device}, uint64_t{sum.stream}, sum.count, sum.untimed,
        sum.total_ns, sum.min_ns, sum.max_ns, sum.bytes}) {
    AppendVarint(out, field);
  }
  AppendThree(out, sum.last_grid);
  AppendString(out, sum.advice);
  AppendBuckets(out, sum.buckets);
  if (sum.occupancy) AppendOccupancy(columns[kGpuOccupancies], sums_, *sum.occupancy);
}

Result<void> GpuDecoder::Decode(const BlockUnpacker& block) {
  if (auto done = definitions_.Decode(block, tables_); !done) return done;
  if (auto done = DecodeDevices(block.column(kGpuDevices)); !done) return done;
  if (auto done = DecodeKernels(block.column(kGpuKernels)); !done) return done;
  if (auto done = DecodeSums(block); !done) return done;
  return IsLast(block) ? DecodeQuality(block.column(kGpuQuality)) : Result<void>{};
}

Result<void> GpuDecoder::DecodeDevices(ByteSpan column) {
  RowReader in(column, tables_);
  while (!in.empty()) {
    GpuDevice device{.number = in.Number()};
    device.name = in.String();
    device.multiprocessors = in.Number();
    if (!in.ok()) return Corrupt("a GPU without a valid name");
    if (record_.devices.size() == kMaxGpuRows) return Corrupt("more GPUs than can be");
    record_.devices.push_back(device);
  }
  return {};
}

Result<void> GpuDecoder::DecodeKernels(ByteSpan column) {
  RowReader in(column, tables_);
  while (!in.empty()) {
    GpuKernel kernel;
    kernel.kind = static_cast<GpuWorkKind>(in.Below(static_cast<size_t>(GpuWorkKind::kSet) + 1));
    kernel.name = in.String();
    kernel.short_name = in.String();
    kernel.block = in.Three();
    kernel.cluster = in.Three();
    for (uint32_t* field : {&kernel.registers, &kernel.static_shared, &kernel.dynamic_shared}) {
      *field = in.Number();
    }
    if (!in.ok()) return Corrupt("a kernel without a valid name or shape");
    if (record_.kernels.size() == kMaxGpuRows) return Corrupt("more kernels than can be");
    record_.kernels.push_back(kernel);
  }
  return {};
}

Result<void> GpuDecoder::DecodeSums(const BlockUnpacker& block) {
  RowReader in(block.column(kGpuSums), tables_);
  ByteReader stacks(block.column(kGpuStacks));
  while (!in.empty()) {
    GpuSum sum = ReadSum(in, record_.kernels.size());
    const uint64_t stack = Add(ToIndex(last_stack_), stacks.Varint());
    if (!in.ok()) return Corrupt("a sum of a GPU's work with a number that cannot be");
    if (!stacks.ok() || stack >= tables_.stack_count()) {
      return Corrupt("a sum of a GPU's work with an undefined stack");
    }
    if (record_.sums.size() == kMaxGpuRows) return Corrupt("more sums of a GPU's work than can be");
    last_stack_ = sum.stack = StackId{static_cast<uint32_t>(stack)};
    record_.sums.push_back(sum);
  }
  if (!stacks.finished()) return Corrupt("stacks of no sums of a GPU's work");

  RowReader occupancies(block.column(kGpuOccupancies), tables_);
  while (!occupancies.empty()) {
    const uint32_t sum = occupancies.Below(record_.sums.size());
    GpuOccupancy occupancy{.blocks_per_multiprocessor = occupancies.Number()};
    for (double* field : {&occupancy.theoretical, &occupancy.waves, &occupancy.tail_efficiency}) {
      *field = occupancies.Share();
    }
    if (!occupancies.ok()) return Corrupt("an occupancy that cannot be");
    record_.sums[sum].occupancy = occupancy;
  }
  return {};
}

Result<void> GpuDecoder::DecodeQuality(ByteSpan column) {
  RowReader in(column, tables_);
  ForEachInteger(record_.quality, [&in](auto& field) {
    field = static_cast<std::remove_reference_t<decltype(field)>>(in.bytes().Varint());
  });
  record_.quality.source = in.String();
  return in.ok() ? Result<void>{} : Corrupt("quality figures of a GPU that cannot be");
}

}  // namespace pystrobe::store
