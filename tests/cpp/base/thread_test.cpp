// SPDX-License-Identifier: Apache-2.0
#include "profiler/base/thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <string>

namespace pystrobe {
namespace {

using ::testing::HasSubstr;

TEST(StartThread, RunsTheFunction) {
  int answer = 0;
  auto thread = StartThread("the answer", [&answer] { answer = 42; });
  ASSERT_TRUE(thread);
  thread->join();
  EXPECT_EQ(answer, 42);
}

TEST(StartThread, NoRoomForAnotherIsAnError) {
  pthread_attr_t usual;
  ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
  pthread_attr_t huge = usual;
  // A stack of this size is in no address space.
  ASSERT_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 60), 0);
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  const auto thread = StartThread("the test", [] {});
  pthread_setattr_default_np(&usual);
  ASSERT_FALSE(thread);
  EXPECT_EQ(thread.error().code, ErrorCode::kIo);
  EXPECT_THAT(thread.error().message, HasSubstr("cannot start a thread for the test: "));
  EXPECT_THAT(thread.error().hint, HasSubstr("ulimit -u"));
}

}  // namespace
}  // namespace pystrobe
