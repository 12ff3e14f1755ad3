// SPDX-License-Identifier: Apache-2.0
//
// Takes a recording into a file and does not lose it when the file cannot take more. [one thread at
// a time]
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "profiler/base/error.h"
#include "profiler/base/function_ref.h"
#include "profiler/base/scoped_fd.h"
#include "profiler/model/recording.h"
#include "profiler/store/strobe.h"

namespace pystrobe::store {

/// An anonymous file in memory.
Result<ScopedFd> CreateMemoryFile();
/// For what may be larger than memory: a file without a name in $TMPDIR, /var/tmp or /tmp; in
/// memory where none of them takes one.
Result<ScopedFd> CreateTemporaryFile();

/// Writes .strobe to a descriptor that can be read back; Begin empties it, not before. When writing
/// fails (disk full), everything recorded so far, also what the file did not take, moves to memory,
/// `stop` is set, and the sink goes on accepting, so that the sampler ends in good order. Where
/// memory does not take it all either (ulimit -f is its limit too), that of the two which has more
/// samples is the recording. Where the program has closed the file it is not written to, whatever
/// has its number now, and the youngest samples are those that memory has. Calls of a timeline are
/// too many for that: they end where the file takes no more of them, and make room for the rest
/// there, as StrobeWriter has it. Where all moves to memory nevertheless none of them is in it.
class Recorder final : public TimelineSink {
 public:
  /// `on_place` is told the descriptor that holds the recording: once the first bytes are in `fd`,
  /// again when all has moved to memory, and again where that turns out to hold less than `fd`.
  Recorder(ScopedFd fd, std::string name, std::atomic<bool>& stop,
           std::function<void(int)> on_place = {});
  ~Recorder() override;

  Result<void> Begin(const Metadata& metadata) override;
  Result<void> Append(const Tables& tables, std::span<const Sample> samples,
                      const Quality& so_far) override;
  Result<void> AppendCalls(const Tables& tables, ThreadIndex thread,
                           std::span<const CallEvent> calls) override;
  /// As StrobeWriter's.
  Result<void> AppendGpu(const Tables& gpu_tables, const GpuRecord& record);
  Result<void> AppendRanges(const Tables& tables, const RangeRecord& record);
  Result<void> Finish(const Tables& tables, const Quality& quality) override;
  void Expect(const DeadlineSeries& series) override;

  /// There is a recording, however short; in the file or in memory.
  bool begun() const { return begun_; }
  /// Why the recording is not in the file; nothing where it is, though it may lack calls of a
  /// timeline there, as its quality tells.
  const std::optional<Error>& failure() const { return failure_; }

  /// All that was accepted is there, but for calls of a timeline that no file took, as the quality
  /// tells: false where memory did not take it either, or a file has calls that are not there.
  bool whole() const { return whole_; }

  /// Ends the writing and gives the descriptor of the whole recording: the file's own, or that of
  /// the memory it moved to, whichever has more of it.
  ScopedFd TakeFd();

 private:
  Result<void> BeginFile();
  Result<int> BeginMemory(const Error& error);
  void TellPlace(int fd) const;
  void LoseSome();
  /// Where the recording is now.
  Result<void> FinishHere(const Tables& tables, const Quality& quality);
  void ForgetOld();
  Result<void> MoveToMemory(const Error& error, const Tables& tables, const Quality& so_far);
  Result<void> CopyToMemory(const Tables& tables, const Quality& so_far);
  /// Whether a record was taken, or is held; else why not. `hold` keeps it until there is memory.
  Result<void> AppendOrHold(Result<void> appended, FunctionRef<void()> hold);
  /// The records that are held, else the last that `file` has.
  Result<void> CopyGpu(const StrobeFile* file);
  Result<void> CopyRanges(const StrobeFile* file);

  std::string name_;
  std::atomic<bool>& stop_;
  std::function<void(int)> on_place_;
  ScopedFd fd_;  // until Begin
  std::unique_ptr<StrobeWriter> writer_;
  ScopedFd full_;  // the file that took no more, while what it holds is in memory too
  ScopedFd most_;  // of these two, where memory took no more either
  bool begun_ = false;
  bool whole_ = true;
  bool had_timeline_ = false;  // as it began
  std::optional<Error> failure_;
  Metadata metadata_;
  // The youngest samples: those that a writer may still hold back when its file fails.
  std::deque<Sample> recent_;
  uint64_t recent_begin_ = 0;  // number in the recording of recent_.front()
  template <typename Record>
  struct Held {
    Tables tables;
    Record record;
  };
  // What the file did not take, until there is memory for it.
  std::optional<Held<GpuRecord>> held_gpu_;
  std::optional<Held<RangeRecord>> held_ranges_;
};

}  // namespace pystrobe::store
