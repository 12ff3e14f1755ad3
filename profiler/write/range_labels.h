// SPDX-License-Identifier: Apache-2.0
//
// The words that every format uses for the ranges of a program. Not yet escaped for any format.
// [any thread]
#pragma once

#include <string>

#include "profiler/model/range_record.h"
#include "profiler/model/tables.h"

namespace pystrobe::write {

/// Its name; before it the domain, where that says whose it is: "NCCL: all_reduce".
std::string RangeName(const NamedRange& range, const Tables& tables);

/// "5, begun 2,010 times", and what is not told apart.
std::string RangeSummary(const RangeRecord& record);

}  // namespace pystrobe::write
