// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/samples.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "profiler/store/corrupt.h"

namespace pystrobe::store {
namespace {

constexpr int64_t kNsPerUs = 1000;

int64_t FloorToUs(int64_t ns) { return ns / kNsPerUs - (ns % kNsPerUs < 0 ? 1 : 0); }

void AppendPlanes(Bytes& low, Bytes& high, uint64_t value) {
  AppendByte(low, static_cast<uint8_t>(value));
  AppendVarint(high, value >> 8);
}

/// A value that is usually what one expects: only the differences are written.
void AppendException(Bytes& out, uint64_t& as_expected, uint64_t value, uint64_t expected) {
  if (value == expected) {
    ++as_expected;
    return;
  }
  AppendVarint(out, as_expected);
  AppendVarint(out, Difference(value, expected));
  as_expected = 0;
}

void AppendFlagRuns(Bytes& out, std::span<const Sample> samples) {
  for (size_t begin = 0, end = 0; begin < samples.size(); begin = end) {
    const uint8_t flags = samples[begin].flags;
    while (end < samples.size() && samples[end].flags == flags) ++end;
    AppendByte(out, flags);
    AppendVarint(out, end - begin);
  }
}

void AppendGroups(Bytes& out, std::span<const Sample> samples) {
  uint32_t last = 0;
  for (size_t begin = 0, end = 0; begin < samples.size(); begin = end) {
    const ThreadIndex thread = samples[begin].thread;
    while (end < samples.size() && samples[end].thread == thread) ++end;
    AppendVarint(out, ToIndex(thread) - last);
    AppendVarint(out, end - begin);
    last = ToIndex(thread);
  }
}

/// Reads the columns of AppendPlanes.
class PlaneReader {
 public:
  PlaneReader(ByteSpan low, ByteSpan high) : low_(low), high_(high) {}
  uint64_t Next() {
    const uint8_t low = low_.Byte();
    return high_.Varint() << 8 | low;
  }
  bool ok() const { return low_.ok() && high_.ok(); }
  bool finished() const { return low_.finished() && high_.finished(); }

 private:
  ByteReader low_;
  ByteReader high_;
};

/// Reads a column of AppendException.
class ExceptionReader {
 public:
  explicit ExceptionReader(ByteSpan column) : in_(column) { FindNext(); }
  uint64_t Next(uint64_t expected) {
    if (!pending_) return expected;
    if (skip_ > 0) {
      --skip_;
      return expected;
    }
    const uint64_t value = Add(expected, in_.Varint());
    FindNext();
    return value;
  }
  bool ok() const { return in_.ok(); }
  bool finished() const { return in_.finished() && !pending_; }

 private:
  void FindNext() {
    pending_ = !in_.empty();
    if (pending_) skip_ = in_.Varint();
  }

  ByteReader in_;
  bool pending_ = false;  // there is an exception after skip_ more samples
  uint64_t skip_ = 0;
};

/// Reads the column of AppendFlagRuns.
class FlagReader {
 public:
  explicit FlagReader(ByteSpan column) : in_(column) {}
  uint8_t Next() {
    if (left_ == 0) {
      flags_ = in_.Byte();
      left_ = in_.Varint();
    }
    --left_;  // a run of no length wraps around: the end of the block then finds it unfinished
    return flags_;
  }
  bool ok() const { return in_.ok(); }
  bool finished() const { return in_.finished() && left_ == 0; }

