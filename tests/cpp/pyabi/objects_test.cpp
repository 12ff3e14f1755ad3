// SPDX-License-Identifier: Apache-2.0
//
// A target built by hand, in the shape of every release; what live ones look like is tested against
// them (tests/python/test_pyabi.py).
#include "sampler/pyabi/objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "fake_memory.h"
#include "golden.h"
#include "sampler/pyabi/describe.h"
#include "sampler/pyabi/dict.h"

namespace pystrobe::pyabi {
namespace {

using ::testing::IsEmpty;
using Items = std::vector<std::pair<Address, Address>>;

/// Every layout there is a parser for.
std::vector<Layout> AllLayouts() {
  std::vector<Layout> layouts = TableLayouts();
  for (const char* name : kGoldenDebugOffsets) {
    layouts.push_back(*LayoutFromDebugOffsets(GoldenDebugOffsets(name)));
  }
  return layouts;
}

/// Puts objects one behind the other.
class Heap {
 public:
  explicit Heap(const Layout& layout, size_t size = 1U << 20) : layout_(layout) {
    memory_.Map(kStart, size);
    int_type_ = Type("int");
    cell_type_ = Type("cell");
  }
  const FakeMemory& memory() const { return memory_; }

  Address Allocate(size_t size) {
    const Address at = next_;
    next_ += (size + 15) / 16 * 16;
    return at;
  }

  template <typename T>
  void Put(Address at, T value) {
    memory_.Put(at, value);
  }

  Address CString(const std::string& text) {
    const Address at = Allocate(text.size() + 1);
    memory_.Put(at, text);
    return at;
  }

  Address Type(const std::string& name, uint64_t flags = 0) {
    const Address at = Allocate(2000);
    Put(at + layout_.object.type_name, CString(name));
    Put(at + layout_.object.type_flags, flags);
    return at;
  }

  Address Object(Address type, size_t size = 256) {
    const Address at = Allocate(size);
    Put(at + layout_.object.type, type);
    return at;
  }

  Address Str(const std::string& text) {
    const Address at = Object(0);
    Put(at + layout_.object.unicode_length, uint64_t{text.size()});
    Put(at + layout_.object.unicode_state, (1U | 8U | 16U) << layout_.object.unicode_kind_shift);
    memory_.Put(at + layout_.object.ascii_data, text);
    return at;
  }

  Address Int(int64_t value) {
    const Address at = Object(int_type_);
    auto magnitude = static_cast<uint64_t>(value < 0 ? -value : value);
    int64_t count = 0;
    for (; magnitude != 0; magnitude >>= 30) {
      Put(at + layout_.object.long_digits + static_cast<uint64_t>(count++) * 4,
          static_cast<uint32_t>(magnitude & ((1U << 30) - 1)));
    }
    const int64_t sign = value < 0 ? 2 : value == 0 ? 1 : 0;
    const bool has_tag = layout_.version.minor >= 12;
    Put(at + layout_.object.long_tag, has_tag ? count << 3 | sign : value < 0 ? -count : count);
    return at;
  }

  Address Cell(Address content) {
    const Address at = Object(cell_type_);
    Put(at + layout_.object.cell_value, content);
    return at;
  }

  Address Tuple(const std::vector<Address>& items) {
    const Address at = Object(0, 64 + items.size() * 8);
    Put(at + layout_.object.tuple_size, uint64_t{items.size()});
    for (size_t i = 0; i < items.size(); ++i)
      Put(at + layout_.object.tuple_items + i * 8, items[i]);
    return at;
  }

  Address Bytes(const std::string& text) {
    const Address at = Object(0, 64 + text.size());
    Put(at + layout_.object.bytes_size, uint64_t{text.size()});
    memory_.Put(at + layout_.object.bytes_data, text);
    return at;
  }

