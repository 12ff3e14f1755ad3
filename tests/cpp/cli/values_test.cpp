// SPDX-License-Identifier: Apache-2.0
#include "cli/values.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace pystrobe::cli {
namespace {

void ExpectRefused(const auto& result, std::string_view seen) {
  ASSERT_FALSE(result) << seen;
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(result.error().message.find(fmt::format("'{}'", seen)), std::string::npos)
      << result.error().message;
  EXPECT_FALSE(result.error().hint.empty());
}

TEST(ParseRate, TakesNumbers) {
  EXPECT_EQ(ParseRate("1000").value(), 1000);
  EXPECT_EQ(ParseRate("0.5").value(), 0.5);
  EXPECT_EQ(ParseRate("2e3").value(), 2000);
  EXPECT_EQ(ParseRate("100Hz").value(), 100);
  EXPECT_EQ(ParseRate("1000000").value(), 1e6);
}

TEST(ParseRate, RefusesTheRest) {
  for (const std::string_view text : {"0", "-1", "-0", "nan", "inf", "1e9", "1e999", "1e-9", "",
                                      "fast", "10x", "1,000", "0x10"}) {
    ExpectRefused(ParseRate(text), text);
  }
}

TEST(ParseDuration, TakesUnits) {
  using std::chrono::milliseconds;
  EXPECT_EQ(ParseDuration("-d", "10").value(), std::chrono::seconds(10));
  EXPECT_EQ(ParseDuration("-d", "2.5").value(), milliseconds(2500));
  EXPECT_EQ(ParseDuration("-d", "500ms").value(), milliseconds(500));
  EXPECT_EQ(ParseDuration("-d", "3s").value(), std::chrono::seconds(3));
  EXPECT_EQ(ParseDuration("-d", "2m").value(), std::chrono::minutes(2));
  EXPECT_EQ(ParseDuration("-d", "1h").value(), std::chrono::hours(1));
  EXPECT_EQ(ParseDuration("-d", "1h30m").value(), std::chrono::minutes(90));
  EXPECT_EQ(ParseDuration("-d", "1m1.5s").value(), milliseconds(61'500));
  EXPECT_EQ(ParseDuration("--since", "0", true).value(), Nanoseconds(0));
}

TEST(ParseDuration, RefusesTheRest) {
  for (const std::string_view text : {"0", "1e-12", "-5", "nan", "1e300", "", "ten", "10 s", "1d",
                                      "-5s", "1h30", "1h-30m", "1hm", "1h 30m"}) {
    ExpectRefused(ParseDuration("-d", text), text);
  }
  ExpectRefused(ParseDuration("--since", "-1", true), "-1");
}

TEST(ParseShare, TakesPercentAndFractions) {
  EXPECT_DOUBLE_EQ(ParseShare("--max-overhead", "1%").value(), 0.01);
  EXPECT_DOUBLE_EQ(ParseShare("--max-overhead", "0.01").value(), 0.01);
  EXPECT_DOUBLE_EQ(ParseShare("--max-overhead", "0.5%").value(), 0.005);
  EXPECT_DOUBLE_EQ(ParseShare("--max-overhead", "100%").value(), 1);
}

TEST(ParseShare, RefusesWhatIsAmbiguousOrNone) {
  for (const std::string_view text :
       {"1", "5", "0", "0%", "-1%", "101%", "nan", "", "%", "one", "1 %"}) {
    ExpectRefused(ParseShare("--max-overhead", text), text);
  }
  EXPECT_NE(ParseShare("--max-overhead", "5").error().hint.find("5%"), std::string::npos);
}

TEST(ParsePid, TakesProcessIds) {
  EXPECT_EQ(ParsePid("1").value(), 1);
  EXPECT_EQ(ParsePid("4194304").value(), 4194304);
  for (const std::string_view text :
       {"0", "-1", "", "12a", "+5", "1.5", "python", "99999999999", "99999999999999999999999"}) {
    ExpectRefused(ParsePid(text), text);
  }
}

TEST(ParsePid, RefusesOurOwn) {
  const std::string ours = std::to_string(getpid());
  ExpectRefused(ParsePid(ours), ours);
  EXPECT_TRUE(ParsePid(std::to_string(getppid())));
}

TEST(ParseCount, TakesWholeNumbers) {
  EXPECT_EQ(ParseCount("--top", "30").value(), 30u);
  for (const std::string_view text : {"0", "-3", "many", "3.5", "", "99999999999"}) {
    ExpectRefused(ParseCount("--top", text), text);
  }
}

}  // namespace
}  // namespace pystrobe::cli
