// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <optional>
#include <utility>

#include "profiler/store/block.h"
#include "profiler/store/calls.h"
#include "profiler/store/definitions.h"
#include "profiler/store/facts.h"
#include "profiler/store/gpu_blocks.h"
#include "profiler/store/range_blocks.h"
#include "profiler/store/read_at.h"
#include "profiler/store/samples.h"
#include "profiler/store/strobe.h"

namespace pystrobe::store {
namespace {

// After an Append a block this old is sealed. Less than kMostPendingNs, so that a caller who
// appends about every two seconds has each of its batches on disk when Append returns; and of a
// brief recording less than AppendInterval, for the same.
constexpr int64_t kSealAfterAppendNs = 1'500'000'000;
static_assert(kSealAfterAppendNs < StrobeWriter::kMostPendingNs);
constexpr int64_t kSealAfterPart = 4;
// Calls come as fast as the program makes them.
constexpr int64_t kSealCallsAfterNs = 750'000'000;
// How long threads were held takes as much room as all other figures, and changes little.
constexpr int64_t kHeldEachNs = 10'000'000'000;
// Definitions are cut into blocks of about this size, which keeps the writer's memory small.
constexpr size_t kDefinitionBudget = size_t{1} << 20;

/// Keeps SIGPIPE from the calling thread while it lives: a closed pipe is an error like any other.
class SigpipeShield {
 public:
  SigpipeShield() {
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    sigemptyset(&pipe_only_);
    sigaddset(&pipe_only_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_only_, &before_);
  }
  SigpipeShield(const SigpipeShield&) = delete;
  ~SigpipeShield() {
    if (!was_pending_) {
      const timespec now{};
      while (sigtimedwait(&pipe_only_, nullptr, &now) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_only_;
  sigset_t before_;
  bool was_pending_ = false;
};

Result<void> FailForClosed(const std::string& name) {
  return Fail(ErrorCode::kIo, "writing {}: the program has closed its file", name);
}

std::unexpected<Error> FailToWrite(int error_number, const std::string& name) {
  auto failed = FailErrno(error_number, ErrorCode::kIo, "writing {}", name);
  if (error_number == EFBIG) {
    failed.error().hint = "Raise the limit of file sizes: ulimit -f unlimited";
  }
  return failed;
}

// What frees room helps against it. EPERM: a file in memory that may not grow.
bool IsLackOfRoom(int error_number) {
  return error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG ||
         error_number == EPERM;
}

// 0, or the errno of why not.
int WriteAll(int fd, ByteSpan bytes) {
  const SigpipeShield shield;
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written > 0) {
      bytes = bytes.subspan(static_cast<size_t>(written));
      continue;
    }
    if (written == 0) return ENOSPC;
    if (errno == EINTR) continue;
    if (errno == EAGAIN) {
      pollfd wait{fd, POLLOUT, 0};
      ::poll(&wait, 1, -1);
      continue;
    }
    return errno;
  }
  return 0;
}

}  // namespace

class StrobeWriter::Impl {
 public:
  Impl(ScopedFd fd, std::string name) : fd_(std::move(fd)), name_(std::move(name)) {}

  Result<void> Begin(const Metadata& metadata);
  Result<void> Append(const Tables& tables, std::span<const Sample> samples, const Quality& so_far);
  Result<void> AppendCalls(const Tables& tables, ThreadIndex thread,
                           std::span<const CallEvent> calls);
  Result<void> AppendGpu(const Tables& tables, const GpuRecord& record);
  Result<void> AppendRanges(const Tables& tables, const RangeRecord& record);
  Result<void> Finish(const Tables& tables, const Quality& quality);
  void Expect(const DeadlineSeries& series) { samples_.Expect(series); }
  ScopedFd TakeFd() { return std::move(fd_); }

 private:
  /// Writes what is pending: definitions first where they need blocks of their own.
  Result<void> Seal(const Tables& tables, const Quality& so_far);
  /// Fails where calls are taken no more; the rest may be nevertheless, as `failed_` tells.
  Result<void> SealCalls(const Tables& tables);
  Result<void> WriteBlock(BlockType type, Quality quality);
  Result<void> WriteEnd(Quality quality);
  Result<void> PackAndWrite(BlockType type, std::span<Bytes> columns);
  /// Gives the last block of calls up, so that there is room for others. False: that cannot be.
  bool DropCalls();
  /// Those from `since_ns` on, all or some of them, are not kept.
  void EndCalls(const Error& why, int64_t since_ns);
  /// Behind the last whole block, after a write that failed. False: that cannot be.
  bool GoBack();
  bool IsFull() const { return lacks_room_ && fd_.IsIntact(); }
  Result<void> RefuseTooMuch();
  /// Writes a record as blocks of this type; `taken` is told what its definitions take of a reader.
  template <typename Encoder>
  Result<void> WriteRecord(BlockType type, Encoder encoder, DefinitionLimits& taken);
  /// What all definitions take of a reader, those of the last record of each type too.
  DefinitionLimits taken() const;
  /// Before a block of `block_size` bytes.
  Result<void> Pad(size_t block_size);
  Result<void> WritePadded(ByteSpan block);
  Result<void> Write(ByteSpan bytes);

