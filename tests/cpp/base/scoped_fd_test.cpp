// SPDX-License-Identifier: Apache-2.0
#include "profiler/base/scoped_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

namespace pystrobe {
namespace {

ScopedFd MakeFile() { return ScopedFd(memfd_create("test", MFD_CLOEXEC)); }
bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

TEST(ScopedFd, ClosesItsOwn) {
  int number = -1;
  {
    const ScopedFd fd = MakeFile();
    number = fd.get();
    EXPECT_TRUE(fd.IsIntact());
    EXPECT_TRUE(IsOpen(number));
  }
  EXPECT_FALSE(IsOpen(number));
}

TEST(ScopedFd, GoesWhereItIsMovedTo) {
  ScopedFd from = MakeFile();
  const int number = from.get();
  ScopedFd to = MakeFile();
  const int old = to.get();
  to = std::move(from);
  EXPECT_FALSE(from.valid());  // NOLINT(bugprone-use-after-move)
  EXPECT_FALSE(from.IsIntact());
  EXPECT_EQ(to.get(), number);
  EXPECT_TRUE(to.IsIntact());
  EXPECT_FALSE(IsOpen(old));
  to.reset();
  EXPECT_FALSE(to.valid());
  EXPECT_FALSE(IsOpen(number));
}

TEST(ScopedFd, LeavesAnotherFileUnderItsNumberAlone) {
  int number = -1;
  {
    const ScopedFd fd = MakeFile();
    number = fd.get();
    ScopedFd other = MakeFile();
    ASSERT_EQ(dup2(other.get(), number), number);
    EXPECT_TRUE(fd.valid());
    EXPECT_FALSE(fd.IsIntact());
  }
  EXPECT_TRUE(IsOpen(number));
  close(number);
}

TEST(ScopedFd, IsNotIntactWhenItIsClosed) {
  const ScopedFd fd = MakeFile();
  close(fd.get());
  EXPECT_FALSE(fd.IsIntact());
}

TEST(ScopedFd, NoneIsNothing) {
  ScopedFd none;
  EXPECT_FALSE(none.valid());
  EXPECT_FALSE(none.IsIntact());
  EXPECT_FALSE(ScopedFd(-1).valid());
}

}  // namespace
}  // namespace pystrobe
