// SPDX-License-Identifier: Apache-2.0
#include "pyext/launch/forward_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pystrobe::launch {
namespace {

using ::testing::Eq;
using ::testing::Optional;

constexpr NodeNumber kNode{.sequence = 7, .thread = 1};

class ForwardPathsTest : public ::testing::Test {
 protected:
  ForwardPaths paths_ = *ForwardPaths::Make();
};

TEST_F(ForwardPathsTest, TheFirstPathOfANodeIsIts) {
  EXPECT_EQ(paths_.Find(kNode, 1), std::nullopt);
  paths_.Note(kNode, 1, 42);
  paths_.Note(kNode, 1, 43);
  EXPECT_THAT(paths_.Find(kNode, 1), Optional(42U));
  EXPECT_EQ(paths_.Find({.sequence = 8, .thread = 1}, 1), std::nullopt);
}

TEST_F(ForwardPathsTest, ThreadsThatCountAlikeAreApart) {
  for (uint64_t thread = 1; thread <= 8; ++thread) {
    for (uint64_t i = 0; i < 1000; ++i) {
      paths_.Note({.sequence = i, .thread = thread}, 1, static_cast<uint32_t>(1000 * thread + i));
    }
  }
  for (uint64_t thread = 1; thread <= 8; ++thread) {
    for (uint64_t i = 0; i < 1000; ++i) {
      EXPECT_THAT(paths_.Find({.sequence = i, .thread = thread}, 1),
                  Optional(Eq(1000 * thread + i)));
    }
  }
}

TEST_F(ForwardPathsTest, ANodeThatTookTheSlotIsNotMistaken) {
  const NodeNumber later{.sequence = kNode.sequence + ForwardPaths::kSlots, .thread = 1};
  paths_.Note(kNode, 1, 42);
  EXPECT_EQ(paths_.Find(later, 1), std::nullopt);
  paths_.Note(later, 1, 43);
  EXPECT_EQ(paths_.Find(kNode, 1), std::nullopt);
  EXPECT_THAT(paths_.Find(later, 1), Optional(43U));
}

TEST_F(ForwardPathsTest, PathsOfAnotherSessionMeanSomethingElse) {
  paths_.Note(kNode, 1, 42);
  EXPECT_EQ(paths_.Find(kNode, 2), std::nullopt);
  paths_.Note(kNode, 2, 43);
  EXPECT_THAT(paths_.Find(kNode, 2), Optional(43U));
}

TEST_F(ForwardPathsTest, AGreatPathIsKeptAndATooGreatOneIsNot) {
  paths_.Note(kNode, 1, ForwardPaths::kMaxPath + 1);
  EXPECT_EQ(paths_.Find(kNode, 1), std::nullopt);
  paths_.Note(kNode, 1, ForwardPaths::kMaxPath);
  EXPECT_THAT(paths_.Find(kNode, 1), Optional(ForwardPaths::kMaxPath));
  paths_.Clear();
  EXPECT_EQ(paths_.Find(kNode, 1), std::nullopt);
}

}  // namespace
}  // namespace pystrobe::launch
