// SPDX-License-Identifier: Apache-2.0
//
// Bytes of a thread's frames, copied in one instant, and where they came from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "sampler/pyabi/memory.h"

namespace pystrobe::pyabi {

/// Raw copies of ranges of the target's memory. Kept and refilled from sample to sample, so that
/// nothing is allocated in the steady state. Find() remembers where it last looked, so even const
/// use belongs to one thread. [one thread at a time]
class StackCopy {
 public:
  struct Range {
    Address address;
    uint32_t size;
    uint32_t offset;  ///< into the buffer
  };

  /// A copy holds no more bytes than this: hundreds of thousands of frames fit.
  static constexpr size_t kMostBytes = size_t{64} << 20;

  void Clear();
  /// Plans a range; its bytes are undefined until someone fills what AppendRequests names. False,
  /// and nothing is planned, where the copy would outgrow kMostBytes.
  bool Add(Address address, uint32_t size);
  /// Appends one read request for each range from index `first_range` on. The pointers are good
  /// until the next Add.
  void AppendRequests(size_t first_range, std::vector<ReadRequest>& requests);

  /// The copied bytes [address, address + size), or null when they were not copied. Where ranges
  /// overlap, any of them answers: their bytes differ only if the target ran between two reads.
  const std::byte* Find(Address address, size_t size) const {
    if (hint_ < ranges_.size()) {
      if (const std::byte* found = FindIn(ranges_[hint_], address, size)) return found;
    }
    return FindAnywhere(address, size);
  }

  /// A value out of the copy; 0 when it was not copied.
  template <typename T>
    requires std::is_trivially_copyable_v<T>
  T ValueOr0(Address address) const {
    T value{};
    if (const std::byte* bytes = Find(address, sizeof(T))) std::memcpy(&value, bytes, sizeof(T));
    return value;
  }

  std::span<const Range> ranges() const { return ranges_; }
  size_t byte_count() const { return used_; }

 private:
  const std::byte* FindIn(const Range& range, Address address, size_t size) const {
    if (address < range.address || size > range.size) return nullptr;
    if (address - range.address > range.size - size) return nullptr;
    return buffer_.data() + range.offset + (address - range.address);
  }
  const std::byte* FindAnywhere(Address address, size_t size) const;

  std::vector<Range> ranges_;
  std::vector<std::byte> buffer_;
  size_t used_ = 0;
  mutable size_t hint_ = 0;  // the range found last: frames of a chunk come one after the other
};

}  // namespace pystrobe::pyabi