  /// A keys object with room for 8 entries; `general` ones have hashes.
  Address Keys(const Items& items, bool general) {
    const bool is_old = layout_.version.minor <= 10;
    const Address at = Allocate(512);
    Address entries = at + 40 + 8;
    if (is_old) {
      Put(at + 8, uint64_t{8});
      Put(at + 32, uint64_t{items.size()});
    } else {
      Put(at + 8, uint8_t{3});
      Put(at + 9, uint8_t{3});
      Put(at + 10, static_cast<uint8_t>(general ? 0 : 1));
      Put(at + 24, uint64_t{items.size()});
      entries = at + 32 + 8;
    }
    for (const auto& [key, value] : items) {
      if (general || is_old) entries += 8;
      Put(entries, key);
      Put(entries + 8, value);
      entries += 16;
    }
    return at;
  }

  Address Dict(const Items& items, bool general = false) {
    const Address at = Object(0);
    Put(at + layout_.object.dict_keys, Keys(items, general));
    Put(at + layout_.object.dict_used, uint64_t{items.size()});
    return at;
  }

  /// Values apart from their keys.
  Address Values(const std::vector<Address>& values) {
    Address at = Allocate(256);
    const Address start = at;
    if (layout_.version.minor >= 13) {
      Put(at, static_cast<uint8_t>(values.size()));
      Put(at + 3, uint8_t{1});
      at += 8;
    }
    for (const Address value : values) {
      Put(at, value);
      at += 8;
    }
    return start;
  }

 private:
  static constexpr Address kStart = 0x10000;
  const Layout& layout_;
  FakeMemory memory_;
  Address next_ = kStart + 0x1000;
  Address int_type_ = 0;
  Address cell_type_ = 0;
};

/// sys.modules["threading"]._active with threads 7 ("seven") and 8 ("eight"); the first has a dict,
/// the second what its version uses instead of one.
struct Program {
  explicit Program(const Layout& layout) : heap(layout) {
    const Address name = heap.Str("_name");
    const Address other = heap.Str("other");
    const Items attributes = {{other, heap.Int(1)}, {name, heap.Str("seven")}};
    const Address with_dict = heap.Object(TypeWithDict(layout), 64) + 64;
    heap.Allocate(64);
    heap.Put(with_dict + layout.object.type, TypeWithDict(layout));
    heap.Put(with_dict + 40, heap.Dict(attributes));
    const Address own = layout.version.minor >= 11 ? ObjectWithOwnValues(layout, {other, name})
                                                   : ObjectWithSplitDict(layout, {other, name});
    const Address active = heap.Dict(
        {{heap.Int(7), with_dict}, {heap.Int(8), own}, {0, 0}, {heap.Int(9), heap.Int(0)}}, true);
    const Address threading = heap.Object(0);
    heap.Put(threading + HeadSize(layout), heap.Dict({{heap.Str("_active"), active}}));
    interpreter = heap.Allocate(layout.interpreter.imports_modules + 8);
    const Address modules =
        heap.Dict({{heap.Str("sys"), heap.Int(0)}, {heap.Str("threading"), threading}});
    heap.Put(interpreter + layout.interpreter.imports_modules, modules);
  }

  Address TypeWithDict(const Layout& layout) {
    const Address type = heap.Type("Thread", 1U << 9);
    heap.Put(type + layout.object.type_dict_offset, int64_t{40});
    return type;
  }

  Address ObjectWithSplitDict(const Layout& layout, const std::vector<Address>& names) {
    const Address object = heap.Object(TypeWithDict(layout), 64);
    const Address dict = heap.Dict({{names[0], 0}, {names[1], 0}});
    heap.Put(dict + layout.object.dict_values, heap.Values({heap.Int(1), heap.Str("eight")}));
    heap.Put(object + 40, dict);
    return object;
  }

  Address ObjectWithOwnValues(const Layout& layout, const std::vector<Address>& names) {
    const Address type = heap.Type("Thread", 1U << 9 | 1U << 4 | 1U << 2);
    heap.Put(type + layout.object.type_cached_keys,
             heap.Keys({{names[0], 0}, {names[1], 0}}, false));
    heap.Put(type + layout.object.type_basic_size, int64_t{48});
    const std::vector<Address> values = {heap.Int(1), heap.Str("eight")};
    const Address object = heap.Object(type) + 64;
    heap.Put(object + layout.object.type, type);
    if (layout.version.minor == 11) heap.Put(object - 32, heap.Values(values));
    if (layout.version.minor == 12) heap.Put(object - 24, heap.Values(values) - 1);
    if (layout.version.minor >= 13) {
      heap.Put(object + 48, uint8_t{2});
      heap.Put(object + 48 + 3, uint8_t{1});
      heap.Put(object + 56, values[0]);
      heap.Put(object + 64, values[1]);
    }
    return object;
  }

