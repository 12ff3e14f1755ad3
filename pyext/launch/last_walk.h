// SPDX-License-Identifier: Apache-2.0
//
// The hash of a thread's frames, by what is known of them from the time before.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace pystrobe::launch {

/// Adds a word to a hash. Once for each frame, so no more than a multiplication: MixBits follows at
/// the end.
inline uint64_t Roll(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9fb21c651e98df25U;
  return hash ^ (hash >> 35);
}

/// The frames that one thread had when it was walked last, from the root on. A walk goes from the
/// leaf on, one frame after the other, where each read waits for the one before: of 60 frames,
/// which a launch has pushed out of the nearest cache, that is half a microsecond. Where it comes
/// to one that was there before, those below are most likely what they were: to see whether they
/// are, reads need not wait for each other, and their hash is known.
///
/// Memory is asked for a frame's caller and for its instruction, of frames that are there alone.
/// [one thread]
class LastWalk {
 public:
  /// Deeper ones are walked as they are.
  static constexpr size_t kMostFrames = 128;

  /// Of `first` and of all that called it; `seed` is part of it. Frames are equal where their
  /// instructions are.
  template <typename Memory>
  uint64_t Hash(const Memory& memory, uint64_t first, uint64_t seed);

  /// How many frames the last walk did not have to follow.
  size_t kept() const { return kept_; }

 private:
  struct Seen {
    uint64_t frame, instruction;
    uint64_t hash;  // of this one and of those below
  };

  /// Whether the first `count` are what they were; the last of them is there.
  template <typename Memory>
  bool Stand(const Memory& memory, size_t count) const;
  /// Of a stack that there is no room for; never the same as Hash of another.
  template <typename Memory>
  static uint64_t HashDeep(const Memory& memory, uint64_t first, uint64_t seed);

  uint64_t seed_ = 0;
  size_t count_ = 0;
  size_t kept_ = 0;
  std::array<Seen, kMostFrames> seen_{};
};

template <typename Memory>
uint64_t LastWalk::Hash(const Memory& memory, uint64_t first, uint64_t seed) {
  struct Fresh {
    uint64_t frame, instruction;
  };
  std::array<Fresh, kMostFrames> fresh;
  size_t fresh_count = 0;
  size_t known = seed == seed_ ? count_ : 0;
  bool stands = false;
  for (uint64_t frame = first; frame != 0; frame = memory.CallerOf(frame)) {
    const uint64_t instruction = memory.InstructionOf(frame);
    // A thread's frames lie one above the other, but for those of generators and of C's stack: for
    // their sake less is found to be known than is.
    while (known > 0 && seen_[known - 1].frame > frame) --known;
    if (known > 0 && seen_[known - 1].frame == frame &&
        seen_[known - 1].instruction == instruction) {
      stands = Stand(memory, known);
      if (stands) break;
      known = 0;  // to try again at each frame would take longer than to walk
    }
    if (fresh_count == kMostFrames) return HashDeep(memory, first, seed);
    fresh[fresh_count++] = {frame, instruction};
  }
  kept_ = stands ? known : 0;
  if (kept_ + fresh_count > kMostFrames) return HashDeep(memory, first, seed);
  uint64_t hash = kept_ > 0 ? seen_[kept_ - 1].hash : seed;
  count_ = kept_;
  seed_ = seed;
  while (fresh_count > 0) {
    const Fresh& next = fresh[--fresh_count];
    hash = Roll(hash, next.instruction);
    seen_[count_++] = {next.frame, next.instruction, hash};
  }
  return hash;
}

// Nothing is read of a frame before the one above says that it is there still: memory of others may
// be gone. But what to read next is known without that, so the processor does not wait for it.
template <typename Memory>
bool LastWalk::Stand(const Memory& memory, size_t count) const {
  for (size_t i = count; i-- > 0;) {
    const Seen& seen = seen_[i];
    if (memory.InstructionOf(seen.frame) != seen.instruction) return false;
    if (memory.CallerOf(seen.frame) != (i > 0 ? seen_[i - 1].frame : 0)) return false;
  }
  return true;
}

template <typename Memory>
uint64_t LastWalk::HashDeep(const Memory& memory, uint64_t first, uint64_t seed) {
  uint64_t hash = ~seed;
  for (uint64_t frame = first; frame != 0; frame = memory.CallerOf(frame)) {
    hash = Roll(hash, memory.InstructionOf(frame));
  }
  return hash;
}

}  // namespace pystrobe::launch
