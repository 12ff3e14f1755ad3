// SPDX-License-Identifier: Apache-2.0
//
// Bytes of a thread's frames, copied in one instant, and where they came from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sampler/pyabi/memory.h"

namespace pystrobe::pyabi {

/// Raw copies of ranges of the target's memory. Reused from sample to sample so that nothing is
/// allocated in the steady state. [one thread at a time]
class StackCopy {
 public:
  struct Range {
    Address address;
    uint32_t size;
    uint32_t offset;  ///< into the buffer
  };

  void Clear();
  /// Reserves room for `size` bytes from `address`; the caller fills them. The pointer is good
  /// until the next Add.
  std::byte* Add(Address address, uint32_t size);
  /// Forgets the last range added.
  void RemoveLast();

  /// The copied bytes [address, address + size), or null when they were not copied.
  const std::byte* Find(Address address, size_t size) const;

  std::span<const Range> ranges() const { return ranges_; }
  std::byte* data(const Range& range) { return buffer_.data() + range.offset; }
  size_t byte_count() const { return used_; }

 private:
  std::vector<Range> ranges_;
  std::vector<std::byte> buffer_;
  size_t used_ = 0;
};

}  // namespace pystrobe::pyabi
