// SPDX-License-Identifier: Apache-2.0
//
// A process of one thread to be stopped and traced.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include "profiler/base/clock.h"
#include "profiler/base/proc.h"
#include "tests/cpp/support/child.h"

namespace pystrobe::testing {

/// A child that spins until it is killed, at the latest with this object.
class SpinningChild {
 public:
  SpinningChild() : SpinningChild([] {}) {}
  /// `first`: what the child does before it spins.
  template <typename First>
  explicit SpinningChild(First first)
      : child_([&first] {
          first();
          for (;;) {
          }
        }) {}

  pid_t pid() const { return child_.pid(); }
  char state() const { return ReadTaskStat(pid(), pid())->state; }
  pid_t tracer() const { return ReadStatus(pid())->tracer; }
  /// Fails the test when it does not come about within ten seconds.
  void WaitForState(char wanted) const {
    const Nanoseconds deadline = MonotonicNow() + std::chrono::seconds(10);
    char seen;  // of one moment: a page fault makes it another for the next
    while ((seen = state()) != wanted && MonotonicNow() < deadline) usleep(100);
    EXPECT_EQ(seen, wanted);
  }

 private:
  Child child_;
};

}  // namespace pystrobe::testing
