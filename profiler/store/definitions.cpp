// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/definitions.h"

#include <algorithm>
#include <limits>

#include "profiler/store/corrupt.h"

namespace pystrobe::store {
namespace {

// Definitions take at most about this many bytes each, besides a string's own.
constexpr size_t kDefinitionBytes = 16;

/// The stack `levels` above `stack`; nothing when the root is nearer than that.
std::optional<StackId> Ancestor(const Tables& tables, StackId stack, uint32_t levels) {
  for (; levels > 0; --levels) {
    if (stack == kEmptyStack) return std::nullopt;
    stack = tables.stack(stack).parent;
  }
  return stack;
}

/// How far above `stack` the older stack `ancestor` is; kFar when it is not there or too far.
uint8_t LevelsUp(const Tables& tables, StackId stack, StackId ancestor) {
  // Ids fall on the way to the root, so that an id below the wanted one ends the search.
  uint8_t levels = 0;
  while (stack > ancestor && levels < kFar) {
    stack = tables.stack(stack).parent;
    ++levels;
  }
  return stack == ancestor ? levels : kFar;
}

uint64_t Distance(uint32_t to, uint32_t from) { return Difference(to, from); }

/// The inverse of Distance; nothing when it leads out of [0, count).
std::optional<uint32_t> Follow(uint32_t from, uint64_t distance, size_t count) {
  const uint64_t to = Add(from, distance);
  if (to >= count) return std::nullopt;
  return static_cast<uint32_t>(to);
}

constexpr size_t kAnyLine = size_t{std::numeric_limits<uint32_t>::max()} + 1;

}  // namespace

RecencyList& CalleeLists::Of(const Tables& tables, StackId parent) {
  const size_t index = parent == kEmptyStack ? 0 : ToIndex(tables.stack(parent).frame) + size_t{1};
  if (index >= lists_.size()) lists_.resize(index + 1, RecencyList(kCalleeListSize));
  return lists_[index];
}

bool DefinitionEncoder::Encode(const Tables& tables, size_t budget, Columns& columns) {
  size_t spent = 0;
  uint32_t after_native = functions_;
  for (; strings_ < tables.string_count() && spent < budget; ++strings_) {
    const std::string& text = tables.text(StringId{strings_});
    AppendVarint(columns[kStringLengths], text.size());
    columns[kStringBytes].insert(columns[kStringBytes].end(), text.begin(), text.end());
    string_bytes_ += text.size();
    spent += text.size() + kDefinitionBytes;
  }
  for (; functions_ < tables.function_count() && spent < budget; ++functions_) {
    const Function& function = tables.function(FunctionId{functions_});
    Bytes& out = columns[kFunctions];
    AppendVarint(out, Distance(ToIndex(function.name), ToIndex(last_function_.name)));
    AppendVarint(out, Distance(ToIndex(function.file), ToIndex(last_function_.file)));
    AppendVarint(out, Distance(function.first_line, last_function_.first_line));
    if (function.is_native) {
      AppendVarint(columns[kNativeFunctions], functions_ - after_native);
      after_native = functions_ + 1;
    }
    last_function_ = function;
    spent += kDefinitionBytes;
  }
  for (; frames_ < tables.frame_count() && spent < budget; ++frames_) {
    const Frame& frame = tables.frame(FrameId{frames_});
    Bytes& out = columns[kFrames];
    AppendVarint(out, Distance(ToIndex(frame.function), ToIndex(last_framed_)));
    AppendVarint(out, Distance(frame.line, tables.function(frame.function).first_line));
    last_framed_ = frame.function;
    spent += kDefinitionBytes;
  }
  for (; stacks_ < tables.stack_count() && spent < budget; ++stacks_) {
    EncodeStack(tables, stacks_, columns);
    spent += kDefinitionBytes;
  }
  if (spent >= budget) return false;
  EncodeThreads(tables, columns);
  return true;
}

DefinitionLimits DefinitionEncoder::taken() const {
  const auto most =
      std::max<size_t>({strings_, functions_, frames_, stacks_, thread_names_.size()});
  return {.definitions = most, .string_bytes = string_bytes_};
}

void DefinitionEncoder::EncodeStack(const Tables& tables, uint32_t id, Columns& columns) {
  const StackNode& node = tables.stack(StackId{id});
  const uint8_t levels = LevelsUp(tables, StackId{id - 1}, node.parent);
  AppendByte(columns[kParentLevels], levels);
  if (levels == kFar) AppendVarint(columns[kParentFar], id - ToIndex(node.parent));

  RecencyList& callees = callees_.Of(tables, node.parent);
  const std::optional<uint8_t> rank = callees.Use(ToIndex(node.frame));
  AppendByte(columns[kCalleeRanks], rank.value_or(kFar));
  if (rank) return;
  callees.Insert(ToIndex(node.frame));
  AppendVarint(columns[kCalleeNew], Distance(ToIndex(node.frame), ToIndex(last_new_callee_)));
  last_new_callee_ = node.frame;
}

void DefinitionEncoder::EncodeThreads(const Tables& tables, Columns& columns) {
  Bytes& out = columns[kThreads];
  for (const ThreadIndex index : tables.thread_changes().subspan(thread_changes_)) {
    const Thread& thread = tables.thread(index);
    const size_t i = ToIndex(index);
    // Changed more than once, or back.
    if (i < thread_names_.size() && thread_names_[i] == thread.name) continue;
    AppendVarint(out, i);
    AppendVarint(out, thread.tid);
    AppendVarint(out, thread.interpreter);
    AppendVarint(out, ToIndex(thread.name));
    if (i == thread_names_.size()) {
      thread_names_.push_back(thread.name);
    } else {
      thread_names_[i] = thread.name;
    }
  }
  thread_changes_ = tables.thread_changes().size();
}

Result<void> DefinitionDecoder::Decode(const BlockUnpacker& block, Tables& tables) {
  const ByteSpan lengths = block.column(kStringLengths);
  if (auto done = DecodeStrings(lengths, block.column(kStringBytes), tables); !done) return done;
  if (auto done = DecodeFunctions(block, tables); !done) return done;
  if (auto done = DecodeFrames(block.column(kFrames), tables); !done) return done;
  if (auto done = DecodeStacks(block, tables); !done) return done;
  return DecodeThreads(block.column(kThreads), tables);
}

DefinitionLimits DefinitionDecoder::Left(const Tables& tables) const {
  const auto most = std::max({tables.string_count(), tables.function_count(), tables.frame_count(),
                              tables.stack_count(), tables.thread_count()});
  return {.definitions = limits_.definitions - std::min<uint64_t>(most, limits_.definitions),
          .string_bytes = limits_.string_bytes - std::min(string_bytes_, limits_.string_bytes)};
}

Result<void> DefinitionDecoder::DecodeStrings(ByteSpan lengths_column, ByteSpan bytes_column,
                                              Tables& tables) {
  ByteReader lengths(lengths_column);
  ByteReader bytes(bytes_column);
  while (!lengths.empty()) {
    const std::string_view text = bytes.TextOf(lengths.Varint());
    string_bytes_ += text.size();
    const uint32_t expected = static_cast<uint32_t>(tables.string_count());
    if (expected >= limits_.definitions || string_bytes_ > limits_.string_bytes) {
      return Corrupt("more strings than a file of this size can hold");
    }
    if (!lengths.ok() || !bytes.ok()) return Corrupt("a string beyond its column");
    if (ToIndex(tables.Intern(text)) != expected) return Corrupt("a string defined twice");
  }
  if (!bytes.finished()) return Corrupt("strings that do not fill their column");
  return {};
}

Result<void> DefinitionDecoder::DecodeFunctions(const BlockUnpacker& block, Tables& tables) {
  ByteReader in(block.column(kFunctions));
  ByteReader native(block.column(kNativeFunctions));
  const auto next_native = [&native]() -> std::optional<uint64_t> {
    if (native.empty()) return std::nullopt;
    return native.Varint();
  };
  std::optional<uint64_t> until_native = next_native();
  while (!in.empty()) {
    const auto name = Follow(ToIndex(last_function_.name), in.Varint(), tables.string_count());
    const auto file = Follow(ToIndex(last_function_.file), in.Varint(), tables.string_count());
    const auto line = Follow(last_function_.first_line, in.Varint(), kAnyLine);
    if (!in.ok() || !name || !file || !line) return Corrupt("a function without a valid name");
    const bool is_native = until_native == 0;
    if (is_native) {
      until_native = next_native();
    } else if (until_native) {
      --*until_native;
    }
    last_function_ = {StringId{*name}, StringId{*file}, *line, is_native};
    const uint32_t expected = static_cast<uint32_t>(tables.function_count());
    if (expected >= limits_.definitions) return Corrupt("more functions than can be");
    if (ToIndex(tables.Intern(last_function_)) != expected) {
      return Corrupt("a function defined twice");
    }
  }
  if (!native.finished() || until_native) return Corrupt("machine code of no function");
  return {};
}

Result<void> DefinitionDecoder::DecodeFrames(ByteSpan column, Tables& tables) {
  ByteReader in(column);
  while (!in.empty()) {
    const auto function = Follow(ToIndex(last_framed_), in.Varint(), tables.function_count());
    if (!in.ok() || !function) return Corrupt("a frame of an undefined function");
    last_framed_ = FunctionId{*function};
    const auto line = Follow(tables.function(last_framed_).first_line, in.Varint(), kAnyLine);
    if (!in.ok() || !line) return Corrupt("a frame without a valid line");
    const uint32_t expected = static_cast<uint32_t>(tables.frame_count());
    if (expected >= limits_.definitions) return Corrupt("more frames than can be");
    if (ToIndex(tables.Intern(Frame{last_framed_, *line})) != expected) {
      return Corrupt("a frame defined twice");
    }
  }
  return {};
}

Result<void> DefinitionDecoder::DecodeStacks(const BlockUnpacker& block, Tables& tables) {
  ByteReader far(block.column(kParentFar));
  ByteReader ranks(block.column(kCalleeRanks));
  ByteReader fresh(block.column(kCalleeNew));
  for (const uint8_t levels : block.column(kParentLevels)) {
    const uint32_t id = static_cast<uint32_t>(tables.stack_count());
    if (id >= limits_.definitions) return Corrupt("more stacks than a file of this size can hold");
    std::optional<StackId> parent;
    if (levels != kFar) {
      parent = Ancestor(tables, StackId{id - 1}, levels);
    } else if (const uint64_t distance = far.Varint(); distance > 0 && distance <= id) {
      parent = StackId{id - static_cast<uint32_t>(distance)};
    }
    if (!parent) return Corrupt("a stack on an undefined one");

    RecencyList& callees = callees_.Of(tables, *parent);
    const uint8_t rank = ranks.Byte();
    std::optional<uint32_t> frame;
    if (rank != kFar) {
      frame = callees.UseRank(rank);
    } else {
      frame = Follow(ToIndex(last_new_callee_), fresh.Varint(), tables.frame_count());
      if (frame) {
        last_new_callee_ = FrameId{*frame};
        if (!callees.Use(*frame)) callees.Insert(*frame);
      }
    }
    if (!ranks.ok() || !fresh.ok() || !frame) return Corrupt("a stack of an undefined frame");
    if (ToIndex(tables.Push(*parent, FrameId{*frame})) != id)
      return Corrupt("a stack defined twice");
  }
  if (!far.finished() || !ranks.finished() || !fresh.finished()) {
    return Corrupt("stacks that do not fill their columns");
  }
  return {};
}

Result<void> DefinitionDecoder::DecodeThreads(ByteSpan column, Tables& tables) {
  ByteReader in(column);
  while (!in.empty()) {
    const uint64_t index = in.Varint();
    Thread thread{.tid = in.Varint(), .interpreter = in.Varint(), .name = kEmptyString};
    const uint64_t name = in.Varint();
    if (!in.ok() || name >= tables.string_count() || index > tables.thread_count()) {
      return Corrupt("a thread without a valid name");
    }
    if (index >= limits_.definitions) return Corrupt("more threads than can be");
    thread.name = StringId{static_cast<uint32_t>(name)};
    const ThreadIndex thread_index{static_cast<uint32_t>(index)};
    if (index == tables.thread_count()) {
      tables.AddThread(thread);
    } else {
      tables.RenameThread(thread_index, thread.name);
    }
  }
  return {};
}

}  // namespace pystrobe::store
