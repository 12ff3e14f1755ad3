// SPDX-License-Identifier: Apache-2.0
//
// When threads waited for a device, from the calls that do to who works out what that cost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace pystrobe::gpu {

/// A call of the driver that returned once the device had done something.
struct HostWait {
  int64_t begin_ns = 0, end_ns = 0;  ///< CLOCK_MONOTONIC
  uint32_t tid = 0;                  ///< the kernel's number of the thread
  uint32_t path = 0;                 ///< as LaunchOrigin::path

  bool operator==(const HostWait&) const = default;
};

/// Holds so many at most, between two looks. [any thread]
class WaitLog {
 public:
  static constexpr size_t kMostWaits = 1 << 16;

  explicit WaitLog(size_t most = kMostWaits) : most_(most) { waits_.reserve(most); }

  /// Where there is no room, it is counted and lost.
  void Put(const HostWait& wait) noexcept {
    const std::lock_guard lock(mutex_);
    if (waits_.size() < most_) {
      waits_.push_back(wait);
    } else {
      ++lost_;
    }
  }
  /// Those since the last Take, in the order of their ends, about, instead of what is in `to`.
  void Take(std::vector<HostWait>& to) {
    to.clear();
    to.reserve(most_);
    const std::lock_guard lock(mutex_);
    waits_.swap(to);
  }
  void Clear() {
    const std::lock_guard lock(mutex_);
    waits_.clear();
    lost_ = 0;
  }
  uint64_t lost() const {
    const std::lock_guard lock(mutex_);
    return lost_;
  }

 private:
  const size_t most_;
  mutable std::mutex mutex_;
  std::vector<HostWait> waits_;
  uint64_t lost_ = 0;
};

}  // namespace pystrobe::gpu
