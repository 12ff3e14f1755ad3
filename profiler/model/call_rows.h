// SPDX-License-Identifier: Apache-2.0
//
// Functions and their callers, put together from a call tree. [one thread]
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "profiler/base/hash.h"
#include "profiler/base/hash_map.h"

namespace pystrobe {

/// What all calls of a function come to, and those from each caller, which add up to it.
template <typename Key, typename Sums>
struct CallRow {
  Key key{};
  Sums sums;
  struct Caller {
    std::optional<Key> key;  ///< nullopt: nobody that is in the tree
    Sums sums;
  };
  std::vector<Caller> callers;
};

/// Is told of a tree's nodes depth first, and so knows which calls are within others of the same
/// function, or of the same function by the same caller: their inclusive time is in those already.
template <typename Key, typename Sums>
class CallRows {
 public:
  using Row = CallRow<Key, Sums>;

  /// `add(sums, is_recursive)` is called for the function and for it as called by `caller`.
  template <typename Add>
  void Enter(Key key, std::optional<Key> caller, const Add& add) {
    const size_t row = RowOf(key);
    const uint64_t edge_key = uint64_t{row} << 32 | NumberOf(caller);
    Edge& edge = EdgeOf(edge_key, row, caller);
    add(rows_[row].sums, open_[row]++ > 0);
    add(rows_[row].callers[edge.place].sums, edge.open++ > 0);
    path_.push_back({row, edge_key});
  }
  /// Of what was entered last.
  void Leave() {
    --open_[path_.back().row];
    --edges_.find(path_.back().edge).value().open;
    path_.pop_back();
  }

  /// In the order in which they were first entered.
  std::vector<Row> Take() { return std::move(rows_); }

 private:
  struct Edge {
    size_t place;       // in the callers of the row
    uint32_t open = 0;  // nodes on the way to the root
  };

  size_t RowOf(Key key) {
    const auto [found, is_new] = row_of_.emplace(key, rows_.size());
    if (is_new) {
      rows_.push_back({.key = key, .sums = {}, .callers = {}});
      open_.push_back(0);
    }
    return found->second;
  }

  uint32_t NumberOf(std::optional<Key> caller) {
    if (!caller) return 0;
    return numbers_.emplace(*caller, static_cast<uint32_t>(numbers_.size() + 1)).first->second;
  }

  Edge& EdgeOf(uint64_t key, size_t row, std::optional<Key> caller) {
    auto& callers = rows_[row].callers;
    const auto [found, is_new] = edges_.emplace(key, Edge{callers.size()});
    if (is_new) callers.push_back({.key = caller, .sums = {}});
    return found.value();
  }

  struct Step {
    size_t row;
    uint64_t edge;
  };
  std::vector<Row> rows_;
  HashMap<Key, size_t> row_of_;
  std::vector<uint32_t> open_;               // by row: nodes on the way to the root
  HashMap<Key, uint32_t> numbers_;           // of callers, from 1 on
  HashMap<uint64_t, Edge, PairHash> edges_;  // by row << 32 | number of the caller
  std::vector<Step> path_;
};

}  // namespace pystrobe
