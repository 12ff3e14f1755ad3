// SPDX-License-Identifier: Apache-2.0
#include "profiler/base/switch_flag.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "profiler/base/clock.h"

namespace pystrobe {
namespace {

TEST(SwitchFlag, IsGoneAfterTheThreadHasSlept) {
  if (!SwitchFlag::Available()) GTEST_SKIP() << "no rseq";
  const SwitchFlag flag = SwitchFlag::OfThisThread();
  flag.Set();
  EXPECT_TRUE(flag.IsSet());
  usleep(1000);
  EXPECT_FALSE(flag.IsSet());
  flag.Set();
  flag.Clear();
  EXPECT_FALSE(flag.IsSet());
}

TEST(SwitchFlag, StaysWhileTheThreadKeepsItsCpu) {
  if (!SwitchFlag::Available()) GTEST_SKIP() << "no rseq";
  const SwitchFlag flag = SwitchFlag::OfThisThread();
  int kept = 0;
  for (int i = 0; i < 100; ++i) {
    flag.Set();
    const Nanoseconds end = MonotonicNow() + std::chrono::microseconds(20);
    while (MonotonicNow() < end) {
    }
    kept += flag.IsSet();
  }
  flag.Clear();
  EXPECT_GT(kept, 50);
}

}  // namespace
}  // namespace pystrobe
