// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/find_runtime.h"

#include <gtest/gtest.h>

namespace pystrobe::remote {
namespace {

using namespace std::string_literals;

TEST(Banner, OfARelease) {
  auto version = ParseBanner("noise\0\0003.9.18 (main, Aug 25 2023, 00:00:00) \n[GCC 12.2.0]\0"s);
  ASSERT_TRUE(version);
  EXPECT_EQ(version->ToString(), "3.9.18");
}

TEST(Banner, OfCandidatesCheckoutsAndFreeThreadedBuilds) {
  EXPECT_EQ(ParseBanner("3.12.0rc2 (main, ...)")->ToString(), "3.12.0rc2");
  EXPECT_EQ(ParseBanner("\0003.12.1+ (heads/main)"s)->ToString(), "3.12.1");
  EXPECT_EQ(ParseBanner("\0003.14.0 free-threading build (main)"s)->ToString(), "3.14.0");
}

TEST(Banner, OtherNumbersAreNone) {
  EXPECT_FALSE(ParseBanner(""));
  EXPECT_FALSE(ParseBanner("3."));
  EXPECT_FALSE(ParseBanner("\0003.1415926"s));
  EXPECT_FALSE(ParseBanner("libfoo 3.9.18 (main)"));  // in the middle of a text
  EXPECT_FALSE(ParseBanner("\0003.9.18\0 (main)"s));  // no banner behind the number
  EXPECT_FALSE(ParseBanner("\0003.900.1 (main)"s));
}

TEST(Banner, TheFirstOneThatFits) {
  EXPECT_EQ(ParseBanner("\0003.1\0003.x (\0003.10.13 (main)"s)->ToString(), "3.10.13");
}

TEST(FileName, OfLibrariesAndExecutables) {
  EXPECT_EQ(ParseFileName("libpython3.9.so.1.0")->minor, 9);
  EXPECT_EQ(ParseFileName("libpython3.13t.so.1.0")->minor, 13);
  EXPECT_EQ(ParseFileName("python3.11")->minor, 11);
  EXPECT_EQ(ParseFileName("libpython2.7.so.1.0")->major, 2);
  EXPECT_FALSE(ParseFileName("python3"));
  EXPECT_FALSE(ParseFileName("myservice"));
  EXPECT_FALSE(ParseFileName(""));
}

}  // namespace
}  // namespace pystrobe::remote
