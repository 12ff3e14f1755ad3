// SPDX-License-Identifier: Apache-2.0
#include "profiler/print/terminal.h"

#include <gtest/gtest.h>

#include <map>

namespace pystrobe::print {
namespace {

using Variables = std::map<std::string, std::string>;

auto Lookup(const Variables& variables) {
  return [&variables](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

bool Wants(bool is_terminal, const Variables& variables) {
  return WantsColor(is_terminal, Lookup(variables));
}

TEST(WantsColor, FollowsTerminalAndEnvironment) {
  EXPECT_TRUE(Wants(true, {}));
  EXPECT_FALSE(Wants(false, {}));
  EXPECT_FALSE(Wants(true, {{"NO_COLOR", "1"}}));
  EXPECT_TRUE(Wants(true, {{"NO_COLOR", ""}}));
  EXPECT_TRUE(Wants(false, {{"CLICOLOR_FORCE", "1"}}));
  EXPECT_FALSE(Wants(false, {{"CLICOLOR_FORCE", "0"}}));
  EXPECT_FALSE(Wants(false, {{"CLICOLOR_FORCE", "1"}, {"NO_COLOR", "1"}}));
  EXPECT_FALSE(Wants(true, {{"CLICOLOR", "0"}}));
  EXPECT_FALSE(Wants(true, {{"TERM", "dumb"}}));
}

TEST(DescribeTerminal, NoTerminal) {
  const Variables variables;
  const Terminal terminal = DescribeTerminal(-1, Lookup(variables));
  EXPECT_FALSE(terminal.is_terminal);
  EXPECT_EQ(terminal.width, 80);
  EXPECT_FALSE(terminal.color);
}

TEST(DescribeTerminal, LocaleDecidesTheEllipsis) {
  const auto ellipsis = [](const Variables& variables) {
    return DescribeTerminal(-1, Lookup(variables)).ellipsis;
  };
  EXPECT_EQ(ellipsis({}), "…");
  EXPECT_EQ(ellipsis({{"LANG", "de_DE.UTF-8"}}), "…");
  EXPECT_EQ(ellipsis({{"LANG", "C.utf8"}}), "…");
  EXPECT_EQ(ellipsis({{"LANG", "C"}}), "...");
  EXPECT_EQ(ellipsis({{"LC_ALL", "C"}, {"LANG", "de_DE.UTF-8"}}), "...");
}

}  // namespace
}  // namespace pystrobe::print
