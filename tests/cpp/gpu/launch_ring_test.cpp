// SPDX-License-Identifier: Apache-2.0
#include "gpu/launch_ring.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace pystrobe::gpu {
namespace {

constexpr LaunchOrigin kOrigin{.path = 5, .range = 3};

class LaunchRingTest : public ::testing::Test {
 protected:
  LaunchRing ring_ = LaunchRing::Make().value();
};

TEST_F(LaunchRingTest, FindsWhatWasPut) {
  for (const uint32_t id : {0U, 1U, LaunchRing::kSlots - 1, LaunchRing::kSlots, ~0U}) {
    EXPECT_EQ(ring_.Find(id), std::nullopt) << id;
    ring_.Put(id, kOrigin);
    EXPECT_EQ(ring_.Find(id), kOrigin) << id;
  }
}

TEST_F(LaunchRingTest, ALaunchOfNoPathIsNotOneThatNobodySaw) {
  ring_.Put(7, {});
  EXPECT_EQ(ring_.Find(7), LaunchOrigin{});
  EXPECT_EQ(ring_.Find(8), std::nullopt);
}

TEST_F(LaunchRingTest, KeepsTheGreatestAndNotWhatIsGreater) {
  constexpr LaunchOrigin kGreatest{.path = LaunchRing::kMaxPath, .range = LaunchRing::kMaxRange};
  ring_.Put(1, kGreatest);
  EXPECT_EQ(ring_.Find(1), kGreatest);
  ring_.Put(1, {.path = LaunchRing::kMaxPath + 1, .range = 2});
  EXPECT_EQ(ring_.Find(1), (LaunchOrigin{.path = 0, .range = 2}));
  ring_.Put(1, {.path = 2, .range = LaunchRing::kMaxRange + 1});
  EXPECT_EQ(ring_.Find(1), (LaunchOrigin{.path = 2, .range = 0}));
}

TEST_F(LaunchRingTest, ASlotThatWasTakenIsNotMistaken) {
  ring_.Put(9, kOrigin);
  ring_.Put(9 + LaunchRing::kSlots, {.path = 1});
  EXPECT_EQ(ring_.Find(9), std::nullopt);
  EXPECT_EQ(ring_.Find(9 + LaunchRing::kSlots), LaunchOrigin{.path = 1});
  EXPECT_EQ(ring_.Find(9 + 2 * LaunchRing::kSlots), std::nullopt);
}

TEST_F(LaunchRingTest, ForgetsAll) {
  for (uint32_t id = 0; id < LaunchRing::kSlots; id += 500) ring_.Put(id, kOrigin);
  ring_.Clear();
  for (uint32_t id = 0; id < LaunchRing::kSlots; id += 500) {
    ASSERT_EQ(ring_.Find(id), std::nullopt) << id;
  }
}

TEST_F(LaunchRingTest, ThreadsPutAtOnce) {
  std::atomic<uint32_t> next{0};
  std::vector<std::thread> threads;
  for (uint32_t path = 1; path <= 4; ++path) {
    threads.emplace_back([&, path] {
      for (int i = 0; i < 20'000; ++i) {
        const uint32_t id = next++;
        ring_.Put(id, {.path = path, .range = id & 1023});
        ASSERT_EQ(ring_.Find(id), (LaunchOrigin{.path = path, .range = id & 1023}));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (uint32_t id = 0; id < next; ++id) {
    const auto found = ring_.Find(id);
    ASSERT_TRUE(found);
    ASSERT_EQ(found->range, id & 1023);
  }
}

}  // namespace
}  // namespace pystrobe::gpu
