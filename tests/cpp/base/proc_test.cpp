// SPDX-License-Identifier: Apache-2.0
#include "profiler/base/proc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

namespace pystrobe {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Maps, AMappingOfAFile) {
  auto maps =
      ParseMaps("7f2c4a200000-7f2c4a222000 r-xp 0001f000 fe:01 1835 /usr/lib/a b/libc.so.6\n");
  ASSERT_EQ(maps.size(), 1U);
  EXPECT_EQ(maps[0].start, 0x7f2c4a200000U);
  EXPECT_EQ(maps[0].end, 0x7f2c4a222000U);
  EXPECT_EQ(maps[0].offset, 0x1f000U);
  EXPECT_EQ(maps[0].inode, 1835U);
  EXPECT_TRUE(maps[0].readable);
  EXPECT_FALSE(maps[0].writable);
  EXPECT_TRUE(maps[0].executable);
  EXPECT_FALSE(maps[0].deleted);
  EXPECT_EQ(maps[0].path, "/usr/lib/a b/libc.so.6");
}

TEST(Maps, AnonymousSpecialDeletedAndEscaped) {
  auto maps = ParseMaps(
      "00400000-00401000 rw-p 00000000 00:00 0 \n"
      "00401000-00402000 rw-p 00000000 00:00 0                          [heap]\n"
      "00402000-00403000 r--p 00000000 fe:01 7                          /opt/python3 (deleted)\n"
      "00403000-00404000 ---p 00000000 fe:01 8                          /tmp/a\\012b\\c");
  ASSERT_EQ(maps.size(), 4U);
  EXPECT_EQ(maps[0].path, "");
  EXPECT_EQ(maps[1].path, "[heap]");
  EXPECT_EQ(maps[2].path, "/opt/python3");
  EXPECT_TRUE(maps[2].deleted);
  EXPECT_EQ(maps[3].path, "/tmp/a\nb\\c");
  EXPECT_FALSE(maps[3].readable);
}

TEST(Maps, LinesThatAreNoneAreLeftOut) {
  EXPECT_THAT(ParseMaps(""), IsEmpty());
  EXPECT_THAT(ParseMaps("\n\nnonsense\n12-zz r-xp 0 0:0 0\n20-10 r-xp 0 0:0 0\n"), IsEmpty());
  EXPECT_THAT(ParseMaps("00400000-00401000 r\n"), IsEmpty());
}

TEST(TaskStat, ANameWithBracketsAndBlanks) {
  auto stat = ParseTaskStat(
      "42 (a) R (b c) S 7 42 42 0 -1 4194304 1 2 3 4 100 200 5 6 20 0 3 0 123456 1 2 "
      "18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 3 0 0 0 0 0 0 0 0 0 0 0 0 0\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->name, "a) R (b c");
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->parent, 7);
  EXPECT_EQ(stat->user_ticks, 100U);
  EXPECT_EQ(stat->system_ticks, 200U);
  EXPECT_EQ(stat->child_ticks, 11U);
  EXPECT_EQ(stat->start_ticks, 123456U);
  EXPECT_EQ(stat->processor, 3);
  EXPECT_FALSE(stat->is_kernel_thread);
}

TEST(TaskStat, TellsAThreadOfTheKernel) {
  const auto stat = ParseTaskStat(
      "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 9 0 0 20 0 1 0 1 0 0 18446744073709551615 0 0 0 "
      "0 0 0 0 2147483647 0 0 0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n");
  ASSERT_TRUE(stat);
  EXPECT_TRUE(stat->is_kernel_thread);
}

TEST(TaskStat, CutOffOrForeignTextIsRefused) {
  EXPECT_FALSE(ParseTaskStat(""));
  EXPECT_FALSE(ParseTaskStat("42 (cat"));
  EXPECT_FALSE(ParseTaskStat("42 (cat) S 1 2 3"));
  EXPECT_FALSE(ParseTaskStat(")("));
}

TEST(SchedStat, ThreeNumbers) {
  auto stat = ParseSchedStat("1234567890123 42 7\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->cpu_ns, 1234567890123U);
  EXPECT_EQ(stat->run_delay_ns, 42U);
  EXPECT_EQ(stat->switches, 7U);
  EXPECT_FALSE(ParseSchedStat("1 2"));
  EXPECT_FALSE(ParseSchedStat("1 x 3"));
}

TEST(Status, TheFieldsWeUse) {
  ProcessStatus status = ParseStatus(
      "Name:\tUid: 9\nTracerPid:\t12\nUid:\t1000\t1001\t1002\t1003\nGid:\t100\t100\t100\t100\n"
      "NSpid:\t4711\t12\t1\nThreads:\t3\nCapPrm:\t0000000000080000\nCapEff:\t000001ffffffffff\n"
      "Seccomp:\t2\n");
  EXPECT_EQ(status.real_uid, 1000U);
  EXPECT_EQ(status.effective_uid, 1001U);
  EXPECT_EQ(status.saved_uid, 1002U);
  EXPECT_EQ(status.real_gid, 100U);
  EXPECT_EQ(status.tracer, 12);
  EXPECT_EQ(status.seccomp, 2);
  EXPECT_EQ(status.thread_count, 3);
  EXPECT_EQ(status.effective_capabilities, 0x1ffffffffffU);
  EXPECT_EQ(status.permitted_capabilities, 0x80000U);
  EXPECT_THAT(status.namespace_pids, ElementsAre(4711, 12, 1));
}

TEST(Status, NothingKnownGivesDefaults) {
  ProcessStatus status = ParseStatus("Uid:\nNSpid:\nThreads:\tmany\n");
  EXPECT_EQ(status.thread_count, 0);
  EXPECT_THAT(status.namespace_pids, IsEmpty());
}

TEST(Proc, OurOwnProcess) {
  auto maps = ReadMaps(getpid());
  ASSERT_TRUE(maps);
  int on_stack = 0;
  auto address = reinterpret_cast<uint64_t>(&on_stack);
  EXPECT_TRUE(std::any_of(maps->begin(), maps->end(), [&](const Mapping& mapping) {
    return mapping.start <= address && address < mapping.end && mapping.writable &&
           mapping.path == "[stack]";
  }));
  auto stat = ReadTaskStat(getpid(), getpid());
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->parent, getppid());
  EXPECT_EQ(stat->state, 'R');
  auto status = ReadStatus(getpid());
  ASSERT_TRUE(status);
  EXPECT_EQ(status->effective_uid, geteuid());
  EXPECT_EQ(ReadLink("/proc/self/cwd").value_or(""), std::filesystem::current_path().string());
}

TEST(Proc, TasksAreTheThreads) {
  std::thread([] {
    auto tid = static_cast<pid_t>(syscall(SYS_gettid));
    EXPECT_THAT(ListTasks(getpid()).value(), Contains(tid));
    EXPECT_EQ(ReadTaskStatus(getpid(), tid).value().namespace_pids.back(), tid);
  }).join();
}

TEST(Proc, WhatIsNotThereSaysSo) {
  pid_t nobody = 0x3ffffff;  // above the kernel's highest pid
  EXPECT_EQ(ReadMaps(nobody).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(ListTasks(nobody).error().code, ErrorCode::kExited);
  EXPECT_EQ(ReadSmallFile("/proc/self/no-such-file").error().code, ErrorCode::kNotFound);
  EXPECT_THAT(ReadCommandLine(nobody), IsEmpty());
}

}  // namespace
}  // namespace pystrobe
