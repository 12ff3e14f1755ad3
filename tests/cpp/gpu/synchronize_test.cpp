// SPDX-License-Identifier: Apache-2.0
#include "gpu/synchronize.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "profiler/base/clock.h"
#include "tests/cpp/gpu/mock_driver.h"

namespace pystrobe::gpu {
namespace {

constexpr auto kNever = [] { return false; };

TEST(Synchronize, DoesNothingWhereNobodyHasInitialisedTheDriver) {
  const MockDriver driver;
  EXPECT_TRUE(SynchronizeDevices(kNever));
  EXPECT_FALSE(driver.IsInitialized());
  EXPECT_EQ(driver.Retains(), 0U);
}

TEST(Synchronize, WaitsForWorkOfAnotherThreadsContext) {
  const MockDriver driver;
  std::thread([&] {
    driver.Begin();
    driver.Launch(driver.Kernel(50'000'000));
  }).join();
  const Nanoseconds begin = MonotonicNow();
  EXPECT_TRUE(SynchronizeDevices(kNever));
  EXPECT_GT(MonotonicNow() - begin, std::chrono::milliseconds(30));
  EXPECT_EQ(driver.Retains(), 1U) << "what it took it gave back";
}

TEST(Synchronize, WaitsForNothingWhileAStreamIsCaptured) {
  const MockDriver driver;
  driver.Begin();
  const auto done = SynchronizeDevices([] { return true; });
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("captured into a graph"), std::string::npos);
}

TEST(Synchronize, TellsOfAFailure) {
  const MockDriver driver;
  driver.Begin();
  driver.FailNext("cuCtxSynchronize", CUDA_ERROR_LAUNCH_FAILED);
  const auto done = SynchronizeDevices(kNever);
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("waiting for the device"), std::string::npos);
  EXPECT_EQ(driver.Retains(), 1U);
}

}  // namespace
}  // namespace pystrobe::gpu
