// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/thread_names.h"

#include <gtest/gtest.h>

#include "tests/cpp/pyabi/fake_memory.h"

namespace pystrobe::remote {
namespace {

TEST(ThreadNames, AreReadOnceForEachInterpreter) {
  pyabi::FakeMemory memory;  // in which no names are: one read finds that out
  const pyabi::Layout layout;
  ThreadNames names(memory, layout);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(names.Of(i % 2 == 0 ? 0x1000 : 0x2000).empty());
  EXPECT_EQ(memory.reads(), 2);
}

}  // namespace
}  // namespace pystrobe::remote
