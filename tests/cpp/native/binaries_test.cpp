// SPDX-License-Identifier: Apache-2.0
#include "sampler/native/binaries.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <new>
#include <vector>

#include "sampler/native/function_range.h"
#include "sampler/remote/process_memory.h"
#include "tests/cpp/native/inlined.h"
#include "tests/cpp/native/many_lines.h"

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

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they need memory themselves
rlim_t BytesMapped() {
  rlim_t bytes = 0;
  const auto mappings = ReadMaps(getpid());
  for (const Mapping& mapping : *mappings) bytes += mapping.end - mapping.start;
  return bytes;
}

/// From now on there is memory for some thousand small things, and for nothing large.
void LeaveLittleMemory() {
  constexpr size_t kSmall = 200, kLarge = 8192;
  std::vector<void*> small(20'000);
  for (void*& memory : small) memory = malloc(kSmall);
  const rlimit now{BytesMapped(), RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &now);
  while (malloc(kLarge) != nullptr) continue;
  // Every other one: neighbours would become something large.
  for (size_t i = 0; i < small.size(); i += 2) free(small[i]);
}

// libdw ends the process by itself when it lacks memory: no statement may be made behind it.
TEST_F(BinariesTest, ABinaryWhoseDebugInformationTakesTooMuchMemoryGoesWithout) {
  const Address crowded = AddressOf(&many_lines::Crowded);
  ASSERT_EQ(binaries_.PlaceOf(AddressOf(inlined::Outer()), true).functions.size(), 3U);
  const pid_t child = fork();
  if (child == 0) {
    LeaveLittleMemory();
    try {
      binaries_.PlaceOf(crowded, true);
    } catch (const std::bad_alloc&) {
      // The symbols are a large piece too.
    }
    const rlimit none{RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &none);
    const NativePlace place = binaries_.PlaceOf(crowded, true);
    const bool has_symbol = place.functions.size() == 1 && place.functions[0].file.empty() &&
                            place.functions[0].name.ends_with("Crowded");
    const bool has_rule = binaries_.RuleAt(crowded).rule.cfa == UnwindRule::Cfa::kRegister;
    // Nothing is asked about its debug information any more.
    const bool is_inlined =
        binaries_.PlaceOf(AddressOf(inlined::Outer()), true).functions.size() > 1;
    _exit(100 + (has_symbol ? 1 : 0) + (has_rule ? 2 : 0) + (is_inlined ? 4 : 0));
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 103);
  const auto functions = binaries_.PlaceOf(crowded, true).functions;
  ASSERT_EQ(functions.size(), 1U);
  EXPECT_THAT(functions[0].file, ::testing::EndsWith("native/many_lines.cpp"));
}
#endif

}  // namespace
}  // namespace pystrobe::native
