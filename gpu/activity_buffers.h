// SPDX-License-Identifier: Apache-2.0
//
// The buffers that CUPTI fills with records: so many and no more, lent to it empty and taken back
// full.
#pragma once

#include <semaphore.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "profiler/base/clock.h"
#include "profiler/base/error.h"
#include "profiler/base/lazy_array.h"

namespace pystrobe::gpu {

/// A buffer goes from free to lent (Lend) to filled (Fill) to read (Take) to free (GiveBack).
/// CUPTI's threads lend and fill, many at once, without a lock and without allocating; one thread
/// takes and gives back. Buffers are zero when they are lent: CUPTI is told so, and then need not
/// do it in a launch.
class ActivityBuffers {
 public:
  static constexpr size_t kMaxBuffers = 64;

  struct Filled {
    size_t number;
    uint8_t* data;
    size_t bytes;  ///< that CUPTI wrote
  };

  /// `count` buffers of `bytes` each, at least 1 and at most kMaxBuffers. The first few are memory
  /// at once, the others when they are needed. `spare`: where no buffer is free one more is lent,
  /// as often as asked for, which is never read (see Lend).
  static Result<std::unique_ptr<ActivityBuffers>> Make(size_t count, size_t bytes, bool spare);
  ~ActivityBuffers();

  /// Null where none is free and there is no spare one; then counted in declined(). Spare: what is
  /// written to it is lost, by several at once even. [any thread]
  uint8_t* Lend();
  /// Of what was lent; anything else is left alone. [any thread]
  void Fill(uint8_t* data, size_t bytes);
  size_t bytes() const { return bytes_; }

  /// Waits for one at most until `deadline` (CLOCK_MONOTONIC), or until Wake.
  std::optional<Filled> Take(Nanoseconds deadline);
  /// Ends one Take that waits, or the next one that would. [any thread]
  void Wake();
  void GiveBack(const Filled& filled);

  /// Nobody has a buffer any more, CUPTI neither: all are free and zero, their memory is the
  /// kernel's, and what was counted is 0.
  void Reclaim();

  /// Times that there was none free. [any thread]
  uint64_t declined() const { return declined_.load(std::memory_order_relaxed); }
  /// Bytes of records that went to the spare buffer. [any thread]
  uint64_t spare_bytes() const { return spare_bytes_.load(std::memory_order_relaxed); }

 private:
  ActivityBuffers(size_t count, size_t bytes, bool spare, LazyArray<uint8_t> memory);
  uint8_t* DataOf(size_t number) { return memory_.data() + number * bytes_; }
  uint64_t AllFree() const;

  const size_t count_;
  const size_t bytes_;
  const bool has_spare_;  // behind the others
  LazyArray<uint8_t> memory_;
  std::atomic<uint64_t> free_;       // a bit each
  std::atomic<uint64_t> filled_{0};  // a bit each
  uint64_t taken_ = 0;               // of those that were filled: a bit each
  std::array<std::atomic<size_t>, kMaxBuffers> used_{};
  std::atomic<uint64_t> declined_{0}, spare_bytes_{0};
  sem_t changed_;
};

}  // namespace pystrobe::gpu
