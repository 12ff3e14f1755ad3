// SPDX-License-Identifier: Apache-2.0
//
// Sessions that ask for no records, and what sessions tell while they run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>

#include "gpu/cupti_session.h"
#include "tests/cpp/gpu/mock_cupti.h"
#include "tests/cpp/gpu/mock_driver.h"

namespace pystrobe::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

thread_local uint32_t current = 1;

class ThreadsOwn : public LaunchPath {
 public:
  LaunchOrigin Current() noexcept override { return {.path = current}; }
};

class CuptiLaunchesTest : public ::testing::Test {
 protected:
  CuptiLaunchesTest() {
    driver_.Begin();
    current = 1;
    options_.records = false;
  }
  void Start() {
    auto session = CuptiSession::Start(options_, path_);
    ASSERT_TRUE(session) << session.error().message;
    session_ = *std::move(session);
  }
  /// By path.
  std::map<uint32_t, uint64_t> Counts() const {
    std::map<uint32_t, uint64_t> counts;
    EXPECT_TRUE(session_->Read([&](const KernelSums& sums, const IdleTime&) {
      for (size_t i = 0; i < sums.size(); ++i) {
        if (sums.sum(i).untimed > 0) counts[sums.key(i).origin.path] += sums.sum(i).untimed;
        EXPECT_EQ(sums.sum(i).count, 0U);
      }
    }));
    return counts;
  }
  uint64_t Kernels() const {
    return session_->Facts().launches.launches[static_cast<size_t>(LaunchKind::kKernel)];
  }

  static ThreadsOwn path_;
  MockDriver driver_;
  MockCupti cupti_;
  CuptiOptions options_;
  std::unique_ptr<CuptiSession> session_;
};

ThreadsOwn CuptiLaunchesTest::path_;

TEST_F(CuptiLaunchesTest, AreTheSameWhileItRunsAndAtItsEnd) {
  Start();
  const CUfunction kernel = driver_.Kernel(5'000);
  for (int i = 0; i < 30; ++i) driver_.Launch(kernel);
  current = 2;
  driver_.Launch(kernel);
  EXPECT_THAT(Counts(), ElementsAre(Pair(1, 30), Pair(2, 1)));
  driver_.Launch(kernel);
  ASSERT_TRUE(session_->Stop());
  driver_.Launch(kernel);
  EXPECT_THAT(Counts(), ElementsAre(Pair(1, 30), Pair(2, 2)));
  EXPECT_EQ(Kernels(), 32U);
  const CuptiFacts facts = session_->Facts();
  EXPECT_TRUE(facts.launches_only);
  EXPECT_EQ(facts.records, 0U);
}

TEST_F(CuptiLaunchesTest, OfBeforeARestartCountForNothing) {
  Start();
  const CUfunction kernel = driver_.Kernel(5'000);
  for (int i = 0; i < 30; ++i) driver_.Launch(kernel);
  session_->Restart();
  for (int i = 0; i < 7; ++i) driver_.Launch(kernel);
  ASSERT_TRUE(session_->Stop());
  EXPECT_THAT(Counts(), ElementsAre(Pair(1, 7)));
  EXPECT_EQ(Kernels(), 7U);
}

TEST_F(CuptiLaunchesTest, ThatThereIsNoRoomForAreSaidToBeOfSeveral) {
  Start();
  const CUfunction kernel = driver_.Kernel(1'000);
  constexpr uint32_t kPaths = 100'000;
  for (current = 1; current <= kPaths; ++current) driver_.Launch(kernel);
  ASSERT_TRUE(session_->Stop());
  uint64_t all = 0;
  for (const auto& [path, count] : Counts()) all += count;
  EXPECT_EQ(all, kPaths);
  session_->Read([&](const KernelSums& sums, const IdleTime&) {
    // Those that the sums have no room for are among them.
    EXPECT_GT(sums.overflowed(), kPaths - options_.sums.max_sums - 1);
  });
}

TEST_F(CuptiLaunchesTest, WaitsAreTimedWithoutRecords) {
  Start();
  driver_.Launch(driver_.Kernel(3'000'000));
  driver_.Synchronize();
  ASSERT_TRUE(session_->Stop());
  session_->Read([](const KernelSums&, const IdleTime& idle) {
    EXPECT_TRUE(idle.devices().empty());
    uint64_t waited_ns = 0;
    for (const WaitSum& wait : idle.waits()) waited_ns += wait.time.total_ns;
    EXPECT_GT(waited_ns, 1'000'000U);
  });
}

TEST_F(CuptiLaunchesTest, NeitherKindOfSessionHasWhatTheOtherCounted) {
  Start();
  const CUfunction kernel = driver_.Kernel(5'000);
  driver_.Launch(kernel);
  session_.reset();
  options_.records = true;
  Start();
  for (int i = 0; i < 3; ++i) driver_.Launch(kernel);
  driver_.Synchronize();
  ASSERT_TRUE(session_->Stop());
  session_->Read([](const KernelSums& sums, const IdleTime&) {
    EXPECT_EQ(sums.count(), 3U);
    EXPECT_EQ(sums.overflowed(), 0U);
  });
}

TEST_F(CuptiLaunchesTest, IdleTimeIsToldWhileASessionRuns) {
  options_.records = true;
  options_.flush_every = std::chrono::milliseconds(1);
  Start();
  const CUfunction kernel = driver_.Kernel(5'000);
  uint64_t idle_ns = 0;
  for (int i = 0; i < 1'000 && idle_ns == 0; ++i) {
    driver_.Launch(kernel);
    driver_.Synchronize();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    session_->Read([&](const KernelSums&, const IdleTime& idle) {
      for (const DeviceUse& use : idle.devices()) idle_ns += use.idle_ns;
    });
  }
  EXPECT_GT(idle_ns, 1'000'000U);
  ASSERT_TRUE(session_->Stop());
  session_->Read([&](const KernelSums& sums, const IdleTime& idle) {
    ASSERT_EQ(idle.devices().size(), 1U);
    EXPECT_GE(idle.devices()[0].idle_ns, idle_ns) << "what was told is counted once";
    EXPECT_GT(sums.count(), 1U);
  });
}

}  // namespace
}  // namespace pystrobe::gpu
