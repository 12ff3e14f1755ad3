// SPDX-License-Identifier: Apache-2.0
//
// Parts of this program that it has given names to.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sampler/pyabi/memory.h"
#include "sampler/pyabi/walk.h"

namespace pystrobe::pyabi {

/// Which Python frames are in a region just now. A region is a frame's: whatever is called from the
/// frame meanwhile is in it, and a coroutine that waits is not. A frame may be in several, one
/// within the other. [Enter, Leave: one thread at a time for each frame; the others: any thread, a
/// signal handler too where that is said]
class Regions {
 public:
  /// Regions one within the other, as one number; 0: none.
  using Id = uint16_t;

  /// Those of this process; they come to be when they are first asked for, and stay.
  static Regions& OfThisProcess();
  /// The same, null where nobody has asked yet. [async-signal-safe]
  static const Regions* OfThisProcessIfAny();

  /// The frame, whose code object is `code`, is in it from now on, within those that it is in
  /// already. Without effect where more frames are in regions than there is room for.
  void Enter(Address frame, Address code, std::string_view name);
  /// It is no longer in the last one of that name.
  void Leave(Address frame, std::string_view name);

  /// False where there is none at all. [async-signal-safe]
  bool any() const { return count_.load(std::memory_order_relaxed) != 0; }
  /// Those that a frame is in. The frame of another code object, at the same address, is in none.
  /// [async-signal-safe]
  Id Of(const RawFrame& frame) const;
  /// Notes them in the frames. [async-signal-safe]
  template <typename Frames>
  void Note(Frames& frames) const {
    if (!any()) return;
    for (RawFrame& frame : frames) frame.region = Of(frame);
  }

  /// The outermost first.
  std::vector<std::string> NamesOf(Id id) const;

 private:
  struct Slot {
    std::atomic<Address> frame{0};
    std::atomic<Address> code{0};
    std::atomic<Id> id{0};
  };
  /// A region within others, which are those of `parent`.
  struct Name {
    Id parent = 0;
    const std::string* text = nullptr;  ///< never freed
  };
  // A name for each request, say, is of no use in a report.
  static constexpr size_t kMostNames = 4096, kIds = 2 * kMostNames;
  static constexpr size_t kSlots = 16384, kTries = 16;
  static constexpr Address kTaken = 1;  ///< a slot that is being filled

  static size_t PlaceOf(Address frame);
  std::optional<size_t> Find(Address frame) const;
  Slot* Take(Address frame);
  void Set(Slot& slot, Id id);
  Id Intern(Id parent, std::string_view name);
  Id Without(Id id, std::string_view name);

  std::array<Slot, kSlots> slots_;
  std::atomic<size_t> tries_{0};             ///< slots of a frame that were ever needed
  std::atomic<size_t> count_{0};             ///< frames that are in any
  std::array<Name, kMostNames> names_;       // each written before its id is in ids_
  std::array<std::atomic<Id>, kIds> ids_{};  // a hash table by parent and name; 0: free
  std::atomic<size_t> name_count_{0};
};

}  // namespace pystrobe::pyabi
