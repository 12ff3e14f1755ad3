// SPDX-License-Identifier: Apache-2.0
//
// Looking at live objects of the target: thread names, locals. Best effort on a running program:
// every read is bounded and checked, a value that changes under our eyes is left out.
#pragma once

#include <string>
#include <vector>

#include "profiler/base/hash_map.h"
#include "sampler/pyabi/layout.h"
#include "sampler/pyabi/memory.h"
#include "sampler/pyabi/walk.h"

namespace pystrobe::pyabi {

/// Names given to threads by the threading module (sys.modules["threading"]._active), by pthread
/// id. Empty when the program never imported it.
HashMap<uint64_t, std::string> ReadThreadNames(const Memory& memory, const Layout& layout,
                                               Address interpreter);

struct Local {
  std::string name;
  std::string
      value;  ///< a short repr: numbers, strings (escaped, cut), containers by type and size
  bool is_argument = false;
};

/// Local variables of `frame` in order of their slots; unbound ones left out.
std::vector<Local> ReadLocals(const Memory& memory, const Layout& layout, const RawFrame& frame);

}  // namespace pystrobe::pyabi
