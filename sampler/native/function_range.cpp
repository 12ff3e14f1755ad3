// SPDX-License-Identifier: Apache-2.0
#include "sampler/native/function_range.h"

#include <cstdint>

namespace pystrobe::native {
namespace {

struct Header {
  uint8_t version;
  uint8_t frame_encoding;
  uint8_t count_encoding;
  uint8_t table_encoding;
  int32_t frame;
  uint32_t count;
};
/// Both relative to the header.
struct Entry {
  int32_t start;
  int32_t description;
};

// DW_EH_PE_pcrel | sdata4, udata4, and DW_EH_PE_datarel | sdata4.
constexpr uint8_t kFrameEncoding = 0x1b, kCountEncoding = 0x03, kTableEncoding = 0x3b;

}  // namespace

std::optional<AddressRange> FunctionRange(const pyabi::Memory& memory, const Module& module,
                                          Address pc) {
  const Address header_at = module.image.frame_header();
  if (header_at == 0) return std::nullopt;
  const auto header = memory.Read<Header>(header_at);
  if (!header || header->version != 1 || header->frame_encoding != kFrameEncoding ||
      header->count_encoding != kCountEncoding || header->table_encoding != kTableEncoding) {
    return std::nullopt;
  }
  const Address table = header_at + sizeof(Header);
  const auto start_of = [&](uint32_t index) -> std::optional<Address> {
    const auto entry = memory.Read<Entry>(table + uint64_t{index} * sizeof(Entry));
    if (!entry) return std::nullopt;
    return header_at + static_cast<Address>(int64_t{entry->start});
  };
  // The first that begins behind it.
  uint32_t low = 0;
  uint32_t high = header->count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    const auto start = start_of(middle);
    if (!start) return std::nullopt;
    if (*start <= pc) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return std::nullopt;
  const auto start = start_of(low - 1);
  const std::optional<Address> end =
      low == header->count ? module.image.range().end : start_of(low);
  if (!start || !end) return std::nullopt;
  return AddressRange{*start, *end};
}

}  // namespace pystrobe::native
