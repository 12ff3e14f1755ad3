// SPDX-License-Identifier: Apache-2.0
//
// Our own stack, unwound as somebody else's, against what libgcc finds.
#include "sampler/native/unwind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "sampler/remote/process_memory.h"

#ifdef __SANITIZE_THREAD__
// The handler of GoesThroughSignals allocates; but the signal comes when the test raises it.
extern "C" const char* __tsan_default_options() { return "report_signal_unsafe=0"; }
#endif

namespace pystrobe::native {
namespace {

using ::testing::ElementsAre;

/// Memory of ours, read where it lies.
struct InPlace {
  const std::byte* Find(Address address, size_t) const {
    return reinterpret_cast<const std::byte*>(address);
  }
};

struct Instructions : std::vector<Address> {
  bool Append(Address address) {
    push_back(address);
    return true;
  }
};

_Unwind_Reason_Code Note(_Unwind_Context* context, void* into) {
  const Address address = _Unwind_GetIP(context);
  // The outermost function is called from nowhere.
  if (address != 0) static_cast<std::vector<Address>*>(into)->push_back(address);
  return _URC_NO_REASON;
}

/// What both find, from the same function.
struct Found {
  std::vector<Address> ours, theirs;  // callers of the function that looked, theirs by libgcc
  StepResult end = StepResult::kUnknown;
};

class UnwindTest : public ::testing::Test {
 public:
  [[gnu::noinline]] void Look() {
    std::vector<Address> theirs;
    _Unwind_Backtrace(Note, &theirs);
    ucontext_t context;
    getcontext(&context);
    Instructions ours;
    RuleCache rules(binaries_);
    InPlace copy;
    UnwindCursor cursor{FromContext(context)};
    found_.end = UnwindOver(copy, rules, cursor, ours);
    // The first is Look itself, at two places.
    found_.ours.assign(ours.begin() + 1, ours.end());
    found_.theirs.assign(theirs.begin() + 1, theirs.end());
  }

  /// Theirs are addresses to return to, ours lie before.
  void ExpectSame() const {
    EXPECT_EQ(found_.end, StepResult::kOutermost);
    std::vector<Address> calls;
    for (Address address : found_.theirs) calls.push_back(address - 1);
    EXPECT_EQ(found_.ours, calls);
  }

