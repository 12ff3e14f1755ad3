// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <gtest/gtest.h>

namespace pystrobe::cli {
namespace {

remote::Progress TwelveSeconds() {
  remote::Progress progress;
  progress.elapsed = std::chrono::milliseconds(12'000);
  progress.quality.taken = 11'998;
  return progress;
}

TEST(ProgressText, IsAsItsContractShows) {
  EXPECT_EQ(ProgressText(TwelveSeconds(), 80),
            "0:12  11,998 samples  1,000 Hz  (Ctrl-C stops and reports)");
}

TEST(ProgressText, IsCutToItsWidth) {
  EXPECT_EQ(ProgressText(TwelveSeconds(), 20), "0:12  11,998 samples");
}

}  // namespace
}  // namespace pystrobe::cli