  Heap heap;
  Address interpreter = 0;
};

TEST(ReadThreadNames, FindsNamesWhereverAttributesLie) {
  for (const Layout& layout : AllLayouts()) {
    SCOPED_TRACE(layout.version.ToString() + (layout.free_threaded ? "t" : ""));
    const Program program(layout);
    const auto names = ReadThreadNames(program.heap.memory(), layout, program.interpreter);
    ASSERT_EQ(names.size(), 2U);
    EXPECT_EQ(names.at(7), "seven");
    EXPECT_EQ(names.at(8), "eight");
  }
}

TEST(ReadThreadNames, IsEmptyWithoutThreading) {
  for (const Layout& layout : AllLayouts()) {
    Heap heap(layout);
    const Address interpreter = heap.Allocate(layout.interpreter.imports_modules + 8);
    EXPECT_THAT(ReadThreadNames(heap.memory(), layout, interpreter), IsEmpty());
    heap.Put(interpreter + layout.interpreter.imports_modules,
             heap.Dict({{heap.Str("sys"), heap.Int(0)}}));
    EXPECT_THAT(ReadThreadNames(heap.memory(), layout, interpreter), IsEmpty());
    EXPECT_THAT(ReadThreadNames(heap.memory(), layout, 0x10), IsEmpty());
  }
}

/// Counts what is read of another memory.
class CountingMemory : public Memory {
 public:
  explicit CountingMemory(const Memory& memory) : memory_(memory) {}
  bool ReadAll(std::span<const ReadRequest> requests) const override {
    for (const ReadRequest& request : requests) bytes_ += request.size;
    return memory_.ReadAll(requests);
  }
  uint64_t bytes() const { return bytes_; }

