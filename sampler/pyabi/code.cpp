// SPDX-License-Identifier: Apache-2.0
#include "sampler/pyabi/code.h"

#include <algorithm>

#include "profiler/base/utf8.h"
#include "sampler/pyabi/bytes.h"
#include "sampler/pyabi/line_table.h"
#include "sampler/pyabi/unicode.h"

namespace pystrobe::pyabi {
namespace {

// Longer names are cut: programs that make code give it any.
constexpr uint64_t kMostOfName = 64U << 10;

// Wild sizes: far above anything a compiler of Python makes.
constexpr uint64_t kMaxNameLength = 256U << 20;
constexpr uint64_t kMaxLineTable = 64U << 20;
constexpr uint64_t kMaxBytecode = 256U << 20;
constexpr uint64_t kMaxCopies = 64U << 10;

/// Objects a code object points to, as far as their sizes.
struct Heads {
  std::vector<std::byte> name, file;
  uint64_t line_table_size = 0;
  uint64_t bytecode_size = 0;  // 3.8-3.10
  uint64_t copy_count = 0;     // 3.14t+
};

Address NameOf(const CodeIdentity& identity) {
  return identity.qualname != 0 ? identity.qualname : identity.name;
}

Address CopiesOf(const Layout& layout, std::span<const std::byte> object) {
  return layout.code.tlbc == kAbsent ? 0 : Load<Address>(object, layout.code.tlbc);
}

std::optional<Heads> ReadHeads(const Memory& memory, const Layout& layout,
                               std::span<const std::byte> object, const CodeIdentity& identity) {
  Heads heads;
  heads.name.resize(layout.object.ascii_data);
  heads.file.resize(layout.object.ascii_data);
  std::vector<ReadRequest> requests = {
      {NameOf(identity), heads.name.data(), heads.name.size()},
      {identity.filename, heads.file.data(), heads.file.size()},
      {identity.line_table + layout.object.bytes_size, &heads.line_table_size, 8},
  };
  if (layout.frame_style == FrameStyle::kFrameObjects) {
    const auto bytecode = Load<Address>(object, layout.code.bytecode);
    requests.push_back({bytecode + layout.object.bytes_size, &heads.bytecode_size, 8});
  } else {
    heads.bytecode_size = Load<uint64_t>(object, layout.code.unit_count) * 2;
  }
  if (const Address copies = CopiesOf(layout, object); copies != 0) {
    requests.push_back({copies, &heads.copy_count, 8});
  }
  if (!memory.ReadAll(requests)) return std::nullopt;
  if (heads.line_table_size > kMaxLineTable || heads.bytecode_size > kMaxBytecode ||
      heads.copy_count > kMaxCopies) {
    return std::nullopt;
  }
  return heads;
}

/// The characters of a name, or the first of them.
class NameText {
 public:
  explicit NameText(const StringHead& head)
      : head_(head), characters_(std::min(head.length, kMostOfName) * head.width) {}

  void AddTo(std::vector<ReadRequest>& requests, Address characters) {
    requests.push_back({characters, characters_.data(), characters_.size()});
    if (is_cut()) requests.push_back({characters + head_.byte_count(), &end_, head_.width});
  }

  /// False where nothing ends at the length that was read, as the characters of a str do with a 0:
  /// it is none.
  bool IsSound() const { return end_ == 0; }

  std::string ToString() const {
    return ToUtf8(characters_, head_.width) + (is_cut() ? "..." : "");
  }

 private:
  bool is_cut() const { return head_.length > kMostOfName; }

