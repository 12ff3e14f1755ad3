// SPDX-License-Identifier: Apache-2.0
#include "sampler/pyabi/objects.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "sampler/pyabi/bytes.h"
#include "sampler/pyabi/code.h"
#include "sampler/pyabi/describe.h"
#include "sampler/pyabi/dict.h"

namespace pystrobe::pyabi {
namespace {

constexpr uint64_t kMaxLocals = 1U << 12;
// Of a threading.Thread, which has about 15, and of all threads together: memory that is no longer
// what it was can look like thousands of threads with thousands of attributes each.
constexpr uint64_t kMaxAttributes = 1024;
constexpr uint64_t kMaxAllAttributes = 1U << 20;

// Include/internal/pycore_code.h.
constexpr uint8_t kHiddenKind = 0x10;
constexpr uint8_t kCellKind = 0x40;
constexpr uint8_t kFreeKind = 0x80;
// Include/cpython/code.h.
constexpr int32_t kVarArgs = 0x4;
constexpr int32_t kVarKeywords = 0x8;

struct Slot {
  std::string name;
  size_t index = 0;  ///< in localsplus
  uint8_t kind = 0;
  bool is_argument = false;
};

/// The strs of a tuple; an unreadable one is "?".
std::optional<std::vector<std::string>> ReadNames(const Memory& memory, const Layout& layout,
                                                  Address tuple) {
  const auto count = memory.Read<uint64_t>(tuple + layout.object.tuple_size);
  if (!count || *count > kMaxLocals) return std::nullopt;
  std::vector<Address> items(*count);
  if (!items.empty() &&
      !memory.Read(tuple + layout.object.tuple_items, items.data(), items.size() * 8)) {
    return std::nullopt;
  }
  std::vector<std::string> names;
  for (const Address item : items) {
    names.push_back(ReadString(memory, layout, item).value_or("?"));
  }
  return names;
}

/// co_localsplusnames and co_localspluskinds (3.11+), or the three tuples that came before them, in
/// the order in which their values lie in a frame.
std::vector<Slot> ReadSlots(const Memory& memory, const Layout& layout,
                            std::span<const std::byte> code) {
  std::vector<Slot> slots;
  const auto add = [&](uint32_t field, uint8_t kind) {
    if (field == kAbsent) return true;
    auto names = ReadNames(memory, layout, Load<Address>(code, field));
    if (!names) return false;
    for (std::string& name : *names) {
      slots.push_back({.name = std::move(name), .index = slots.size(), .kind = kind});
    }
    return true;
  };
  if (!add(layout.code.locals_names, 0) || !add(layout.code.cell_names, kCellKind) ||
      !add(layout.code.free_names, kFreeKind)) {
    return {};  // where the later ones lie depends on how many come before
  }
  if (layout.code.locals_kinds != kAbsent) {
    std::vector<uint8_t> kinds(slots.size());
    const auto bytes = Load<Address>(code, layout.code.locals_kinds);
    if (kinds.empty() ||
        !memory.Read(bytes + layout.object.bytes_data, kinds.data(), kinds.size())) {
      return {};
    }
    for (size_t i = 0; i < slots.size(); ++i) slots[i].kind = kinds[i];
  }
  const auto flags = Load<int32_t>(code, layout.code.flags);
  int64_t arguments = int64_t{Load<int32_t>(code, layout.code.arg_count)} +
                      Load<int32_t>(code, layout.code.keyword_arg_count) +
                      ((flags & kVarArgs) != 0) + ((flags & kVarKeywords) != 0);
  arguments = std::clamp<int64_t>(arguments, 0, static_cast<int64_t>(slots.size()));
  const auto end = slots.begin() + arguments;
  for (auto slot = slots.begin(); slot != end; ++slot) {
    // Up to 3.10 an argument that lives in a cell has a second slot, and the first stays empty.
    const auto cell =
        std::find_if(end, slots.end(), [&](const Slot& one) { return one.name == slot->name; });
    if (cell != slots.end()) std::swap(*slot, *cell);
    slot->is_argument = true;
  }
  return slots;
}

/// What a slot holds: `tagged` as _PyStackRef has it from 3.14 on, a plain address before.
std::optional<std::string> DescribeSlot(const Memory& memory, const Layout& layout,
                                        const Slot& slot, Address tagged) {
  // Include/internal/pycore_stackref.h: Py_INT_TAG is 3, the number above it.
  if (layout.frame.code_tag_mask != 0 && (tagged & 3) == 3) {
    return std::to_string(static_cast<int64_t>(tagged) >> 2);
  }
  Address object = tagged & ~layout.frame.code_tag_mask;
  if (object == 0) return std::nullopt;
  // A variable shared with an inner function lives in a cell, once the function has made it.
  if ((slot.kind & (kCellKind | kFreeKind)) != 0 && TypeNameOf(memory, layout, object) == "cell") {
    const auto content = memory.Read<Address>(object + layout.object.cell_value);
    if (!content || *content == 0) return std::nullopt;
    object = *content;
  }
  return Describe(memory, layout, object);
}

}  // namespace

HashMap<uint64_t, std::string> ReadThreadNames(const Memory& memory, const Layout& layout,
                                               Address interpreter) {
  const auto modules = memory.Read<Address>(interpreter + layout.interpreter.imports_modules);
  if (!modules || *modules == 0) return {};
  const Address threading =
      FindName(memory, layout, ReadDict(memory, layout, *modules), "threading");
  if (threading == 0) return {};
  // Objects/moduleobject.c and later Include/internal/pycore_moduleobject.h: md_dict comes first.
  const auto globals = memory.Read<Address>(threading + HeadSize(layout));
  if (!globals) return {};
  const Address active = FindName(memory, layout, ReadDict(memory, layout, *globals), "_active");
  if (active == 0) return {};
  HashMap<uint64_t, std::string> names;
  uint64_t left = kMaxAllAttributes;
  for (const DictEntry& entry : ReadDict(memory, layout, active)) {
    const auto ident = ReadInt(memory, layout, entry.key);
    const auto attributes =
        ReadAttributes(memory, layout, entry.value, std::min(kMaxAttributes, left));
    left -= attributes.size();
    const Address name = FindName(memory, layout, attributes, "_name");
    if (!ident || name == 0) continue;
    if (auto text = ReadString(memory, layout, name)) {
      names[static_cast<uint64_t>(*ident)] = std::move(*text);
    }
  }
  return names;
}

std::vector<Local> ReadLocals(const Memory& memory, const Layout& layout, const RawFrame& frame) {
  std::vector<std::byte> code(layout.code.size);
  if (!memory.Read(frame.code, code.data(), code.size())) return {};
  std::vector<Slot> slots = ReadSlots(memory, layout, code);
  std::vector<Address> values(slots.size());
  if (values.empty() ||
      !memory.Read(frame.frame + layout.frame.localsplus, values.data(), values.size() * 8)) {
    return {};
  }
  std::vector<Local> locals;
  for (Slot& slot : slots) {
    if ((slot.kind & kHiddenKind) != 0) continue;
    auto value = DescribeSlot(memory, layout, slot, values[slot.index]);
    if (!value) continue;
    locals.push_back({.name = std::move(slot.name),
                      .value = std::move(*value),
                      .is_argument = slot.is_argument});
  }
  return locals;
}

}  // namespace pystrobe::pyabi
