// SPDX-License-Identifier: Apache-2.0
//
// How many launches there were.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "gpu/launch_calls.h"
#include "profiler/base/hash.h"

namespace pystrobe::gpu {

struct LaunchTotals {
  std::array<uint64_t, kLaunchKinds>
      launches{};  ///< by LaunchKind; those that failed too, but for graphs
  uint64_t failed = 0;
  uint64_t captured = 0;  ///< of them, but for graphs: went into a graph instead of to a device
};

/// Threads count in stripes of their own, by chance, so that they seldom wait for each other's
/// caches. Not in thread-local memory: in a library that is loaded late that would allocate.
class LaunchCounts {
 public:
  /// [any thread] [async-signal-safe]
  void Add(LaunchKind kind) { Increment(Own().launches[static_cast<size_t>(kind)]); }
  void AddFailed() { Increment(Own().failed); }
  void AddCaptured() { Increment(Own().captured); }

  /// [any thread]
  LaunchTotals Sum() const {
    LaunchTotals sum;
    for (const Stripe& stripe : stripes_) {
      for (size_t kind = 0; kind < kLaunchKinds; ++kind) {
        sum.launches[kind] += stripe.launches[kind].load(std::memory_order_relaxed);
      }
      sum.failed += stripe.failed.load(std::memory_order_relaxed);
      sum.captured += stripe.captured.load(std::memory_order_relaxed);
    }
    return sum;
  }
  /// What is counted meanwhile may stay.
  void Clear() {
    for (Stripe& stripe : stripes_) {
      for (auto& count : stripe.launches) count.store(0, std::memory_order_relaxed);
      stripe.failed.store(0, std::memory_order_relaxed);
      stripe.captured.store(0, std::memory_order_relaxed);
    }
  }

 private:
  static constexpr size_t kStripes = 64;
  struct alignas(64) Stripe {
    std::array<std::atomic<uint64_t>, kLaunchKinds> launches{};
    std::atomic<uint64_t> failed{0}, captured{0};
  };

  static void Increment(std::atomic<uint64_t>& count) {
    count.fetch_add(1, std::memory_order_relaxed);
  }
  Stripe& Own() { return stripes_[MixBits(static_cast<uint64_t>(pthread_self())) % kStripes]; }

  std::array<Stripe, kStripes> stripes_;
};

}  // namespace pystrobe::gpu
