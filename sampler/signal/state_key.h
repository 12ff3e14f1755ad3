// SPDX-License-Identifier: Apache-2.0
//
// Where a thread itself finds its thread state.
#pragma once

#include <atomic>
#include <optional>

#include "sampler/pyabi/memory.h"

namespace pystrobe::signals {

using pyabi::Address;

/// PyGILState_Ensure keeps the state of each thread under a key of thread-specific data
/// (_PyRuntimeState.gilstate.autoTSSkey; Python/pystate.c). A C thread that calls
/// back into Python may have a new state for each call, sooner than anybody else could list it.
/// Which key it is, is learned from threads whose state is known; where none is found, only the
/// states listed are. [any thread, async-signal-safe with glibc, whose pthread_getspecific takes no
/// lock and touches the thread's own memory alone]
class StateKey {
 public:
  /// The calling thread has `state`.
  void LearnFrom(Address state);
  /// The calling thread's state, 0 where it has none; nullopt where the key is not known.
  std::optional<Address> Get() const;

 private:
  static constexpr int kUnknown = -1;

  std::atomic<int> key_{kUnknown};
  std::atomic<int> tries_{0};
};

}  // namespace pystrobe::signals
