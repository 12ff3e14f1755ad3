// SPDX-License-Identifier: Apache-2.0
#include "sampler/pyabi/debug_offsets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <random>
#include <vector>

#include "fake_memory.h"
#include "golden.h"
#include "random_layout.h"
#include "sampler/pyabi/layout.h"

namespace pystrobe::pyabi {
namespace {

using ::testing::HasSubstr;

/// The eight bytes at `offset`, to be changed.
void Put(std::vector<std::byte>& bytes, size_t offset, uint64_t value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

TEST(DebugOffsets, ReadsTheReleasesItKnows) {
  for (const char* name : kGoldenDebugOffsets) {
    auto layout = LayoutFromDebugOffsets(GoldenDebugOffsets(name));
    ASSERT_TRUE(layout) << layout.error().message;
    const bool free_threaded = std::string(name).ends_with("t");
    EXPECT_EQ(layout->version.ToString() + (free_threaded ? "t" : ""), name);
    EXPECT_EQ(layout->free_threaded, free_threaded);
    // A free-threaded build has `enabled` first in its GIL, and 16 bytes more in every object.
    const uint32_t more = free_threaded ? 8 : 0;
    EXPECT_EQ(layout->gil.enabled, free_threaded ? 0 : kAbsent);
    EXPECT_EQ(layout->gil.last_holder, 8 + more);
    EXPECT_EQ(layout->gil.locked, 16 + more);
    EXPECT_EQ(layout->gil.switch_number, 24 + more);
    EXPECT_EQ(layout->frame.previous, 8U);
    EXPECT_EQ(layout->frame.instruction, 56U);
    EXPECT_EQ(layout->object.ascii_data, 40 + more * 2);
    EXPECT_EQ(layout->object.compact_data, 56 + more * 2);
    EXPECT_EQ(layout->object.dict_used, 16 + more * 2);
    const bool has_copies = free_threaded && layout->version.minor >= 14;
    EXPECT_EQ(layout->frame.tlbc_index != kAbsent, has_copies);
    EXPECT_EQ(layout->code.tlbc != kAbsent, has_copies);
    EXPECT_EQ(layout->interpreter.tlbc_generation != kAbsent, has_copies);
    EXPECT_EQ(layout->object.unicode_kind_shift, has_copies ? 8U : 2U);
  }
}

// Offsets taken from the headers of that very release by a C compiler.
TEST(DebugOffsets, AgreesWithTheHeadersOf313) {
  Layout layout = *LayoutFromDebugOffsets(GoldenDebugOffsets("3.13.0"));
  EXPECT_EQ(layout.runtime.interpreters_head, 632U);
  EXPECT_EQ(layout.interpreter.threads_head, 7344U);
  EXPECT_EQ(layout.interpreter.gc_collecting, 7600U);
  EXPECT_EQ(layout.thread.frame, 72U);
  EXPECT_EQ(layout.thread.state, 40U);
  EXPECT_EQ(layout.thread.datastack_top, 240U);
  EXPECT_EQ(layout.frame.stacktop, 64U);
  EXPECT_EQ(layout.frame.owner, 70U);
  EXPECT_EQ(layout.code.flags, 48U);
  EXPECT_EQ(layout.code.keyword_arg_count, 60U);
  EXPECT_EQ(layout.code.bytecode, 200U);
  EXPECT_EQ(layout.frame.code_tag_mask, 0U);
}

TEST(DebugOffsets, AgreesWithTheHeadersOf314FreeThreaded) {
  Layout layout = *LayoutFromDebugOffsets(GoldenDebugOffsets("3.14.10t"));
  EXPECT_EQ(layout.interpreter.tlbc_generation, 17300U);
  EXPECT_EQ(layout.gil.enabled, 0U);
  EXPECT_EQ(layout.thread.state, 44U);
  EXPECT_EQ(layout.frame.tlbc_index, 72U);
  EXPECT_EQ(layout.frame.owner, 78U);
  EXPECT_EQ(layout.code.tlbc, 224U);
}

TEST(DebugOffsets, FramesHoldTaggedReferencesFrom314On) {
  for (const char* name : {"3.14.10", "3.15.2"}) {
    Layout layout = *LayoutFromDebugOffsets(GoldenDebugOffsets(name));
    EXPECT_EQ(layout.frame.code_tag_mask, 7U);
    EXPECT_EQ(layout.frame.owner, 74U);
    EXPECT_EQ(layout.frame.stackpointer, 64U);
    EXPECT_EQ(layout.frame.stacktop, kAbsent);
  }
}

TEST(DebugOffsets, RefusesAWrongCookie) {
  auto bytes = GoldenDebugOffsets("3.13.0");
  bytes[3] = std::byte{'?'};
  auto layout = LayoutFromDebugOffsets(bytes);
  ASSERT_FALSE(layout);
  EXPECT_EQ(layout.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(layout.error().message, HasSubstr("78 64 65 3f"));
}

TEST(DebugOffsets, RefusesOtherReleases) {
  for (uint64_t hex : {0x030c01f0, 0x030d00b2, 0x030f00a1, 0x031000f0, 0x040d00f0}) {
    auto bytes = GoldenDebugOffsets("3.15.2");
    Put(bytes, 8, hex);
    auto layout = LayoutFromDebugOffsets(bytes);
    ASSERT_FALSE(layout) << hex;
    EXPECT_THAT(layout.error().message,
                HasSubstr(PyVersion::FromHex(static_cast<uint32_t>(hex)).ToString()));
  }
}

TEST(DebugOffsets, TheTableOfOneReleaseIsNotTakenForAnother) {
  for (const char* name : kGoldenDebugOffsets) {
    for (uint64_t hex : {0x030d01f0, 0x030e01f0, 0x030f01f0}) {
      auto bytes = GoldenDebugOffsets(name);
      bytes.resize(kDebugOffsetsSize);
      uint64_t own;
      std::memcpy(&own, bytes.data() + 8, sizeof own);
      if (hex >> 16 == own >> 16) continue;
      Put(bytes, 8, hex);
      EXPECT_FALSE(LayoutFromDebugOffsets(bytes)) << name << " as " << hex;
    }
  }
}

TEST(DebugOffsets, RefusesEveryTruncation) {
  for (const char* name : kGoldenDebugOffsets) {
    auto bytes = GoldenDebugOffsets(name);
    while (!bytes.empty()) {
      bytes.pop_back();
      EXPECT_FALSE(LayoutFromDebugOffsets(bytes)) << name << " cut to " << bytes.size();
    }
  }
}

/// Fields the sampler does not use, hence may hold anything: byte offsets into the tables.
template <typename Table>
std::vector<size_t> Unused(bool free_threaded) {
  std::vector<size_t> unused;
  const auto add = [&unused](size_t offset) { unused.push_back(offset); };
  add(offsetof(Table, runtime_state.finalizing));
  add(offsetof(Table, interpreter_state.sysdict));
  add(offsetof(Table, interpreter_state.builtins));
  if (!free_threaded) add(offsetof(Table, interpreter_state.gil_runtime_state_enabled));
  add(offsetof(Table, thread_state.prev));
  add(offsetof(Table, type_object.tp_repr));
  if constexpr (Table::kMinor >= 14) {
    add(offsetof(Table, interpreter_state.threads_main));
    if (!free_threaded) {
      add(offsetof(Table, interpreter_state.tlbc_generation));
      add(offsetof(Table, interpreter_frame.tlbc_index));
      add(offsetof(Table, code_object.co_tlbc));
    }
    add(offsetof(Table, set_object.table));
    add(offsetof(Table, set_object.mask));
    for (size_t at = offsetof(Table, gen_object); at < sizeof(Table); at += 8) add(at);
  }
  if constexpr (Table::kMinor >= 15) {
    add(offsetof(Table, thread_state.last_profiled_frame));
    add(offsetof(Table, thread_state.last_profiled_frame_seq));
    add(offsetof(Table, thread_state.gil_requested));
    add(offsetof(Table, thread_state.current_exception));
    add(offsetof(Table, thread_state.exc_state));
    add(offsetof(Table, err_stackitem_exc_value));
    add(offsetof(Table, gc.frame));
    add(offsetof(Table, gc.generation_stats_size));
    add(offsetof(Table, gc.generation_stats));
  }
  return unused;
}

template <typename Table>
void ExpectEveryFieldChecked(const std::string& name) {
  const std::vector<size_t> unused = Unused<Table>(name.ends_with("t"));
  for (size_t at = sizeof(debug_offsets::Header); at < sizeof(Table); at += 8) {
    if (std::ranges::find(unused, at) != unused.end()) continue;
    for (uint64_t wild : {UINT64_MAX, uint64_t{1} << 40, UINT64_MAX - 15}) {
      auto bytes = GoldenDebugOffsets(name);
      Put(bytes, at, wild);
      EXPECT_FALSE(LayoutFromDebugOffsets(bytes)) << name << " byte " << at << " = " << wild;
    }
  }
}

TEST(DebugOffsets, RefusesEveryFieldOutOfBounds) {
  ExpectEveryFieldChecked<debug_offsets::Table13>("3.13.0");
  ExpectEveryFieldChecked<debug_offsets::Table13>("3.13.5t");
  ExpectEveryFieldChecked<debug_offsets::Table14>("3.14.10");
  ExpectEveryFieldChecked<debug_offsets::Table14>("3.14.10t");
  ExpectEveryFieldChecked<debug_offsets::Table15>("3.15.2");
  ExpectEveryFieldChecked<debug_offsets::Table15>("3.15.2t");
}

struct Field {
  const char* name;
  uint32_t offset;
  uint32_t width = 8;
};

void ExpectWithin(std::initializer_list<Field> fields, uint32_t size) {
  for (const Field& field : fields) {
    if (field.offset == kAbsent) continue;
    EXPECT_LE(uint64_t{field.offset} + field.width, size) << field.name;
  }
}

/// Every field that is taken out of a copy lies within what is copied.
void ExpectFieldsCopied(const Layout& layout) {
  const auto& gil = layout.gil;
  ExpectWithin({{"last_holder", gil.last_holder},
                {"locked", gil.locked, 4},
                {"switch_number", gil.switch_number},
                {"enabled", gil.enabled, 4}},
               kGilBytes);
  const auto& thread = layout.thread;
  ExpectWithin({{"next", thread.next},
                {"interp", thread.interp},
                {"thread_id", thread.thread_id},
                {"native_thread_id", thread.native_thread_id},
                {"frame", thread.frame},
                {"cframe", thread.cframe},
                {"datastack_chunk", thread.datastack_chunk},
                {"datastack_top", thread.datastack_top},
                {"status", thread.status, 4},
                {"state", thread.state, 4},
                {"base_frame", thread.base_frame},
                {"holds_gil", thread.holds_gil, 4}},
               thread.size);
  const auto& frame = layout.frame;
  const bool is_pointer = layout.frame_style == FrameStyle::kInterpreterFrames;
  ExpectWithin({{"previous", frame.previous},
                {"code", frame.code},
                {"instruction", frame.instruction, is_pointer ? 8U : 4U},
                {"owner", frame.owner, 1},
                {"is_entry", frame.is_entry, 1},
                {"stacktop", frame.stacktop, 4},
                {"stackpointer", frame.stackpointer},
                {"tlbc_index", frame.tlbc_index, 4}},
               frame.size);
  const auto& code = layout.code;
  ExpectWithin({{"type", code.type},
                {"filename", code.filename},
                {"name", code.name},
                {"qualname", code.qualname},
                {"first_line", code.first_line, 4},
                {"line_table", code.line_table},
                {"flags", code.flags, 4},
                {"arg_count", code.arg_count, 4},
                {"keyword_arg_count", code.keyword_arg_count, 4},
                {"unit_count", code.unit_count},
                {"tlbc", code.tlbc},
                {"locals_names", code.locals_names},
                {"locals_kinds", code.locals_kinds},
                {"cell_names", code.cell_names},
                {"free_names", code.free_names}},
               code.size);
  ExpectWithin(
      {{"length", layout.object.unicode_length}, {"state", layout.object.unicode_state, 4}},
      layout.object.ascii_data);
  EXPECT_LE(std::max({thread.size, frame.size, code.size, layout.object.ascii_data}), 64U << 10);
}

TEST(DebugOffsets, WhatIsReadOfAStructureIsCopied) {
  for (const Layout& layout : TableLayouts()) ExpectFieldsCopied(layout);
  for (const char* name : kGoldenDebugOffsets) {
    SCOPED_TRACE(name);
    ExpectFieldsCopied(*LayoutFromDebugOffsets(GoldenDebugOffsets(name)));
  }
}

/// With the structure at `size` as large as can be, and its field at `field` behind what is copied.
void ExpectRefusedBehindTheCopy(const std::string& name, size_t size, size_t field) {
  constexpr uint64_t kLargest = 64U << 10;
  auto bytes = GoldenDebugOffsets(name);
  Put(bytes, size, kLargest);
  EXPECT_TRUE(LayoutFromDebugOffsets(bytes)) << name << " byte " << size;
  Put(bytes, field, kLargest - 64);
  EXPECT_FALSE(LayoutFromDebugOffsets(bytes)) << name << " byte " << field;
}

template <typename Table>
void ExpectRefusedBehindTheCopy(const std::string& name) {
  constexpr size_t kFrame = offsetof(Table, interpreter_frame.size);
  for (size_t field :
       {offsetof(Table, interpreter_frame.previous), offsetof(Table, interpreter_frame.executable),
        offsetof(Table, interpreter_frame.instr_ptr), offsetof(Table, interpreter_frame.owner)}) {
    ExpectRefusedBehindTheCopy(name, kFrame, field);
  }
  constexpr size_t kCode = offsetof(Table, code_object.size);
  for (size_t field : {offsetof(Table, code_object.filename), offsetof(Table, code_object.argcount),
                       offsetof(Table, code_object.localspluskinds)}) {
    ExpectRefusedBehindTheCopy(name, kCode, field);
  }
  ExpectRefusedBehindTheCopy(name, offsetof(Table, unicode_object.size),
                             offsetof(Table, unicode_object.state));
}

TEST(DebugOffsets, RefusesFieldsBehindWhatIsCopied) {
  ExpectRefusedBehindTheCopy<debug_offsets::Table13>("3.13.0");
  ExpectRefusedBehindTheCopy<debug_offsets::Table14>("3.14.10t");
  ExpectRefusedBehindTheCopy<debug_offsets::Table15>("3.15.2");
}

// The GIL has no size of its own: it may lie anywhere in the interpreter.
TEST(DebugOffsets, RefusesALockLargerThanWhatIsCopied) {
  using debug_offsets::Table13;
  for (size_t field : {offsetof(Table13, interpreter_state.gil_runtime_state_locked),
                       offsetof(Table13, interpreter_state.gil_runtime_state_holder)}) {
    auto bytes = GoldenDebugOffsets("3.13.0");
    uint64_t offset;
    std::memcpy(&offset, bytes.data() + field, sizeof offset);
    Put(bytes, field, offset + kGilBytes);
    EXPECT_FALSE(LayoutFromDebugOffsets(bytes)) << field;
  }
}

TEST(DebugOffsets, AFieldAnywhereInAThreadStateIsCopied) {
  using debug_offsets::Table13;
  auto bytes = GoldenDebugOffsets("3.13.0");
  Put(bytes, offsetof(Table13, thread_state.size), 4096);
  for (size_t field :
       {offsetof(Table13, thread_state.next), offsetof(Table13, thread_state.interp),
        offsetof(Table13, thread_state.thread_id), offsetof(Table13, thread_state.status)}) {
    Put(bytes, field, 4088);
    const auto layout = LayoutFromDebugOffsets(bytes);
    ASSERT_TRUE(layout);
    ExpectFieldsCopied(*layout);
    Put(bytes, field, 8);
  }
}

TEST(DebugOffsets, SurvivesNoise) {
  std::mt19937_64 random(1);
  size_t accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    const auto layout = RandomLayout(random);
    if (!layout) continue;
    ++accepted;
    ExpectFieldsCopied(*layout);
  }
  EXPECT_GT(accepted, 500U);
}

}  // namespace
}  // namespace pystrobe::pyabi