  StringHead head_;
  std::vector<std::byte> characters_;
  uint32_t end_ = 0;
};

// A freed object keeps all but its first word, where the allocator links free blocks: what was the
// reference count is then 0 or an address. A count never needs more than 32 bits; the next 16 are 0
// too where flags follow (3.14+).
bool IsAlive(const Layout& layout, std::span<const std::byte> object) {
  if (layout.free_threaded) return true;
  return Load<uint32_t>(object, 0) != 0 && Load<uint16_t>(object, 4) == 0;
}

}  // namespace

CodeIdentity IdentityOf(const Layout& layout, std::span<const std::byte> code_object) {
  const auto& at = layout.code;
  CodeIdentity identity;
  identity.type = Load<Address>(code_object, at.type);
  identity.name = Load<Address>(code_object, at.name);
  if (at.qualname != kAbsent) identity.qualname = Load<Address>(code_object, at.qualname);
  identity.filename = Load<Address>(code_object, at.filename);
  identity.line_table = Load<Address>(code_object, at.line_table);
  identity.first_line = Load<int32_t>(code_object, at.first_line);
  identity.flags = Load<int32_t>(code_object, at.flags);
  identity.arg_count = Load<int32_t>(code_object, at.arg_count);
  return identity;
}

std::optional<CodeInfo> ReadCode(const Memory& memory, const Layout& layout, Address code_type,
                                 Address code) {
  std::vector<std::byte> object(layout.code.size);
  if (!memory.Read(code, object.data(), object.size())) return std::nullopt;
  CodeInfo info;
  info.identity = IdentityOf(layout, object);
  if (code_type != 0 && info.identity.type != code_type) return std::nullopt;

  const auto heads = ReadHeads(memory, layout, object, info.identity);
  if (!heads) return std::nullopt;
  const auto name_head = ParseStringHead(layout, heads->name, kMaxNameLength);
  const auto file_head = ParseStringHead(layout, heads->file, kMaxNameLength);
  if (!name_head || !file_head) return std::nullopt;

  NameText name(*name_head), file(*file_head);
  std::vector<std::byte> again(object.size());
  info.line_table.resize(heads->line_table_size);
  info.tlbc.resize(heads->copy_count);
  std::vector<ReadRequest> requests;
  name.AddTo(requests, CharactersOf(memory, NameOf(info.identity), *name_head));
  file.AddTo(requests, CharactersOf(memory, info.identity.filename, *file_head));
  const ReadRequest others[] = {
      {info.identity.line_table + layout.object.bytes_data, info.line_table.data(),
       info.line_table.size()},
      // _PyCodeArray: the number of copies, then their addresses (Include/cpython/code.h).
      {CopiesOf(layout, object) + 8, info.tlbc.data(), info.tlbc.size() * sizeof(Address)},
      // Last: what was the same before and after all else was so meanwhile.
      {code, again.data(), again.size()},
  };
  requests.insert(requests.end(), std::begin(others), std::end(others));
  std::erase_if(requests, [](const ReadRequest& request) { return request.size == 0; });
  if (!memory.ReadAll(requests) || !IsAlive(layout, again) ||
      IdentityOf(layout, again) != info.identity ||
      CopiesOf(layout, again) != CopiesOf(layout, object) || !name.IsSound() || !file.IsSound()) {
    return std::nullopt;
  }
  info.name = name.ToString();
  info.file = file.ToString();
  info.bytecode_size = heads->bytecode_size;
  info.bytecode = layout.frame_style == FrameStyle::kFrameObjects
                      ? Load<Address>(object, layout.code.bytecode) + layout.object.bytes_data
                      : code + layout.code.bytecode;
  return info;
}

std::optional<int64_t> InstructionOffset(const Layout& layout, const CodeInfo& code,
                                         const RawFrame& frame) {
  int64_t offset;
  if (layout.frame_style == FrameStyle::kFrameObjects) {
    // f_lasti is an int: in bytes up to 3.9, in code units in 3.10, -1 before the first
    // instruction.
    offset = static_cast<int32_t>(frame.instruction);
    if (layout.version.minor >= 10) offset *= 2;
  } else {
    Address start = code.bytecode;
    if (!code.tlbc.empty()) {
      if (frame.tlbc_index >= code.tlbc.size()) return std::nullopt;
      start = code.tlbc[frame.tlbc_index];
    }
    if (start == 0) return std::nullopt;
    offset = static_cast<int64_t>(frame.instruction - start);
    if (offset % 2 != 0) return std::nullopt;
  }
  // One code unit before the first: a frame of 3.11 and 3.12 that has not begun.
  if (offset < -2 || offset >= static_cast<int64_t>(code.bytecode_size)) return std::nullopt;
  return offset;
}

uint32_t LineOf(const Layout& layout, const CodeInfo& code, const RawFrame& frame) {
  const auto offset = InstructionOffset(layout, code, frame);
  if (!offset) return 0;
  return LineAt(layout.line_table_style, code.line_table, code.identity.first_line, *offset);
}

std::optional<std::string> ReadString(const Memory& memory, const Layout& layout, Address str,
                                      size_t max_length) {
  std::vector<std::byte> head(layout.object.ascii_data);
  if (!memory.Read(str, head.data(), head.size())) return std::nullopt;
  const auto parsed = ParseStringHead(layout, head, max_length);
  if (!parsed) return std::nullopt;
  std::vector<std::byte> text(parsed->byte_count());
  if (!text.empty() && !memory.Read(CharactersOf(memory, str, *parsed), text.data(), text.size())) {
    return std::nullopt;
  }
  return ToUtf8(text, parsed->width);
}

}  // namespace pystrobe::pyabi
