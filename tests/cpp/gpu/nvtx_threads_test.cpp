// SPDX-License-Identifier: Apache-2.0
//
// Ranges of several threads, and of a child made by fork().
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "gpu/nvtx_ranges.h"
#include "tests/cpp/gpu/recorded_ranges.h"

namespace pystrobe::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::SizeIs;

class NvtxThreadsTest : public ::testing::Test {
 protected:
  NvtxThreadsTest() : ranges_(**NvtxRanges::OfThisProcess()) {}
  NvtxRanges& ranges_;
};

TEST_F(NvtxThreadsTest, AnyThreadEndsWhatOneHasStarted) {
  RecordedRanges recorded({.max_spans = 10});
  const uint64_t id = ranges_.Start(0, "started");
  const uint64_t second = ranges_.Start(0, "second");
  EXPECT_NE(id, second);
  ranges_.Push(0, "pushed");
  EXPECT_EQ(ranges_.Pop(0), 0);
  std::thread([&] {
    EXPECT_EQ(NvtxRanges::Current(), 0U);
    ranges_.Push(0, "elsewhere");
    ranges_.End(second);
    ranges_.End(second);
    ranges_.Pop(0);
  }).join();
  EXPECT_NE(NvtxRanges::Current(), 0U);
  EXPECT_EQ(ranges_.Pop(0), -1) << "it was not pushed";
  ranges_.End(id);
  ranges_.End(0);
  ranges_.End(~uint64_t{0});
  EXPECT_EQ(NvtxRanges::Current(), 0U);
  const FoundRanges& found = recorded.End();
  EXPECT_THAT(recorded.Counts(),
              ElementsAre(Pair("elsewhere", 1), Pair("started", 1), Pair("started/second", 1),
                          Pair("started/second/pushed", 1)));
  ASSERT_THAT(found.spans, SizeIs(4));
  EXPECT_EQ(recorded.PathOf(found.spans[1].node), "started/second");
  EXPECT_EQ(found.spans[1].tid, static_cast<uint32_t>(gettid())) << "that began it";
}

TEST_F(NvtxThreadsTest, AThreadThatEndsClosesWhatItHasPushed) {
  RecordedRanges recorded({.max_spans = 10});
  uint64_t id = 0;
  std::thread([&] {
    ranges_.Push(0, "pushed");
    id = ranges_.Start(0, "started");
  }).join();
  // Of threads that may have the memory of the first.
  std::thread([&] {
    EXPECT_EQ(ranges_.Pop(0), -1);
    EXPECT_EQ(ranges_.Push(0, "next"), 0);
    EXPECT_EQ(ranges_.Pop(0), 0);
  }).join();
  ranges_.End(id);
  const FoundRanges& found = recorded.End();
  EXPECT_THAT(recorded.Counts(),
              ElementsAre(Pair("next", 1), Pair("pushed", 1), Pair("pushed/started", 1)));
  ASSERT_THAT(found.spans, SizeIs(3));
  EXPECT_EQ(recorded.PathOf(found.spans[0].node), "pushed");
  EXPECT_EQ(recorded.PathOf(found.spans[2].node), "pushed/started");
}

TEST_F(NvtxThreadsTest, TheStateOfThreadsThatEndedIsUsedAgain) {
  const ThreadRanges* first = nullptr;
  for (int i = 0; i < 100; ++i) {
    std::thread([&] {
      ranges_.Push(0, "a");
      if (first == nullptr) first = ranges_of_thread;
      EXPECT_EQ(ranges_of_thread, first);
      ranges_.End(ranges_.Start(0, "b"));
    }).join();
  }
}

TEST_F(NvtxThreadsTest, WhatThreadsHaveOpenAtTheBeginCountsToo) {
  std::latch pushed(1), begun(1);
  std::thread thread([&] {
    ranges_.Push(0, "open");
    pushed.count_down();
    begun.wait();
    EXPECT_NE(NvtxRanges::Current(), 0U);
    ranges_.Push(0, "later");
  });
  pushed.wait();
  RecordedRanges recorded;
  begun.count_down();
  thread.join();
  recorded.End();
  EXPECT_THAT(recorded.Counts(), ElementsAre(Pair("open", 1), Pair("open/later", 1)));
}

TEST_F(NvtxThreadsTest, ManyAtOnceAreAllCounted) {
  constexpr int kThreads = 4, kEach = 5'000;
  RecordedRanges recorded({.instances = 64, .max_spans = 100});
  std::atomic<uint64_t> handed{0};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        ranges_.Push(0, "outer");
        ranges_.End(handed.exchange(ranges_.Start(0, "handed on")));
        ranges_.Push(0, std::to_string(i % 10));
        ranges_.Pop(0);
        ranges_.Pop(0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ranges_.End(handed);
  const FoundRanges& found = recorded.End();
  EXPECT_THAT(found.spans, SizeIs(100));
  uint64_t outer = 0, inner = 0, started = 0, total = 0;
  for (const FoundRanges::Node& node : found.nodes) {
    total += node.count;
    if (node.name == "outer") outer += node.count;
    if (node.name == "handed on") started += node.count;
    if (node.name.size() == 1) inner += node.count;
  }
  EXPECT_EQ(outer, kThreads * kEach);
  EXPECT_EQ(started, kThreads * kEach);
  EXPECT_EQ(inner, kThreads * kEach);
  EXPECT_EQ(found.spans_lost, total - 100);
}

TEST_F(NvtxThreadsTest, RecordingsComeAndGoWhileThreadsPush) {
  std::atomic<bool> ends{false};
  std::vector<std::thread> threads;
  threads.reserve(3);
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&] {
      while (!ends) {
        ASSERT_EQ(ranges_.Push(0, "outer"), 0);
        ASSERT_EQ(ranges_.Push(0, "inner"), 1);
        ASSERT_EQ(ranges_.Pop(0), 1);
        ASSERT_EQ(ranges_.Pop(0), 0);
      }
    });
  }
  for (int i = 0; i < 100; ++i) {
    RecordedRanges recorded({.instances = 64, .max_spans = 10});
    usleep(200);
    recorded.Restart();
    usleep(200);
    for (const FoundRanges::Node& node : recorded.End().nodes) {
      ASSERT_TRUE(node.name == "outer" || node.name == "inner" ||
                  node.name == RangeNodes::kOtherName);
      ASSERT_LT(node.host_ns, 60'000'000'000U * (node.count + 1)) << "it is no garbage";
    }
  }
  ends = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_F(NvtxThreadsTest, AChildGoesOnAndStartsAfresh) {
  RecordedRanges recorded;
  ranges_.Push(0, "parent");
  std::atomic<bool> ends{false};
  // Locks are held most of the time.
  std::thread busy([&] {
    for (int i = 0; !ends; ++i) {
      ranges_.Push(0, std::to_string(i));
      ranges_.Pop(0);
    }
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      bool good = ranges_.Pop(0) < 0 && NvtxRanges::Current() == 0;
      good &= ranges_.Push(ranges_.Domain("of the child"), "a") == 0;
      good &= NvtxRanges::Current() == 0;
      const auto recording = ranges_.BeginRecording({});
      good &= recording && NvtxRanges::Current() != 0;
      good &= ranges_.Push(0, "b") == 0;
      good &= ranges_.EndRecording(*recording, MonotonicNow()).nodes.size() == 3;
      _exit(good ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_EQ(status, 0);
  }
  ends = true;
  busy.join();
  EXPECT_EQ(ranges_.Pop(0), 0);
  recorded.End();
  EXPECT_EQ(recorded.Counts()["parent"], 1U);
}

}  // namespace
}  // namespace pystrobe::gpu
