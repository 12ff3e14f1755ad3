// SPDX-License-Identifier: Apache-2.0
//
// How sessions begin and end, while threads launch, and what may go wrong with it.
#include <cupti.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/cpp/gpu/cupti_session_fixture.h"

namespace pystrobe::gpu {
namespace {

using ::testing::HasSubstr;
using CuptiLifecycleTest = CuptiSessionTest;

TEST_F(CuptiLifecycleTest, ThreadsLaunchAtOnce) {
  constexpr uint64_t kThreads = 4, kEach = 20'000;
  Start();
  std::vector<std::thread> threads;
  for (uint32_t thread = 1; thread <= kThreads; ++thread) {
    threads.emplace_back([this, thread] {
      for (uint64_t i = 0; i < kEach / 100; ++i) {
        current = {.path = thread};
        cupti_.Launch("kernel", 100);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Stop();
  EXPECT_EQ(Kernels(), kThreads * kEach);
  EXPECT_EQ(session_->Facts().records, kThreads * kEach);
  EXPECT_EQ(session_->Facts().unmatched, 0U);
  EXPECT_EQ(CountByPath(),
            (std::map<uint32_t, uint64_t>{{1, kEach}, {2, kEach}, {3, kEach}, {4, kEach}}));
}

// A launch that began before a session did has a record, but it is not counted, and mostly without
// an origin: one a thread, at most.
TEST_F(CuptiLifecycleTest, StartsAndStopsWhileOthersLaunch) {
  constexpr uint32_t kThreads = 3;
  std::atomic<bool> ends{false};
  std::vector<std::thread> threads;
  for (uint32_t thread = 1; thread <= kThreads; ++thread) {
    threads.emplace_back([this, thread, &ends] {
      current = {.path = thread};
      driver_.Begin();
      const CUfunction kernel = driver_.Kernel(100);
      while (!ends) {
        cupti_.Launch("kernel", 10);
        driver_.Launch(kernel);
      }
    });
  }
  for (int round = 0; round < 20; ++round) {
    Start();
    const uint64_t before = cupti_.Records();
    while (cupti_.Records() < before + 2'000) usleep(100);
    Stop();
    const CuptiFacts facts = session_->Facts();
    EXPECT_GE(facts.records, 2'000U);
    EXPECT_EQ(facts.dropped, 0U);
    EXPECT_LE(facts.unmatched, kThreads);
    EXPECT_GE(Kernels() + kThreads, facts.records);
    uint64_t counted = 0;
    for (const auto& [path, count] : CountByPath()) counted += count;
    EXPECT_EQ(counted, facts.records);
    EXPECT_FALSE(cupti_.IsSubscribed());
  }
  ends = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_F(CuptiLifecycleTest, IsStoppedOnce) {
  Start();
  cupti_.Launch("kernel", 3);
  const uint64_t finalized = cupti_.Finalized();
  Stop();
  EXPECT_EQ(cupti_.Finalized(), finalized + 1);
  EXPECT_FALSE(cupti_.IsSubscribed());
  const uint64_t calls = cupti_.Calls();
  Stop();
  EXPECT_EQ(cupti_.Calls(), calls);
  cupti_.Launch("kernel", 3);
  driver_.Launch(driver_.Kernel(100));
  EXPECT_EQ(Kernels(), 3U);
  EXPECT_EQ(session_->Facts().records, 3U);
  session_.reset();
  EXPECT_EQ(cupti_.Calls(), calls);
}

TEST_F(CuptiLifecycleTest, IsStoppedByItsEnd) {
  Start();
  cupti_.Launch("kernel", 3);
  session_.reset();
  EXPECT_FALSE(cupti_.IsSubscribed());
  Start();
}

TEST_F(CuptiLifecycleTest, KnowsWhetherAStreamIsCaptured) {
  const auto begin = [&](Stream stream) {
    return driver_.Find<CUresult(CUstream, int)>("cuStreamBeginCapture_v2")(stream, 0);
  };
  const auto end = [&](Stream stream) {
    CUgraph graph = nullptr;
    return driver_.Find<CUresult(CUstream, CUgraph*)>("cuStreamEndCapture")(stream, &graph);
  };
  const Stream before = driver_.MakeStream(), first = driver_.MakeStream(),
               second = driver_.MakeStream();
  ASSERT_EQ(begin(before), CUDA_SUCCESS);
  Start();
  EXPECT_FALSE(session_->IsCapturing());
  EXPECT_EQ(end(before), CUDA_SUCCESS);
  EXPECT_FALSE(session_->IsCapturing()) << "what was not seen to begin counts for nothing";
  ASSERT_EQ(begin(first), CUDA_SUCCESS);
  ASSERT_EQ(begin(second), CUDA_SUCCESS);
  EXPECT_NE(begin(second), CUDA_SUCCESS);
  EXPECT_EQ(end(first), CUDA_SUCCESS);
  EXPECT_NE(end(first), CUDA_SUCCESS);
  EXPECT_TRUE(session_->IsCapturing()) << "the second";
  EXPECT_NE(driver_.Find<CUresult()>("cuCtxSynchronize")(), CUDA_SUCCESS);
  EXPECT_EQ(end(second), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_FALSE(session_->IsCapturing());
}

TEST_F(CuptiLifecycleTest, ThereIsOneInAProcess) {
  Start();
  const auto second = CuptiSession::Start(options_, path_);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("already"));
  Stop();
  Start();
}

TEST_F(CuptiLifecycleTest, SaysThatAnotherProfilerHasCupti) {
  cupti_.Hold(true);
  const uint64_t finalized = cupti_.Finalized();
  const auto refused = CuptiSession::Start(options_, path_);
  cupti_.Hold(false);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED (39)"));
  EXPECT_THAT(refused.error().hint, HasSubstr("torch.profiler"));
  EXPECT_EQ(cupti_.Finalized(), finalized) << "it is not ours to end";
  Start();
}

TEST_F(CuptiLifecycleTest, WhatFailsLeavesNothingBehind) {
  for (const char* const function : {"cuptiSubscribe", "cuptiActivityRegisterCallbacks",
                                     "cuptiEnableCallback", "cuptiActivityEnable"}) {
    cupti_.FailNext(function, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
    const auto session = CuptiSession::Start(options_, path_);
    ASSERT_FALSE(session) << function;
    EXPECT_THAT(session.error().message, HasSubstr("INSUFFICIENT_PRIVILEGES (35)"));
    EXPECT_THAT(session.error().hint, HasSubstr("NVreg_RestrictProfilingToAdminUsers"));
    EXPECT_FALSE(cupti_.IsSubscribed()) << function;
    Start();
    cupti_.Launch("kernel", 3);
    Stop();
    EXPECT_EQ(session_->Facts().records, 3U);
  }
}

TEST_F(CuptiLifecycleTest, ACallThatThisCuptiDoesNotKnowIsNoFailure) {
  cupti_.FailNext("cuptiEnableCallback", CUPTI_ERROR_INVALID_PARAMETER);
  Start();
}

TEST_F(CuptiLifecycleTest, WhatFailsAtTheEndIsToldAndTheRestIsDone) {
  Start();
  cupti_.Launch("kernel", 3);
  cupti_.FailNext("cuptiActivityDisable", CUPTI_ERROR_INVALID_PARAMETER);
  const auto stopped = session_->Stop();
  ASSERT_FALSE(stopped);
  EXPECT_THAT(stopped.error().message, HasSubstr("ending the records"));
  EXPECT_EQ(session_->Stop().error().message, stopped.error().message);
  EXPECT_FALSE(cupti_.IsSubscribed());
  EXPECT_EQ(session_->Facts().records, 3U);
  Start();
}

TEST_F(CuptiLifecycleTest, WhatCannotBeLeftIsNotUsedAgain) {
  Start();
  cupti_.FailNext("cuptiFinalize", CUPTI_ERROR_UNKNOWN);
  ASSERT_FALSE(session_->Stop());
  const auto again = CuptiSession::Start(options_, path_);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr("cannot be used again in this process: leaving"));
}

// 23: of CUDA 12.5.
TEST_F(CuptiLifecycleTest, AnOldCuptiIsNotLeftBesideGraphs) {
  cupti_.SetVersion(23);
  Start();
  cupti_.Launch("kernel", 3);
  Stop();  // none yet
  Start();
  cupti_.DestroyGraph(cupti_.Capture("node", 4));
  const uint64_t finalized = cupti_.Finalized();
  const auto stopped = session_->Stop();
  ASSERT_FALSE(stopped);
  EXPECT_THAT(stopped.error().message, HasSubstr("before CUDA 12.6"));
  EXPECT_EQ(cupti_.Finalized(), finalized);
  EXPECT_FALSE(cupti_.IsSubscribed());
  EXPECT_FALSE(CuptiSession::Start(options_, path_));
}

TEST_F(CuptiLifecycleTest, ALaterOneIsLeftBesideGraphs) {
  cupti_.SetVersion(24);
  for (int round = 0; round < 2; ++round) {
    Start();
    cupti_.Capture("node", 4);
    Stop();
  }
}

TEST_F(CuptiLifecycleTest, OptionsThatCannotBeAreRefused) {
  options_.buffers = 0;
  EXPECT_EQ(CuptiSession::Start(options_, path_).error().code, ErrorCode::kInvalidArgument);
  options_.buffers = 3;
  Start();
}

}  // namespace
}  // namespace pystrobe::gpu
