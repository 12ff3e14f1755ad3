// SPDX-License-Identifier: Apache-2.0
//
// Where a thread itself finds its thread state.
#pragma once

#include <limits.h>

#include <atomic>
#include <optional>

#include "sampler/pyabi/memory.h"

namespace pystrobe::signals {

using pyabi::Address;

/// PyGILState_Ensure keeps the state of each thread under a key of thread-specific data
/// (_PyRuntimeState.gilstate.autoTSSkey; Python/pystate.c). A C thread that calls
/// back into Python may have a new state for each call, sooner than anybody else could list it.
/// Which key it is, is learned from what threads have under theirs; until then only the states
/// listed are known, of which those that are over may still look like the thread's own. [any
/// thread, async-signal-safe with glibc, whose pthread_getspecific takes no lock and touches the
/// thread's own memory alone]
class StateKey {
 public:
  /// True once it is known: the first under which the calling thread has what `is_state`, a
  /// predicate of an Address, takes for a state of this thread. Libraries that keep states under
  /// keys of their own are loaded after the runtime has made its own.
  template <typename IsState>
  bool Learn(const IsState& is_state) {
    if (key_.load() != kUnknown) return true;
    if (tries_.fetch_add(1) >= kMostTries) return false;
    for (int key = 0; key < PTHREAD_KEYS_MAX; ++key) {
      const Address value = ValueOf(key);
      if (value == 0 || !is_state(value)) continue;
      key_.store(key);
      return true;
    }
    return false;
  }
  /// The calling thread's state, 0 where it has none; nullopt where the key is not known.
  std::optional<Address> Get() const;

 private:
  static constexpr int kUnknown = -1;
  // Each takes some microseconds. A thread of a sub-interpreter may have no state under the key.
  static constexpr int kMostTries = 64;

  static Address ValueOf(int key);

  std::atomic<int> key_{kUnknown};
  std::atomic<int> tries_{0};
};

}  // namespace pystrobe::signals
