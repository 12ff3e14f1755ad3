// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/task_clock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>
#include <thread>

namespace pystrobe::remote {
namespace {

// No descriptor is to be had while it lives.
class NoDescriptors {
 public:
  NoDescriptors() {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit none{0, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

pid_t ThreadThatEnded() {
  pid_t tid = 0;
  std::thread([&] { tid = gettid(); }).join();
  while (access(("/proc/self/task/" + std::to_string(tid)).c_str(), F_OK) == 0) {
  }
  return tid;
}

TEST(TaskClock, KeepsNoMoreFilesOpenThanItMay) {
  TaskFiles files(2);
  {
    TaskClock first(files, getpid(), gettid()), second(files, getpid(), gettid());
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(first.Read());
      first.Running();
      EXPECT_TRUE(second.Read());
      second.Running();
    }
    EXPECT_EQ(files.kept(), 2U);
  }
  EXPECT_EQ(files.kept(), 0U);
}

TEST(TaskClock, LendsFilesUntilTheyAreClosed) {
  TaskFiles files(1);
  TaskClock first(files, getpid(), gettid()), second(files, getpid(), gettid());
  const int kept = first.stat_fd();
  const int lent = second.stat_fd();
  ASSERT_GE(lent, 0);
  EXPECT_EQ(second.stat_fd(), lent) << "no further one for the same file";
  EXPECT_EQ(second.syscall_fd(), -1) << "no more than it may";
  files.CloseLent();
  EXPECT_EQ(fcntl(lent, F_GETFD), -1);
  EXPECT_EQ(first.stat_fd(), kept);
  EXPECT_NE(fcntl(kept, F_GETFD), -1);
  EXPECT_GE(second.syscall_fd(), 0);
}

TEST(TaskClock, AThreadThatEndedIsGone) {
  TaskFiles files(2);
  TaskClock clock(files, getpid(), ThreadThatEnded());
  EXPECT_FALSE(clock.Read());
  EXPECT_FALSE(clock.unknown());
  EXPECT_FALSE(clock.Running());
}

TEST(TaskClock, WithoutDescriptorsAThreadIsNotGone) {
  TaskFiles files(0);
  TaskClock fresh(files, getpid(), gettid()), known(files, getpid(), gettid());
  const auto before = known.Read();
  const NoDescriptors none;
  EXPECT_FALSE(fresh.Read());
  EXPECT_TRUE(fresh.unknown());
  EXPECT_TRUE(fresh.Running()) << "nobody can say that it sleeps";
  const auto after = known.Read();
  ASSERT_TRUE(before && after);
  EXPECT_EQ(after->cpu_ns, before->cpu_ns);
  EXPECT_TRUE(known.unknown());
}

}  // namespace
}  // namespace pystrobe::remote
