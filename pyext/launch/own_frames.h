// SPDX-License-Identifier: Apache-2.0
//
// The frames of the calling thread, read where they lie. A thread that is inside a C function does
// not change them, and nobody else does, whoever has the GIL; so no lock is needed, and no copy.
// [a thread that is inside a call from Python, or has no frames]
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "sampler/pyabi/bytes.h"
#include "sampler/pyabi/layout.h"
#include "sampler/pyabi/regions.h"
#include "sampler/pyabi/walk.h"

namespace pystrobe::launch {

using pyabi::Address;

/// Memory of this process for pyabi's walker. Nothing is checked: what is asked for must be there.
struct OwnMemory {
  static const std::byte* Find(Address address, size_t) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): pyabi has addresses as numbers
    return reinterpret_cast<const std::byte*>(address);
  }
  template <typename T>
  static T ValueOr0(Address address) {
    return pyabi::Load<T>({Find(address, sizeof(T)), sizeof(T)}, 0);
  }
  static size_t byte_count() { return std::numeric_limits<size_t>::max(); }
};

class OwnFrames {
 public:
  /// Of the interpreter of this process.
  explicit OwnFrames(const pyabi::Layout& layout) : layout_(layout) {}

  /// Of all frames of the thread with this state: equal where all stand at the same instructions
  /// of the same code objects, in the same regions. `codes_live`: none of them has been freed since
  /// `seed` was first used; else one at the address of another is told by its name, its first line
  /// and its table of lines, which reads two objects more of each frame. Nullopt where there
  /// are no frames.
  std::optional<uint64_t> Hash(Address tstate, uint64_t seed, bool codes_live) const;

  /// Leaf first. Makes room in both.
  void Walk(Address tstate, std::vector<pyabi::RawFrame>& frames,
            std::vector<Address>& loop_frames) const;

  /// That the thread with this state is in.
  Address InterpreterOf(Address tstate) const {
    return OwnMemory::ValueOr0<Address>(tstate + layout_.thread.interp);
  }
  const pyabi::Layout& layout() const { return layout_; }

 private:
  Address First(Address tstate) const;
  /// `regions`: null where nothing is in any.
  uint64_t HashInFull(Address first, uint64_t hash, bool codes_live,
                      const pyabi::Regions* regions) const;
  uint64_t HashOfCode(Address code, uint64_t hash) const;

  const pyabi::Layout layout_;
};

}  // namespace pystrobe::launch
