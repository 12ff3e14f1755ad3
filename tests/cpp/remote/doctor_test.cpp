// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

namespace pystrobe::remote {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const Check* Named(const std::vector<Check>& checks, std::string_view name) {
  auto found = std::find_if(checks.begin(), checks.end(),
                            [&](const Check& check) { return check.name == name; });
  return found == checks.end() ? nullptr : &*found;
}

TEST(Doctor, OfTheMachineEverythingIsSeen) {
  std::vector<Check> checks = CheckMachine();
  EXPECT_GE(checks.size(), 9U);
  for (const Check& check : checks) {
    EXPECT_NE(check.seen, "") << check.name;
    // What is not well must be explained.
    if (check.state != CheckState::kOk) {
      EXPECT_NE(check.meaning, "") << check.name << ": " << check.seen;
    }
  }
}

TEST(Doctor, OurOwnChildCanBeRead) {
  const std::vector<Check> checks = CheckMachine();
  const Check* reading = Named(checks, "reading memory");
  ASSERT_NE(reading, nullptr);
  EXPECT_NE(reading->state, CheckState::kFail) << reading->seen;
  EXPECT_THAT(reading->seen, HasSubstr("us for 4 KiB"));
}

TEST(Doctor, AProcessThatIsNoPythonFailsWithItsName) {
  const std::vector<Check> checks = CheckProcess(getpid());  // this test program
  const Check* interpreter = Named(checks, "interpreter");
  ASSERT_NE(interpreter, nullptr);
  EXPECT_EQ(interpreter->state, CheckState::kFail);
  EXPECT_THAT(interpreter->seen, HasSubstr("remote_test"));
}

TEST(Doctor, AProcessThatIsNotThereIsTheOnlyThingSaid) {
  const std::vector<Check> checks = CheckProcess(0x3ffffff);
  ASSERT_EQ(checks.size(), 1U);
  EXPECT_EQ(checks[0].state, CheckState::kFail);
  EXPECT_THAT(checks[0].seen, HasSubstr("no process"));
}

}  // namespace
}  // namespace pystrobe::remote