 protected:
  remote::ProcessMemory memory_{getpid()};
  Binaries binaries_ = Binaries::Of(getpid(), memory_).value();
  Found found_;
};

UnwindTest* looking = nullptr;

TEST_F(UnwindTest, FindsWhatTheCompilersLibraryFinds) {
  Look();
  EXPECT_GT(found_.ours.size(), 5U);
  ExpectSame();
}

[[gnu::noinline]] int LookFromBelow(const void*, const void*) {
  if (looking->HasFailure()) return 0;
  looking->Look();
  return 0;
}

// Through a function of a library, which calls back.
TEST_F(UnwindTest, GoesThroughLibraries) {
  looking = this;
  const std::array<int, 2> two = {1, 2};
  std::bsearch(two.data(), two.data(), two.size(), sizeof two[0], LookFromBelow);
  ExpectSame();
}

// Its frame's address lies in memory, as its stack is aligned beyond what callers keep.
[[gnu::noinline]] void LookAligned(UnwindTest& test, size_t size) {
  alignas(64) volatile char aligned[64];
  volatile char* const some = static_cast<volatile char*>(__builtin_alloca(size));
  some[0] = 1;
  aligned[0] = 1;
  test.Look();
  some[0] = aligned[0];
}

TEST_F(UnwindTest, GoesThroughFunctionsThatAlignTheirStack) {
  LookAligned(*this, static_cast<size_t>(getpid()) % 100 + 1);
  ExpectSame();
}

void LookFromHandler(int) { looking->Look(); }

// From the handler to what the signal interrupted.
TEST_F(UnwindTest, GoesThroughSignals) {
  looking = this;
  struct sigaction action = {}, before = {};
  action.sa_handler = LookFromHandler;
  ASSERT_EQ(sigaction(SIGUSR2, &action, &before), 0);
  raise(SIGUSR2);
  sigaction(SIGUSR2, &before, nullptr);
  EXPECT_EQ(found_.end, StepResult::kOutermost);
  ASSERT_EQ(found_.ours.size(), found_.theirs.size());
  // The handler's caller, and what the signal interrupted, stand at the instruction itself.
  for (size_t i = 0; i < found_.ours.size(); ++i) {
    EXPECT_LE(found_.theirs[i] - found_.ours[i], 1U) << i;
  }
}

TEST_F(UnwindTest, EndsWhereNothingIsKnown) {
  UnwindCursor cursor;
  cursor.registers.value[kRip] = 0x1000;
  Instructions found;
  RuleCache rules(binaries_);
  InPlace copy;
  EXPECT_EQ(UnwindOver(copy, rules, cursor, found), StepResult::kUnknown);
  EXPECT_THAT(found, ElementsAre(0x1000));
}

struct NoRules {
  const UnwindRule* Find(Address) { return nullptr; }
};

// And goes on where others know more.
TEST_F(UnwindTest, GoesOnWhereItWasLeft) {
  ucontext_t context;
  getcontext(&context);
  UnwindCursor cursor{FromContext(context)};
  Instructions found, whole;
  InPlace copy;
  NoRules none;
  EXPECT_EQ(UnwindOver(copy, none, cursor, found), StepResult::kNotAsked);
  EXPECT_TRUE(found.empty());
  RuleCache rules(binaries_);
  EXPECT_EQ(UnwindOver(copy, rules, cursor, found), StepResult::kOutermost);
  cursor = {FromContext(context)};
  UnwindOver(copy, rules, cursor, whole);
  EXPECT_EQ(found, whole);
}

struct Nothing {
  const std::byte* Find(Address, size_t) const { return nullptr; }
};

TEST_F(UnwindTest, EndsWhereTheStackCannotBeRead) {
  ucontext_t context;
  getcontext(&context);
  Instructions found;
  RuleCache rules(binaries_);
  Nothing copy;
  UnwindCursor cursor{FromContext(context)};
  EXPECT_EQ(UnwindOver(copy, rules, cursor, found), StepResult::kUnreadable);
  EXPECT_EQ(found.size(), 1U);
}

/// The CFA is rbp + 16 and the caller's rbp lies below it, as where frame pointers are kept.
constexpr UnwindRule kByFramePointer = {.cfa = UnwindRule::Cfa::kRegister,
                                        .base = kRbp,
                                        .offset = 16,
                                        .saved = {UnwindRule::kUnchanged, -16}};

TEST(StepOver, ARegisterThatNobodyToldIsNotTaken) {
  const std::array<Address, 4> stack = {0, 0x4000, 0x401000, 0};
  const auto begin = reinterpret_cast<Address>(stack.data());
  InPlace copy;
  Registers registers;
  registers.value[kRsp] = begin;
  registers.value[kRbp] = begin + sizeof(Address);
  registers.unknown = 1U << kRbp | 1U << kRbx;
  EXPECT_EQ(StepOver(copy, kByFramePointer, registers), StepResult::kUnreadable);
  registers.unknown = 1U << kRbx;
  EXPECT_EQ(StepOver(copy, kByFramePointer, registers), StepResult::kStepped);
  EXPECT_EQ(registers.pc(), 0x401000U);
  EXPECT_FALSE(registers.Knows(kRbx));
}

TEST(StepOver, ARegisterThatACalleeSavedIsKnown) {
  const std::array<Address, 4> stack = {0x4000, 0x401000, 0, 0};
  constexpr UnwindRule kSavesRbp = {.cfa = UnwindRule::Cfa::kRegister,
                                    .base = kRsp,
                                    .offset = 16,
                                    .saved = {UnwindRule::kUnchanged, -16}};
  InPlace copy;
  Registers registers;
  registers.value[kRsp] = reinterpret_cast<Address>(stack.data());
  registers.unknown = 1U << kRbp;
  EXPECT_EQ(StepOver(copy, kSavesRbp, registers), StepResult::kStepped);
  EXPECT_TRUE(registers.Knows(kRbp));
  EXPECT_EQ(registers.value[kRbp], 0x4000U);
}

}  // namespace
}  // namespace pystrobe::native
