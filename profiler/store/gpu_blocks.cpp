// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/gpu_blocks.h"

#include <algorithm>
#include <span>
#include <tuple>

#include "profiler/base/wrapping.h"
#include "profiler/store/corrupt.h"
#include "profiler/store/row_reader.h"

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

void AppendGpuQuality(Bytes& out, const GpuRecord& record) {
  ForEachInteger(record.quality,
                 [&](auto field) { AppendVarint(out, static_cast<uint64_t>(field)); });
  AppendString(out, record.quality.source);
  AppendVarint(out, record.spans_lost);
  AppendVarint(out, record.quality.captured);
  AppendVarint(out, record.quality.of_graphs);
  AppendVarint(out, record.quality.launches_only ? 1 : 0);
}

/// Whether its spans have them.
bool HasBytes(const GpuRecord& record, uint32_t sum) {
  return record.kernels[record.sums[sum].kernel].kind != GpuWorkKind::kKernel;
}

bool IsTime(int64_t ns) { return ns >= 0 && ns < kMaxGpuTime; }

bool MakesSense(const GpuGap& gap) {
  return IsTime(gap.begin_ns) && gap.end_ns >= gap.begin_ns && IsTime(gap.end_ns - gap.begin_ns);
}

bool MakesSense(const GpuSpan& span) {
  return IsTime(span.begin_ns) && IsTime(span.launch_ns) && span.end_ns >= span.begin_ns &&
         IsTime(span.end_ns - span.begin_ns);
}

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

void SpanHistory::Add(const GpuSpan& span) {
  if (span.sum >= sums_.size()) sums_.resize(span.sum + 1);
  sums_[span.sum] = {static_cast<uint64_t>(span.end_ns - span.begin_ns), span.bytes};
  end_ns_ = static_cast<uint64_t>(span.end_ns);
  if (span.launch_ns != 0) launch_ns_ = static_cast<uint64_t>(span.launch_ns);
  tid_ = span.tid;
}

Result<void> CheckGpuRecord(const GpuRecord& record) {
  const size_t rows =
      std::max({record.devices.size(), record.kernels.size(), record.sums.size(),
                record.uses.size(), record.idles.size(), record.waits.size(), record.gaps.size()});
  if (rows > kMaxGpuRows || record.spans.size() > kMaxGpuSpans) {
    return Fail(ErrorCode::kInvalidArgument,
                "{} rows and {} spans of what a GPU did are over the {} and {} that a .strobe file "
                "may have",
                rows, record.spans.size(), kMaxGpuRows, kMaxGpuSpans);
  }
  for (const GpuSpan& span : record.spans) {
    const bool has_sum =
        span.sum < record.sums.size() && record.sums[span.sum].kernel < record.kernels.size();
    if (has_sum && MakesSense(span)) continue;
    return Fail(ErrorCode::kInvalidArgument,
                "a GPU's work of sum {} from {} to {} ns, launched at {} ns, cannot be", span.sum,
                span.begin_ns, span.end_ns, span.launch_ns);
  }
  for (const GpuGap& gap : record.gaps) {
    if (gap.idle < record.idles.size() && MakesSense(gap)) continue;
    return Fail(ErrorCode::kInvalidArgument,
                "a GPU's idle time of row {} from {} to {} ns cannot be", gap.idle, gap.begin_ns,
                gap.end_ns);
  }
  return {};
}

