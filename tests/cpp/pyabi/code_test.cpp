// SPDX-License-Identifier: Apache-2.0
#include "sampler/pyabi/code.h"

#include <gtest/gtest.h>

#include <string>

#include "fake_memory.h"

namespace pystrobe::pyabi {
namespace {

constexpr Address kType = 0x1000, kCode = 0x2000, kName = 0x3000, kFile = 0x4000, kTable = 0x5000,
                  kBytecode = 0x6000, kCopies = 0x7000, kCopy = 0x9000;

/// Writes a compact str of `text`, one element per character.
template <typename Char>
void PutString(FakeMemory& memory, const Layout& layout, Address at,
               const std::basic_string<Char>& text, bool ascii) {
  memory.Map(at, 0x400 + text.size() * sizeof(Char));
  memory.Put(at + layout.object.unicode_length, uint64_t{text.size()});
  const auto kind = static_cast<uint32_t>(sizeof(Char));
  const uint32_t state = (kind | 8U | (ascii ? 16U : 0U)) << layout.object.unicode_kind_shift;
  memory.Put(at + layout.object.unicode_state, state);
  const uint32_t data = ascii ? layout.object.ascii_data : layout.object.compact_data;
  for (size_t i = 0; i < text.size(); ++i) memory.Put(at + data + i * sizeof(Char), text[i]);
}

/// A code object "f" in "dir/f.py" from line 7, four code units long, the last two on line 8.
FakeMemory CodeObject(const Layout& layout) {
  FakeMemory memory;
  memory.Map(kCode, 0x400);
  memory.Map(kTable, 0x100);
  memory.Map(kBytecode, 0x100);
  PutString(memory, layout, kName, std::string("f"), true);
  PutString(memory, layout, kFile, std::string("dir/f.py"), true);
  const auto& at = layout.code;
  memory.Put(kCode, int64_t{1});  // reference count
  memory.Put(kCode + at.type, kType);
  memory.Put(kCode + at.name, kName);
  if (at.qualname != kAbsent) memory.Put(kCode + at.qualname, kName);
  memory.Put(kCode + at.filename, kFile);
  memory.Put(kCode + at.line_table, kTable);
  memory.Put(kCode + at.first_line, int32_t{7});
  memory.Put(kCode + at.flags, int32_t{67});
  memory.Put(kCode + at.arg_count, int32_t{2});
  if (layout.frame_style == FrameStyle::kFrameObjects) {
    memory.Put(kCode + at.bytecode, kBytecode);
    memory.Put(kBytecode + layout.object.bytes_size, uint64_t{8});
  } else {
    memory.Put(kCode + at.unit_count, uint64_t{4});
  }
  std::string table;
  if (layout.line_table_style == LineTableStyle::kLnotab) table = {4, 1};
  if (layout.line_table_style == LineTableStyle::kLinetable) table = {4, 0, 4, 1};
  if (layout.line_table_style == LineTableStyle::kLocations) {
    table = {static_cast<char>(0x80 | 13 << 3 | 1), 0, static_cast<char>(0x80 | 13 << 3 | 1), 2};
  }
  memory.Put(kTable + layout.object.bytes_size, uint64_t{table.size()});
  memory.Put(kTable + layout.object.bytes_data, table);
  return memory;
}

RawFrame FrameAt(const Layout& layout, const CodeInfo& code, int64_t offset) {
  RawFrame frame;
  frame.instruction = code.bytecode + static_cast<uint64_t>(offset);
  if (layout.frame_style == FrameStyle::kFrameObjects) {
    const int64_t lasti = layout.version.minor >= 10 ? offset / 2 : offset;
    frame.instruction = static_cast<uint32_t>(lasti);  // an int in 8 zeroed bytes
  }
  return frame;
}

TEST(ReadCode, ReadsNameFileAndLinesOfEveryRelease) {
  for (const Layout& layout : TableLayouts()) {
    SCOPED_TRACE(layout.version.ToString());
    const FakeMemory memory = CodeObject(layout);
    const auto code = ReadCode(memory, layout, kType, kCode);
    ASSERT_TRUE(code);
    EXPECT_EQ(code->name, "f");
    EXPECT_EQ(code->file, "dir/f.py");
    EXPECT_EQ(code->bytecode_size, 8U);
    EXPECT_EQ(code->identity.flags, 67);
    EXPECT_EQ(code->identity.arg_count, 2);
    EXPECT_EQ(LineOf(layout, *code, FrameAt(layout, *code, -2)), 7U);
    EXPECT_EQ(LineOf(layout, *code, FrameAt(layout, *code, 2)), 7U);
    EXPECT_EQ(LineOf(layout, *code, FrameAt(layout, *code, 4)), 8U);
    EXPECT_EQ(LineOf(layout, *code, FrameAt(layout, *code, 6)), 8U);
    EXPECT_EQ(LineOf(layout, *code, FrameAt(layout, *code, 8)), 0U);
    EXPECT_EQ(LineOf(layout, *code, FrameAt(layout, *code, 1 << 20)), 0U);
    EXPECT_EQ(memory.reads(), 3);
  }
}

TEST(ReadCode, RefusesAnotherType) {
  for (const Layout& layout : TableLayouts()) {
    const FakeMemory memory = CodeObject(layout);
    EXPECT_FALSE(ReadCode(memory, layout, kType + 8, kCode));
    EXPECT_TRUE(ReadCode(memory, layout, 0, kCode));
    EXPECT_FALSE(ReadCode(memory, layout, kType, kCode + 8));
    EXPECT_FALSE(ReadCode(memory, layout, kType, 0x100000));
  }
}

TEST(ReadCode, RefusesFreedObjects) {
  for (const Layout& layout : TableLayouts()) {
    FakeMemory memory = CodeObject(layout);
    memory.Put(kCode, int64_t{0xFFFFFFFF});  // immortal
    EXPECT_TRUE(ReadCode(memory, layout, kType, kCode));
    memory.Put(kCode, int64_t{0x7F1234567890});  // a link of the allocator's
    EXPECT_FALSE(ReadCode(memory, layout, kType, kCode));
    memory.Put(kCode, int64_t{0});
    EXPECT_FALSE(ReadCode(memory, layout, kType, kCode));
  }
}

TEST(ReadCode, RefusesWildSizes) {
  for (const Layout& layout : TableLayouts()) {
    for (Address size_of : {kTable + layout.object.bytes_size, kName + layout.object.unicode_length,
                            kFile + layout.object.unicode_length}) {
      FakeMemory memory = CodeObject(layout);
      memory.Put(size_of, uint64_t{1} << 60);
      EXPECT_FALSE(ReadCode(memory, layout, kType, kCode));
      memory.Put(size_of, uint64_t{5000});  // behind the end of what can be read
      EXPECT_FALSE(ReadCode(memory, layout, kType, kCode));
    }
  }
}

// Far from the other objects, which it would cover.
constexpr Address kLong = 0x100000;

template <typename Char>
FakeMemory CodeObjectNamed(const Layout& layout, const std::basic_string<Char>& name) {
  FakeMemory memory = CodeObject(layout);
  PutString(memory, layout, kLong, name, sizeof(Char) == 1);
  memory.Put(kCode + layout.code.name, kLong);
  if (layout.code.qualname != kAbsent) memory.Put(kCode + layout.code.qualname, kLong);
  return memory;
}

TEST(ReadCode, CutsLongNames) {
  constexpr size_t kMost = 65536;
  for (const Layout& layout : TableLayouts()) {
    const auto name_of = [&layout](const auto& name) {
      const auto code = ReadCode(CodeObjectNamed(layout, name), layout, kType, kCode);
      return code ? code->name : "";
    };
    EXPECT_EQ(name_of(std::string(kMost, 'x')), std::string(kMost, 'x'));
    EXPECT_EQ(name_of(std::string(kMost + 1, 'x')), std::string(kMost, 'x') + "...");
    std::string wide;
    for (size_t i = 0; i < kMost; ++i) wide += "Ж";
    EXPECT_EQ(name_of(std::u16string(kMost + 1, u'Ж')), wide + "...");

    FakeMemory memory = CodeObject(layout);
    PutString(memory, layout, kLong, std::string(kMost + 1, 'x'), true);
    memory.Put(kCode + layout.code.filename, kLong);
    const auto code = ReadCode(memory, layout, kType, kCode);
    ASSERT_TRUE(code);
    EXPECT_EQ(code->file, std::string(kMost, 'x') + "...");
  }
}

// What was a str a moment ago may have any length there.
TEST(ReadCode, RefusesALongNameThatDoesNotEndWhereItSays) {
  for (const Layout& layout : TableLayouts()) {
    FakeMemory memory = CodeObjectNamed(layout, std::string(100'000, 'x'));
    EXPECT_TRUE(ReadCode(memory, layout, kType, kCode));
    memory.Put(kLong + layout.object.unicode_length, uint64_t{99'999});
    EXPECT_FALSE(ReadCode(memory, layout, kType, kCode));
    memory.Put(kLong + layout.object.unicode_length, uint64_t{1'000'000});
    EXPECT_FALSE(ReadCode(memory, layout, kType, kCode));
  }
}

/// Replaces the code object once, after so many reads.
class ChangingMemory final : public FakeMemory {
 public:
  ChangingMemory(const FakeMemory& memory, const Layout& layout, int after)
      : FakeMemory(memory), layout_(layout), after_(after) {}
  bool ReadAll(std::span<const ReadRequest> requests) const override {
    if (reads() == after_) {
      const_cast<ChangingMemory*>(this)->Put(kCode + layout_.code.first_line, int32_t{99});
    }
    return FakeMemory::ReadAll(requests);
  }

 private:
  const Layout& layout_;
  int after_;
};

TEST(ReadCode, NoticesThatTheCodeObjectWasReplaced) {
  for (const Layout& layout : TableLayouts()) {
    const FakeMemory memory = CodeObject(layout);
    EXPECT_TRUE(ReadCode(ChangingMemory(memory, layout, 0), layout, kType, kCode));
    EXPECT_FALSE(ReadCode(ChangingMemory(memory, layout, 1), layout, kType, kCode));
    EXPECT_FALSE(ReadCode(ChangingMemory(memory, layout, 2), layout, kType, kCode));
  }
}

class OrderedMemory final : public FakeMemory {
 public:
  explicit OrderedMemory(const FakeMemory& memory) : FakeMemory(memory) {}
  bool ReadAll(std::span<const ReadRequest> requests) const override {
    last_ = requests.back().address;
    return FakeMemory::ReadAll(requests);
  }
  Address last() const { return last_; }

 private:
  mutable Address last_ = 0;
};

TEST(ReadCode, LooksAtTheCodeObjectAgainAfterAllElse) {
  for (const Layout& layout : TableLayouts()) {
    const OrderedMemory memory(CodeObjectNamed(layout, std::string(100'000, 'x')));
    EXPECT_TRUE(ReadCode(memory, layout, kType, kCode));
    EXPECT_EQ(memory.last(), kCode);
  }
}

TEST(ReadCode, FollowsTheThreadsCopyOfTheBytecode) {
  Layout layout = TableLayouts().back();
  layout.free_threaded = true;
  layout.code.tlbc = layout.code.bytecode;
  layout.code.bytecode += 8;
  layout.code.size = layout.code.bytecode;
  FakeMemory memory = CodeObject(layout);
  memory.Map(kCopies, 0x100);
  memory.Put(kCode + layout.code.tlbc, kCopies);
  memory.Put(kCopies, uint64_t{3});
  memory.Put(kCopies + 8, kCode + layout.code.bytecode);
  memory.Put(kCopies + 16, kCopy);
  const auto code = ReadCode(memory, layout, kType, kCode);
  ASSERT_TRUE(code);
  const auto line = [&](uint32_t index, Address instruction) {
    return LineOf(layout, *code, {.instruction = instruction, .tlbc_index = index});
  };
  EXPECT_EQ(line(0, kCode + layout.code.bytecode + 4), 8U);
  EXPECT_EQ(line(1, kCopy), 7U);
  EXPECT_EQ(line(1, kCopy + 4), 8U);
  EXPECT_EQ(line(1, kCode + layout.code.bytecode), 0U);  // not that thread's copy
  EXPECT_EQ(line(2, kCopy), 0U);                         // not made yet
  EXPECT_EQ(line(3, kCopy), 0U);
  EXPECT_FALSE(InstructionOffset(layout, *code, {.instruction = kCopy, .tlbc_index = 2}));
}

TEST(ReadString, AllWidths) {
  for (const Layout& layout : TableLayouts()) {
    FakeMemory memory;
    PutString(memory, layout, kName, std::string("plain"), true);
    EXPECT_EQ(ReadString(memory, layout, kName), "plain");
    PutString(memory, layout, kName, std::string("\xe9t\xe9"), false);
    EXPECT_EQ(ReadString(memory, layout, kName), "été");
    PutString(memory, layout, kName, std::u16string(u"\u0416\u20ac"), false);
    EXPECT_EQ(ReadString(memory, layout, kName), "Ж€");
    PutString(memory, layout, kName, std::u32string(U"a\U0001d518"), false);
    EXPECT_EQ(ReadString(memory, layout, kName), "a𝔘");
    PutString(memory, layout, kName,
              std::u16string(u"a\xdc80"
                             u"b"),
              false);
    EXPECT_EQ(ReadString(memory, layout, kName), "a\uFFFDb");
    PutString(memory, layout, kName, std::string(), true);
    EXPECT_EQ(ReadString(memory, layout, kName), "");
  }
}

TEST(ReadString, InstancesOfSubclassesHaveTheirCharactersElsewhere) {
  for (const Layout& layout : TableLayouts()) {
    FakeMemory memory;
    PutString(memory, layout, kName, std::string("plain"), true);
    PutString(memory, layout, kFile, std::string("elsewhere"), true);
    memory.Put(kName + layout.object.unicode_state, uint32_t{1 << 2 | 1 << 6});
    memory.Put(kName + layout.object.compact_data, kFile + layout.object.ascii_data);
    EXPECT_EQ(ReadString(memory, layout, kName), "elsew");
  }
}

TEST(ReadString, RefusesWhatIsNoStr) {
  const Layout layout = TableLayouts().back();
  FakeMemory memory;
  PutString(memory, layout, kName, std::string("plain"), true);
  EXPECT_FALSE(ReadString(memory, layout, kName, 4));
  EXPECT_FALSE(ReadString(memory, layout, kName + 0x10000));
  for (const uint32_t kind : {0U, 3U, 5U, 6U, 7U}) {
    memory.Put(kName + layout.object.unicode_state, kind << 2 | 8U << 2);
    EXPECT_FALSE(ReadString(memory, layout, kName)) << kind;
  }
}

TEST(Code, SurvivesNoise) {
  for (const Layout& layout : TableLayouts()) {
    const NoiseMemory memory(layout.version.minor);
    for (int round = 0; round < 3000; ++round) {
      const auto code = ReadCode(memory, layout, 0, 0x1000);
      if (code) LineOf(layout, *code, FrameAt(layout, *code, round));
      ReadString(memory, layout, 0x1000);
    }
  }
}

}  // namespace
}  // namespace pystrobe::pyabi
