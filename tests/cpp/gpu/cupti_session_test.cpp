// SPDX-License-Identifier: Apache-2.0
#include "gpu/cupti_session.h"

#include <cupti.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "gpu/nvtx_ranges.h"
#include "profiler/base/clock.h"
#include "tests/cpp/gpu/cupti_session_fixture.h"
#include "tests/cpp/gpu/recorded_ranges.h"

namespace pystrobe::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

}  // namespace
}  // namespace pystrobe::gpu
