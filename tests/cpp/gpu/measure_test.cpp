// SPDX-License-Identifier: Apache-2.0
#include "gpu/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>

#include "gpu/statistics.h"
#include "tests/cpp/gpu/mock_driver.h"

namespace pystrobe::gpu {
namespace {

using ::testing::Each;
using ::testing::Ge;
using ::testing::HasSubstr;

class Work : public Workload {
 public:
  explicit Work(std::function<bool()> run) : run_(std::move(run)) {}
  Result<void> Run() override {
    ++runs;
    if (run_()) return {};
    return Fail(ErrorCode::kGpu, "it failed");
  }
  size_t runs = 0;

 private:
  std::function<bool()> run_;
};

class MeasureTest : public ::testing::Test {
 protected:
  MeasureTest() { driver_.Begin(); }
  ~MeasureTest() override { driver_.SetClock(1); }

  Work Launching(int64_t nanoseconds, int times = 1) {
    return Work([this, times, kernel = driver_.Kernel(nanoseconds)] {
      for (int i = 0; i < times; ++i) driver_.Launch(kernel);
      return true;
    });
  }
  /// Which takes 300 us here.
  Work LaunchingSlowly(int64_t nanoseconds) {
    return Work([this, kernel = driver_.Kernel(nanoseconds)] {
      usleep(300);
      driver_.Launch(kernel);
      return true;
    });
  }
  Result<Measurement> Measure(Work& work) {
    Workload* const all[] = {&work};
    auto measured = MeasureInTurn(all, options_);
    if (!measured) return std::unexpected(measured.error());
    return measured->front();
  }

