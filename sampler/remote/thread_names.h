// SPDX-License-Identifier: Apache-2.0
//
// What a program calls its threads.
#pragma once

#include <cstdint>
#include <string>

#include "profiler/base/hash_map.h"
#include "sampler/pyabi/objects.h"

namespace pystrobe::remote {

/// The names in each interpreter's threading module, read when first asked for. Of one moment, so
/// make a new one for the next. [one thread]
class ThreadNames {
 public:
  ThreadNames(const pyabi::Memory& memory, const pyabi::Layout& layout)
      : memory_(memory), layout_(layout) {}

  /// By pthread id. Valid until the next call.
  const HashMap<uint64_t, std::string>& Of(pyabi::Address interpreter) {
    auto [it, added] = names_.try_emplace(interpreter);
    if (added) it.value() = pyabi::ReadThreadNames(memory_, layout_, interpreter);
    return it->second;
  }

 private:
  const pyabi::Memory& memory_;
  const pyabi::Layout& layout_;
  HashMap<pyabi::Address, HashMap<uint64_t, std::string>> names_;
};

}  // namespace pystrobe::remote
