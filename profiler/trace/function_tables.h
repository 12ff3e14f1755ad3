// SPDX-License-Identifier: Apache-2.0
//
// Traced functions among the definitions of a recording. [one thread at a time]
#pragma once

#include <cstdint>
#include <string>

#include "profiler/base/hash_map.h"
#include "profiler/model/tables.h"
#include "profiler/trace/call_tree.h"

namespace pystrobe::trace {

/// What the hooks know of a function.
struct FunctionFacts {
  std::string name;
  std::string file;
  uint32_t first_line = 0;
};

class FunctionTables {
 public:
  /// The stack that `key` makes on `parent`. `facts(key)` is called for a function's first.
  template <typename Facts>
  StackId Push(StackId parent, Key key, const Facts& facts) {
    auto known = frames_.find(key);
    if (known == frames_.end()) known = frames_.emplace(key, Define(facts(key))).first;
    return tables_.Push(parent, known->second);
  }
  Tables& tables() { return tables_; }

 private:
  FrameId Define(const FunctionFacts& facts);

  Tables tables_;
  HashMap<Key, FrameId> frames_;
};

}  // namespace pystrobe::trace
