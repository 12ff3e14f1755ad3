// SPDX-License-Identifier: Apache-2.0
#include "sampler/pyabi/dict.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "sampler/pyabi/bytes.h"
#include "sampler/pyabi/unicode.h"

namespace pystrobe::pyabi {
namespace {

// Include/object.h.
constexpr uint64_t kInlineValues = 1U << 2;  // 3.13+
constexpr uint64_t kManagedDict = 1U << 4;   // 3.11+

/// Where a keys object keeps its entries.
struct Keys {
  Address entries = 0;
  uint64_t count = 0;
  bool has_hash = false;  ///< {hash, key, value}, else {key, value}
};

uint64_t WordsPerEntry(const Keys& keys) { return keys.has_hash ? 3 : 2; }

/// struct _dictkeysobject of 3.8 to 3.10 (Objects/dict-common.h): dk_refcnt, dk_size, dk_lookup,
/// dk_usable, dk_nentries, then dk_size indices, as wide as it takes to count them, then entries.
std::optional<Keys> ReadOldKeys(const Memory& memory, Address at) {
  std::array<uint64_t, 5> head;
  if (!memory.Read(at, head.data(), sizeof head)) return std::nullopt;
  const uint64_t size = head[1];
  if (size == 0 || size > kMaxEntries * 2 || head[4] > size) return std::nullopt;
  const uint64_t index_width = size <= 0xff ? 1 : size <= 0xffff ? 2 : 4;
  return Keys{.entries = at + sizeof head + size * index_width, .count = head[4], .has_hash = true};
}

/// That of 3.11 and later (Include/internal/pycore_dict.h): dk_refcnt, then bytes dk_log2_size,
/// dk_log2_index_bytes, dk_kind; dk_version, dk_usable, dk_nentries, the indices, the entries.
std::optional<Keys> ReadNewKeys(const Memory& memory, Address at) {
  constexpr uint32_t kHead = 32;
  std::array<std::byte, kHead> head;
  if (!memory.Read(at, head.data(), sizeof head)) return std::nullopt;
  const auto log2_index_bytes = Load<uint8_t>(head, 9);
  const auto kind = Load<uint8_t>(head, 10);
  const auto count = Load<uint64_t>(head, 24);
  if (log2_index_bytes > 32 || kind > 2 || count > kMaxEntries) return std::nullopt;
  return Keys{.entries = at + kHead + (uint64_t{1} << log2_index_bytes),
              .count = count,
              .has_hash = kind == 0};
}

/// The first `most` keys of those at `at`.
std::optional<Keys> ReadKeys(const Memory& memory, const Layout& layout, Address at,
                             uint64_t most) {
  auto keys = layout.version.minor <= 10 ? ReadOldKeys(memory, at) : ReadNewKeys(memory, at);
  if (keys) keys->count = std::min(keys->count, most);
  return keys;
}

/// The entries of `keys` with their own values, or with those at `values` if that is not null.
std::vector<DictEntry> ReadEntries(const Memory& memory, const Layout& layout, Keys keys,
                                   Address values) {
  if (values != 0 && layout.version.minor >= 13) {
    // struct _dictvalues: bytes capacity, size, embedded, valid; then the values, aligned.
    const auto capacity = memory.Read<uint8_t>(values);
    if (!capacity) return {};
    keys.count = std::min<uint64_t>(keys.count, *capacity);
    values += 8;
  }
  const uint64_t stride = WordsPerEntry(keys);
  std::vector<Address> words(keys.count * stride);
  std::vector<Address> own(values != 0 ? keys.count : 0);
  std::vector<ReadRequest> requests = {{keys.entries, words.data(), words.size() * 8}};
  if (values != 0) requests.push_back({values, own.data(), own.size() * 8});
  if (words.empty() || !memory.ReadAll(requests)) return {};
  std::vector<DictEntry> entries;
  for (uint64_t i = 0; i < keys.count; ++i) {
    const DictEntry entry{.key = words[i * stride + stride - 2],
                          .value = values != 0 ? own[i] : words[i * stride + stride - 1]};
    if (entry.key != 0 && entry.value != 0) entries.push_back(entry);
  }
  return entries;
}

/// Values kept with the object itself, under the keys its type has for all its instances.
std::vector<DictEntry> ReadOwnValues(const Memory& memory, const Layout& layout, Address type,
                                     Address values, uint64_t most) {
  const auto at = memory.Read<Address>(type + layout.object.type_cached_keys);
  if (!at) return {};
  const auto keys = ReadKeys(memory, layout, *at, most);
  return keys ? ReadEntries(memory, layout, *keys, values) : std::vector<DictEntry>{};
}

std::vector<DictEntry> ReadDictAt(const Memory& memory, const Layout& layout, Address pointer,
                                  uint64_t most) {
  const auto dict = memory.Read<Address>(pointer);
  return dict && *dict != 0 ? ReadDict(memory, layout, *dict, most) : std::vector<DictEntry>{};
}

/// Include/internal/pycore_object.h of each version: words before the object.
std::vector<DictEntry> ReadManaged(const Memory& memory, const Layout& layout, Address object,
                                   Address type, uint64_t most) {
  if (layout.version.minor >= 13) {
    return ReadDictAt(memory, layout, object - (layout.free_threaded ? 8 : 24), most);
  }
  if (layout.version.minor == 12) {
    // One pointer for both, the lowest bit set (by subtracting 1) when it is to values.
    const auto either = memory.Read<Address>(object - 24);
    if (!either || *either == 0) return {};
    return (*either & 1) != 0 ? ReadOwnValues(memory, layout, type, *either + 1, most)
                              : ReadDict(memory, layout, *either, most);
  }
  const auto values = memory.Read<Address>(object - 32);
  if (values && *values != 0) return ReadOwnValues(memory, layout, type, *values, most);
  return ReadDictAt(memory, layout, object - 24, most);
}

/// Heads of the strs at `keys`, those that cannot be read left as zeros.
std::vector<std::byte> ReadHeads(const Memory& memory, std::span<const DictEntry> entries,
                                 uint32_t size) {
  std::vector<std::byte> heads(entries.size() * size);
  std::vector<ReadRequest> requests;
  for (size_t i = 0; i < entries.size(); ++i) {
    requests.push_back({entries[i].key, heads.data() + i * size, size});
  }
  if (memory.ReadAll(requests)) return heads;
  for (const ReadRequest& request : requests) {
    if (!memory.ReadAll({&request, 1})) std::memset(request.into, 0, size);
  }
  return heads;
}

}  // namespace

std::vector<DictEntry> ReadDict(const Memory& memory, const Layout& layout, Address dict,
                                uint64_t most) {
  Address keys_at = 0;
  Address values = 0;
  const std::array requests = {ReadRequest{dict + layout.object.dict_keys, &keys_at, 8},
                               ReadRequest{dict + layout.object.dict_values, &values, 8}};
  if (!memory.ReadAll(requests)) return {};
  const auto keys = ReadKeys(memory, layout, keys_at, most);
  return keys ? ReadEntries(memory, layout, *keys, values) : std::vector<DictEntry>{};
}

std::vector<DictEntry> ReadAttributes(const Memory& memory, const Layout& layout, Address object,
                                      uint64_t most) {
  const auto type = memory.Read<Address>(object + layout.object.type);
  if (!type) return {};
  uint64_t flags = 0;
  int64_t basic_size = 0;
  int64_t dict_offset = 0;
  const std::array requests = {
      ReadRequest{*type + layout.object.type_flags, &flags, 8},
      ReadRequest{*type + layout.object.type_basic_size, &basic_size, 8},
      ReadRequest{*type + layout.object.type_dict_offset, &dict_offset, 8}};
  if (!memory.ReadAll(requests)) return {};
  if (layout.version.minor >= 13 && (flags & kInlineValues) != 0) {
    const Address values = object + static_cast<Address>(basic_size);
    const auto valid = memory.Read<uint8_t>(values + 3);
    if (valid && *valid != 0) return ReadOwnValues(memory, layout, *type, values, most);
  }
  if (layout.version.minor >= 11 && (flags & kManagedDict) != 0) {
    return ReadManaged(memory, layout, object, *type, most);
  }
  if (dict_offset <= 0) return {};
  return ReadDictAt(memory, layout, object + static_cast<Address>(dict_offset), most);
}

Address FindName(const Memory& memory, const Layout& layout, std::span<const DictEntry> entries,
                 std::string_view name) {
  constexpr size_t kBatch = 512;
  const uint32_t size = layout.object.ascii_data;
  while (!entries.empty()) {
    const auto batch = entries.first(std::min(kBatch, entries.size()));
    const std::vector<std::byte> heads = ReadHeads(memory, batch, size);
    for (size_t i = 0; i < batch.size(); ++i) {
      const auto head =
          ParseStringHead(layout, std::span(heads).subspan(i * size, size), name.size());
      if (!head || head->length != name.size() || head->width != 1) continue;
      std::string text(name.size(), '\0');
      if (memory.Read(CharactersOf(memory, batch[i].key, *head), text.data(), text.size()) &&
          text == name) {
        return batch[i].value;
      }
    }
    entries = entries.subspan(batch.size());
  }
  return 0;
}

}  // namespace pystrobe::pyabi
