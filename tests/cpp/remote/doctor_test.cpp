// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace pystrobe::remote {
namespace {

namespace fs = std::filesystem;

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

class DoctorGpuTest : public ::testing::Test {
 protected:
  DoctorGpuTest() {
    std::string pattern = fs::temp_directory_path() / "doctor_test.XXXXXX";
    root_ = mkdtemp(pattern.data());
    fs::create_directories(root_ / "proc/driver/nvidia");
    fs::create_directories(root_ / "dev");
  }
  ~DoctorGpuTest() override { fs::remove_all(root_); }
  void Write(const char* path, std::string_view text) const { std::ofstream(root_ / path) << text; }
  std::optional<Check> Look() const { return CheckGpu(root_); }

  fs::path root_;
};

TEST_F(DoctorGpuTest, IsNotSpokenOfWithoutADriver) { EXPECT_FALSE(Look()); }

TEST_F(DoctorGpuTest, TellsTheDriverAndWhatElseMayBeAsked) {
  Write("proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03  Release Build\n"
        "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n");
  Write("dev/nvidiactl", "");
  const auto check = Look();
  ASSERT_TRUE(check);
  EXPECT_EQ(check->state, CheckState::kOk);
  EXPECT_EQ(check->seen, "NVIDIA driver 580.159.03");
  EXPECT_THAT(check->meaning, HasSubstr("gpu.why_not()"));
}

TEST_F(DoctorGpuTest, AContainerWithoutTheDevicesIsToldHowToGetThem) {
  Write("proc/driver/nvidia/version", "");
  const auto check = Look();
  ASSERT_TRUE(check);
  EXPECT_EQ(check->state, CheckState::kWarn);
  EXPECT_THAT(check->seen, HasSubstr("cannot be read"));
  EXPECT_THAT(check->cure, HasSubstr("--gpus all"));
}

TEST_F(DoctorGpuTest, ADeviceThatMayNotBeOpenedIsNotThere) {
  Write("proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54  Thu");
  fs::create_directory(root_ / "dev/nvidiactl");  // for root too
  const auto check = Look();
  ASSERT_TRUE(check);
  EXPECT_EQ(check->state, CheckState::kWarn);
  EXPECT_EQ(check->seen, "NVIDIA driver 550.54");
  EXPECT_THAT(check->cure, HasSubstr("group"));
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
