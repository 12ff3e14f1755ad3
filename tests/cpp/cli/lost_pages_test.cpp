// SPDX-License-Identifier: Apache-2.0
#include "cli/lost_pages.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profiler/base/thread.h"

namespace pystrobe::cli {
namespace {

constexpr size_t kPage = 4096;

/// Two pages of a file of which the second is lost.
const volatile char* HalfLost() {
  const int fd = memfd_create("half lost", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, 2 * kPage) != 0 || pwrite(fd, "ab", 2, kPage - 1) != 2) _exit(90);
  void* pages = mmap(nullptr, 2 * kPage, PROT_READ, MAP_PRIVATE, fd, 0);
  if (pages == MAP_FAILED || ftruncate(fd, kPage) != 0) _exit(91);
  return static_cast<const volatile char*>(pages);
}

/// How a process ends that does so and reads lost pages as zeros; another one, as the handler
/// stays.
template <typename Function>
int StatusWithHandler(Function act) {
  const pid_t process = fork();
  if (process == 0) {
    ReadLostPagesAsZeros();
    act();
    _exit(0);
  }
  int status = -1;
  waitpid(process, &status, 0);
  return status;
}

TEST(LostPagesTest, ReadAsZeros) {
  const int status = StatusWithHandler([] {
    const volatile char* file = HalfLost();
    _exit(file[kPage] == 0 && file[kPage - 1] == 'a' && file[2 * kPage - 1] == 0 ? 7 : 8);
  });
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(LostPagesTest, AlsoInThreadsThatBlockSignals) {
  const int status = StatusWithHandler([] {
    const volatile char* file = HalfLost();
    StartThread("reading", [file] { _exit(file[kPage] == 0 ? 7 : 8); })->join();
  });
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(LostPagesTest, AnotherReasonEndsTheProcess) {
  const int status = StatusWithHandler([] { raise(SIGBUS); });
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(WTERMSIG(status), SIGBUS);
}

}  // namespace
}  // namespace pystrobe::cli