  ScopedFd fd_;
  std::string name_;
  std::optional<Error> failed_;
  bool lacks_room_ = false;  // the file, which is why
  uint64_t written_ = 0;     // of whole blocks
  uint64_t unpacked_ = 0;    // what the payloads of what was written come to
  BlockPacker packer_;
  DefinitionEncoder definitions_;
  DefinitionLimits gpu_taken_, ranges_taken_;
  SampleEncoder samples_;
  std::vector<Sample> pending_;
  int64_t first_pending_ns_ = 0;
  int64_t sealed_at_ns_ = 0;
  Quality so_far_;        // as it was given last
  Quality last_quality_;  // as it was written last
  int64_t held_each_due_ns_ = 0;
  Columns columns_;
  CallEncoder calls_;
  CallColumns call_columns_;
  size_t pending_calls_ = 0;
  int64_t first_pending_call_ns_ = 0;  // as they came
  int64_t pending_since_ns_ = 0;       // the earliest
  struct CallsBlock {
    uint64_t begin = 0, end = 0;  // in the file
    uint64_t unpacked = 0;
    int64_t since_ns = 0;
  };
  std::vector<CallsBlock> calls_blocks_;
  std::optional<Error> calls_ended_;  // why they are taken no more
  int64_t calls_end_ns_ = 0;
};

Result<void> StrobeWriter::Impl::Begin(const Metadata& metadata) {
  Bytes head(kMagic.begin(), kMagic.end());
  AppendU32(head, kVersion);
  Bytes column;
  AppendMetadata(column, metadata);
  const auto block = packer_.Pack(BlockType::kHead, std::span(&column, 1));
  if (!block) return std::unexpected(block.error());
  head.insert(head.end(), block->begin(), block->end());
  return Write(head);
}

Result<void> StrobeWriter::Impl::Append(const Tables& tables, std::span<const Sample> samples,
                                        const Quality& so_far) {
  so_far_ = so_far;
  int64_t now_ns = so_far.duration_ns;
  for (const Sample& sample : samples) {
    const bool old = !pending_.empty() && sample.time_ns - first_pending_ns_ >= kMostPendingNs;
    if (old || pending_.size() == kMaxSamplesPerBlock) {
      if (auto done = Seal(tables, so_far); !done) return done;
    }
    if (pending_.empty()) first_pending_ns_ = sample.time_ns;
    pending_.push_back(sample);
    now_ns = std::max(now_ns, sample.time_ns);
  }
  const int64_t seal_after_ns = pending_calls_ > 0 ? kSealCallsAfterNs : kSealAfterAppendNs;
  if (now_ns - sealed_at_ns_ < std::min(seal_after_ns, now_ns / kSealAfterPart)) return {};
  sealed_at_ns_ = now_ns;
  if (pending_calls_ == 0) return Seal(tables, so_far);
  auto done = SealCalls(tables);
  return failed_ ? done : Result<void>();
}

Result<void> StrobeWriter::Impl::AppendCalls(const Tables& tables, ThreadIndex thread,
                                             std::span<const CallEvent> calls) {
  if (calls_ended_ && !calls.empty()) {
    EndCalls(*calls_ended_, calls.front().time_ns);
    return std::unexpected(*calls_ended_);
  }
  if (failed_) return std::unexpected(*failed_);
  while (!calls.empty()) {
    const int64_t begin_ns = calls.front().time_ns;
    if (pending_calls_ == 0) first_pending_call_ns_ = pending_since_ns_ = begin_ns;
    pending_since_ns_ = std::min(pending_since_ns_, begin_ns);  // a thread may be late to tell
    const size_t room = kMaxCallEventsPerBlock - pending_calls_;
    const auto taken = calls.first(std::min(calls.size(), room));
    calls_.Encode(thread, taken, tables, call_columns_);
    pending_calls_ += taken.size();
    calls = calls.subspan(taken.size());
    const bool is_old = taken.back().time_ns - first_pending_call_ns_ >= kSealCallsAfterNs;
    if (pending_calls_ < kMaxCallEventsPerBlock && !is_old) continue;
    if (auto done = SealCalls(tables); !done) return done;
  }
  return {};
}

Result<void> StrobeWriter::Impl::SealCalls(const Tables& tables) {
  if (pending_calls_ == 0) return {};
  if (auto done = Seal(tables, so_far_); !done) return done;
  if (last_quality_ != so_far_) {
    if (auto done = WriteBlock(BlockType::kData, so_far_); !done) return done;
  }
  pending_calls_ = 0;
  if (calls_ended_) {
    EndCalls(*calls_ended_, pending_since_ns_);
  } else {
    const auto done = PackAndWrite(BlockType::kCalls, call_columns_);
    if (done) return {};
    EndCalls(done.error(), pending_since_ns_);
    static_cast<void>(GoBack());
  }
  for (Bytes& column : call_columns_) column.clear();
  return std::unexpected(*calls_ended_);
}

Result<void> StrobeWriter::Impl::AppendGpu(const Tables& tables, const GpuRecord& record) {
  if (auto possible = CheckGpuRecord(record); !possible) return possible;
  return WriteRecord(BlockType::kGpu, GpuEncoder(tables, record), gpu_taken_);
}

Result<void> StrobeWriter::Impl::AppendRanges(const Tables& tables, const RangeRecord& record) {
  if (auto possible = CheckRangeRecord(record); !possible) return possible;
  return WriteRecord(BlockType::kRanges, RangeEncoder(tables, record), ranges_taken_);
}

template <typename Encoder>
Result<void> StrobeWriter::Impl::WriteRecord(BlockType type, Encoder encoder,
                                             DefinitionLimits& taken) {
  Columns columns;
  for (bool all = false; !all;) {
    all = encoder.Encode(kDefinitionBudget, columns);
    taken = encoder.taken();
    if (auto done = PackAndWrite(type, columns); !done) return done;
  }
  return {};
}

Result<void> StrobeWriter::Impl::Finish(const Tables& tables, const Quality& quality) {
  if (auto done = SealCalls(tables); !done && failed_) return done;
  if (auto done = Seal(tables, quality); !done) return done;
  auto done = WriteEnd(quality);
  while (!done && DropCalls()) done = WriteEnd(quality);
  // What calls have left behind, which no reader looks at, need not fill the disk.
  if (done && calls_ended_) static_cast<void>(ftruncate(fd_.get(), static_cast<off_t>(written_)));
  return done;
}

Result<void> StrobeWriter::Impl::WriteEnd(Quality quality) {
  if (calls_ended_) {
    quality.timeline_failure = calls_ended_->message;
    quality.timeline_end_ns = calls_blocks_.empty() ? 0 : calls_end_ns_;
  }
  return WriteBlock(BlockType::kEnd, std::move(quality));
}

Result<void> StrobeWriter::Impl::Seal(const Tables& tables, const Quality& so_far) {
  while (!definitions_.Encode(tables, kDefinitionBudget, columns_)) {
    if (auto done = WriteBlock(BlockType::kData, so_far); !done) return done;
  }
  samples_.Encode(pending_, tables, columns_);
  pending_.clear();
  const auto empty = [](const Bytes& column) { return column.empty(); };
  if (std::all_of(columns_.begin(), columns_.end(), empty)) return {};
  return WriteBlock(BlockType::kData, so_far);
}

Result<void> StrobeWriter::Impl::WriteBlock(BlockType type, Quality quality) {
  if (type == BlockType::kEnd || quality.duration_ns >= held_each_due_ns_) {
    held_each_due_ns_ = quality.duration_ns + kHeldEachNs;
  } else {
    quality.held_each = last_quality_.held_each;
  }
  AppendQuality(columns_[kQualityColumn], quality, last_quality_);
  auto done = PackAndWrite(type, columns_);
  if (done) last_quality_ = std::move(quality);
  return done;
}

Result<void> StrobeWriter::Impl::PackAndWrite(BlockType type, std::span<Bytes> columns) {
  if (auto done = RefuseTooMuch(); !done) return done;
  const auto block = packer_.Pack(type, columns);
  if (!block) {
    failed_ = block.error();
    return std::unexpected(block.error());
  }
  for (Bytes& column : columns) column.clear();
  const uint64_t unpacked = UnpackedSize(block->subspan(kBlockHeaderSize));
  unpacked_ += unpacked;
  auto done = WritePadded(*block);
  // The end tells of what was given up, so that its bytes would be others.
  const bool may_drop = type != BlockType::kCalls && type != BlockType::kEnd;
  while (!done && may_drop && DropCalls()) done = WritePadded(*block);
  if (!done) {
    unpacked_ -= unpacked;
  } else if (type == BlockType::kCalls) {
    calls_blocks_.push_back({written_ - block->size(), written_, unpacked, pending_since_ns_});
  }
  return done;
}

// What came after it, of which later blocks make use, moves to its place: that takes no room that
// the file does not have, but where a file system writes nothing in place (btrfs, ZFS). There it
// may fail, and leaves what it has not moved to who has kept it.
bool StrobeWriter::Impl::DropCalls() {
  if (!IsFull() || calls_blocks_.empty()) return false;
  const CallsBlock last = calls_blocks_.back();
  Bytes after(static_cast<size_t>(written_ - last.end));
  const auto got = ReadAt(fd_.get(), last.end, after, name_);
  if (!got || *got < after.size()) return false;
  calls_blocks_.pop_back();
  EndCalls(*failed_, last.since_ns);
  unpacked_ -= last.unpacked;
  written_ = last.begin;
  return GoBack() && Write(after).has_value();
}

void StrobeWriter::Impl::EndCalls(const Error& why, int64_t since_ns) {
  calls_end_ns_ = calls_ended_ ? std::min(calls_end_ns_, since_ns) : since_ns;
  if (!calls_ended_) calls_ended_ = why;
}

bool StrobeWriter::Impl::GoBack() {
  if (!IsFull() || lseek(fd_.get(), static_cast<off_t>(written_), SEEK_SET) < 0) return false;
  failed_.reset();
  lacks_room_ = false;
  return true;
}

DefinitionLimits StrobeWriter::Impl::taken() const {
  const DefinitionLimits of_samples = definitions_.taken();
  return {
      .definitions = of_samples.definitions + gpu_taken_.definitions + ranges_taken_.definitions,
      .string_bytes =
          of_samples.string_bytes + gpu_taken_.string_bytes + ranges_taken_.string_bytes};
}

Result<void> StrobeWriter::Impl::RefuseTooMuch() {
  const DefinitionLimits taken = this->taken();
  if (taken.definitions <= kMostLimits.definitions &&
      taken.string_bytes <= kMostLimits.string_bytes) {
    return {};
  }
  auto failed = FailWithHint(
      ErrorCode::kInvalidArgument, "Record for a shorter time.",
      "{} would come to {} bytes of names and {} stacks or other definitions, more than the {} and "
      "{} that a .strobe file may have",
      name_, taken.string_bytes, taken.definitions, kMostLimits.string_bytes,
      kMostLimits.definitions);
  if (!failed_) failed_ = failed.error();
  return failed;
}

// Before the definitions, so that a file that is cut off can be read up to there all the same.
Result<void> StrobeWriter::Impl::Pad(size_t block_size) {
  const uint64_t wanted = SizeFor(taken(), unpacked_);
  while (written_ + block_size < wanted) {
    const uint64_t missing = wanted - written_ - block_size;
    const auto size = std::clamp<uint64_t>(missing, kBlockHeaderSize, kMaxPayload);
    if (auto done = Write(MakePadding(static_cast<size_t>(size))); !done) return done;
  }
  return {};
}

Result<void> StrobeWriter::Impl::Write(ByteSpan bytes) {
  if (failed_) return std::unexpected(*failed_);
  auto written = FailForClosed(name_);
  if (fd_.IsIntact()) {
    const int error_number = WriteAll(fd_.get(), bytes);
    lacks_room_ = IsLackOfRoom(error_number);
    written = error_number == 0 ? Result<void>() : FailToWrite(error_number, name_);
  }
  if (written) {
    written_ += bytes.size();
  } else {
    failed_ = written.error();
  }
  return written;
}

Result<void> StrobeWriter::Impl::WritePadded(ByteSpan block) {
  auto done = Pad(block.size());
  return done ? Write(block) : done;
}

StrobeWriter::StrobeWriter(ScopedFd fd, std::string name)
    : impl_(std::make_unique<Impl>(std::move(fd), std::move(name))) {}
StrobeWriter::~StrobeWriter() = default;

Result<void> StrobeWriter::Begin(const Metadata& metadata) { return impl_->Begin(metadata); }

Result<void> StrobeWriter::Append(const Tables& tables, std::span<const Sample> samples,
                                  const Quality& so_far) {
  return impl_->Append(tables, samples, so_far);
}

Result<void> StrobeWriter::AppendCalls(const Tables& tables, ThreadIndex thread,
                                       std::span<const CallEvent> calls) {
  return impl_->AppendCalls(tables, thread, calls);
}

Result<void> StrobeWriter::AppendGpu(const Tables& gpu_tables, const GpuRecord& record) {
  return impl_->AppendGpu(gpu_tables, record);
}

Result<void> StrobeWriter::AppendRanges(const Tables& tables, const RangeRecord& record) {
  return impl_->AppendRanges(tables, record);
}

Result<void> StrobeWriter::Finish(const Tables& tables, const Quality& quality) {
  return impl_->Finish(tables, quality);
}

void StrobeWriter::Expect(const DeadlineSeries& series) { impl_->Expect(series); }

ScopedFd StrobeWriter::TakeFd() { return impl_->TakeFd(); }

}  // namespace pystrobe::store
