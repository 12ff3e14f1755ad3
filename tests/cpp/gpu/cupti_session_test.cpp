// SPDX-License-Identifier: Apache-2.0
#include "gpu/cupti_session.h"

#include <cupti.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "gpu/nvtx_ranges.h"
#include "profiler/base/clock.h"
#include "tests/cpp/gpu/mock_cupti.h"
#include "tests/cpp/gpu/mock_driver.h"
#include "tests/cpp/gpu/recorded_ranges.h"

namespace pystrobe::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

thread_local LaunchOrigin current;

class ThreadsOwn : public LaunchPath {
 public:
  LaunchOrigin Current() noexcept override {
    LaunchOrigin origin = current;
    if (origin.range == 0) origin.range = NvtxRanges::Current();
    return origin;
  }
};

class CuptiSessionTest : public ::testing::Test {
 protected:
  CuptiSessionTest() {
    driver_.Begin();
    current = {.path = 1};
  }

  void Start() {
    auto session = CuptiSession::Start(options_, path_);
    ASSERT_TRUE(session) << session.error().message;
    session_ = *std::move(session);
  }
  void Stop() {
    const auto stopped = session_->Stop();
    ASSERT_TRUE(stopped) << stopped.error().message;
  }
  uint64_t Kernels() const {
    return session_->Facts().launches.launches[static_cast<size_t>(LaunchKind::kKernel)];
  }

  struct Entry {
    SumKey key;
    std::string name;
    WorkSum sum;
  };
  /// All sums of something.
  std::vector<Entry> Entries() const {
    std::vector<Entry> entries;
    EXPECT_TRUE(session_->Read([&](const KernelSums& sums, const IdleTime&) {
      for (size_t i = 0; i < sums.size(); ++i) {
        if (sums.sum(i).count + sums.sum(i).untimed == 0) continue;
        entries.push_back({sums.key(i), sums.kernels().name(sums.key(i).kernel), sums.sum(i)});
      }
    }));
    return entries;
  }
  std::map<uint32_t, uint64_t> CountByPath() const {
    std::map<uint32_t, uint64_t> counts;
    for (const Entry& entry : Entries()) counts[entry.key.origin.path] += entry.sum.count;
    return counts;
  }

  static ThreadsOwn path_;
  MockDriver driver_;
  MockCupti cupti_;
  CuptiOptions options_;
  std::unique_ptr<CuptiSession> session_;
};

ThreadsOwn CuptiSessionTest::path_;

TEST_F(CuptiSessionTest, WhatWasBeforeARestartCountsForNothing) {
  Start();
  const CUfunction kernel = driver_.Kernel(5'000);
  for (int i = 0; i < 30; ++i) driver_.Launch(kernel);
  driver_.Synchronize();
  session_->Restart();
  for (int i = 0; i < 7; ++i) driver_.Launch(kernel);
  driver_.Synchronize();
  Stop();
  const auto entries = Entries();
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].sum.count, 7U);
  const CuptiFacts facts = session_->Facts();
  EXPECT_EQ(facts.records, 7U);
  EXPECT_EQ(Kernels(), 7U);
}

