// SPDX-License-Identifier: Apache-2.0
#include "cli/suggest.h"

#include <gtest/gtest.h>

#include <string>

namespace pystrobe::cli {
namespace {

constexpr std::string_view kVerbs[] = {"attach", "run", "dump", "report", "doctor", "help"};
constexpr std::string_view kOptions[] = {
    "duration", "rate",   "max-overhead", "pause", "mode",  "thread", "idle",   "top",
    "output",   "format", "unit",         "force", "quiet", "json",   "locals", "since"};

TEST(Nearest, FindsWhatIsALetterOrTwoAway) {
  EXPECT_EQ(Nearest("atach", kVerbs), "attach");
  EXPECT_EQ(Nearest("attahc", kVerbs), "attach") << "two swapped";
  EXPECT_EQ(Nearest("rnu", kVerbs), "run");
  EXPECT_EQ(Nearest("reprot", kVerbs), "report");
  EXPECT_EQ(Nearest("dumps", kVerbs), "dump");
  EXPECT_EQ(Nearest("doctor", kVerbs), "doctor");
  EXPECT_EQ(Nearest("hlep", kVerbs), "help");
  EXPECT_EQ(Nearest("durations", kOptions), "duration");
  EXPECT_EQ(Nearest("ouptut", kOptions), "output");
  EXPECT_EQ(Nearest("maxoverhed", kOptions), "max-overhead");
}

TEST(Nearest, SaysNothingOfOtherWords) {
  EXPECT_EQ(Nearest("", kVerbs), std::nullopt);
  EXPECT_EQ(Nearest("x", kVerbs), std::nullopt);
  EXPECT_EQ(Nearest("flame", kVerbs), std::nullopt);
  EXPECT_EQ(Nearest(std::string(100'000, 'a'), kVerbs), std::nullopt);
  EXPECT_EQ(Nearest("run", {}), std::nullopt);
  for (const std::string_view word :
       {"file", "name", "path", "type", "function", "line", "save", "native", "pid"}) {
    EXPECT_EQ(Nearest(word, kOptions), std::nullopt) << word;
  }
}

}  // namespace
}  // namespace pystrobe::cli
