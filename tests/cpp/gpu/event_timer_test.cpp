// SPDX-License-Identifier: Apache-2.0
#include "gpu/event_timer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/device.h"
#include "tests/cpp/gpu/mock_driver.h"

namespace pystrobe::gpu {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kLong = 50'000'000;  // nanoseconds

class EventTimerTest : public ::testing::Test {
 protected:
  MockDriver driver_;
};

TEST_F(EventTimerTest, TellsWhatTheStreamTookAndNotWhatOthersDid) {
  driver_.Begin();
  const Stream stream = driver_.MakeStream(), other = driver_.MakeStream();
  auto timer = EventTimer::Start(stream);
  ASSERT_TRUE(timer) << timer.error().message;
  driver_.Launch(driver_.Kernel(2'000'000), stream);
  driver_.Launch(driver_.Kernel(kLong), other);
  ASSERT_TRUE(timer->Stop());
  const auto seconds = timer->Wait();
  ASSERT_TRUE(seconds) << seconds.error().message;
  EXPECT_GE(*seconds, 0.002);
  EXPECT_LT(*seconds, 0.040);
  EXPECT_EQ(timer->Read().value(), *seconds);
}

TEST_F(EventTimerTest, ReadWaitsForNothing) {
  driver_.Begin();
  auto timer = EventTimer::Start(nullptr);
  ASSERT_TRUE(timer);
  driver_.Launch(driver_.Kernel(kLong));
  EXPECT_EQ(timer->Read().value(), std::nullopt) << "it has not ended";
  ASSERT_TRUE(timer->Stop());
  EXPECT_EQ(timer->Read().value(), std::nullopt) << "the device is not there yet";
  driver_.Synchronize();
  const auto seconds = timer->Read();
  ASSERT_TRUE(seconds && *seconds);
  EXPECT_GE(**seconds, 0.050);
}

TEST_F(EventTimerTest, WaitBeforeTheEndIsAnError) {
  driver_.Begin();
  auto timer = EventTimer::Start(nullptr);
  ASSERT_TRUE(timer);
  EXPECT_EQ(timer->Wait().error().code, ErrorCode::kInvalidArgument);
}

TEST_F(EventTimerTest, EndsOnce) {
  driver_.Begin();
  auto timer = EventTimer::Start(nullptr);
  ASSERT_TRUE(timer && timer->Stop());
  EXPECT_FALSE(timer->Stop());
  EXPECT_TRUE(timer->Wait());
}

TEST_F(EventTimerTest, UsesItsEventsAgain) {
  driver_.Begin();
  for (int i = 0; i < 100; ++i) {
    auto timer = EventTimer::Start(nullptr);
    ASSERT_TRUE(timer && timer->Stop() && timer->Wait());
  }
  EXPECT_EQ(driver_.Events(), 2U);
}

TEST_F(EventTimerTest, MakesAContextWhereThereIsNone) {
  const uint64_t before = driver_.Retains();
  for (int i = 0; i < 10; ++i) {
    auto timer = EventTimer::Start(nullptr);
    ASSERT_TRUE(timer) << timer.error().message;
  }
  EXPECT_TRUE(driver_.IsInitialized());
  EXPECT_LE(driver_.Retains(), before + 1);
}

TEST_F(EventTimerTest, SaysThatTheStreamIsGone) {
  driver_.Begin();
  const Stream stream = driver_.MakeStream();
  auto timer = EventTimer::Start(stream);
  ASSERT_TRUE(timer);
  driver_.Destroy(stream);
  const auto stopped = timer->Stop();
  ASSERT_FALSE(stopped);
  EXPECT_THAT(stopped.error().message, HasSubstr("CUDA_ERROR_INVALID_HANDLE"));
  EXPECT_THAT(stopped.error().hint, HasSubstr("destroyed"));
  EXPECT_EQ(timer->Read().value(), std::nullopt);
}

TEST_F(EventTimerTest, AfterAResetTheEventsOfBeforeAreNotUsed) {
  driver_.Begin();
  {
    auto timer = EventTimer::Start(nullptr);
  }
  auto over = EventTimer::Start(nullptr);
  driver_.Reset();
  EXPECT_FALSE(over->Stop());
  driver_.Begin();
  auto timer = EventTimer::Start(nullptr);
  ASSERT_TRUE(timer) << timer.error().message;
  ASSERT_TRUE(timer->Stop());
  EXPECT_TRUE(timer->Wait());
}

TEST_F(EventTimerTest, RefusesAStreamThatIsCaptured) {
  driver_.Begin();
  const Stream stream = driver_.MakeStream();
  driver_.Capture(stream, true);
  const auto timer = EventTimer::Start(stream);
  ASSERT_FALSE(timer);
  EXPECT_THAT(timer.error().message, HasSubstr("captured into a graph"));
  driver_.Capture(stream, false);
  EXPECT_TRUE(EventTimer::Start(stream));
}

TEST_F(EventTimerTest, SaysWhichCallOfTheDriverFailed) {
  driver_.Begin();
  driver_.Reset();
  driver_.Begin();  // of a new context there are none in the pool
  driver_.FailNext("cuEventCreate", CUDA_ERROR_OUT_OF_MEMORY);
  const auto timer = EventTimer::Start(driver_.MakeStream());
  ASSERT_FALSE(timer);
  EXPECT_THAT(timer.error().message, HasSubstr("making an event: CUDA_ERROR_OUT_OF_MEMORY"));
  EXPECT_THAT(timer.error().hint, HasSubstr("free some"));
}

TEST_F(EventTimerTest, AChildOfForkIsToldWhyItCannot) {
  driver_.Begin();
  {
    auto timer = EventTimer::Start(nullptr);
  }
  const pid_t child = fork();
  if (child == 0) {
    const auto timer = EventTimer::Start(nullptr);
    const bool told = !timer && timer.error().hint.find("spawn") != std::string::npos;
    _exit(told ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(Devices, AreDescribed) {
  const auto devices = ListDevices();
  ASSERT_TRUE(devices) << devices.error().message;
  ASSERT_EQ(devices->size(), 1U);
  EXPECT_EQ(devices->front().name, "Mock GPU");
  EXPECT_EQ(devices->front().multiprocessors, 4);
  EXPECT_EQ(devices->front().clock_hz, 1e9);
  EXPECT_EQ(DriverVersion(), 13000);
}

TEST(Devices, NothingIsInitializedByLooking) {
  const MockDriver driver;
  if (driver.IsInitialized()) GTEST_SKIP() << "another test has, in this process";
  EXPECT_EQ(DriverVersion(), 13000);
  EXPECT_EQ(IsInitialized(), false);
  EXPECT_FALSE(driver.IsInitialized());
}

}  // namespace
}  // namespace pystrobe::gpu