TEST_F(CuptiSessionTest, ATimelineHasWhenAndWhereEachWasLaunched) {
  options_.sums.max_spans = 100;
  Start();
  const Nanoseconds before = MonotonicNow();
  driver_.Launch(driver_.Kernel(5'000));
  driver_.Synchronize();
  const Nanoseconds after = MonotonicNow();
  Stop();
  ASSERT_TRUE(session_->Read([&](const KernelSums& sums, const IdleTime&) {
    const auto spans = sums.Spans();
    ASSERT_EQ(spans.size(), 1U);
    ASSERT_TRUE(spans[0].launch);
    EXPECT_EQ(spans[0].launch->tid, static_cast<uint32_t>(gettid()));
    EXPECT_GE(spans[0].launch->time_ns, before.count());
    // The clocks of both are read a moment apart.
    EXPECT_LE(spans[0].launch->time_ns, spans[0].begin_ns + 1'000'000);
    EXPECT_LE(spans[0].end_ns, after.count() + 1'000'000);
    EXPECT_EQ(spans[0].end_ns - spans[0].begin_ns, 5'000);
  }));
}

TEST_F(CuptiSessionTest, EveryLaunchIsARecordOfItsPath) {
  Start();
  const CUfunction kernel = driver_.Kernel(5'000);
  for (int i = 0; i < 100; ++i) driver_.Launch(kernel);
  current = {.path = 2, .range = 9};
  for (int i = 0; i < 50; ++i) driver_.Launch(kernel);
  driver_.Synchronize();
  Stop();
  const auto entries = Entries();
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].name, "sleep_5000");
  EXPECT_EQ(entries[0].key.origin, LaunchOrigin{.path = 1});
  EXPECT_EQ(entries[0].sum.count, 100U);
  EXPECT_EQ(entries[0].sum.total_ns, 500'000U);
  EXPECT_EQ(entries[0].sum.min_ns, 5'000U);
  EXPECT_EQ(entries[0].sum.max_ns, 5'000U);
  EXPECT_THAT(entries[0].sum.last_grid, ElementsAre(1, 1, 1));
  EXPECT_EQ(entries[1].key.origin, LaunchOrigin{.path = 2});
  EXPECT_EQ(entries[1].sum.count, 50U);
  const CuptiFacts facts = session_->Facts();
  EXPECT_THAT(facts.launches.launches, ElementsAre(150, 0, 0, 0));
  EXPECT_EQ(facts.launches.failed, 0U);
  EXPECT_EQ(facts.records, 150U);
  EXPECT_EQ(facts.unmatched, 0U);
  EXPECT_EQ(facts.dropped, 0U);
  EXPECT_EQ(facts.other_records, 0U);
  EXPECT_EQ(facts.cupti_version, 130001U);
  EXPECT_EQ(facts.driver_version, 13000);
  EXPECT_THAT(facts.cupti_path, HasSubstr("libcupti.so.13"));
  EXPECT_GT(facts.decoder_cpu, Nanoseconds::zero());
}

TEST_F(CuptiSessionTest, WorkIsOfTheRangesThatItIsLaunchedIn) {
  NvtxRanges& ranges = **NvtxRanges::OfThisProcess();
  options_.ranges = &ranges.instances();
  Start();
  RecordedRanges recorded;
  ranges.Push(0, "before");
  driver_.Launch(driver_.Kernel(5'000));
  driver_.Synchronize();
  ranges.Pop(0);
  recorded.Restart();
  session_->Restart();
  const Stream stream = driver_.MakeStream();
  for (int i = 0; i < 3; ++i) {
    ranges.Push(0, "step");
    driver_.Launch(driver_.Kernel(5'000));
    ranges.Push(0, "copies");
    driver_.CopyAndSet(6'000, stream);
    ranges.Pop(0);
    driver_.Launch(driver_.Kernel(5'000));
    ranges.Pop(0);
  }
  driver_.Launch(driver_.Kernel(5'000));
  driver_.Synchronize();
  Stop();
  std::map<std::string, RangeStreamSum> sums;
  const auto found = session_->RangeSums();
  recorded.End();
  for (const RangeStreamSum& sum : found) {
    const std::string stream_is = sum.busy_ns < 1'000 ? " copies" : " kernels";
    sums[recorded.PathOf(sum.node) + stream_is] = sum;
  }
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(sums["step kernels"].instances, 3U);
  EXPECT_EQ(sums["step kernels"].works, 6U);
  EXPECT_EQ(sums["step kernels"].busy_ns, 30'000U);
  EXPECT_GE(sums["step kernels"].span_ns, 30'000U);
  EXPECT_EQ(sums["step copies"].works, 6U);
  EXPECT_EQ(sums["step/copies copies"].instances, 3U);
  EXPECT_EQ(sums["step/copies copies"].works, 6U);
  EXPECT_EQ(Entries().size(), 3U) << "of kernels by path, of copies and sets";
  driver_.Destroy(stream);
}

TEST_F(CuptiSessionTest, CopiesAndSetsToo) {
  Start();
  const Stream stream = driver_.MakeStream();
  driver_.CopyAndSet(6'000, stream);
  driver_.Launch(driver_.Kernel(1'000));
  driver_.Synchronize();
  Stop();
  const auto entries = Entries();
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].name, "Memcpy HtoD (Pinned -> Device)");
  EXPECT_EQ(entries[0].key.kind, WorkKind::kCopy);
  EXPECT_EQ(entries[0].sum.bytes, 6'000U);
  EXPECT_EQ(entries[0].sum.total_ns, 2U);
  EXPECT_EQ(entries[1].name, "Memset (Device)");
  EXPECT_EQ(entries[1].key.kind, WorkKind::kSet);
  EXPECT_EQ(entries[1].key.stream, entries[0].key.stream);
  EXPECT_NE(entries[2].key.stream, entries[0].key.stream);
  EXPECT_THAT(session_->Facts().launches.launches, ElementsAre(1, 0, 1, 1));
  EXPECT_EQ(session_->Facts().unmatched, 0U);
  driver_.Destroy(stream);
}

TEST_F(CuptiSessionTest, TimesAreOfTheMonotonicClock) {
  options_.sums.max_spans = 100;
  Start();
  driver_.Synchronize();
  const int64_t before = MonotonicNow().count();
  for (int i = 0; i < 10; ++i) driver_.Launch(driver_.Kernel(1'000));
  driver_.Synchronize();
  const int64_t after = MonotonicNow().count();
  Stop();
  session_->Read([&](const KernelSums& sums, const IdleTime&) {
    ASSERT_EQ(sums.Spans().size(), 10U);
    // The clocks are read a moment apart.
    constexpr int64_t kMoment = 20'000'000;
    EXPECT_GE(sums.Spans().front().begin_ns, before - kMoment);
    EXPECT_LE(sums.Spans().back().end_ns, after + kMoment);
    EXPECT_EQ(sums.Spans()[3].end_ns - sums.Spans()[3].begin_ns, 1'000);
  });
}

TEST_F(CuptiSessionTest, AGraphHasThePathsOfItsLaunchAndOfItsCapture) {
  Start();
  current = {.path = 4};
  const uint32_t graph = cupti_.Capture("node", 40);
  current = {.path = 5};
  const uint32_t ready = cupti_.Instantiate(graph, 40);
  cupti_.DestroyGraph(graph);
  for (const uint32_t path : {3, 6}) {
    current = {.path = path};
    cupti_.LaunchGraph("node", ready, 40);
  }
  cupti_.DestroyGraph(ready);
  Stop();
  const auto entries = Entries();
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].key.captured, 4U);
  EXPECT_EQ(entries[1].key.captured, 4U);
  EXPECT_EQ(CountByPath(), (std::map<uint32_t, uint64_t>{{3, 40}, {6, 40}}));
  const CuptiFacts facts = session_->Facts();
  EXPECT_THAT(facts.launches.launches, ElementsAre(40, 2, 0, 0));
  EXPECT_EQ(facts.launches.captured, 40U);
  EXPECT_EQ(facts.of_graphs, 80U);
  EXPECT_EQ(facts.records, 80U);
  EXPECT_EQ(facts.unmatched, 0U);
}

TEST_F(CuptiSessionTest, AGraphOfBeforeTheStartHasThePathOfItsLaunchAlone) {
  const uint32_t graph = cupti_.Capture("node", 2);
  Start();
  current = {.path = 5};
  const uint32_t ready = cupti_.Instantiate(graph, 2);
  current = {.path = 3};
  cupti_.LaunchGraph("node", ready, 2);
  driver_.Launch(driver_.Kernel(5'000));
  driver_.Synchronize();
  Stop();
  const auto entries = Entries();
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].key.captured, kNotCaptured);
  EXPECT_EQ(entries[1].key.captured, std::nullopt);
  EXPECT_EQ(CountByPath(), (std::map<uint32_t, uint64_t>{{3, 3}}));
  EXPECT_EQ(session_->Facts().launches.captured, 0U);
}

TEST_F(CuptiSessionTest, WhatTheDeviceWaitedForIsToldByPath) {
  Start();
  const CUfunction kernel = driver_.Kernel(2'000'000);
  driver_.Launch(kernel);
  current = {.path = 9};
  driver_.Synchronize();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  current = {.path = 2};
  driver_.Launch(kernel);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  current = {.path = 3};
  driver_.Launch(kernel);
  session_->NoMoreWaits();
  driver_.Synchronize();
  Stop();
  ASSERT_TRUE(session_->Read([](const KernelSums&, const IdleTime& idle) {
    std::map<std::tuple<IdleCause, uint32_t, uint32_t>, uint64_t> found;
    for (size_t i = 0; i < idle.size(); ++i) {
      if (idle.key(i).cause == IdleCause::kLaunch || idle.sum(i).count == 0) continue;
      found[{idle.key(i).cause, idle.key(i).from, idle.key(i).to}] = idle.sum(i).total_ns;
    }
    ASSERT_EQ(found.size(), 3U);
    EXPECT_TRUE(found.contains({IdleCause::kWait, 9, 2}));
    EXPECT_GE((found[{IdleCause::kHost, 9, 2}]), 4'900'000U);
    EXPECT_GE((found[{IdleCause::kHost, 2, 3}]), 17'000'000U);
    ASSERT_EQ(idle.devices().size(), 1U);
    EXPECT_EQ(idle.devices()[0].busy_ns, 6'000'000U);
    ASSERT_EQ(idle.waits().size(), 2U);
    EXPECT_EQ(idle.waits()[1].path, 9U);
    EXPECT_EQ(idle.waits()[1].time.count, 1U);
    EXPECT_GE(idle.waits()[1].time.total_ns, 1'000'000U);
  }));
}

TEST_F(CuptiSessionTest, ALaunchThatFailsIsCountedAndHasNoRecord) {
  Start();
  driver_.FailNext("cuLaunchKernel", CUDA_ERROR_OUT_OF_MEMORY);
  const auto launch = driver_.Find<decltype(cuLaunchKernel)>("cuLaunchKernel");
  EXPECT_NE(launch(driver_.Kernel(1), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
            CUDA_SUCCESS);
  Stop();
  EXPECT_EQ(Kernels(), 1U);
  EXPECT_EQ(session_->Facts().launches.failed, 1U);
  EXPECT_EQ(session_->Facts().records, 0U);
}

TEST_F(CuptiSessionTest, ARecordOfNoLaunchIsToldApart) {
  Start();
  cupti_.Launch("seen", 1);
  cupti_.Record("unseen", 77);
  Stop();
  EXPECT_EQ(session_->Facts().records, 2U);
  EXPECT_EQ(session_->Facts().unmatched, 1U);
  const auto entries = Entries();
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[1].name, "unseen");
  EXPECT_EQ(entries[1].key.origin, kUnknownOrigin);
}

// Correlation ids start over once CUPTI was left: what was of the last session must not match.
TEST_F(CuptiSessionTest, ALaunchOfTheLastSessionIsNotMistaken) {
  Start();
  cupti_.Launch("first", 10);
  Stop();
  EXPECT_EQ(session_->Facts().unmatched, 0U);
  Start();
  cupti_.Record("unseen", 5);
  Stop();
  EXPECT_EQ(session_->Facts().unmatched, 1U);
  EXPECT_EQ(CountByPath(), (std::map<uint32_t, uint64_t>{{kUnknownOrigin.path, 1}}));
}

TEST_F(CuptiSessionTest, ARecordWithoutTimesIsCountedApart) {
  Start();
  cupti_.Record("running yet", 5, 0, 0);
  Stop();
  ASSERT_EQ(Entries().size(), 1U);
  EXPECT_EQ(Entries()[0].sum.untimed, 1U);
  EXPECT_EQ(Entries()[0].sum.count, 0U);
}

// It would be of a clock that nothing else is of.
TEST_F(CuptiSessionTest, WhereCuptiDoesNotTellItsTimeRecordsHaveNone) {
  options_.sums.max_spans = 100;
  Start();
  cupti_.FailNext("cuptiGetTimestamp", CUPTI_ERROR_UNKNOWN, 1'000);
  cupti_.Launch("kernel", 3);
  Stop();
  cupti_.FailNext("cuptiGetTimestamp", CUPTI_ERROR_UNKNOWN, 0);
  EXPECT_EQ(session_->Facts().records, 3U);
  ASSERT_EQ(Entries().size(), 1U);
  EXPECT_EQ(Entries()[0].sum.untimed, 3U);
  EXPECT_EQ(Entries()[0].sum.count, 0U);
  session_->Read(
      [](const KernelSums& sums, const IdleTime&) { EXPECT_TRUE(sums.Spans().empty()); });
}

TEST_F(CuptiSessionTest, OneLookAtItsTimeIsEnough) {
  Start();
  cupti_.FailNext("cuptiGetTimestamp", CUPTI_ERROR_UNKNOWN, 7);
  cupti_.Launch("kernel", 3);
  Stop();
  ASSERT_EQ(Entries().size(), 1U);
  EXPECT_EQ(Entries()[0].sum.untimed, 0U);
  EXPECT_EQ(Entries()[0].sum.count, 3U);
}

TEST_F(CuptiSessionTest, RecordsAreReadBeforeTheEnd) {
  options_.flush_every = std::chrono::milliseconds(5);
  Start();
  cupti_.Launch("kernel", 10);
  while (session_->Facts().records < 10) usleep(1'000);
  EXPECT_EQ(CountByPath(), (std::map<uint32_t, uint64_t>{{1, 10}}));
  EXPECT_EQ(Kernels(), 10U);
}

TEST_F(CuptiSessionTest, BuffersOfAFewRecordsLoseNone) {
  options_.buffers = 64;
  options_.buffer_bytes = 1'024;
  Start();
  const uint64_t first = cupti_.Records();
  for (int i = 0; i < 2'000; ++i) {
    cupti_.Launch("kernel", 1);
    // Until the buffers have been read: here it is that all of them come, not how many fit.
    while (session_->Facts().records + 100 < cupti_.Records() - first) usleep(100);
  }
  Stop();
  EXPECT_EQ(session_->Facts().records + session_->Facts().dropped, 2'000U);
  EXPECT_EQ(session_->Facts().dropped, 0U);
}

// Who reads the sums holds up the thread that reads the buffers.
TEST_F(CuptiSessionTest, WhatThereIsNoBufferForIsCounted) {
  options_.buffers = 2;
  options_.buffer_bytes = 16 << 10;
  Start();
  session_->Read([&](const KernelSums&, const IdleTime&) { cupti_.Launch("kernel", 1'000); });
  Stop();
  const CuptiFacts facts = session_->Facts();
  EXPECT_GT(facts.dropped, 500U);
  EXPECT_GT(facts.declined_buffers, 0U);
  EXPECT_EQ(facts.records + facts.dropped, 1'000U);
  EXPECT_EQ(Kernels(), 1'000U);
  EXPECT_EQ(facts.unmatched, 0U);
  EXPECT_EQ(CountByPath()[1], facts.records);
}

TEST_F(CuptiSessionTest, ThreadsLaunchAtOnce) {
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
TEST_F(CuptiSessionTest, StartsAndStopsWhileOthersLaunch) {
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

TEST_F(CuptiSessionTest, IsStoppedOnce) {
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

TEST_F(CuptiSessionTest, IsStoppedByItsEnd) {
  Start();
  cupti_.Launch("kernel", 3);
  session_.reset();
  EXPECT_FALSE(cupti_.IsSubscribed());
  Start();
}

TEST_F(CuptiSessionTest, ThereIsOneInAProcess) {
  Start();
  const auto second = CuptiSession::Start(options_, path_);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("already"));
  Stop();
  Start();
}

TEST_F(CuptiSessionTest, SaysThatAnotherProfilerHasCupti) {
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

TEST_F(CuptiSessionTest, WhatFailsLeavesNothingBehind) {
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

TEST_F(CuptiSessionTest, ACallThatThisCuptiDoesNotKnowIsNoFailure) {
  cupti_.FailNext("cuptiEnableCallback", CUPTI_ERROR_INVALID_PARAMETER);
  Start();
}

TEST_F(CuptiSessionTest, WhatFailsAtTheEndIsToldAndTheRestIsDone) {
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

TEST_F(CuptiSessionTest, OptionsThatCannotBeAreRefused) {
  options_.buffers = 0;
  EXPECT_EQ(CuptiSession::Start(options_, path_).error().code, ErrorCode::kInvalidArgument);
  options_.buffers = 3;
  Start();
}

}  // namespace
}  // namespace pystrobe::gpu
