// SPDX-License-Identifier: Apache-2.0
#include "profiler/base/id_index.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pystrobe {
namespace {

/// Interns words, whose hashes are as bad as `spread` makes them.
class Words {
 public:
  explicit Words(uint64_t spread) : spread_(spread) {}

  uint32_t Intern(const std::string& word) {
    const uint32_t fresh = static_cast<uint32_t>(words_.size());
    const uint32_t id = index_.FindOrAdd(
        HashOf(word), fresh, [&](uint32_t other) { return words_[other] == word; },
        [&](uint32_t other) { return HashOf(words_[other]); });
    if (id == fresh) words_.push_back(word);
    return id;
  }
  std::optional<uint32_t> Find(const std::string& word) const {
    return index_.Find(HashOf(word), [&](uint32_t id) { return words_[id] == word; });
  }
  size_t size() const { return index_.size(); }

 private:
  uint64_t HashOf(const std::string& word) const {
    return std::hash<std::string>()(word) % spread_;
  }

  uint64_t spread_;
  std::vector<std::string> words_;
  IdIndex index_;
};

class IdIndexTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(IdIndexTest, GivesEqualValuesTheSameId) {
  Words words(GetParam());
  for (uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(words.Intern(std::to_string(i)), i);
  for (uint32_t i = 1000; i-- > 0;) ASSERT_EQ(words.Intern(std::to_string(i)), i);
  EXPECT_EQ(words.size(), 1000U);
}

TEST_P(IdIndexTest, FindsWithoutAdding) {
  Words words(GetParam());
  EXPECT_EQ(words.Find("0"), std::nullopt);
  for (uint32_t i = 0; i < 100; ++i) words.Intern(std::to_string(i));
  EXPECT_EQ(words.Find("57"), 57U);
  EXPECT_EQ(words.Find("100"), std::nullopt);
  EXPECT_EQ(words.size(), 100U);
}

// All of one hash; of sixteen; well spread.
INSTANTIATE_TEST_SUITE_P(Hashes, IdIndexTest,
                         ::testing::Values(uint64_t{1}, uint64_t{16}, ~uint64_t{0}));

}  // namespace
}  // namespace pystrobe
