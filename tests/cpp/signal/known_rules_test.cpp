// SPDX-License-Identifier: Apache-2.0
#include "sampler/signal/known_rules.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace pystrobe::signals {
namespace {

using native::Address;
using native::RuleRange;

KnownRules::Ranges Ranges(std::initializer_list<RuleRange> ranges) {
  KnownRules::Ranges by_end;
  for (const RuleRange& range : ranges) by_end.emplace(range.end, range);
  return by_end;
}

RuleRange Range(Address start, Address end, int32_t offset) {
  return {start, end, {.cfa = native::UnwindRule::Cfa::kRegister, .offset = offset}};
}

TEST(KnownRulesTest, KnowsNothingAtFirst) { EXPECT_EQ(KnownRules().Find(5), nullptr); }

TEST(KnownRulesTest, FindsTheRangeThatHasTheInstruction) {
  KnownRules rules;
  rules.Publish(Ranges({Range(10, 20, 1), Range(20, 21, 2), Range(30, 40, 3)}));
  EXPECT_EQ(rules.published(), 3U);
  EXPECT_EQ(rules.Find(9), nullptr);
  EXPECT_EQ(rules.Find(10)->offset, 1);
  EXPECT_EQ(rules.Find(19)->offset, 1);
  EXPECT_EQ(rules.Find(20)->offset, 2);
  EXPECT_EQ(rules.Find(21), nullptr);
  EXPECT_EQ(rules.Find(39)->offset, 3);
  EXPECT_EQ(rules.Find(40), nullptr);
}

TEST(KnownRulesTest, WhatIsPublishedTakesThePlaceOfWhatWas) {
  KnownRules rules;
  rules.Publish(Ranges({Range(10, 20, 1)}));
  rules.Publish({});
  EXPECT_TRUE(rules.has_old());
  EXPECT_EQ(rules.Find(10), nullptr);
  rules.FreeOld();
  EXPECT_FALSE(rules.has_old());
  EXPECT_EQ(rules.Find(10), nullptr);
}

TEST(KnownRulesTest, IsWholeForWhoReadsMeanwhile) {
  KnownRules rules;
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop) {
      const native::UnwindRule* rule = rules.Find(15);
      EXPECT_TRUE(rule == nullptr || rule->offset == 1);
    }
  });
  for (int i = 0; i < 2000; ++i) {
    rules.Publish(i % 2 == 0 ? Ranges({Range(10, 20, 1), Range(30, 40, i)}) : Ranges({}));
  }
  stop = true;
  reader.join();
  rules.FreeOld();
}

}  // namespace
}  // namespace pystrobe::signals
