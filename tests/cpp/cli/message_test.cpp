// SPDX-License-Identifier: Apache-2.0
#include "cli/message.h"

#include <gtest/gtest.h>

#include <limits>

namespace pystrobe::cli {
namespace {

const Error kError{ErrorCode::kPermission, "process 4711 may not be read by this user",
                   "Allow it until the next boot:\nsudo sysctl kernel.yama.ptrace_scope=0"};

TEST(ErrorText, KeepsLinesWhereThereIsRoom) {
  EXPECT_EQ(ErrorText(kError, std::numeric_limits<int>::max()),
            "pystrobe: process 4711 may not be read by this user\n"
            "  Allow it until the next boot:\n"
            "  sudo sysctl kernel.yama.ptrace_scope=0\n");
}

TEST(ErrorText, WrapsMessageAndHint) {
  EXPECT_EQ(ErrorText(kError, 24),
            "pystrobe: process 4711\n"
            "  may not be read by\n"
            "  this user\n"
            "  Allow it until the\n"
            "  next boot:\n"
            "  sudo sysctl\n"
            "  kernel.yama.ptrace_scope=0\n");
}

TEST(ErrorText, ShowsControlCharactersAndLeavesAnEmptyHintOut) {
  EXPECT_EQ(ErrorText({ErrorCode::kIo, "a\x1b[2J", {}}, 80), "pystrobe: a\\x1b[2J\n");
}

}  // namespace
}  // namespace pystrobe::cli