  MockDriver driver_;
  MeasureOptions options_{.min_seconds = 0, .time_cap_seconds = 30};
};

// On the mock a kernel and what comes after it are 0.7 us apart, and so are the events from it.
constexpr double kGaps = 1.4e-6;

TEST_F(MeasureTest, WhatIsHeldBackTakesTheDevicesTimeAlone) {
  Work work = LaunchingSlowly(5'000);
  const auto measured = Measure(work);
  ASSERT_TRUE(measured) << measured.error().message;
  const Summary gpu = Summarize(measured->gpu_seconds);
  EXPECT_NEAR(gpu.median, 5e-6 + kGaps, 1e-8);
  EXPECT_NEAR(gpu.max, gpu.min, 1e-8);
  EXPECT_THAT(measured->cpu_seconds, Each(Ge(300e-6)));
  EXPECT_EQ(measured->gpu_seconds.size(), options_.min_samples) << "there is no noise";
  EXPECT_EQ(measured->stop, Measurement::Stop::kQuiet);
  ASSERT_TRUE(measured->empty_seconds);
  EXPECT_NEAR(gpu.median - *measured->empty_seconds, 5e-6 - 600e-9, 1e-8);
  EXPECT_EQ(work.runs, options_.min_samples + options_.num_warmups);
}

TEST_F(MeasureTest, WhatIsNotHeldBackWaitsForTheLaunch) {
  options_.hold_back = false;
  Work work = LaunchingSlowly(5'000);
  const auto measured = Measure(work);
  ASSERT_TRUE(measured) << measured.error().message;
  EXPECT_GE(Summarize(measured->gpu_seconds).min, 250e-6);
  EXPECT_EQ(measured->empty_seconds, std::nullopt);
}

TEST_F(MeasureTest, WorkThatWaitsForTheDeviceIsLetGoAndTold) {
  options_.patience = std::chrono::milliseconds(200);
  options_.num_warmups = 0;
  Work work([this, kernel = driver_.Kernel(5'000)] {
    driver_.Launch(kernel);
    driver_.Synchronize();
    return true;
  });
  const auto measured = Measure(work);
  ASSERT_FALSE(measured);
  EXPECT_THAT(measured.error().message, HasSubstr("more than 200 ms while its stream was held"));
  EXPECT_THAT(measured.error().hint, HasSubstr("hold_back=False"));
  options_.hold_back = false;
  EXPECT_TRUE(Measure(work));
}

TEST_F(MeasureTest, MoreLaunchesThanThereIsRoomForAreLetGoAndTold) {
  options_.patience = std::chrono::milliseconds(200);
  Work work = Launching(1'000, 1'100);
  EXPECT_FALSE(Measure(work));
  Work less = Launching(1'000, 500);
  EXPECT_TRUE(Measure(less));
}

TEST_F(MeasureTest, SamplesOfALowClockAreLeftOut) {
  Work work([this, kernel = driver_.Kernel(5'000), runs = 0]() mutable {
    driver_.SetClock(++runs % 3 == 0 ? 0.5 : 1);
    driver_.Launch(kernel);
    return true;
  });
  const auto measured = Measure(work);
  ASSERT_TRUE(measured) << measured.error().message;
  EXPECT_GT(measured->throttled, 2U);
  EXPECT_EQ(measured->gpu_seconds.size(), options_.min_samples);
  ASSERT_TRUE(measured->clock_hz);
  EXPECT_NEAR(*measured->clock_hz, 1e9, 0.3e9);
}

TEST_F(MeasureTest, AClockThatIsAlwaysLowIsAnError) {
  options_.time_cap_seconds = 0.2;
  driver_.SetClock(0.5);
  Work work = Launching(5'000);
  const auto measured = Measure(work);
  ASSERT_FALSE(measured);
  EXPECT_THAT(measured.error().message, HasSubstr("below 75 % of its highest clock"));
  options_.low_clock = 0;
  EXPECT_TRUE(Measure(work));
}

TEST_F(MeasureTest, WhatIsNoisyGoesOnUntilItsTimeIsUp) {
  options_.time_cap_seconds = 0.3;
  options_.min_samples = 1'000'000;
  Work work = Launching(5'000);
  const auto measured = Measure(work);
  ASSERT_TRUE(measured) << measured.error().message;
  EXPECT_EQ(measured->stop, Measurement::Stop::kTimeCap);
  EXPECT_GT(measured->gpu_seconds.size(), 1U);
}

TEST_F(MeasureTest, TakesTurns) {
  std::string order;
  const auto named = [&](char name) {
    return Work([&order, name, this, kernel = driver_.Kernel(name * 1'000)] {
      order += name;
      driver_.Launch(kernel);
      return true;
    });
  };
  Work first = named('a'), second = named('b');
  Workload* const both[] = {&first, &second};
  options_.num_warmups = 0;
  options_.min_samples = 3;
  const auto measured = MeasureInTurn(both, options_);
  ASSERT_TRUE(measured) << measured.error().message;
  EXPECT_EQ(order, "ababab");
  EXPECT_NEAR(Summarize((*measured)[0].gpu_seconds).median, 97e-6 + kGaps, 1e-8);
  EXPECT_NEAR(Summarize((*measured)[1].gpu_seconds).median, 98e-6 + kGaps, 1e-8);
}

TEST_F(MeasureTest, AllTakeAsManyTurns) {
  options_.min_samples = 3;
  Work quiet = Launching(5'000);
  Work noisy([this, runs = 0]() mutable {
    driver_.Launch(driver_.Kernel(5'000 + 100 * (++runs % 7)));
    return true;
  });
  Workload* const both[] = {&quiet, &noisy};
  const auto measured = MeasureInTurn(both, options_);
  ASSERT_TRUE(measured) << measured.error().message;
  EXPECT_GT(quiet.runs, 100U);
  EXPECT_EQ(quiet.runs, noisy.runs);
}

TEST_F(MeasureTest, WorkThatFailsEndsItAndTheStreamIsFree) {
  Work work([runs = 0]() mutable { return ++runs < 3; });
  EXPECT_FALSE(Measure(work));
  EXPECT_EQ(work.runs, 3U);
  driver_.Synchronize();
}

TEST_F(MeasureTest, LeavesNoMemoryBehind) {
  Work work = Launching(5'000);
  ASSERT_TRUE(Measure(work));
  EXPECT_EQ(driver_.Allocations(), 0U);
}

TEST_F(MeasureTest, SaysWhatTheDriverRefused) {
  Work work = Launching(5'000);
  driver_.FailNext("cuStreamWaitValue32_v2", CUDA_ERROR_INVALID_VALUE);
  const auto measured = Measure(work);
  ASSERT_FALSE(measured);
  EXPECT_THAT(measured.error().message, HasSubstr("holding the stream back"));
}

}  // namespace
}  // namespace pystrobe::gpu