bool GpuEncoder::Encode(size_t budget, Columns& columns) {
  if (!definitions_.Encode(tables_, budget, columns)) return false;
  const auto is_full = [&columns, budget] {
    size_t size = 0;
    for (size_t column = kGpuDevices; column < kColumnCount; ++column) {
      if (column != kNativeFunctions) size += columns[column].size();
    }
    return size >= budget;
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
  for (; spans_ < record_.spans.size() && !is_full(); ++spans_) {
    EncodeSpan(record_.spans[spans_], columns);
  }
  for (; uses_ < record_.uses.size() && !is_full(); ++uses_) {
    const GpuUse& use = record_.uses[uses_];
    for (const uint64_t field : {uint64_t{use.device}, use.busy_ns, use.idle_ns}) {
      AppendVarint(columns[kGpuUses], field);
    }
  }
  for (; idles_ < record_.idles.size() && !is_full(); ++idles_) {
    EncodeIdle(record_.idles[idles_], columns[kGpuIdles]);
  }
  for (; waits_ < record_.waits.size() && !is_full(); ++waits_) {
    EncodeWait(record_.waits[waits_], columns[kGpuWaits]);
  }
  for (; gaps_ < record_.gaps.size() && !is_full(); ++gaps_) {
    EncodeGap(record_.gaps[gaps_], columns[kGpuGaps]);
  }
  if (is_full()) return false;
  AppendGpuQuality(columns[kGpuQuality], record_);
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

void GpuEncoder::EncodeSpan(const GpuSpan& span, Columns& columns) {
  const auto begin = static_cast<uint64_t>(span.begin_ns);
  const auto end = static_cast<uint64_t>(span.end_ns);
  const LastOfSum last = history_.of(span.sum);
  AppendVarint(columns[kGpuSpanSums], span.sum);
  AppendVarint(columns[kGpuSpanBegins], Difference(begin, history_.end_ns()));
  AppendVarint(columns[kGpuSpanTimes], Difference(end - begin, last.duration_ns));
  if (HasBytes(record_, span.sum)) {
    AppendVarint(columns[kGpuSpanTimes], Difference(span.bytes, last.bytes));
  }
  AppendVarint(columns[kGpuSpanLaunches],
               Difference(static_cast<uint64_t>(span.launch_ns), history_.launch_ns()));
  AppendVarint(columns[kGpuSpanThreads], Difference(span.tid, history_.tid()));
  history_.Add(span);
}

void GpuEncoder::EncodeIdle(const GpuIdle& idle, Bytes& out) {
  AppendVarint(out, idle.device);
  AppendByte(out, static_cast<uint8_t>(idle.cause));
  AppendVarint(out, Difference(ToIndex(idle.from), ToIndex(last_places_.from)));
  AppendVarint(out, Difference(ToIndex(idle.to), ToIndex(last_places_.to)));
  for (const uint64_t field : {idle.count, idle.total_ns, idle.max_ns}) AppendVarint(out, field);
  last_places_.from = idle.from;
  last_places_.to = idle.to;
}

void GpuEncoder::EncodeWait(const GpuWait& wait, Bytes& out) {
  AppendVarint(out, Difference(ToIndex(wait.stack), ToIndex(last_places_.wait)));
  for (const uint64_t field : {wait.count, wait.total_ns, wait.max_ns}) AppendVarint(out, field);
  last_places_.wait = wait.stack;
}

void GpuEncoder::EncodeGap(const GpuGap& gap, Bytes& out) {
  AppendVarint(out, gap.idle);
  AppendVarint(out, Difference(static_cast<uint64_t>(gap.begin_ns),
                               static_cast<uint64_t>(last_gap_.end_ns)));
  AppendVarint(out, static_cast<uint64_t>(gap.end_ns - gap.begin_ns));
  AppendVarint(out, Difference(gap.tid, last_gap_.tid));
  last_gap_ = {.end_ns = gap.end_ns, .tid = gap.tid};
}

Result<void> GpuDecoder::Decode(const BlockUnpacker& block) {
  if (auto done = definitions_.Decode(block, tables_); !done) return done;
  if (auto done = DecodeDevices(block.column(kGpuDevices)); !done) return done;
  if (auto done = DecodeKernels(block.column(kGpuKernels)); !done) return done;
  if (auto done = DecodeSums(block); !done) return done;
  if (auto done = DecodeOccupancies(block.column(kGpuOccupancies)); !done) return done;
  if (auto done = DecodeSpans(block); !done) return done;
  if (auto done = DecodeUses(block.column(kGpuUses)); !done) return done;
  if (auto done = DecodeIdles(block.column(kGpuIdles)); !done) return done;
  if (auto done = DecodeWaits(block.column(kGpuWaits)); !done) return done;
  if (auto done = DecodeGaps(block.column(kGpuGaps)); !done) return done;
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
  return stacks.finished() ? Result<void>{} : Corrupt("stacks of no sums of a GPU's work");
}

Result<void> GpuDecoder::DecodeOccupancies(ByteSpan column) {
  RowReader in(column, tables_);
  while (!in.empty()) {
    const uint32_t sum = in.Below(record_.sums.size());
    GpuOccupancy occupancy{.blocks_per_multiprocessor = in.Number()};
    for (double* field : {&occupancy.theoretical, &occupancy.waves, &occupancy.tail_efficiency}) {
      *field = in.Share();
    }
    if (!in.ok()) return Corrupt("an occupancy that cannot be");
    record_.sums[sum].occupancy = occupancy;
  }
  return {};
}

Result<void> GpuDecoder::DecodeSpans(const BlockUnpacker& block) {
  RowReader sums(block.column(kGpuSpanSums), tables_);
  ByteReader begins(block.column(kGpuSpanBegins)), times(block.column(kGpuSpanTimes));
  ByteReader launches(block.column(kGpuSpanLaunches)), threads(block.column(kGpuSpanThreads));
  while (!sums.empty()) {
    GpuSpan span{.sum = sums.Below(record_.sums.size())};
    if (!sums.ok()) return Corrupt("a GPU's work of a sum that there is none of");
    const LastOfSum last = history_.of(span.sum);
    span.begin_ns = static_cast<int64_t>(Add(history_.end_ns(), begins.Varint()));
    span.end_ns =
        WrappingAdd(span.begin_ns, static_cast<int64_t>(Add(last.duration_ns, times.Varint())));
    if (HasBytes(record_, span.sum)) span.bytes = Add(last.bytes, times.Varint());
    span.launch_ns = static_cast<int64_t>(Add(history_.launch_ns(), launches.Varint()));
    const uint64_t tid = Add(history_.tid(), threads.Varint());
    span.tid = static_cast<uint32_t>(tid);
    if (!MakesSense(span) || span.tid != tid)
      return Corrupt("a GPU's work at a time that cannot be");
    if (record_.spans.size() == kMaxGpuSpans) return Corrupt("more works of a GPU than can be");
    record_.spans.push_back(span);
    history_.Add(span);
  }
  const bool fit =
      begins.finished() && times.finished() && launches.finished() && threads.finished();
  return fit ? Result<void>{} : Corrupt("times of a GPU's works that are not as many as these");
}

Result<void> GpuDecoder::DecodeUses(ByteSpan column) {
  RowReader in(column, tables_);
  while (!in.empty()) {
    GpuUse use{.device = in.Number()};
    use.busy_ns = in.bytes().Varint();
    use.idle_ns = in.bytes().Varint();
    if (!in.ok()) return Corrupt("a use of a GPU that cannot be");
    if (record_.uses.size() == kMaxGpuRows) return Corrupt("more GPUs in use than can be");
    record_.uses.push_back(use);
  }
  return {};
}

Result<void> GpuDecoder::DecodeIdles(ByteSpan column) {
  RowReader in(column, tables_);
  while (!in.empty()) {
    GpuIdle idle{.device = in.Number()};
    idle.cause = static_cast<GpuIdleCause>(in.Below(kGpuIdleCauses));
    last_places_.from = idle.from = in.StackAfter(last_places_.from);
    last_places_.to = idle.to = in.StackAfter(last_places_.to);
    for (uint64_t* field : {&idle.count, &idle.total_ns, &idle.max_ns}) {
      *field = in.bytes().Varint();
    }
    if (!in.ok()) return Corrupt("an idle time of a GPU that cannot be");
    if (record_.idles.size() == kMaxGpuRows) return Corrupt("more idle times than can be");
    record_.idles.push_back(idle);
  }
  return {};
}

Result<void> GpuDecoder::DecodeWaits(ByteSpan column) {
  RowReader in(column, tables_);
  while (!in.empty()) {
    GpuWait wait{.stack = in.StackAfter(last_places_.wait)};
    last_places_.wait = wait.stack;
    for (uint64_t* field : {&wait.count, &wait.total_ns, &wait.max_ns}) {
      *field = in.bytes().Varint();
    }
    if (!in.ok()) return Corrupt("a wait for a GPU that cannot be");
    if (record_.waits.size() == kMaxGpuRows) return Corrupt("more waits for GPUs than can be");
    record_.waits.push_back(wait);
  }
  return {};
}

Result<void> GpuDecoder::DecodeGaps(ByteSpan column) {
  RowReader in(column, tables_);
  while (!in.empty()) {
    GpuGap gap{.idle = in.Below(record_.idles.size())};
    gap.begin_ns =
        static_cast<int64_t>(Add(static_cast<uint64_t>(last_gap_.end_ns), in.bytes().Varint()));
    gap.end_ns = WrappingAdd(gap.begin_ns, static_cast<int64_t>(in.bytes().Varint()));
    const uint64_t tid = Add(last_gap_.tid, in.bytes().Varint());
    gap.tid = static_cast<uint32_t>(tid);
    if (!in.ok() || !MakesSense(gap) || gap.tid != tid) {
      return Corrupt("an idle time of a GPU at a time that cannot be");
    }
    if (record_.gaps.size() == kMaxGpuRows) return Corrupt("more idle times than can be");
    record_.gaps.push_back(gap);
    last_gap_ = {.end_ns = gap.end_ns, .tid = gap.tid};
  }
  return {};
}

Result<void> GpuDecoder::DecodeQuality(ByteSpan column) {
  RowReader in(column, tables_);
  ForEachInteger(record_.quality, [&in](auto& field) {
    field = static_cast<std::remove_reference_t<decltype(field)>>(in.bytes().Varint());
  });
  record_.quality.source = in.String();
  record_.spans_lost = in.bytes().Varint();
  // Files from before there were these end here.
  if (!in.empty()) {
    record_.quality.captured = in.bytes().Varint();
    record_.quality.of_graphs = in.bytes().Varint();
  }
  if (!in.empty()) record_.quality.launches_only = in.bytes().Varint() != 0;
  return in.ok() ? Result<void>{} : Corrupt("quality figures of a GPU that cannot be");
}

}  // namespace pystrobe::store
