// SPDX-License-Identifier: Apache-2.0
#include "sampler/pyabi/regions.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace pystrobe::pyabi {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Address kOneCode = 0x7000, kOtherCode = 0x7100, kFrame = 0x1000;

RawFrame FrameAt(Address address, Address code = kOneCode) {
  return {.frame = address, .code = code};
}

class RegionsTest : public ::testing::Test {
 protected:
  std::vector<std::string> NamesAt(Address frame, Address code = kOneCode) {
    return regions_->NamesOf(regions_->Of(FrameAt(frame, code)));
  }

  // As that of a process they are never freed.
  static Regions* Make() {
    static auto& all = *new std::vector<Regions*>;
    return all.emplace_back(new Regions);
  }

  Regions* regions_ = Make();
};

TEST_F(RegionsTest, AreAFrames) {
  EXPECT_FALSE(regions_->any());
  regions_->Enter(kFrame, kOneCode, "load");
  EXPECT_TRUE(regions_->any());
  EXPECT_THAT(NamesAt(kFrame), ElementsAre("load"));
  EXPECT_THAT(NamesAt(kFrame + 8), IsEmpty());
  EXPECT_THAT(NamesAt(kFrame, kOtherCode), IsEmpty()) << "another function's frame by now";
  regions_->Leave(kFrame, "load");
  EXPECT_THAT(NamesAt(kFrame), IsEmpty());
  EXPECT_FALSE(regions_->any());
}

TEST_F(RegionsTest, MayBeWithinEachOther) {
  regions_->Enter(kFrame, kOneCode, "load");
  regions_->Enter(kFrame, kOneCode, "parse");
  EXPECT_THAT(NamesAt(kFrame), ElementsAre("load", "parse"));
  regions_->Leave(kFrame, "parse");
  EXPECT_THAT(NamesAt(kFrame), ElementsAre("load"));
}

TEST_F(RegionsTest, MayBeLeftInAnyOrder) {
  for (const char* name : {"a", "b", "a", "c"}) regions_->Enter(kFrame, kOneCode, name);
  regions_->Leave(kFrame, "a");
  EXPECT_THAT(NamesAt(kFrame), ElementsAre("a", "b", "c")) << "the last of that name";
  regions_->Leave(kFrame, "unknown");
  EXPECT_THAT(NamesAt(kFrame), ElementsAre("a", "b", "c"));
}

TEST_F(RegionsTest, WhatAFrameDidNotLeaveIsNotThatOfTheNextOne) {
  regions_->Enter(kFrame, kOneCode, "left behind");
  regions_->Enter(kFrame, kOtherCode, "new");
  EXPECT_THAT(NamesAt(kFrame, kOtherCode), ElementsAre("new"));
  regions_->Leave(kFrame, "new");
  EXPECT_FALSE(regions_->any());
}

TEST_F(RegionsTest, AreNotedInFrames) {
  std::vector<RawFrame> frames = {FrameAt(1 << 4), FrameAt(2 << 4), FrameAt(3 << 4)};
  regions_->Enter(2 << 4, kOneCode, "load");
  regions_->Note(frames);
  EXPECT_EQ(frames[0].region, 0);
  EXPECT_NE(frames[1].region, 0);
  EXPECT_EQ(frames[2].region, 0);
}

TEST_F(RegionsTest, ThousandsOfFramesAreKeptApart) {
  constexpr Address kMost = 8000;
  for (Address i = 1; i <= kMost; ++i) {
    regions_->Enter(i * 64, kOneCode, fmt::format("{}", i % 100));
  }
  size_t found = 0;
  for (Address i = 1; i <= kMost; ++i) {
    const auto names = NamesAt(i * 64);
    if (names.empty()) continue;  // there was no room
    ++found;
    EXPECT_THAT(names, ElementsAre(fmt::format("{}", i % 100)));
  }
  EXPECT_GT(found, kMost * 99 / 100);
  for (Address i = 1; i <= kMost; ++i) regions_->Leave(i * 64, fmt::format("{}", i % 100));
  EXPECT_FALSE(regions_->any());
}

TEST_F(RegionsTest, TooManyNamesShareOne) {
  for (int i = 0; i < 5000; ++i) {
    const std::string name = fmt::format("request {}", i);
    regions_->Enter(kFrame, kOneCode, name);
    const auto names = NamesAt(kFrame);
    ASSERT_EQ(names.size(), 1U);
    ASSERT_EQ(names[0], i < 4095 ? name : "(other regions)") << i;
    regions_->Leave(kFrame, name);
    ASSERT_FALSE(regions_->any());
  }
}

TEST_F(RegionsTest, WithinAKnownOneTooManyNamesAreThatOne) {
  regions_->Enter(kFrame, kOneCode, "service");
  for (int i = 0; i < 5000; ++i) {
    const std::string name = fmt::format("request {}", i);
    regions_->Enter(kFrame, kOneCode, name);
    if (i < 4000) {
      ASSERT_THAT(NamesAt(kFrame), ElementsAre("service", name));
    }
    regions_->Leave(kFrame, name);
    ASSERT_THAT(NamesAt(kFrame), ElementsAre("service")) << i;
  }
  regions_->Leave(kFrame, "service");
  EXPECT_FALSE(regions_->any());
}

TEST_F(RegionsTest, ThreadsHaveTheirOwn) {
  std::vector<std::thread> threads;
  for (Address t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (Address i = 0; i < 20'000; ++i) {
        const Address frame = (t << 20) + (i % 50 + 1) * 64;
        const std::string name = fmt::format("{} {}", t, i % 7);
        regions_->Enter(frame, kOneCode, name);
        EXPECT_THAT(NamesAt(frame), ElementsAre(name));
        regions_->Leave(frame, name);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(regions_->any());
}

}  // namespace
}  // namespace pystrobe::pyabi
