// SPDX-License-Identifier: Apache-2.0
//
// In this process, whose variables stand for a Python's, and in a real one.
#include "sampler/remote/memory_scan.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "profiler/base/proc.h"
#include "sampler/remote/target.h"
#include "tests/cpp/support/python_program.h"

namespace pystrobe::remote {
namespace {

// Of the executable's writable data; read behind the compiler's back.
constexpr size_t kWords = 8192;
alignas(8) volatile uint64_t words[kWords];
volatile char banner[64];
// Of its constants; the one ends with the other's name.
constexpr char kTypeName[] = "opcode of this test";

Address AddressOf(size_t word) { return reinterpret_cast<Address>(&words[word]); }

void SetBanner(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) banner[i + 1] = text[i];  // behind a zero byte
}

class MemoryScanTest : public ::testing::Test {
 protected:
  void TearDown() override {
    for (volatile uint64_t& word : words) word = 0;
    for (volatile char& letter : banner) letter = 0;
  }

  std::vector<RuntimeCandidate> Scan() const {
    return ScanForRuntimes(SymbolFinder(getpid(), memory_, modules_, executable_));
  }
  void ExpectFoundAt(Address runtime) const {
    const auto found = Scan();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].runtime, runtime);
    EXPECT_EQ(found[0].module->path, executable_);
    EXPECT_EQ(found[0].found_by, "memory scan");
  }
  const native::Module& Executable() const {
    return *std::ranges::find(modules_, executable_, &native::Module::path);
  }

  ProcessMemory memory_{getpid()};
  std::string executable_ = ReadLink("/proc/self/exe").value_or("");
  std::vector<native::Module> modules_ =
      native::FindModules(memory_, ReadMaps(getpid()).value_or(std::vector<Mapping>{}));
};

TEST_F(MemoryScanTest, WhereThereIsNoPythonNothingIsFound) {
  ASSERT_FALSE(modules_.empty());
  EXPECT_TRUE(Scan().empty());
}

TEST_F(MemoryScanTest, TheCookieOfDebugOffsetsIsFound) {
  uint64_t cookie = 0;
  std::memcpy(&cookie, kDebugOffsetsCookie.data(), sizeof cookie);
  words[20] = cookie;
  ExpectFoundAt(AddressOf(20));
}

TEST_F(MemoryScanTest, TheCookieIsNoneWithinOtherWords) {
  uint64_t cookie = 0;
  std::memcpy(&cookie, kDebugOffsetsCookie.data(), sizeof cookie);
  words[20] = cookie << 32;
  words[21] = cookie >> 32;
  EXPECT_TRUE(Scan().empty());
}

/// As a 3.10 has them: a runtime, an interpreter and its one thread.
class MemoryScanForListsTest : public MemoryScanTest {
 protected:
  static constexpr size_t kRuntime = 64, kInterpreter = 2048, kThread = 6144;

  void SetUp() override {
    const auto layout = pyabi::LayoutFromTable({3, 10, 9});
    ASSERT_TRUE(layout);
    ASSERT_LT(layout->runtime.interpreters_head / 8 + kRuntime + 1, kInterpreter);
    ASSERT_LT(layout->interpreter.threads_head / 8 + kInterpreter, kThread);
    ASSERT_LT(layout->interpreter.id / 8 + kInterpreter, kThread);
    ASSERT_LT(layout->thread.size / 8 + kThread, kWords);
    head_ = kRuntime + layout->runtime.interpreters_head / 8;
    interpreter_of_thread_ = kThread + layout->thread.interp / 8;
    words[head_] = AddressOf(kInterpreter);
    words[head_ + 1] = AddressOf(kInterpreter);  // the main one
    words[kInterpreter + layout->interpreter.threads_head / 8] = AddressOf(kThread);
    words[interpreter_of_thread_] = AddressOf(kInterpreter);
    SetBanner("3.10.9 (main, Dec  6 2022, 18:44:03) [GCC 12.2.0]");
  }

  size_t head_ = 0, interpreter_of_thread_ = 0;
};

TEST_F(MemoryScanForListsTest, AListOfInterpretersIsFound) { ExpectFoundAt(AddressOf(kRuntime)); }

TEST_F(MemoryScanForListsTest, AListIsFoundThatDoesNotBeginWithTheMainInterpreter) {
  words[head_ + 1] = AddressOf(kInterpreter + 1);
  ExpectFoundAt(AddressOf(kRuntime));
}

TEST_F(MemoryScanForListsTest, AListIsNotLookedForWithoutItsVersion) {
  SetBanner("0");
  EXPECT_TRUE(Scan().empty());
}

TEST_F(MemoryScanForListsTest, AListIsNoneWhoseThreadsDoNotPointBack) {
  words[interpreter_of_thread_] = AddressOf(kInterpreter + 1);
  EXPECT_TRUE(Scan().empty());
}

/// A type object and its type.
class MemoryScanForTypeTest : public MemoryScanTest {
 protected:
  static constexpr size_t kType = 100, kMeta = 200;

  void SetUp() override {
    layout_.object.type_name = 24;
    words[kType + 1] = AddressOf(kMeta);
    words[kType + 3] = reinterpret_cast<Address>(&kTypeName[2]);
    words[kMeta + 1] = AddressOf(kMeta);
  }
  std::optional<Address> Scan(std::string_view name = &kTypeName[2]) const {
    return ScanForType(memory_, layout_, Executable(), name);
  }

  pyabi::Layout layout_;
};

TEST_F(MemoryScanForTypeTest, ATypeIsFoundByItsName) { EXPECT_EQ(Scan(), AddressOf(kType)); }

TEST_F(MemoryScanForTypeTest, ATypeIsNotFoundByAnotherName) {
  EXPECT_FALSE(Scan(kTypeName)) << "nothing points to where that begins";
  EXPECT_FALSE(Scan("code of this"));
  EXPECT_FALSE(Scan("code of no test"));
}

TEST_F(MemoryScanForTypeTest, WhatHasANameIsNoTypeUnlessItsTypeIsOne) {
  words[kMeta + 1] = AddressOf(kType);
  EXPECT_FALSE(Scan());
  words[kType + 1] = 0;
  EXPECT_FALSE(Scan()) << "nothing to be read there";
}

TEST(MemoryScan, FindsWhatSymbolsFoundInARealInterpreter) {
  const pystrobe::testing::PythonProgram program(
      "print('up', flush=True)\n"
      "while True: pass\n");
  ASSERT_EQ(program.Read(2), "up") << "is there a python3?";
  const auto target = Target::Open(program.pid());
  ASSERT_TRUE(target) << target.error().message;
  const auto mappings = ReadMaps(program.pid());
  ASSERT_TRUE(mappings);
  const auto modules = native::FindModules(target->memory(), *mappings);
  const SymbolFinder symbols(program.pid(), target->memory(), modules, target->info().executable);
  const auto found = ScanForRuntimes(symbols);
  const auto it = std::ranges::find(found, target->info().runtime, &RuntimeCandidate::runtime);
  ASSERT_NE(it, found.end());
  EXPECT_EQ(it->module->path, target->info().python_file);
  EXPECT_EQ(ScanForType(target->memory(), target->layout(), *it->module, "code"),
            target->info().code_type);
}

}  // namespace
}  // namespace pystrobe::remote
