// SPDX-License-Identifier: Apache-2.0
#include "profiler/base/utf8.h"

#include <cstring>

namespace pystrobe {
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

std::string ToUtf8(std::span<const std::byte> characters, uint32_t width) {
  std::string text;
  text.reserve(characters.size());
  for (size_t at = 0; at + width <= characters.size(); at += width) {
    uint32_t character = 0;  // of few bytes the first, as memory has them here
    std::memcpy(&character, characters.data() + at, width);
    AppendUtf8(text, character);
  }
  return text;
}

}  // namespace pystrobe
