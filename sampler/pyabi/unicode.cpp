// SPDX-License-Identifier: Apache-2.0
#include "sampler/pyabi/unicode.h"

#include "sampler/pyabi/bytes.h"

namespace pystrobe::pyabi {
namespace {

void AppendUtf8(std::string& text, uint32_t character) {
  constexpr uint32_t kReplacement = 0xfffd;
  if (character > 0x10ffff || (character >= 0xd800 && character < 0xe000)) {
    character = kReplacement;
  }
  const auto put = [&text](uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (character < 0x80) {
    put(character);
  } else if (character < 0x800) {
    put(0xc0 | character >> 6);
    put(0x80 | (character & 63));
  } else if (character < 0x10000) {
    put(0xe0 | character >> 12);
    put(0x80 | (character >> 6 & 63));
    put(0x80 | (character & 63));
  } else {
    put(0xf0 | character >> 18);
    put(0x80 | (character >> 12 & 63));
    put(0x80 | (character >> 6 & 63));
    put(0x80 | (character & 63));
  }
}

}  // namespace

std::optional<StringHead> ParseStringHead(const Layout& layout, std::span<const std::byte> head,
                                          uint64_t max_length) {
  // Include/cpython/unicodeobject.h: kind (3 bits), compact, ascii, one behind the other.
  const uint32_t state =
      Load<uint32_t>(head, layout.object.unicode_state) >> layout.object.unicode_kind_shift;
  const uint32_t kind = state & 7;
  const bool compact = (state & 8) != 0;
  const bool ascii = (state & 16) != 0;
  const auto length = Load<uint64_t>(head, layout.object.unicode_length);
  if ((kind != 1 && kind != 2 && kind != 4) || (ascii && kind != 1) || length > max_length) {
    return std::nullopt;
  }
  const bool is_short = ascii && compact;
  return StringHead{.data = is_short ? layout.object.ascii_data : layout.object.compact_data,
                    .is_apart = !compact,
                    .width = kind,
                    .length = length};
}

Address CharactersOf(const Memory& memory, Address object, const StringHead& head) {
  if (!head.is_apart) return object + head.data;
  return memory.Read<Address>(object + head.data).value_or(0);
}

std::string ToUtf8(std::span<const std::byte> characters, uint32_t width) {
  std::string text;
  text.reserve(characters.size());
  for (size_t at = 0; at + width <= characters.size(); at += width) {
    if (width == 1) AppendUtf8(text, Load<uint8_t>(characters, at));
    if (width == 2) AppendUtf8(text, Load<uint16_t>(characters, at));
    if (width == 4) AppendUtf8(text, Load<uint32_t>(characters, at));
  }
  return text;
}

}  // namespace pystrobe::pyabi
