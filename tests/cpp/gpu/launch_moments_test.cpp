// SPDX-License-Identifier: Apache-2.0
#include "gpu/launch_moments.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "gpu/launch_ring.h"

namespace pystrobe::gpu {
namespace {

class LaunchMomentsTest : public ::testing::Test {
 protected:
  LaunchMoments moments_ = LaunchMoments::Make().value();
};

TEST_F(LaunchMomentsTest, FindsWhatWasPut) {
  EXPECT_EQ(moments_.Find(1), std::nullopt);
  moments_.Put(1, {.time_ns = 123'456'789'012, .tid = 77});
  moments_.Put(~0U, {.time_ns = 5, .tid = ~0U});
  EXPECT_EQ(moments_.Find(1), (LaunchMoment{.time_ns = 123'456'789'012, .tid = 77}));
  EXPECT_EQ(moments_.Find(~0U), (LaunchMoment{.time_ns = 5, .tid = ~0U}));
  EXPECT_EQ(moments_.Find(0), std::nullopt);
}

TEST_F(LaunchMomentsTest, ASlotThatWasTakenIsNotMistaken) {
  moments_.Put(9, {.time_ns = 1, .tid = 1});
  moments_.Put(9 + LaunchRing::kSlots, {.time_ns = 2, .tid = 2});
  EXPECT_EQ(moments_.Find(9), std::nullopt);
  EXPECT_EQ(moments_.Find(9 + LaunchRing::kSlots), (LaunchMoment{.time_ns = 2, .tid = 2}));
}

TEST_F(LaunchMomentsTest, ForgetsAll) {
  moments_.Put(9, {.time_ns = 1, .tid = 1});
  moments_.Clear();
  EXPECT_EQ(moments_.Find(9), std::nullopt);
}

// Launches of one slot, whose times are their ids: a reader that mixed them up would see it. None
// comes twice, as none does while its slot is remembered.
TEST_F(LaunchMomentsTest, ReadersSeeNoTimeOfAnother) {
  constexpr uint32_t kOfOneSlot = 4'096, kRounds = 50;
  std::atomic<uint32_t> last{1};
  std::atomic<bool> ends{false};
  std::thread reader([&] {
    while (!ends) {
      const uint32_t id = last;
      const auto found = moments_.Find(id);
      EXPECT_EQ(found ? found->time_ns : id, id);
    }
  });
  for (uint32_t round = 1; round <= kRounds; ++round) {
    for (uint32_t i = 0; i < kOfOneSlot; ++i) {
      const uint32_t id = round + i * LaunchRing::kSlots;
      moments_.Put(id, {.time_ns = id, .tid = 1});
      last = id;
    }
  }
  ends = true;
  reader.join();
  const uint32_t id = last;
  EXPECT_EQ(moments_.Find(id), (LaunchMoment{.time_ns = id, .tid = 1}));
}

}  // namespace
}  // namespace pystrobe::gpu
