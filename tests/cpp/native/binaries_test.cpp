// SPDX-License-Identifier: Apache-2.0
#include "sampler/native/binaries.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <vector>

#include "sampler/native/function_range.h"
#include "sampler/remote/process_memory.h"
#include "tests/cpp/native/inlined.h"

namespace pystrobe::native {
namespace {

template <typename T>
Address AddressOf(T* pointer) {
  return reinterpret_cast<Address>(pointer);
}

class BinariesTest : public ::testing::Test {
 protected:
  remote::ProcessMemory memory_{getpid()};
  Binaries binaries_ = Binaries::Of(getpid(), memory_).value();
};

TEST_F(BinariesTest, KnowsFunctionsByName) {
  const NativePlace place = binaries_.PlaceOf(AddressOf(&inlined::Outer), false);
  ASSERT_EQ(place.functions.size(), 1U);
  EXPECT_EQ(place.functions[0].name, "pystrobe::native::inlined::Outer");
  EXPECT_EQ(place.functions[0].file, "");
  EXPECT_THAT(place.binary, ::testing::EndsWith("native_test"));
  const NativePlace library =
      binaries_.PlaceOf(AddressOf(dlsym(RTLD_DEFAULT, "getpagesize")), false);
  EXPECT_THAT(library.binary, ::testing::HasSubstr("libc.so"));
  ASSERT_FALSE(library.functions.empty());
  EXPECT_EQ(library.functions.back().name, "getpagesize");
}

TEST_F(BinariesTest, KnowsFunctionsThatWereInlinedAndTheLinesOfTheirCalls) {
  const NativePlace place = binaries_.PlaceOf(AddressOf(inlined::Outer()), true);
  ASSERT_EQ(place.functions.size(), 3U);
  EXPECT_EQ(place.functions[0].name, "Inner");
  EXPECT_EQ(place.functions[0].line, 11U);
  EXPECT_EQ(place.functions[1].name, "Middle");
  EXPECT_EQ(place.functions[1].line, 15U);
  EXPECT_EQ(place.functions[2].name, "pystrobe::native::inlined::Outer");
  EXPECT_EQ(place.functions[2].line, 19U);
  for (const NativeFunction& function : place.functions) {
    EXPECT_THAT(function.file, ::testing::EndsWith("native/inlined.cpp"));
  }
}

TEST_F(BinariesTest, KnowsTheKernelsOwnLibrary) {
  void* vdso = reinterpret_cast<void*>(getauxval(AT_SYSINFO_EHDR));
  ASSERT_NE(vdso, nullptr);
  const auto image = ElfImage::Read(memory_, AddressOf(vdso));
  const auto clock = image->FindSymbol(memory_, "__vdso_clock_gettime");
  ASSERT_TRUE(clock);
  const NativePlace place = binaries_.PlaceOf(clock->address, true);
  EXPECT_EQ(place.binary, "[vdso]");
  ASSERT_FALSE(place.functions.empty());
  EXPECT_THAT(place.functions.back().name, ::testing::HasSubstr("clock_gettime"));
  EXPECT_EQ(binaries_.RuleAt(clock->address).rule.cfa, UnwindRule::Cfa::kRegister);
}

TEST_F(BinariesTest, OfWhatLiesNowhereNothingIsKnown) {
  const NativePlace place = binaries_.PlaceOf(0x1000, true);
  EXPECT_EQ(place.binary, "");
  EXPECT_TRUE(place.functions.empty());
}

// A library that came later is known after Refresh, and one that went is forgotten.
TEST_F(BinariesTest, RefreshSeesLibrariesComeAndGo) {
  void* library = dlopen("libutil.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) library = dlopen("libthread_db.so.1", RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  struct link_map* map = nullptr;
  ASSERT_EQ(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
  EXPECT_EQ(binaries_.ModuleAt(*reinterpret_cast<Address*>(map)), nullptr);
  const Address inside = *reinterpret_cast<Address*>(map);
  ASSERT_TRUE(binaries_.Refresh());
  EXPECT_NE(binaries_.ModuleAt(inside), nullptr);
  dlclose(library);
  ASSERT_TRUE(binaries_.Refresh());
  EXPECT_EQ(binaries_.ModuleAt(inside), nullptr);
}

// As daemons do.
TEST_F(BinariesTest, WhereAllDescriptorsWereClosedItClosesNoOthers) {
  std::vector<int> numbers;
  {
    auto binaries = Binaries::Of(getpid(), memory_);
    ASSERT_TRUE(binaries);
    const int before = dup(STDIN_FILENO);
    close(before);
    EXPECT_FALSE(binaries->PlaceOf(AddressOf(&inlined::Outer), true).functions.empty());
    const int after = dup(STDIN_FILENO);
    ASSERT_GT(after, before);
    for (int fd = STDERR_FILENO + 1; fd <= after; ++fd) close(fd);
    while (numbers.empty() || numbers.back() < after) numbers.push_back(dup(STDIN_FILENO));
    EXPECT_FALSE(binaries->Refresh());
  }
  for (const int fd : numbers) {
    EXPECT_GE(fcntl(fd, F_GETFD), 0) << fd;
    close(fd);
  }
}

TEST_F(BinariesTest, FindsTheFunctionOfAnInstructionWithoutItsName) {
  const Address outer = AddressOf(&inlined::Outer);
  const auto range =
      FunctionRange(memory_, *binaries_.ModuleAt(outer), AddressOf(inlined::Outer()));
  ASSERT_TRUE(range);
  EXPECT_EQ(range->start, outer);
  EXPECT_GT(range->end, outer);
}

TEST_F(BinariesTest, ARuleHoldsUpToTheNextOne) {
  const auto symbol = AddressOf(&inlined::Outer);
  const auto function = FunctionRange(memory_, *binaries_.ModuleAt(symbol), symbol);
  ASSERT_TRUE(function);
  for (Address pc = function->start; pc < function->end; ++pc) {
    const RuleRange found = binaries_.RuleAt(pc);
    EXPECT_TRUE(found.Contains(pc));
    EXPECT_EQ(binaries_.RuleAt(found.start).rule, found.rule);
    EXPECT_EQ(binaries_.RuleAt(found.end - 1).rule, found.rule);
  }
}

}  // namespace
}  // namespace pystrobe::native
