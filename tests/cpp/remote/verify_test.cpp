// SPDX-License-Identifier: Apache-2.0
//
// A real interpreter, and layouts that it does not have.
#include "sampler/remote/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <optional>

#include "tests/cpp/support/child.h"
#include "tests/cpp/support/python_target.h"

namespace pystrobe::remote {
namespace {

using pyabi::kAbsent;
using pyabi::Layout;
using ::testing::HasSubstr;

constexpr const char* kProgram =
    "def outer(): inner()\n"
    "def inner():\n"
    "  print('up', flush=True)\n"
    "  while True: pass\n"
    "outer()\n";
constexpr size_t kFrames = 3;  // with the module's

class VerifyTest : public PythonTarget {
 protected:
  VerifyTest() : PythonTarget(kProgram, "up") {}

  void SetUp() override {
    PythonTarget::SetUp();
    if (HasFatalFailure()) return;
    layout_ = target_->layout();
  }

  Result<Verified> Verify(std::optional<Address> code_type, ThreadIds& ids) const {
    return VerifyLayout(target_->memory(), layout_, target_->info().runtime, code_type, ids);
  }
  Result<Verified> Verify() {
    ThreadIds ids(program_.pid());
    return Verify(target_->info().code_type, ids);
  }
  void ExpectRefusal(const Result<Verified>& result, ErrorCode code, const char* message) const {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, code);
    EXPECT_THAT(result.error().message, HasSubstr(message));
  }

  /// Makes the program one that runs no Python code, as far as can be seen: there is no next
  /// thread.
  void HideFrames() {
    layout_.thread.cframe = kAbsent;
    layout_.thread.frame = layout_.thread.next;
  }

  Layout layout_;
};

TEST_F(VerifyTest, WhatBelongsTogetherHolds) {
  const auto verified = Verify();
  ASSERT_TRUE(verified) << verified.error().message;
  EXPECT_EQ(verified->code_type, target_->info().code_type);
  EXPECT_EQ(verified->interpreters, 1U);
  EXPECT_EQ(verified->threads, 1U);
  EXPECT_EQ(verified->frames, kFrames);
}

TEST_F(VerifyTest, TheTypeOfCodeIsFoundByTheFrames) {
  ThreadIds ids(program_.pid());
  const auto verified = Verify(std::nullopt, ids);
  ASSERT_TRUE(verified) << verified.error().message;
  EXPECT_EQ(verified->code_type, target_->info().code_type);
  EXPECT_EQ(verified->frames, kFrames);
}

TEST_F(VerifyTest, AProgramMayRunNoPythonCode) {
  HideFrames();
  const auto verified = Verify();
  ASSERT_TRUE(verified) << verified.error().message;
  EXPECT_EQ(verified->frames, 0U);
  EXPECT_EQ(verified->threads, 1U);
}

TEST_F(VerifyTest, AnotherTypeIsNotThatOfCode) {
  const Address code_type = target_->info().code_type;
  const auto type = target_->memory().Read<Address>(code_type + layout_.object.type);
  ASSERT_TRUE(type);
  ThreadIds ids(program_.pid());
  ExpectRefusal(Verify(*type, ids), ErrorCode::kUnsupported, "is not a type called 'code'");
}

TEST_F(VerifyTest, FramesHaveToLeadToCode) {
  layout_.frame.code += 8;
  ExpectRefusal(Verify(), ErrorCode::kUnsupported, "frame 0x");
}

TEST_F(VerifyTest, CodeHasToHaveNames) {
  layout_.code.filename = layout_.code.first_line;  // where no string is
  ExpectRefusal(Verify(), ErrorCode::kUnsupported, "makes no sense");
}

TEST_F(VerifyTest, ThreadStatesHaveToPointBack) {
  layout_.thread.interp = layout_.thread.next;
  ExpectRefusal(Verify(), ErrorCode::kUnsupported, "points to interpreter 0x0");
}

TEST_F(VerifyTest, ThreadIdsHaveToBeTheCLibrarys) {
  if (layout_.thread.native_thread_id == kAbsent) GTEST_SKIP() << "they are how it finds threads";
  HideFrames();
  layout_.thread.thread_id = layout_.thread.interp;
  ExpectRefusal(Verify(), ErrorCode::kUnsupported, "is not the thread structure of thread");
}

TEST_F(VerifyTest, WhoHasTheLockHasToBeAThread) {
  if (layout_.free_threaded) GTEST_SKIP() << "there is no lock";
  HideFrames();
  layout_.gil.last_holder = layout_.gil.switch_number;
  ExpectRefusal(Verify(), ErrorCode::kUnsupported, "is no thread state");
}

TEST_F(VerifyTest, ThreadsHaveToBeThoseOfTheProcess) {
  if (layout_.thread.native_thread_id == kAbsent) GTEST_SKIP() << "thread states have no ids";
  ThreadIds ours(getpid());
  ExpectRefusal(Verify(target_->info().code_type, ours), ErrorCode::kUnsupported,
                "none of the 1 thread states belongs to a thread of the process");
}

TEST_F(VerifyTest, ARuntimeHasToBeReadable) {
  ThreadIds ids(program_.pid());
  const auto result =
      VerifyLayout(target_->memory(), layout_, 4096, target_->info().code_type, ids);
  ExpectRefusal(result, ErrorCode::kUnsupported, "unreadable");
}

TEST_F(VerifyTest, AnInterpreterThatHasNotStartedIsNone) {
  const std::array<std::byte, 4096> nothing{};
  ASSERT_LT(layout_.runtime.interpreters_head, nothing.size() - 8);
  ThreadIds ids(getpid());
  const auto result = VerifyLayout(ProcessMemory(getpid()), layout_,
                                   reinterpret_cast<Address>(&nothing), std::nullopt, ids);
  ExpectRefusal(result, ErrorCode::kNotPython, "has not started");
}

TEST_F(VerifyTest, AProcessThatEndsMeanwhileIsSaidToHaveEnded) {
  const pid_t ended = pystrobe::testing::Child([] {}).pid();
  ThreadIds ids(ended);
  ExpectRefusal(Verify(target_->info().code_type, ids), ErrorCode::kExited, "");
}

}  // namespace
}  // namespace pystrobe::remote
