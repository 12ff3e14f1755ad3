// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/last_run.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <optional>

#include "profiler/base/clock.h"
#include "sampler/remote/promptness.h"
#include "tests/cpp/support/child.h"

namespace pystrobe::remote {
namespace {

TEST(ParseExecStart, ReadsMilliseconds) {
  EXPECT_EQ(ParseExecStart("python (42, #threads: 1)\n"
                           "-----------------------\n"
                           "se.exec_start                       :      55471879.407911\n"
                           "se.vruntime                         :       1104737.561299\n"),
            55471879.407911);
}

TEST(ParseExecStart, IsNothingWhereThereIsNone) {
  for (const char* text : {"", "se.exec_start", "se.exec_start : \n", "se.vruntime : 1.0\n"}) {
    EXPECT_FALSE(ParseExecStart(text)) << text;
  }
}

TEST(HadCpuBefore, IsNothingOfNobody) { EXPECT_FALSE(HadCpuBefore(0x7fffffff)); }

/// Waits for a byte, then uses CPU time for ever. On the CPU of who makes it.
class Waiting {
 public:
  pid_t pid() const { return child_.pid(); }
  void Wake() { EXPECT_EQ(write(bytes_[1], "", 1), 1); }
  ~Waiting() {
    for (const int fd : bytes_) close(fd);
  }

 private:
  static std::array<int, 2> MakePipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe(ends.data()), 0);
    return ends;
  }
  void Main() const {
    char byte;
    if (read(bytes_[0], &byte, 1) != 1) return;
    volatile int spin = 0;
    for (;;) spin = spin + 1;
  }

  std::array<int, 2> bytes_ = MakePipe();
  testing::Child child_{[this] { Main(); }};
};

TEST(HadCpuBefore, IsOfWhoRanUntilWeCameAndNotOfWhoWasWokenSince) {
  const ScopedPromptness restores_affinity;
  ASSERT_TRUE(PinTo(0, sched_getcpu()));
  Waiting child;
  usleep(20'000);  // it waits
  const ScopedPromptness prompt(Urgency::kAtOnce);
  if (!IsRealTime(gettid())) GTEST_SKIP() << "it would take the CPU";
  if (!HadCpuBefore(child.pid())) GTEST_SKIP() << "the kernel does not tell";
  usleep(1'000);
  child.Wake();
  EXPECT_EQ(HadCpuBefore(child.pid()), false);
  const Nanoseconds deadline = MonotonicNow() + std::chrono::seconds(10);
  std::optional<bool> had_cpu;
  while (had_cpu != true && MonotonicNow() < deadline) {
    usleep(1'000);  // it runs, if others leave it that CPU
    had_cpu = HadCpuBefore(child.pid());
  }
  EXPECT_EQ(had_cpu, true);
}

}  // namespace
}  // namespace pystrobe::remote