 private:
  const Memory& memory_;
  mutable uint64_t bytes_ = 0;
};

TEST(ReadThreadNames, WhatLooksLikeThousandsOfThreadsIsReadInPart) {
  const Layout layout = *LayoutFromTable({3, 10, 1});
  constexpr uint64_t kEntries = 30'000;
  Heap heap(layout, 4U << 20);
  // One dict is that of every thread and holds the threads as well.
  const Address dict = heap.Dict({});
  const Address keys = heap.Allocate(40 + (2 << 16) + kEntries * 24);
  heap.Put(keys + 8, uint64_t{1} << 15);
  heap.Put(keys + 32, kEntries);
  heap.Put(dict + layout.object.dict_keys, keys);
  const Address type = heap.Type("Thread");
  heap.Put(type + layout.object.type_dict_offset, int64_t{40});
  const Address thread = heap.Object(type);
  heap.Put(thread + 40, dict);
  const Address key = heap.Str("other");
  for (uint64_t i = 0; i < kEntries; ++i) {
    const Address entry = keys + 40 + (2U << 15) + i * 24;
    heap.Put(entry + 8, key);
    heap.Put(entry + 16, thread);
  }
  const Address threading = heap.Object(0);
  heap.Put(threading + HeadSize(layout), heap.Dict({{heap.Str("_active"), dict}}));
  const Address interpreter = heap.Allocate(layout.interpreter.imports_modules + 8);
  heap.Put(interpreter + layout.interpreter.imports_modules,
           heap.Dict({{heap.Str("threading"), threading}}));
  const CountingMemory memory(heap.memory());
  EXPECT_THAT(ReadThreadNames(memory, layout, interpreter), IsEmpty());
  EXPECT_LT(memory.bytes(), 256U << 20);
}

/// def f(a, *, b): x = ...; y lives in a cell; z in that of an outer function.
RawFrame FrameOf(Heap& heap, const Layout& layout, const std::vector<Address>& values) {
  const Address code = heap.Object(0, 512);
  const auto names = [&heap](const std::vector<std::string>& texts) {
    std::vector<Address> items;
    for (const std::string& text : texts) items.push_back(heap.Str(text));
    return heap.Tuple(items);
  };
  if (layout.code.locals_kinds != kAbsent) {
    heap.Put(code + layout.code.locals_names, names({"a", "b", "x", "y", "z"}));
    heap.Put(code + layout.code.locals_kinds, heap.Bytes("\x20\x20\x20\x40\x80"));
  } else {
    heap.Put(code + layout.code.locals_names, names({"a", "b", "x"}));
    heap.Put(code + layout.code.cell_names, names({"y"}));
    heap.Put(code + layout.code.free_names, names({"z"}));
  }
  heap.Put(code + layout.code.arg_count, int32_t{1});
  heap.Put(code + layout.code.keyword_arg_count, int32_t{1});
  const Address frame = heap.Allocate(layout.frame.localsplus + values.size() * 8);
  for (size_t i = 0; i < values.size(); ++i) {
    heap.Put(frame + layout.frame.localsplus + i * 8, values[i]);
  }
  return {.frame = frame, .code = code};
}

std::vector<std::string> Shown(const std::vector<Local>& locals) {
  std::vector<std::string> lines;
  for (const Local& local : locals) {
    lines.push_back((local.is_argument ? "argument " : "") + local.name + " = " + local.value);
  }
  return lines;
}

TEST(ReadLocals, SlotsCellsAndUnboundVariables) {
  for (const Layout& layout : AllLayouts()) {
    SCOPED_TRACE(layout.version.ToString());
    Heap heap(layout);
    const RawFrame frame =
        FrameOf(heap, layout, {heap.Int(1), heap.Int(-5), 0, heap.Cell(heap.Int(3)), heap.Cell(0)});
    EXPECT_EQ(Shown(ReadLocals(heap.memory(), layout, frame)),
              (std::vector<std::string>{"argument a = 1", "argument b = -5", "y = 3"}));
  }
}

TEST(ReadLocals, TakesTheTagsOffReferences) {
  for (const Layout& layout : AllLayouts()) {
    if (layout.frame.code_tag_mask == 0) continue;
    Heap heap(layout);
    const RawFrame frame =
        FrameOf(heap, layout,
                {heap.Int(1) | 1, uint64_t{40} << 2 | 3, static_cast<uint64_t>(-40) << 2 | 3,
                 heap.Cell(heap.Int(3)) | 1, 1});
    EXPECT_EQ(Shown(ReadLocals(heap.memory(), layout, frame)),
              (std::vector<std::string>{"argument a = 1", "argument b = 40", "x = -40", "y = 3"}));
  }
}

TEST(ReadLocals, AnArgumentInACellComesInItsPlace) {
  Layout layout = TableLayouts().front();
  Heap heap(layout);
  RawFrame frame = FrameOf(heap, layout, {0, heap.Int(2), 0, heap.Cell(heap.Int(1))});
  heap.Put(frame.code + layout.code.cell_names, heap.Tuple({heap.Str("a")}));
  heap.Put(frame.code + layout.code.free_names, heap.Tuple({}));
  EXPECT_EQ(Shown(ReadLocals(heap.memory(), layout, frame)),
            (std::vector<std::string>{"argument a = 1", "argument b = 2"}));
}

TEST(Describe, AClassIsNotTakenForTheTypeWhoseNameItBears) {
  for (const Layout& layout : AllLayouts()) {
    Heap heap(layout);
    const Address fake = heap.Object(heap.Type("int", 1U << 9));
    const auto text = Describe(heap.memory(), layout, fake);
    ASSERT_TRUE(text);
    EXPECT_THAT(*text, ::testing::StartsWith("<int at 0x"));
  }
}

/// The names of a class: `count` of them, the one at `module_at` being __module__.
Address ClassNames(Heap& heap, const Layout& layout, uint64_t count, uint64_t module_at) {
  const bool is_old = layout.version.minor <= 10;
  constexpr uint64_t kIndices = 1U << 16;  // bytes
  const Address keys = heap.Allocate(40 + kIndices + count * 24);
  if (is_old) {
    heap.Put(keys + 8, kIndices / 2);
    heap.Put(keys + 32, count);
  } else {
    heap.Put(keys + 9, uint8_t{16});
    heap.Put(keys + 10, uint8_t{1});
    heap.Put(keys + 24, count);
  }
  const Address key = heap.Str("other");
  for (uint64_t i = 0; i < count; ++i) {
    const Address entry =
        is_old ? keys + 40 + kIndices + i * 24 + 8 : keys + 32 + kIndices + i * 16;
    heap.Put(entry, i == module_at ? heap.Str("__module__") : key);
    heap.Put(entry + 8, i == module_at ? heap.Str("shop") : key);
  }
  const Address dict = heap.Object(0);
  heap.Put(dict + layout.object.dict_keys, keys);
  return dict;
}

Address ObjectOfClass(Heap& heap, const Layout& layout, const std::string& type_name,
                      Address names) {
  const Address type = heap.Type(type_name, 1U << 9);
  heap.Put(type + layout.object.type_dict_offset - 24, names);
  heap.Put(type + layout.object.type_cached_keys - 8, heap.Str("Outer.Cart"));
  return heap.Object(type);
}

TEST(Describe, OfAClassWithThousandsOfNamesAFewAreRead) {
  constexpr uint64_t kNames = 30'000;
  for (const Layout& layout : AllLayouts()) {
    SCOPED_TRACE(layout.version.ToString() + (layout.free_threaded ? "t" : ""));
    const auto described = [&](uint64_t module_at, const std::string& type_name) {
      Heap heap(layout, 4U << 20);
      const Address names = ClassNames(heap, layout, kNames, module_at);
      const Address object = ObjectOfClass(heap, layout, type_name, names);
      const CountingMemory memory(heap.memory());
      const auto text = Describe(memory, layout, object);
      EXPECT_LT(memory.bytes(), 16U << 10);
      return text.value_or("").substr(0, text.value_or("").find(" at 0x"));
    };
    EXPECT_EQ(described(0, "Cart"), "<shop.Outer.Cart");
    EXPECT_EQ(described(127, "Cart"), "<shop.Outer.Cart");
    EXPECT_EQ(described(128, "Cart"), "<Outer.Cart");
    EXPECT_EQ(described(kNames - 1, "_shop.Cart"), "<_shop.Cart") << "made by C";
  }
}

TEST(ReadInt, SignsAndSizes) {
  for (const Layout& layout : AllLayouts()) {
    Heap heap(layout);
    for (const int64_t value : {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{1} << 30,
                                -(int64_t{1} << 45), INT64_MAX, -INT64_MAX}) {
      EXPECT_EQ(ReadInt(heap.memory(), layout, heap.Int(value)), value);
      EXPECT_EQ(Describe(heap.memory(), layout, heap.Int(value)), std::to_string(value));
    }
  }
}

TEST(ReadInt, AWildSizeIsNoNumber) {
  for (const Layout& layout : AllLayouts()) {
    for (const int64_t tag : {INT64_MIN, INT64_MIN + 1, INT64_MAX}) {
      Heap heap(layout);
      const Address number = heap.Int(1);
      heap.Put(number + layout.object.long_tag, tag);
      EXPECT_EQ(ReadInt(heap.memory(), layout, number), std::nullopt);
      EXPECT_EQ(Describe(heap.memory(), layout, number), std::nullopt);
    }
  }
}

TEST(Objects, SurviveNoise) {
  for (const Layout& layout : AllLayouts()) {
    const NoiseMemory memory(layout.version.minor);
    for (uint64_t round = 0; round < 20; ++round) {
      ReadThreadNames(memory, layout, 0x1000);
      ReadLocals(memory, layout, {.frame = 0x1000, .code = 0x2000});
      Describe(memory, layout, 0x3000);
      ReadDict(memory, layout, 0x4000);
      ReadAttributes(memory, layout, 0x5000);
    }
  }
}

}  // namespace
}  // namespace pystrobe::pyabi
