// SPDX-License-Identifier: Apache-2.0
#include "sampler/pyabi/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>
#include <vector>

#include "profiler/base/utf8.h"
#include "sampler/pyabi/bytes.h"
#include "sampler/pyabi/code.h"
#include "sampler/pyabi/dict.h"
#include "sampler/pyabi/unicode.h"

namespace pystrobe::pyabi {
namespace {

constexpr uint64_t kShownCharacters = 80;
constexpr uint64_t kShownDigits = 4;  // of 30 bits: fits 128
constexpr uint64_t kMaxDigits = 1U << 24;
constexpr uint64_t kHeapType = 1U << 9;  // Include/object.h, Py_TPFLAGS_HEAPTYPE

struct Type {
  Address address = 0;
  std::string name;
  bool is_heap = false;  ///< made by a class statement or PyType_FromSpec
};

/// A C string, read in pieces that do not cross a page.
std::optional<std::string> ReadCString(const Memory& memory, Address at) {
  constexpr size_t kMaxLength = 512;
  constexpr Address kPage = 4096;
  std::string text;
  while (text.size() < kMaxLength) {
    std::array<char, 64> piece;
    const size_t size = std::min<size_t>(piece.size(), kPage - at % kPage);
    if (!memory.Read(at, piece.data(), size)) return std::nullopt;
    const size_t length = std::string_view(piece.data(), size).find('\0');
    text.append(piece.data(), std::min(length, size));
    if (length != std::string_view::npos) return text;
    at += size;
  }
  return std::nullopt;
}

std::optional<Type> ReadType(const Memory& memory, const Layout& layout, Address object) {
  const auto address = memory.Read<Address>(object + layout.object.type);
  if (!address) return std::nullopt;
  Address name = 0;
  uint64_t flags = 0;
  const std::array requests = {ReadRequest{*address + layout.object.type_name, &name, 8},
                               ReadRequest{*address + layout.object.type_flags, &flags, 8}};
  if (!memory.ReadAll(requests)) return std::nullopt;
  auto text = ReadCString(memory, name);
  if (!text || text->empty()) return std::nullopt;
  return Type{.address = *address, .name = std::move(*text), .is_heap = (flags & kHeapType) != 0};
}

/// module.qualname of a class; tp_name has the last part of it alone.
std::string FullName(const Memory& memory, const Layout& layout, const Type& type) {
  if (!type.is_heap) return type.name;
  // Include/cpython/object.h: tp_base, tp_dict, tp_descr_get, tp_descr_set, tp_dictoffset;
  // ht_name, ht_slots, ht_qualname, ht_cached_keys.
  Address dict = 0;
  Address qualname = 0;
  const std::array requests = {
      ReadRequest{type.address + layout.object.type_dict_offset - 24, &dict, 8},
      ReadRequest{type.address + layout.object.type_cached_keys - 8, &qualname, 8}};
  if (!memory.ReadAll(requests)) return type.name;
  const auto name = ReadString(memory, layout, qualname);
  // A class statement puts it first, type() after the few names it was given. Where it lies further
  // back, the class does without.
  constexpr uint64_t kMostEntries = 128;
  const Address module_name =
      FindName(memory, layout, ReadDict(memory, layout, dict, kMostEntries), "__module__");
  const auto module = ReadString(memory, layout, module_name);
  if (!name) return type.name;
  if (module) return *module + "." + *name;
  // That of a type written in C has its module in it.
  return type.name.find('.') != std::string::npos ? type.name : *name;
}

struct Digits {
  std::vector<uint32_t> digits;  ///< the lowest kShownDigits of them, 30 bits each, lowest first
  uint64_t count = 0;
  bool negative = false;
};

std::optional<Digits> ReadDigits(const Memory& memory, const Layout& layout, Address object) {
  const auto tag = memory.Read<int64_t>(object + layout.object.long_tag);
  if (!tag) return std::nullopt;
  Digits number;
  if (layout.version.minor >= 12) {
    // Include/cpython/longintrepr.h: two bits of sign (0, zero, negative), one reserved, the count.
    number.negative = (*tag & 3) == 2;
    number.count = static_cast<uint64_t>(*tag) >> 3;
  } else {
    number.negative = *tag < 0;
    number.count =
        *tag < 0 ? uint64_t{0} - static_cast<uint64_t>(*tag) : static_cast<uint64_t>(*tag);
  }
  if (number.count > kMaxDigits) return std::nullopt;
  number.digits.resize(std::min(number.count, kShownDigits));
  if (!number.digits.empty() && !memory.Read(object + layout.object.long_digits,
                                             number.digits.data(), number.digits.size() * 4)) {
    return std::nullopt;
  }
  return number;
}

unsigned __int128 Magnitude(const Digits& number) {
  unsigned __int128 value = 0;
  for (size_t i = number.digits.size(); i-- > 0;) value = value << 30 | number.digits[i];
  return value;
}

std::optional<std::string> DescribeInt(const Memory& memory, const Layout& layout, Address object) {
  const auto number = ReadDigits(memory, layout, object);
  if (!number) return std::nullopt;
  if (number->count <= kShownDigits) {
    return fmt::format("{}{}", number->negative ? "-" : "", Magnitude(*number));
  }
  const auto top =
      memory.Read<uint32_t>(object + layout.object.long_digits + (number->count - 1) * 4);
  if (!top) return std::nullopt;
  const uint64_t bits = (number->count - 1) * 30 + static_cast<uint64_t>(std::bit_width(*top));
  return fmt::format("<{}int of {} bits>", number->negative ? "negative " : "", bits);
}

std::optional<std::string> DescribeFloat(const Memory& memory, const Layout& layout,
                                         Address object) {
  const auto value = memory.Read<double>(object + layout.object.float_value);
  if (!value) return std::nullopt;
  std::string text = fmt::format("{}", *value);
  const bool is_whole = text.find_first_not_of("-0123456789") == std::string::npos;
  return is_whole ? text + ".0" : text;
}

/// Quotes `text` as repr() would, but for characters that repr() takes for unprintable.
std::string Quote(std::string_view text, bool is_bytes, bool is_cut) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const bool has_double = text.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  std::string out = is_bytes ? "b" : "";
  out += quote;
  for (const char character : text) {
    const auto code = static_cast<uint8_t>(character);
    if (character == quote || character == '\\') {
      out += {'\\', character};
    } else if (character == '\n') {
      out += "\\n";
    } else if (character == '\r') {
      out += "\\r";
    } else if (character == '\t') {
      out += "\\t";
    } else if (code < 0x20 || code == 0x7f || (is_bytes && code > 0x7f)) {
      out += fmt::format("\\x{:02x}", code);
    } else {
      out += character;
    }
  }
  out += quote;
  return is_cut ? out + "..." : out;
}

std::optional<std::string> DescribeStr(const Memory& memory, const Layout& layout, Address object) {
  std::vector<std::byte> head(layout.object.ascii_data);
  if (!memory.Read(object, head.data(), head.size())) return std::nullopt;
  const auto parsed = ParseStringHead(layout, head, UINT64_MAX);
  if (!parsed) return std::nullopt;
  const uint64_t shown = std::min(parsed->length, kShownCharacters);
  std::vector<std::byte> text(shown * parsed->width);
  if (!text.empty() &&
      !memory.Read(CharactersOf(memory, object, *parsed), text.data(), text.size())) {
    return std::nullopt;
  }
  return Quote(ToUtf8(text, parsed->width), false, shown < parsed->length);
}

std::optional<std::string> DescribeBytes(const Memory& memory, const Layout& layout,
                                         Address object) {
  const auto size = memory.Read<int64_t>(object + layout.object.bytes_size);
  if (!size || *size < 0) return std::nullopt;
  const uint64_t shown = std::min(static_cast<uint64_t>(*size), kShownCharacters);
  std::string text(shown, '\0');
  if (!text.empty() && !memory.Read(object + layout.object.bytes_data, text.data(), shown)) {
    return std::nullopt;
  }
  return Quote(text, true, shown < static_cast<uint64_t>(*size));
}

/// A container: its size is a field of every one of these.
std::optional<std::string> DescribeSize(const Memory& memory, const Type& type, Address size_at) {
  const auto size = memory.Read<int64_t>(size_at);
  if (!size || *size < 0) return std::nullopt;
  return fmt::format("<{} of {}>", type.name, *size);
}

/// Built-in types; a class of the program may bear the same name, but is on the heap.
std::optional<std::string> DescribeBuiltin(const Memory& memory, const Layout& layout,
                                           const Type& type, Address object) {
  const std::string_view name = type.name;
  const auto& at = layout.object;
  if (name == "NoneType") return "None";
  if (name == "ellipsis") return "Ellipsis";
  if (name == "int") return DescribeInt(memory, layout, object);
  if (name == "float") return DescribeFloat(memory, layout, object);
  if (name == "str") return DescribeStr(memory, layout, object);
  if (name == "bytes") return DescribeBytes(memory, layout, object);
  if (name == "list") return DescribeSize(memory, type, object + at.list_size);
  if (name == "tuple") return DescribeSize(memory, type, object + at.tuple_size);
  if (name == "dict") return DescribeSize(memory, type, object + at.dict_used);
  if (name == "set" || name == "frozenset") {
    return DescribeSize(memory, type, object + at.set_used);
  }
  if (name == "bool") {
    const auto value = ReadInt(memory, layout, object);
    if (!value) return std::nullopt;
    return *value != 0 ? "True" : "False";
  }
  return fmt::format("<{} at {:#x}>", name, object);
}

}  // namespace

std::optional<int64_t> ReadInt(const Memory& memory, const Layout& layout, Address object) {
  const auto number = ReadDigits(memory, layout, object);
  if (!number || number->count > 3) return std::nullopt;
  const unsigned __int128 magnitude = Magnitude(*number);
  if (magnitude > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
  const auto value = static_cast<int64_t>(magnitude);
  return number->negative ? -value : value;
}

std::optional<std::string> TypeNameOf(const Memory& memory, const Layout& layout, Address object) {
  auto type = ReadType(memory, layout, object);
  if (!type) return std::nullopt;
  return std::move(type->name);
}

std::optional<std::string> Describe(const Memory& memory, const Layout& layout, Address object) {
  const auto type = ReadType(memory, layout, object);
  if (!type) return std::nullopt;
  if (!type->is_heap) return DescribeBuiltin(memory, layout, *type, object);
  return fmt::format("<{} at {:#x}>", FullName(memory, layout, *type), object);
}

}  // namespace pystrobe::pyabi
