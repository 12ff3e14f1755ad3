// SPDX-License-Identifier: Apache-2.0
#include "cli/suggest.h"

#include <gtest/gtest.h>

namespace pystrobe::cli {
namespace {

const std::string kVerbs[] = {"attach", "run", "dump", "report", "doctor", "help"};

TEST(Nearest, FindsWhatIsALetterOrTwoAway) {
  EXPECT_EQ(Nearest("atach", kVerbs), "attach");
  EXPECT_EQ(Nearest("attahc", kVerbs), "attach") << "two swapped";
  EXPECT_EQ(Nearest("rnu", kVerbs), "run");
  EXPECT_EQ(Nearest("reprot", kVerbs), "report");
  EXPECT_EQ(Nearest("dumps", kVerbs), "dump");
  EXPECT_EQ(Nearest("doctor", kVerbs), "doctor");
}

TEST(Nearest, SaysNothingOfWhatIsFarAway) {
  EXPECT_EQ(Nearest("", kVerbs), std::nullopt);
  EXPECT_EQ(Nearest("x", kVerbs), std::nullopt);
  EXPECT_EQ(Nearest("flame", kVerbs), std::nullopt);
  EXPECT_EQ(Nearest(std::string(100'000, 'a'), kVerbs), std::nullopt);
  EXPECT_EQ(Nearest("run", {}), std::nullopt);
}

}  // namespace
}  // namespace pystrobe::cli
