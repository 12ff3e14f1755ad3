// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/stopped_stack.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "profiler/base/proc.h"
#include "sampler/remote/process_memory.h"
#include "sampler/remote/ptrace_stop.h"
#include "tests/cpp/support/child.h"
#include "tests/cpp/support/spinning_child.h"

namespace pystrobe::remote {
namespace {

std::string SyscallOf(pid_t pid) {
  return ReadSmallFile(fmt::format("/proc/{}/task/{}/syscall", pid, pid)).value_or("");
}

TEST(StoppedStack, IsThatOfAThreadThatStandsStill) {
  testing::SpinningChild child;
  const ProcessMemory memory(child.pid());
  PtraceStop stop;
  StoppedStack stack;
  // It begins in the system call that made it.
  const Nanoseconds deadline = MonotonicNow() + std::chrono::seconds(10);
  do {
    stop.Resume();
    usleep(1000);
    ASSERT_TRUE(stop.Stop(child.pid()));
    ASSERT_TRUE(stack.Take(child.pid(), memory));
  } while (stack.in_kernel() && MonotonicNow() < deadline);
  EXPECT_FALSE(stack.empty());
  EXPECT_FALSE(stack.in_kernel());
  const native::Registers& registers = stack.registers();
  EXPECT_EQ(registers.unknown, 0U);
  // Our own code and stack: it is a fork of this process.
  EXPECT_NE(stack.bytes().Find(registers.sp(), 64), nullptr);
  EXPECT_EQ(stack.bytes().Find(registers.sp() - native::kRedZone - 1, 1), nullptr);
  const Address local = reinterpret_cast<Address>(&stack);
  EXPECT_NE(stack.bytes().Find(local, sizeof stack), nullptr);
}

TEST(StoppedStack, IsNothingOfAThreadThatRuns) {
  testing::SpinningChild child;
  const ProcessMemory memory(child.pid());
  StoppedStack stack;
  EXPECT_FALSE(stack.Take(child.pid(), memory));
  EXPECT_TRUE(stack.empty());
  child.WaitForState('R');
  EXPECT_FALSE(stack.TakeAsleep(SyscallOf(child.pid()), 0, memory));
  EXPECT_FALSE(stack.TakeAsleep("", 0, memory));
  EXPECT_TRUE(stack.empty());
}

TEST(StoppedStack, OfAThreadThatSleepsSomeRegistersAreKnown) {
  testing::Child child([] {
    for (;;) pause();
  });
  const ProcessMemory memory(child.pid());
  const Nanoseconds deadline = MonotonicNow() + std::chrono::seconds(10);
  while (ReadTaskStat(child.pid(), child.pid())->state != 'S' && MonotonicNow() < deadline) {
    usleep(100);
  }
  StoppedStack asleep, stopped;
  ASSERT_TRUE(asleep.TakeAsleep(SyscallOf(child.pid()), 0, memory));
  PtraceStop stop;
  ASSERT_TRUE(stop.Stop(child.pid()));
  ASSERT_TRUE(stopped.Take(child.pid(), memory));
  EXPECT_TRUE(stopped.in_kernel());
  EXPECT_EQ(asleep.registers().sp(), stopped.registers().sp());
  EXPECT_FALSE(asleep.registers().Knows(native::kRbp));
  EXPECT_TRUE(asleep.registers().Knows(native::kRip));
  EXPECT_EQ(asleep.byte_count(), stopped.byte_count());
}

TEST(StoppedStack, EndsWhereTheThreadsOwnDataBegins) {
  testing::Child child([] {
    for (;;) pause();
  });
  const ProcessMemory memory(child.pid());
  constexpr Address kUsed = 4000;
  StoppedStack stack;
  std::string text;
  while (!text.starts_with("34 ")) text = SyscallOf(child.pid());  // pause(2)
  ASSERT_TRUE(stack.TakeAsleep(text, 0, memory));
  const Address sp = stack.registers().sp();
  ASSERT_TRUE(stack.TakeAsleep(text, sp + kUsed, memory));
  EXPECT_EQ(stack.byte_count(), native::kRedZone + kUsed);
}

}  // namespace
}  // namespace pystrobe::remote
