// SPDX-License-Identifier: Apache-2.0
#include "profiler/base/ascii.h"

#include <gtest/gtest.h>

namespace pystrobe {
namespace {

TEST(AsciiTest, KnowsItsDigitsAndLettersOnly) {
  int digits = 0, letters = 0, lowered = 0;
  for (int i = -128; i < 128; ++i) {
    const char c = static_cast<char>(i);
    digits += IsDigit(c);
    letters += IsLetter(c);
    lowered += ToLower(c) != c;
  }
  EXPECT_EQ(digits, 10);
  EXPECT_EQ(letters, 52);
  EXPECT_EQ(lowered, 26);
  EXPECT_EQ(ToLower('Z'), 'z');
  // A dotless i in a Turkish locale, and bytes of UTF-8.
  EXPECT_EQ(ToLower('I'), 'i');
  EXPECT_EQ(ToLower('\xc4'), '\xc4');
}

TEST(AsciiTest, ANumberHasADigit) {
  EXPECT_TRUE(IsNumber("0123456789"));
  EXPECT_FALSE(IsNumber(""));
  EXPECT_FALSE(IsNumber("-1"));
  EXPECT_FALSE(IsNumber("\xd9\xa1"));  // an Arabic one
}

TEST(AsciiTest, ComparesIgnoringCase) {
  EXPECT_TRUE(EqualsIgnoringCase(".HtML", ".html"));
  EXPECT_FALSE(EqualsIgnoringCase(".htm", ".html"));
  EXPECT_FALSE(EqualsIgnoringCase("[", "{"));
}

}  // namespace
}  // namespace pystrobe
