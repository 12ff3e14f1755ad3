// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/kernel_thread.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>

namespace pystrobe::remote {
namespace {

constexpr Address kOuter = 0x1000, kInner = 0x2000;
constexpr uint32_t kStatusOffset = 24;
// As Include/cpython/pystate.h of 3.13 has the bits: initialized, bound, bound_gilstate, active.
constexpr uint32_t kBound = 0b0011, kCurrent = 0b1011, kRunning = 0b11011;

class KernelThreadTest : public ::testing::Test {
 protected:
  bool IsCurrent(const ThreadState& state, uint32_t status = kBound) {
    copy_.Clear();
    EXPECT_TRUE(copy_.Add(state.id.tstate, 64));
    std::vector<pyabi::ReadRequest> requests;
    copy_.AppendRequests(0, requests);
    std::memcpy(static_cast<std::byte*>(requests[0].into) + kStatusOffset, &status, sizeof status);
    return thread_.IsCurrent(state, layout_, copy_);
  }

  TaskFiles files_;
  std::vector<Sample> samples_;
  Tick tick_{.number = 1, .time = MonotonicNow(), .previous = MonotonicNow()};
  KernelThread thread_{files_,         getpid(),
                       gettid(),       Timeline(ThreadIndex{0}, tick_.time, samples_),
                       ThreadIndex{0}, tick_};
  pyabi::Layout layout_;
  pyabi::StackCopy copy_;
  PyThread outer_id_{.tstate = kOuter, .interpreter_id = 0},
      inner_id_{.tstate = kInner, .interpreter_id = 4};
  ThreadState outer_{outer_id_}, inner_{inner_id_};
};

TEST_F(KernelThreadTest, TheOnlyStateIsCurrent) {
  thread_.Add(&outer_);
  EXPECT_TRUE(IsCurrent(outer_));
  layout_.thread.status = kStatusOffset;
  EXPECT_TRUE(IsCurrent(outer_));
}

TEST_F(KernelThreadTest, TheStateSaysSoItself) {
  layout_.thread.status = kStatusOffset;
  thread_.Add(&outer_);
  thread_.Add(&inner_);
  outer_.has_frames = true;
  EXPECT_FALSE(IsCurrent(outer_, kBound));
  EXPECT_TRUE(IsCurrent(inner_, kRunning));
  EXPECT_TRUE(IsCurrent(inner_, kCurrent)) << "it waits without the lock";
}

TEST_F(KernelThreadTest, WithoutThatTheYoungestInterpreterWithFramesIs) {
  thread_.Add(&outer_);
  thread_.Add(&inner_);
  outer_.has_frames = true;
  EXPECT_TRUE(IsCurrent(outer_));
  EXPECT_FALSE(IsCurrent(inner_)) << "nothing runs in it";
  inner_.has_frames = true;
  EXPECT_FALSE(IsCurrent(outer_));
  EXPECT_TRUE(IsCurrent(inner_));
  thread_.Remove(&inner_);
  EXPECT_TRUE(IsCurrent(outer_));
}

TEST_F(KernelThreadTest, FinishAccountsForAllItsTime) {
  thread_.BeginAt(tick_.time);
  const Tick last{
      .number = 2, .time = tick_.time + std::chrono::seconds(1), .previous = tick_.time};
  thread_.Finish(last);
  ASSERT_FALSE(samples_.empty());
  EXPECT_EQ(samples_.back().time_ns, 1'000'000'000);
  EXPECT_FALSE(thread_.ledger().gone());
}

}  // namespace
}  // namespace pystrobe::remote
