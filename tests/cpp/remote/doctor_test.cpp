// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "sampler/remote/doctor_checks.h"

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

void ExpectExplained(const Check& check) {
  EXPECT_NE(check.seen, "") << check.name;
  EXPECT_NE(check.meaning, "") << check.name << ": " << check.seen;
  EXPECT_NE(check.cure, "") << check.name << ": " << check.seen;
}

TEST(Doctor, OfTheMachineEverythingIsSeen) {
  std::vector<Check> checks = CheckMachine();
  EXPECT_GE(checks.size(), 9U);
  for (const Check& check : checks) {
    EXPECT_NE(check.seen, "") << check.name;
    if (check.state != CheckState::kOk) ExpectExplained(check);
  }
}

utsname Kernel(std::string_view release) {
  utsname name{};
  std::ranges::copy(release, name.release);
  return name;
}

TEST(Doctor, OfAnythingThatIsNotWellTheCureIsTold) {
  TargetInfo without_rseq;
  without_rseq.rseq_reason = "its C library is old";
  const std::pair<Check, std::string> told[] = {
      {CheckKernel(Kernel("3.10.0-1160.el7")), "4.18"},
      {CheckReadingTime(31), "-r 50"},
      {CheckCpuCount(1, 8), "taskset -c 0-7"},
      {CheckCpuCount(1, 1), "second CPU"},
      {CheckPriority(false), "rtprio 1"},
      {CheckTracer("gdb (process 12)"), "End gdb (process 12)"},
      {CheckRseq(without_rseq), "glibc 2.35"},
      {CheckScheduling(34, 2), "chrt --all-tasks --other --pid 0 34"},
  };
  for (const auto& [check, cure] : told) {
    EXPECT_EQ(check.state, CheckState::kWarn) << check.name;
    ExpectExplained(check);
    EXPECT_THAT(check.cure, HasSubstr(cure));
  }
}

TEST(Doctor, WhatIsWellNeedsNoCure) {
  TargetInfo with_rseq;
  with_rseq.rseq_offset = 2464;
  for (const Check& check : {CheckKernel(Kernel("4.18.0")), CheckKernel(Kernel("6.1.0-18-amd64")),
                             CheckReadingTime(2), CheckCpuCount(2, 8), CheckPriority(true),
                             CheckTracer(""), CheckRseq(with_rseq), CheckScheduling(34, 0)}) {
    EXPECT_EQ(check.state, CheckState::kOk) << check.name;
    EXPECT_EQ(check.cure, "") << check.name;
  }
}

TEST(Doctor, OurOwnChildCanBeRead) {
  const std::vector<Check> checks = CheckMachine();
  const Check* reading = Named(checks, "reading memory");
  ASSERT_NE(reading, nullptr);
  EXPECT_NE(reading->state, CheckState::kFail) << reading->seen;
  EXPECT_THAT(reading->seen, HasSubstr("us for 4 KiB"));
}

/// A file system of its own to look at.
class DoctorRootTest : public ::testing::Test {
 protected:
  DoctorRootTest() {
    std::string pattern = fs::temp_directory_path() / "doctor_test.XXXXXX";
    root_ = mkdtemp(pattern.data());
  }
  ~DoctorRootTest() override { fs::remove_all(root_); }
  void Write(const char* path, std::string_view text) const { std::ofstream(root_ / path) << text; }

  fs::path root_;
};

class DoctorYamaTest : public DoctorRootTest {
 protected:
  DoctorYamaTest() { fs::create_directories(root_ / "proc/sys/kernel/yama"); }
  Check Look(std::string_view scope, bool privileged) const {
    Write("proc/sys/kernel/yama/ptrace_scope", scope);
    return CheckYama(privileged, root_);
  }
};

TEST_F(DoctorYamaTest, WithoutItNothingIsForbidden) {
  const Check check = CheckYama(false, root_);
  EXPECT_EQ(check.state, CheckState::kOk);
  EXPECT_EQ(check.seen, "not in this kernel");
}

TEST_F(DoctorYamaTest, LetsThePrivilegedUpToTwo) {
  for (const std::string scope : {"0", "1", "2"}) {
    const Check check = Look(scope + "\n", /*privileged=*/true);
    EXPECT_EQ(check.state, CheckState::kOk) << scope;
    EXPECT_EQ(check.seen, "kernel.yama.ptrace_scope = " + scope);
    EXPECT_EQ(check.cure, "");
  }
  EXPECT_EQ(Look("0\n", /*privileged=*/false).state, CheckState::kOk);
}

TEST_F(DoctorYamaTest, TellsOthersWhatIsLeftToThem) {
  const Check one = Look("1\n", /*privileged=*/false);
  EXPECT_EQ(one.state, CheckState::kWarn);
  EXPECT_THAT(one.meaning, HasSubstr("pystrobe run"));
  EXPECT_THAT(one.cure, HasSubstr("sysctl kernel.yama.ptrace_scope=0"));
  const Check two = Look("2\n", /*privileged=*/false);
  EXPECT_EQ(two.state, CheckState::kWarn);
  EXPECT_THAT(two.meaning, HasSubstr("only with CAP_SYS_PTRACE"));
  ExpectExplained(two);
}

TEST_F(DoctorYamaTest, ThreeStopsEverybody) {
  for (const bool privileged : {false, true}) {
    const Check check = Look("3\n", privileged);
    EXPECT_EQ(check.state, CheckState::kFail);
    EXPECT_THAT(check.cure, HasSubstr("/etc/sysctl.d"));
  }
}

class DoctorGpuTest : public DoctorRootTest {
 protected:
  DoctorGpuTest() {
    fs::create_directories(root_ / "proc/driver/nvidia");
    fs::create_directories(root_ / "dev");
  }
  std::optional<Check> Look() const { return CheckGpu(root_); }
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
  ExpectExplained(*interpreter);
}

TEST(Doctor, AProcessThatIsNotThereIsTheOnlyThingSaid) {
  const std::vector<Check> checks = CheckProcess(0x3ffffff);
  ASSERT_EQ(checks.size(), 1U);
  EXPECT_EQ(checks[0].state, CheckState::kFail);
  EXPECT_THAT(checks[0].seen, HasSubstr("no process"));
  ExpectExplained(checks[0]);
}

}  // namespace
}  // namespace pystrobe::remote
