// SPDX-License-Identifier: Apache-2.0
//
// Private to analyze: weights summed over threads, by stack. [any thread]
#pragma once

#include <span>
#include <vector>

#include "profiler/analyze/profile.h"

namespace pystrobe::analyze {

inline bool IsZero(const Weights& weights) { return weights == Weights{}; }

/// The weight each stack got itself, indexed by StackId, threads added up.
std::vector<Weights> SelfByStack(const Tables& tables, std::span<const ThreadProfile> threads);

/// Turns self weights into inclusive ones in place: each stack gets what all stacks beginning with
/// it got. One pass from the end, because a stack's id is always above its parent's.
void AddChildrenToParents(const Tables& tables, std::vector<Weights>& by_stack);

}  // namespace pystrobe::analyze
