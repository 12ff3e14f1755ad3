// SPDX-License-Identifier: Apache-2.0
//
// When a device had nothing to do, and what the program did meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "gpu/gpu_work.h"
#include "gpu/wait_log.h"
#include "profiler/base/hash_map.h"
#include "profiler/base/id_index.h"

namespace pystrobe::gpu {

/// Why a device had nothing to do until its next work began.
enum class IdleCause : uint8_t {
  kQueue,     ///< that was launched in time: it waited for another stream, or for the device itself
  kLaunch,    ///< it was being launched: from the begin of the call on
  kLaunches,  ///< launches followed each other, no more than kSteadyNs apart, but came too late
  kWait,      ///< the thread that launched it was waiting for the device, and went on after that
  kHost,      ///< nothing was launched on it for longer: the program did something else
  kUnknown,   ///< its launch was not seen
};
inline constexpr size_t kIdleCauses = 6;

struct IdleKey {
  uint32_t device = 0;
  IdleCause cause = IdleCause::kUnknown;
  /// What the program did last: path of kLaunches and kHost the launch before, or the wait that it
  /// went on from; of kWait, the wait; else 0.
  uint32_t from = 0;
  uint32_t to = 0;  ///< path of the launch that ended it

  bool operator==(const IdleKey&) const = default;
};

/// Times in nanoseconds.
struct TimeSum {
  uint64_t count = 0;
  uint64_t total_ns = 0;
  uint64_t max_ns = 0;

  void Add(uint64_t nanoseconds);
};

/// Of one device, between the begin of its first work and the end of its last one.
struct DeviceUse {
  uint32_t device = 0;
  uint64_t busy_ns = 0;  ///< at least one of its streams had work
  uint64_t idle_ns = 0;
};

/// One time of kHost by itself. CLOCK_MONOTONIC.
struct IdleGap {
  int64_t begin_ns = 0, end_ns = 0;
  uint32_t sum = 0;  ///< it is in that of this number
  uint32_t tid = 0;  ///< of the thread whose launch ended it

  int64_t length_ns() const { return end_ns - begin_ns; }
  bool operator==(const IdleGap&) const = default;
};

/// Of all waits on one path.
struct WaitSum {
  uint32_t path = 0;
  TimeSum time;
};

struct IdleOptions {
  size_t max_sums = 1 << 14;  ///< of each kind
  /// Works are put in order among so many: records of several threads come in any.
  size_t window = 1 << 17;
  /// The last ones are kept: two for each work that is not put in order yet.
  size_t max_waits = 1 << 18;
  size_t max_gaps = 1 << 16;  ///< the longest are kept
};

/// What threads waited for, too. Memory does not grow with time: past `max_sums` there is one sum
/// for each cause. [one thread at a time]
class IdleTime {
 public:
  static constexpr int64_t kSteadyNs = 100'000;

  explicit IdleTime(const IdleOptions& options);

  /// Before the work that is launched after it.
  void Add(const HostWait& wait);
  /// Without times it says nothing.
  void Add(const GpuWork& work);
  /// No more is to come: what there is is of all.
  void Finish();
  /// As if nothing had been added.
  void Clear();

  /// By number; the first kIdleCauses are of what there was no room for, and may be of nothing.
  size_t size() const { return keys_.size(); }
  const IdleKey& key(size_t sum) const { return keys_[sum]; }
  const TimeSum& sum(size_t sum) const { return sums_[sum]; }
  const std::vector<DeviceUse>& devices() const { return devices_; }
  /// The first is of paths that there was no room for, and may be of nothing.
  const std::vector<WaitSum>& waits() const { return wait_sums_; }
  /// In no order.
  const std::vector<IdleGap>& gaps() const { return gaps_; }

 private:
  struct Pending {
    int64_t begin_ns, end_ns;
    int64_t launch_ns;  // 0: not seen
    uint32_t device, path, tid;
  };
  // What is behind on a device.
  struct Past {
    int64_t busy_until_ns = 0;
    int64_t launch_ns = 0;  // the last one
    uint32_t path = 0;      // of that
  };

  void Take(const Pending& work);
  void Charge(const Pending& work, const Past& past);
  void ChargeHost(const Pending& work, const Past& past, int64_t until_ns);
  const HostWait* WaitAt(const Pending& work, int64_t idle_since_ns) const;
  void Note(const IdleKey& key, int64_t nanoseconds);
  void Keep(const IdleGap& gap);
  uint32_t SumOf(const IdleKey& key);
  size_t PlaceOf(uint32_t device);
  WaitSum& SumOf(const HostWait& wait);

  IdleOptions options_;
  std::vector<Pending> pending_;  // a heap: the first to begin is on top
  std::deque<HostWait> waits_;    // by their ends
  std::vector<WaitSum> wait_sums_;
  HashMap<uint32_t, uint32_t> wait_places_;  // by path
  std::vector<DeviceUse> devices_;
  std::vector<Past> pasts_;  // as devices_
  std::vector<IdleKey> keys_;
  std::vector<TimeSum> sums_;
  IdIndex index_;
  std::vector<IdleGap> gaps_;  // a heap: the shortest is on top
};

}  // namespace pystrobe::gpu
