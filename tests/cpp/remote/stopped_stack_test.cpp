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

native::StackBytes Bytes(const StoppedStack& stack) {
  return {stack.copy().begin, stack.copy().bytes};
}

/// What /proc says of a child once it waits in pause(2).
std::string SyscallOfWaiting(pid_t pid) {
  const Nanoseconds deadline = MonotonicNow() + std::chrono::seconds(10);
  std::string text;
  while (!text.starts_with("34 ") && MonotonicNow() < deadline) text = SyscallOf(pid);
  return text;
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
  } while (stack.copy().in_kernel && MonotonicNow() < deadline);
  EXPECT_FALSE(stack.copy().empty());
  EXPECT_FALSE(stack.copy().in_kernel);
  const native::Registers& registers = stack.copy().registers;
  EXPECT_EQ(registers.unknown, 0U);
  // Our own code and stack: it is a fork of this process.
  EXPECT_NE(Bytes(stack).Find(registers.sp(), 64), nullptr);
  EXPECT_EQ(Bytes(stack).Find(registers.sp() - native::kRedZone - 1, 1), nullptr);
  const Address local = reinterpret_cast<Address>(&stack);
  EXPECT_NE(Bytes(stack).Find(local, sizeof stack), nullptr);
}

TEST(StoppedStack, IsNothingOfAThreadThatRuns) {
  testing::SpinningChild child;
  const ProcessMemory memory(child.pid());
  StoppedStack stack;
  EXPECT_FALSE(stack.Take(child.pid(), memory));
  EXPECT_TRUE(stack.copy().empty());
  child.WaitForState('R');
  EXPECT_FALSE(stack.TakeAsleep(SyscallOf(child.pid()), 0, memory));
  EXPECT_FALSE(stack.TakeAsleep("", 0, memory));
  EXPECT_TRUE(stack.copy().empty());
}

TEST(StoppedStack, OfAThreadThatSleepsSomeRegistersAreKnown) {
  testing::Child child([] {
    for (;;) pause();
  });
  const ProcessMemory memory(child.pid());
  StoppedStack asleep, stopped;
  ASSERT_TRUE(asleep.TakeAsleep(SyscallOfWaiting(child.pid()), 0, memory));
  PtraceStop stop;
  ASSERT_TRUE(stop.Stop(child.pid()));
  ASSERT_TRUE(stopped.Take(child.pid(), memory));
  EXPECT_TRUE(stopped.copy().in_kernel);
  EXPECT_EQ(asleep.copy().registers.sp(), stopped.copy().registers.sp());
  EXPECT_FALSE(asleep.copy().registers.Knows(native::kRbp));
  EXPECT_TRUE(asleep.copy().registers.Knows(native::kRip));
  EXPECT_EQ(asleep.copy().bytes, stopped.copy().bytes);
  // Where its end is known it is one piece.
  const std::vector<std::byte> first = stopped.Release().bytes;
  EXPECT_TRUE(stopped.copy().empty());
  ASSERT_TRUE(stopped.Take(child.pid(), memory));
  EXPECT_EQ(stopped.copy().bytes, first);
}

TEST(StoppedStack, EndsWhereTheThreadsOwnDataBegins) {
  testing::Child child([] {
    for (;;) pause();
  });
  const ProcessMemory memory(child.pid());
  constexpr Address kUsed = 1000;  // less than lies between there and the stack's end
  StoppedStack stack;
  const std::string text = SyscallOfWaiting(child.pid());
  ASSERT_TRUE(stack.TakeAsleep(text, 0, memory));
  const Address sp = stack.copy().registers.sp();
  ASSERT_TRUE(stack.TakeAsleep(text, sp + kUsed, memory));
  EXPECT_EQ(stack.copy().bytes.size(), native::kRedZone + kUsed);
}

}  // namespace
}  // namespace pystrobe::remote
