// SPDX-License-Identifier: Apache-2.0
//
// How regions of this process stand in stacks.
#pragma once

#include "profiler/model/tables.h"
#include "sampler/pyabi/regions.h"

namespace pystrobe::remote {

/// `stack` with a frame for each of the regions, the outermost first: what is in them stands on it.
inline StackId PushRegions(Tables& tables, StackId stack, pyabi::Regions::Id regions) {
  if (regions == 0) return stack;
  for (const std::string& name : pyabi::Regions::OfThisProcess().NamesOf(regions)) {
    const FunctionId function =
        tables.Intern(Function{tables.Intern(name), tables.Intern(kRegionFile)});
    stack = tables.Push(stack, tables.Intern(Frame{function}));
  }
  return stack;
}

}  // namespace pystrobe::remote
