// SPDX-License-Identifier: Apache-2.0
#include "cli/quality_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pystrobe::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Metadata WantedRate(double hz, double max_overhead = 0) {
  Metadata metadata;
  metadata.wanted_rate_hz = hz;
  metadata.max_overhead = max_overhead;
  return metadata;
}

Quality Good() {
  Quality quality;
  quality.deadlines = quality.taken = quality.proved = quality.samples = 9874;
  quality.duration_ns = 10'000'000'000;
  quality.held_ns = 38'000'000;
  quality.run_delay_ns = 41'000'000;
  quality.own_cpu_ns = 210'000'000;
  quality.achieved_rate_hz = 987.4;
  quality.final_rate_hz = 1000;
  quality.complete = true;
  quality.cpu_source = "schedstat";
  return quality;
}

TEST(QualityText, AGoodRun) {
  EXPECT_EQ(QualityText(WantedRate(1000), Good()),
            "Quality: 9,874 samples, 987 Hz of the 1,000 wanted; all proved exact; 0 late, 0 lost; "
            "target held 38.0 ms (0.38 %), of 41.0 ms that it waited for a CPU in all; own CPU 2.1 "
            "%.");
}

TEST(QualityText, DoubtIsNeverRoundedAway) {
  Quality quality = Good();
  quality.proved = 9873;
  quality.marked = 1;
  EXPECT_THAT(QualityText(WantedRate(1000), quality),
              HasSubstr("99.9 % proved exact, 1 marked as unproved"));
  quality.proved = 0;
  quality.marked = 9874;
  EXPECT_THAT(QualityText(WantedRate(1000), quality), HasSubstr("none proved exact"));
}

TEST(QualityText, SaysThatTheRateWasLowered) {
  Quality quality = Good();
  quality.final_rate_hz = 412;
  EXPECT_THAT(QualityText(WantedRate(1000, 0.01), quality),
              HasSubstr("(lowered to 412 Hz to hold the target at most 1.0 % of its time)"));
  EXPECT_THAT(QualityText(WantedRate(1000, 0.01), Good()), Not(HasSubstr("lowered")));
}

TEST(QualityText, TellsTheUnusual) {
  Quality quality = Good();
  quality.incomplete = 3;
  quality.unresolved = 2;
  quality.complete = false;
  quality.cpu_source = "stat";
  const std::string text = QualityText(WantedRate(1000), quality);
  EXPECT_THAT(text, HasSubstr("3 incomplete, 2 frames without a name"));
  EXPECT_THAT(text, HasSubstr("10 ms ticks"));
  EXPECT_THAT(text, HasSubstr("cut off"));
}

TEST(QualityText, NothingWasSampled) {
  EXPECT_EQ(QualityText(WantedRate(1000), Quality{.complete = true}),
            "Quality: 0 samples, 0 Hz of the 1,000 wanted; 0 late, 0 lost; target held 0 s (0 %); "
            "own CPU 0 "
            "%.");
}

}  // namespace
}  // namespace pystrobe::cli
