// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/thread_table.h"

#include <gtest/gtest.h>

namespace pystrobe::remote {
namespace {

constexpr Address kGil = 0x1000;
constexpr Address kEnded = 0x2000;
constexpr Address kOther = 0x3000;

GilState HeldLastBy(Address tstate) { return {.last_holder = tstate, .locked = 0}; }
GilState HeldBy(Address tstate) { return {.last_holder = tstate, .locked = 1}; }

class LockDomainTest : public ::testing::Test {
 protected:
  // How many times the threads are listed while the lock looks like that at every look.
  int CountLists(const GilState& gil, bool refused = false) {
    int lists = 0;
    for (int look = 0; look < 1000; ++look) {
      if (!domain_.LacksHolder(gil, refused)) continue;
      ++lists;
      domain_.NoteListed();
    }
    return lists;
  }

  pyabi::Layout layout_;
  LockDomain domain_{layout_, kGil};
};

TEST_F(LockDomainTest, NobodyIsLookedForWhereNobodyHadTheLock) {
  EXPECT_EQ(CountLists(HeldLastBy(0)), 0);
}

TEST_F(LockDomainTest, OneThatEndedIsLookedForOnce) {
  EXPECT_EQ(CountLists(HeldLastBy(kEnded)), 1);
  EXPECT_EQ(CountLists(HeldLastBy(kOther)), 1);
  EXPECT_EQ(CountLists(HeldLastBy(kEnded)), 1);
}

TEST_F(LockDomainTest, OneThatIsMissedIsLookedForUntilTheThreadsAreListed) {
  EXPECT_TRUE(domain_.LacksHolder(HeldLastBy(kEnded), false));
  EXPECT_TRUE(domain_.LacksHolder(HeldLastBy(kEnded), false));
  domain_.NoteListed();
  EXPECT_FALSE(domain_.LacksHolder(HeldLastBy(kEnded), false));
}

TEST_F(LockDomainTest, OneThatHasTheLockIsThereAndLookedForUntilFound) {
  EXPECT_EQ(CountLists(HeldLastBy(kEnded)), 1);
  EXPECT_EQ(CountLists(HeldBy(kEnded)), 1000);
}

TEST_F(LockDomainTest, OneThatWasRefusedIsLookedForOnce) {
  EXPECT_EQ(CountLists(HeldBy(kOther), true), 1);
}

TEST_F(LockDomainTest, TurnsGoRound) {
  domain_.threads.resize(3);
  size_t turn = 0;
  for (const size_t place : {1U, 2U, 0U, 1U}) {
    domain_.Next(turn);
    EXPECT_EQ(turn, place);
  }
}

}  // namespace
}  // namespace pystrobe::remote
