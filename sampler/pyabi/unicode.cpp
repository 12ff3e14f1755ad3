// SPDX-License-Identifier: Apache-2.0
#include "sampler/pyabi/unicode.h"

#include "sampler/pyabi/bytes.h"

namespace pystrobe::pyabi {
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

}  // namespace pystrobe::pyabi