 private:
  ByteReader in_;
  uint64_t left_ = 0;
  uint8_t flags_ = 0;
};

/// End of the chain of stacks after `highest`, of which there are `count`: strobe_format.h. Nothing
/// if there is none or it is too long.
std::optional<uint32_t> ChainEnd(const Tables& tables, uint32_t highest, size_t count) {
  uint32_t end = highest + 1;
  if (end >= count) return std::nullopt;
  while (end + 1 < count && ToIndex(tables.stack(StackId{end + 1}).parent) == end) {
    if (++end - highest > kMaxChain) return std::nullopt;
  }
  return end;
}

}  // namespace

void SampleEncoder::Encode(std::span<const Sample> samples, const Tables& tables,
                           Columns& columns) {
  if (samples.empty()) return;
  grouped_.assign(samples.begin(), samples.end());
  std::stable_sort(grouped_.begin(), grouped_.end(),
                   [](const Sample& a, const Sample& b) { return a.thread < b.thread; });
  const size_t threads = size_t{ToIndex(grouped_.back().thread)} + 1;
  if (threads > threads_.size()) threads_.resize(threads);

  EncodeDeadlines(columns);
  AppendGroups(columns[kGroups], grouped_);
  AppendFlagRuns(columns[kFlagRuns], grouped_);
  wall_as_expected_ = 0;
  count_as_expected_ = 0;
  for (const Sample& sample : grouped_) {
    EncodeTimes(sample, threads_[ToIndex(sample.thread)], columns);
    EncodeStack(sample.stack, tables, columns);
    AppendException(columns[kCountExceptions], count_as_expected_, sample.count, 1);
  }
}

void SampleEncoder::EncodeDeadlines(Columns& columns) {
  due_.BeginBlock();
  for (const DeadlineSeries& series : expected_) {
    if (!due_.Add(series)) continue;
    AppendVarint(columns[kDeadlines], static_cast<uint64_t>(series.last_ns));
    AppendVarint(columns[kDeadlines], static_cast<uint64_t>(series.period_ns));
    AppendVarint(columns[kDeadlines], series.state);
  }
  expected_.clear();
}

void SampleEncoder::EncodeTimes(const Sample& sample, ThreadState& thread, Columns& columns) {
  const int64_t time_us = FloorToUs(sample.time_ns);
  const auto before_us = static_cast<uint64_t>(thread.time_us);
  const uint64_t elapsed = static_cast<uint64_t>(time_us) - before_us;
  const int64_t phase = sample.time_ns - time_us * kNsPerUs;
  AppendPlanes(columns[kTimeLow], columns[kTimeHigh],
               Difference(static_cast<uint64_t>(time_us), due_.FirstAfter(before_us)));
  thread.time_us = time_us;

  const int64_t wall_ns = static_cast<int64_t>(sample.wall_ns) + thread.wall_rest_ns;
  const int64_t wall_us = std::max<int64_t>(-FloorToUs(phase - wall_ns), 0);
  AppendException(columns[kWallExceptions], wall_as_expected_, static_cast<uint64_t>(wall_us),
                  elapsed);
  thread.wall_rest_ns = wall_ns - wall_us * kNsPerUs;

  const int64_t cpu_ns = static_cast<int64_t>(sample.cpu_ns) + thread.cpu_rest_ns;
  const int64_t cpu_us = FloorToUs(cpu_ns);
  const int64_t expected = sample.flags & kSampleOnCpu ? wall_us : 0;
  AppendPlanes(columns[kCpuLow], columns[kCpuHigh], ZigZag(cpu_us - expected));
  thread.cpu_rest_ns = cpu_ns - cpu_us * kNsPerUs;
}

void SampleEncoder::EncodeStack(StackId stack, const Tables& tables, Columns& columns) {
  const uint32_t id = ToIndex(stack);
  if (const auto rank = stacks_.Use(id)) {
    AppendByte(columns[kStackRanks], *rank);
    return;
  }
  stacks_.Insert(id);
  if (id <= highest_stack_) {
    AppendByte(columns[kStackRanks], kBelowHighest);
    AppendVarint(columns[kStackIds], highest_stack_ - id);
    return;
  }
  if (ChainEnd(tables, highest_stack_, tables.stack_count()) == id) {
    AppendByte(columns[kStackRanks], kChainEnd);
  } else {
    AppendByte(columns[kStackRanks], kAboveHighest);
    AppendVarint(columns[kStackIds], id - highest_stack_ - 1);
  }
  highest_stack_ = id;
}

Result<void> SampleDecoder::Decode(const BlockUnpacker& block,
                                   FunctionRef<void(const Sample&)> visit) {
  ByteReader groups(block.column(kGroups));
  PlaneReader times(block.column(kTimeLow), block.column(kTimeHigh));
  ExceptionReader walls(block.column(kWallExceptions));
  PlaneReader cpus(block.column(kCpuLow), block.column(kCpuHigh));
  FlagReader flags(block.column(kFlagRuns));
  ExceptionReader counts(block.column(kCountExceptions));
  ByteReader ranks(block.column(kStackRanks));
  ByteReader ids(block.column(kStackIds));
  if (ranks.remaining() > kMaxSamplesPerBlock) return Corrupt("a block of too many samples");
  if (!ranks.empty() && !DecodeDeadlines(block.column(kDeadlines))) {
    return Corrupt("deadlines that make no sense");
  }
  const size_t thread_count = tables_.thread_count();
  thread_time_us_.resize(thread_count);
  stack_count_ = std::min(stack_count_ + block.column(kParentLevels).size(), tables_.stack_count());

  uint64_t thread = 0;
  while (!groups.empty()) {
    const uint64_t step = groups.Varint();
    const uint64_t size = groups.Varint();
    if (!groups.ok() || step >= thread_count - thread || size > ranks.remaining()) {
      return Corrupt("samples of an undefined thread");
    }
    thread += step;
    uint64_t& time_us = thread_time_us_[static_cast<size_t>(thread)];
    for (uint64_t i = 0; i < size; ++i) {
      const uint64_t before_us = std::exchange(time_us, DecodeTime(time_us, times.Next()));
      const uint64_t wall_us = walls.Next(time_us - before_us);
      Sample sample;
      sample.flags = flags.Next();
      const uint64_t cpu_us = Add(sample.flags & kSampleOnCpu ? wall_us : 0, cpus.Next());
      sample.time_ns = static_cast<int64_t>(time_us * kNsPerUs);
      sample.wall_ns = wall_us * kNsPerUs;
      sample.cpu_ns = cpu_us * kNsPerUs;
      sample.thread = ThreadIndex{static_cast<uint32_t>(thread)};
      sample.count = static_cast<uint32_t>(counts.Next(1));
      const std::optional<StackId> stack = DecodeStack(ranks, ids);
      if (!stack) return Corrupt("a sample of an undefined stack");
      if (!times.ok() || !walls.ok() || !cpus.ok() || !flags.ok() || !counts.ok()) {
        return Corrupt("a column of samples that ends too early");
      }
      sample.stack = *stack;
      visit(sample);
    }
  }
  if (!times.finished() || !walls.finished() || !cpus.finished() || !flags.finished() ||
      !counts.finished() || !ranks.finished() || !ids.finished()) {
    return Corrupt("samples that do not fill their columns");
  }
  return {};
}

bool SampleDecoder::DecodeDeadlines(ByteSpan column) {
  due_.BeginBlock();
  ByteReader in(column);
  while (!in.empty()) {
    DeadlineSeries series;
    series.last_ns = static_cast<int64_t>(in.Varint());
    series.period_ns = static_cast<int64_t>(in.Varint());
    series.state = in.Varint();
    if (!in.ok() || !due_.Add(series)) return false;
  }
  return true;
}

uint64_t SampleDecoder::DecodeTime(uint64_t before_us, uint64_t stored) {
  return version_ == 1 ? before_us + stored : Add(due_.FirstAfter(before_us), stored);
}

std::optional<StackId> SampleDecoder::DecodeStack(ByteReader& ranks, ByteReader& ids) {
  const uint8_t rank = ranks.Byte();
  if (rank < kChainEnd) {
    const std::optional<uint32_t> id = stacks_.UseRank(rank);
    if (!id) return std::nullopt;
    return StackId{*id};
  }
  uint64_t id = 0;
  if (rank == kChainEnd) {
    id = ChainEnd(tables_, highest_stack_, stack_count_).value_or(0);
    if (id == 0) return std::nullopt;
  } else {
    const uint64_t distance = ids.Varint();
    if (!ids.ok() || distance > stack_count_) return std::nullopt;
    id = rank == kAboveHighest ? highest_stack_ + distance + 1 : highest_stack_ - distance;
  }
  if (id >= stack_count_) return std::nullopt;
  const auto stack = static_cast<uint32_t>(id);
  highest_stack_ = std::max(highest_stack_, stack);
  if (!stacks_.Use(stack)) stacks_.Insert(stack);
  return StackId{stack};
}

}  // namespace pystrobe::store
