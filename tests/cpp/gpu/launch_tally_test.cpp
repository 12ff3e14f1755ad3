// SPDX-License-Identifier: Apache-2.0
#include "gpu/launch_tally.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace pystrobe::gpu {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::Pair;

class LaunchTallyTest : public ::testing::Test {
 protected:
  void Add(uint32_t path, const char* name, WorkKind kind = WorkKind::kKernel,
           uint32_t context = 1) {
    const TalliedLaunch launch{
        .period = tally_.period(), .kind = kind, .path = path, .context = context, .name = name};
    tally_.Add(launch, [&] {
      ++asked_;
      return context;
    });
  }
  /// By kind, path, device and name.
  std::map<std::tuple<WorkKind, uint32_t, uint32_t, std::string>, uint64_t> Counts() const {
    std::map<std::tuple<WorkKind, uint32_t, uint32_t, std::string>, uint64_t> counts;
    for (const TallyRow& row : tally_.Rows()) {
      counts[{row.kind, row.path, row.device, row.name}] += row.count;
    }
    return counts;
  }

  LaunchTally tally_ = LaunchTally::Make().value();
  int asked_ = 0;  // for a device
};

TEST_F(LaunchTallyTest, WhatDiffersInAnythingIsCountedApart) {
  for (int i = 0; i < 3; ++i) Add(1, "add");
  Add(2, "add");
  Add(1, "mul");
  Add(1, "add", WorkKind::kCopy);
  Add(1, "add", WorkKind::kKernel, 2);
  EXPECT_THAT(Counts(), ElementsAre(Pair(std::tuple(WorkKind::kKernel, 1, 1, "add"), 3),
                                    Pair(std::tuple(WorkKind::kKernel, 1, 1, "mul"), 1),
                                    Pair(std::tuple(WorkKind::kKernel, 1, 2, "add"), 1),
                                    Pair(std::tuple(WorkKind::kKernel, 2, 1, "add"), 1),
                                    Pair(std::tuple(WorkKind::kCopy, 1, 1, "add"), 1)));
  EXPECT_EQ(asked_, 5) << "once for what is new";
}

TEST_F(LaunchTallyTest, AnAddressMayBeAnotherNameLater) {
  char name[] = "first";
  Add(1, name);
  std::string("other").copy(name, 5);
  Add(1, name);
  Add(1, name);
  EXPECT_THAT(Counts(), ElementsAre(Pair(std::tuple(WorkKind::kKernel, 1, 1, "first"), 1),
                                    Pair(std::tuple(WorkKind::kKernel, 1, 1, "other"), 2)));
}

TEST_F(LaunchTallyTest, OneNameIsOneRowWhereverItStands) {
  for (int i = 0; i < 3; ++i) Add(1, std::string("void add(float*, int)").c_str());
  EXPECT_EQ(tally_.Rows().size(), 1U);
}

TEST_F(LaunchTallyTest, NamesOfWhichLittleDiffersAreToldApart) {
  const std::string begin(100, 'x'), end(100, 'y');
  for (int i = 0; i < 10; ++i) Add(1, (begin + std::to_string(i) + "middle" + end).c_str());
  for (int i = 0; i < 10; ++i) Add(1, std::to_string(i).c_str());
  EXPECT_EQ(Counts().size(), 20U);
  EXPECT_THAT(Counts(), Each(Pair(::testing::_, 1)));
}

TEST_F(LaunchTallyTest, OfAPeriodBeforeNothingIsCounted) {
  const TalliedLaunch late{.period = tally_.period(), .path = 1, .name = "add"};
  Add(1, "add");
  tally_.Clear();
  EXPECT_THAT(Counts(), ElementsAre());
  tally_.Add(late, [] { return 0U; });
  EXPECT_THAT(Counts(), ElementsAre());
  Add(1, "add");
  EXPECT_THAT(Counts(), ElementsAre(Pair(::testing::_, 1)));
}

TEST_F(LaunchTallyTest, WithoutRoomLaunchesAreCountedByKind) {
  constexpr uint32_t kPaths = 3 * LaunchTally::kSlots;
  for (uint32_t path = 1; path <= kPaths; ++path) Add(path, "add");
  Add(kPaths + 1, "add", WorkKind::kSet);
  uint64_t all = 0;
  for (const TallyRow& row : tally_.Rows()) all += row.count;
  EXPECT_EQ(all, kPaths + 1);
  EXPECT_THAT(tally_.Rows(), Contains(Field(&TallyRow::path, kUnknownOrigin.path)));
  EXPECT_TRUE(tally_.Rows()[0].is_of_several);
  EXPECT_GT(tally_.Rows()[0].count, kPaths - LaunchTally::kSlots - 1);
}

TEST_F(LaunchTallyTest, NamesThatThereIsNoRoomForAreCountedTogether) {
  constexpr uint32_t kNames = LaunchTally::kMaxNames + 100;
  for (uint32_t i = 0; i < kNames; ++i) Add(1, std::to_string(i).c_str());
  uint64_t all = 0, others = 0;
  for (const auto& [key, count] : Counts()) {
    all += count;
    if (std::get<3>(key) == "(other kernels)") others += count;
  }
  for (const TallyRow& row : tally_.Rows()) {
    EXPECT_EQ(row.is_of_several, std::string_view(row.name) == "(other kernels)");
  }
  EXPECT_EQ(all, kNames);
  EXPECT_GE(others, 100U);
}

TEST_F(LaunchTallyTest, ThreadsMayCountWhileItIsClearedAndRead) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (uint32_t round = 0; !stop; ++round) {
        const TalliedLaunch launch{
            .period = tally_.period(), .path = round % 100 + 1, .context = 1, .name = "add"};
        tally_.Add(launch, [] { return 0U; });
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    tally_.Clear();
    for (const TallyRow& row : tally_.Rows()) {
      EXPECT_STREQ(row.name, "add");
      EXPECT_LE(row.path, 100U);
    }
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_F(LaunchTallyTest, ThreadsLoseNoLaunch) {
  constexpr int kThreads = 4, kRounds = 20'000;
  constexpr uint32_t kPaths = 50;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this] {
      for (uint32_t round = 0; round < kRounds; ++round) {
        const TalliedLaunch launch{
            .period = tally_.period(), .path = round % kPaths + 1, .context = 1, .name = "add"};
        tally_.Add(launch, [] { return 0U; });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto rows = tally_.Rows();
  EXPECT_EQ(rows.size(), kPaths);
  EXPECT_THAT(rows, Each(Field(&TallyRow::count, uint64_t{kThreads} * kRounds / kPaths)));
}

}  // namespace
}  // namespace pystrobe::gpu
