// SPDX-License-Identifier: Apache-2.0
//
// The stacks of threads that sleep, taken without holding anybody.
#pragma once

#include <vector>

#include "sampler/remote/thread_table.h"

namespace pystrobe::remote {

/// A thread that was off every CPU before its stack was copied, and according to the kernel was put
/// on none until after it, stood still: nothing needs to be paused. So a target with thousands of
/// sleeping threads has all their stacks within milliseconds, and only those that run are left to
/// TickSampler. Takes nothing where the kernel keeps no scheduler statistics, nor with local
/// variables, which other threads may change, nor with native frames, which are copied thread by
/// thread. [one thread: the pacer]
class Sleepers {
 public:
  Sleepers(RunContext& context, ThreadTable& threads) : context_(context), threads_(threads) {}

  /// Takes the stacks of the threads that have none yet and sleep, as of `tick`. While no other
  /// copy is under way.
  void Take(const Tick& tick);

 private:
  void TakeBatch(LockDomain& domain, const Tick& tick);

  RunContext& context_;
  ThreadTable& threads_;
  CopyJob job_;
  std::vector<SampledThread*> batch_;
};

}  // namespace pystrobe::remote
