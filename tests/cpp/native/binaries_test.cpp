// SPDX-License-Identifier: Apache-2.0
#include "sampler/native/binaries.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/resource.h>
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

/// Takes `count` pieces of that size.
std::vector<void*> Pieces(size_t count, size_t size) {
  std::vector<void*> pieces(count);
  for (void*& piece : pieces) piece = malloc(size);
  return pieces;
}

/// From now on there is memory for some thousand small things, and for nothing large.
void LeaveLittleMemory() {
  constexpr size_t kSmall = 200, kMiddling = 32'768, kLarge = 65'536;
  const std::vector<void*> spare[] = {Pieces(20'000, kSmall), Pieces(80, kMiddling)};
  const rlimit now{BytesMapped(), RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &now);
  while (malloc(kLarge) != nullptr) continue;
  // Every other one: neighbours would become something large.
  for (const std::vector<void*>& pieces : spare) {
    for (size_t i = 0; i < pieces.size(); i += 2) free(pieces[i]);
  }
}

/// What is known of a function, and of another one, when memory did not suffice for the first look
/// at its debug information: ends the process with a sum that says so.
[[noreturn]] void EndWithWhatIsKnown(Binaries& binaries) {
  const Address crowded = AddressOf(&many_lines::Crowded);
  const auto functions_at = [&](Address pc) { return binaries.PlaceOf(pc, true).functions; };
  if (functions_at(AddressOf(inlined::Outer())).size() != 3) _exit(99);
  LeaveLittleMemory();
  try {
    functions_at(crowded);
  } catch (const std::bad_alloc&) {
    // The symbols are a large piece too.
  }
  const rlimit none{RLIM_INFINITY, RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &none);
  const auto functions = functions_at(crowded);
  const bool has_symbol =
      functions.size() == 1 && functions[0].file.empty() && functions[0].name.ends_with("Crowded");
  const bool has_rule = binaries.RuleAt(crowded).rule.cfa == UnwindRule::Cfa::kRegister;
  // Nothing is asked about its debug information any more.
  const bool is_inlined = functions_at(AddressOf(inlined::Outer())).size() > 1;
  _exit(100 + (has_symbol ? 1 : 0) + (has_rule ? 2 : 0) + (is_inlined ? 4 : 0));
}

// libdw's own answer is to end the process. In one of its own, whose memory no other test used.
TEST_F(BinariesTest, ABinaryWhoseDebugInformationTakesTooMuchMemoryGoesWithout) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(EndWithWhatIsKnown(binaries_), ::testing::ExitedWithCode(103), "");
  const auto functions = binaries_.PlaceOf(AddressOf(&many_lines::Crowded), true).functions;
  ASSERT_EQ(functions.size(), 1U);
  EXPECT_THAT(functions[0].file, ::testing::EndsWith("native/many_lines.cpp"));
}
#endif

}  // namespace
}  // namespace pystrobe::native
