// SPDX-License-Identifier: Apache-2.0
#include "gpu/name_table.h"

namespace pystrobe::gpu {

Result<NameTable> NameTable::Make(uint32_t max, std::string_view other) {
  auto by_number = LazyArray<Entry>::Make(max);
  if (!by_number) return Wrap(by_number.error(), "remembering names");
  NameTable table(*std::move(by_number));
  table.Intern("");
  table.Intern(other);
  return table;
}

uint32_t NameTable::Intern(std::string_view text) {
  const std::lock_guard lock(*mutex_);
  if (const auto found = numbers_.find(text); found != numbers_.end()) return found->second;
  const size_t number = texts_.size();
  if (number == by_number_.capacity()) return kOther;
  const std::string& kept = texts_.emplace_back(text);
  try {
    numbers_.emplace(kept, static_cast<uint32_t>(number));
  } catch (...) {
    texts_.pop_back();
    throw;
  }
  std::atomic_ref(by_number_[number].text).store(&kept, std::memory_order_release);
  return static_cast<uint32_t>(number);
}

std::string_view NameTable::text(uint32_t number) const {
  if (number >= by_number_.capacity()) return {};
  // C++23 has no atomic_ref of a const object yet.
  auto& place = const_cast<const std::string*&>(by_number_[number].text);
  const std::string* const text = std::atomic_ref(place).load(std::memory_order_acquire);
  return text != nullptr ? std::string_view(*text) : std::string_view();
}

}  // namespace pystrobe::gpu
