// SPDX-License-Identifier: Apache-2.0
//
// Memory that a handler keeps for others to read: what a code object is made of, while a frame of
// the thread that stands still keeps it alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "profiler/base/error.h"
#include "profiler/base/lazy_array.h"
#include "sampler/pyabi/layout.h"
#include "sampler/pyabi/memory.h"
#include "sampler/signal/own_memory.h"
#include "sampler/signal/raw_sample.h"

namespace pystrobe::signals {

/// Pieces, one behind the other: a Head, the bytes, up to 7 bytes to the next multiple of 8.
/// [the handler, async-signal-safe but for Make]
class Captures {
 public:
  struct Head {
    Address address;
    uint64_t size;
  };
  static constexpr size_t kMostBytes = size_t{32} << 10;

  static Result<Captures> Make();

  void clear() { bytes_.clear(); }
  /// All that pyabi::ReadCode reads of a code object, as far as there is room and it makes sense.
  void AddCode(OwnMemory& memory, const pyabi::Layout& layout, const FoundCode& found);
  std::span<const std::byte> bytes() const { return {bytes_.data(), bytes_.size()}; }

 private:
  explicit Captures(LazyArray<std::byte> bytes) : bytes_(std::move(bytes)) {}

  /// Nothing is added of what cannot be read, or is wild.
  void Add(OwnMemory& memory, Address address, uint64_t size);
  void AddString(OwnMemory& memory, const pyabi::Layout& layout, Address str);

  LazyArray<std::byte> bytes_;
};

/// The pieces as memory: that has nothing else. [one thread]
class CapturedMemory final : public pyabi::Memory {
 public:
  /// `pieces` outlives it.
  explicit CapturedMemory(std::span<const std::byte> pieces);

  bool ReadAll(std::span<const pyabi::ReadRequest> requests) const override;
  bool empty() const { return pieces_.empty(); }

 private:
  struct Piece {
    Address address;
    std::span<const std::byte> bytes;
  };

  bool ReadOne(const pyabi::ReadRequest& request) const;

  std::vector<Piece> pieces_;
};

}  // namespace pystrobe::signals
