// SPDX-License-Identifier: Apache-2.0
//
// Private to analyze: the order of texts, made once. Thousands of functions may have one name of
// megabytes, or names that differ at their ends. [any thread, const]
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <vector>

#include "profiler/model/tables.h"

namespace pystrobe::analyze {

class TextOrder {
 public:
  /// `tables` outlives it and does not grow.
  explicit TextOrder(const Tables& tables) : tables_(tables), places_(tables.string_count()) {
    std::vector<uint32_t> sorted(places_.size());
    for (uint32_t id = 0; id < sorted.size(); ++id) sorted[id] = id;
    std::ranges::sort(sorted, {},
                      [&](uint32_t id) -> std::string_view { return tables.text(StringId{id}); });
    for (uint32_t place = 0; place < sorted.size(); ++place) places_[sorted[place]] = place;
  }

  /// By name, file, line, and last by id.
  bool IsBefore(FunctionId a, FunctionId b) const { return KeyOf(a) < KeyOf(b); }

 private:
  std::tuple<uint32_t, uint32_t, uint32_t, FunctionId> KeyOf(FunctionId id) const {
    const Function& function = tables_.function(id);
    return {places_[ToIndex(function.name)], places_[ToIndex(function.file)], function.first_line,
            id};
  }

  const Tables& tables_;
  std::vector<uint32_t> places_;  // by StringId
};

}  // namespace pystrobe::analyze
