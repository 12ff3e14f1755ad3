// SPDX-License-Identifier: Apache-2.0
//
// How often each call of the program launched what, counted where it is launched: what there is to
// know of a GPU without a record of each work.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/gpu_work.h"
#include "gpu/name_table.h"
#include "profiler/base/error.h"
#include "profiler/base/lazy_array.h"

namespace pystrobe::gpu {

/// A launch, as its caller knows it.
struct TalliedLaunch {
  uint64_t period = 0;  ///< LaunchTally::period() when its path was asked for
  WorkKind kind = WorkKind::kKernel;
  uint32_t path = 0;     ///< as LaunchOrigin::path
  uint32_t context = 0;  ///< CUPTI's number of it
  const char* name = "";
};

struct TallyRow {
  WorkKind kind = WorkKind::kKernel;
  uint32_t path = 0;
  uint32_t device = 0;
  const char* name = "";  ///< good for as long as the tally
  uint64_t count = 0;
  /// There was no room for the launches' names, or for their paths either.
  bool is_of_several = false;
};

/// A launch costs a look and the comparison of a name; of what is new, a lock and memory for a name
/// that was never seen. Where there is no room for another row, launches are counted by kind alone.
/// 1.5 MB of address space, of which what was used is memory, and names.
class LaunchTally {
 public:
  static constexpr size_t kSlots = 1 << 16;
  static constexpr size_t kTries = 16;
  static constexpr uint32_t kMaxNames = 1 << 14;

  /// Fails where there is no address space.
  static Result<LaunchTally> Make();

  /// `device_of` gives the number of the device of what is new. [any thread]
  template <typename DeviceOf>
  void Add(const TalliedLaunch& launch, DeviceOf device_of) noexcept {
    if (Count(launch) || launch.period != period()) return;
    FindFree(HashOf(launch)) != nullptr ? CountNew(launch, device_of()) : CountApart(launch.kind);
  }
  /// Forgets all, and counts no launch of a period before, whose path may be another's by now, but
  /// for one of each thread that is inside Add.
  void Clear();
  /// Between two calls of Clear. [any thread] [async-signal-safe]
  uint64_t period() const { return shared_->period.load(std::memory_order_acquire); }

  /// Two contexts of one device have rows of their own. Where there was no room the path is
  /// kUnknownOrigin's. [any thread]
  std::vector<TallyRow> Rows() const;

 private:
  /// Of `what`: bits 0-31 path, 32-47 device, 48-61 name, 62-63 kind.
  struct Slot {
    uint64_t hash;  // 0: free
    uint64_t what;
    uint64_t count;
  };

  LaunchTally(LazyArray<Slot> slots, NameTable names)
      : slots_(std::move(slots)), names_(std::move(names)), shared_(std::make_unique<Shared>()) {}
  static uint64_t HashOf(const TalliedLaunch& launch);
  bool IsOf(const Slot& slot, std::string_view name) const;
  bool Count(const TalliedLaunch& launch) noexcept;
  void CountNew(const TalliedLaunch& launch, uint32_t device) noexcept;
  void CountApart(WorkKind kind) noexcept;
  Slot* FindFree(uint64_t hash);
  std::optional<uint32_t> NumberOf(std::string_view name) noexcept;

  struct Shared {
    std::atomic<uint64_t> period{1};
    std::array<std::atomic<uint64_t>, kWorkKinds> without_room{};
    std::mutex mutex;  // of what becomes a slot's
  };

  LazyArray<Slot> slots_;
  NameTable names_;
  std::unique_ptr<Shared> shared_;
};

}  // namespace pystrobe::gpu
