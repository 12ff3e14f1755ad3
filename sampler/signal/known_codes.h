// SPDX-License-Identifier: Apache-2.0
//
// Which code objects a signal handler need not look at.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "profiler/base/error.h"
#include "profiler/base/lazy_array.h"
#include "sampler/pyabi/code.h"
#include "sampler/pyabi/memory.h"

namespace pystrobe::signals {

using pyabi::Address;

/// Of all that tells a code object from others.
uint64_t FingerprintOf(const pyabi::CodeIdentity& identity);

/// How much the sampler knows of a code object.
enum class CodeKnowledge : uint8_t {
  kNone,
  kNamed,   ///< its names were read; but it is young, and another may take its place
  kLasting  ///< and it need not be looked at again
};

/// What is known, by address. One that finds no place is left out: then it is looked at once more
/// often. [Set, Clear: one thread; Of: any thread, async-signal-safe]
class KnownCodes {
 public:
  static Result<KnownCodes> Make(size_t capacity);

  struct Known {
    CodeKnowledge knowledge = CodeKnowledge::kNone;
    uint64_t fingerprint = 0;  ///< of the code object that is known
  };

  /// kNone too where the interpreter has dropped a code object since: `generation` is its count of
  /// those (3.14+, else 0).
  Known Of(Address code, uint64_t generation) const;

  void Set(Address code, const Known& known);
  /// Forgets everything, where there is anything. What is set from now on is of `generation`.
  void Clear(uint64_t generation);

 private:
  static constexpr size_t kTries = 8;
  /// Code objects are aligned to 8 bytes at least, so an address leaves room for a CodeKnowledge.
  static constexpr uint64_t kKnowledgeBits = 3;

  struct Place {
    uint64_t code;  ///< with a CodeKnowledge; 0: free
    uint64_t fingerprint;
  };

  explicit KnownCodes(LazyArray<Place> places) : places_(std::move(places)) {}

  Place& PlaceOf(Address code, size_t attempt) const;
  std::atomic_ref<uint64_t> Generation() const { return std::atomic_ref(generation_); }

  mutable LazyArray<Place> places_;
  mutable uint64_t generation_ = 0;
  bool empty_ = true;
};

}  // namespace pystrobe::signals
