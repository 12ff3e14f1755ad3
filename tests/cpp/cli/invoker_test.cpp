// SPDX-License-Identifier: Apache-2.0
#include "cli/invoker.h"

#include <gtest/gtest.h>

#include <map>

namespace pystrobe::cli {
namespace {

std::optional<Invoker> Find(uid_t effective_uid, const std::map<std::string, std::string>& set) {
  return FindInvoker(effective_uid, [&set](const char* name) -> std::optional<std::string> {
    const auto found = set.find(name);
    if (found == set.end()) return std::nullopt;
    return found->second;
  });
}

TEST(FindInvoker, NeedsRootAndSudo) {
  EXPECT_FALSE(Find(0, {}));
  EXPECT_FALSE(Find(1000, {{"SUDO_UID", "1000"}, {"SUDO_GID", "1000"}}));
  EXPECT_FALSE(Find(0, {{"SUDO_UID", "1000"}}));
  EXPECT_FALSE(Find(0, {{"SUDO_UID", "0"}, {"SUDO_GID", "0"}}));
}

TEST(FindInvoker, RefusesWhatIsNoId) {
  for (const char* uid : {"", "-1", "me", "1000x", " 1000", "99999999999"}) {
    EXPECT_FALSE(Find(0, {{"SUDO_UID", uid}, {"SUDO_GID", "1000"}})) << uid;
  }
}

TEST(FindInvoker, AUserThatTheDatabaseDoesNotKnow) {
  const auto invoker = Find(0, {{"SUDO_UID", "3999999999"}, {"SUDO_GID", "3999999998"}});
  ASSERT_TRUE(invoker);
  EXPECT_EQ(invoker->uid, 3999999999u);
  EXPECT_EQ(invoker->gid, 3999999998u);
  EXPECT_EQ(invoker->name, "");
  EXPECT_EQ(invoker->groups, std::vector<gid_t>{3999999998u});
}

}  // namespace
}  // namespace pystrobe::cli
