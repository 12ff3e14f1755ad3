// SPDX-License-Identifier: Apache-2.0
#include "sampler/native/symbol_table.h"

#include <elfutils/libdwfl.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <tuple>

namespace pystrobe::native {
namespace {

bool IsFunction(const GElf_Sym& symbol) {
  const int type = GELF_ST_TYPE(symbol.st_info);
  if (symbol.st_shndx == SHN_UNDEF) return false;
  // Some that are written in assembler have no type.
  return type == STT_FUNC || type == STT_GNU_IFUNC || (type == STT_NOTYPE && symbol.st_size > 0);
}

// "qsort" rather than "__qsort" or "__GI_qsort".
auto Plainness(const char* name) {
  const std::string_view text(name);
  return std::tuple(std::min(text.find_first_not_of('_'), text.size()), text.size(), text);
}

}  // namespace

SymbolTable::SymbolTable(Dwfl_Module* module) {
  const int count = dwfl_module_getsymtab(module);
  for (int i = 1; i < count; ++i) {
    GElf_Sym symbol;
    GElf_Addr start = 0;
    const char* name =
        dwfl_module_getsym_info(module, i, &symbol, &start, nullptr, nullptr, nullptr);
    if (name == nullptr || *name == '\0' || !IsFunction(symbol)) continue;
    symbols_.push_back({start, symbol.st_size, name});
  }
  std::ranges::sort(symbols_, [](const Symbol& a, const Symbol& b) {
    return std::tuple(a.start, Plainness(a.name)) < std::tuple(b.start, Plainness(b.name));
  });
  const auto twice = std::ranges::unique(symbols_, {}, &Symbol::start);
  symbols_.erase(twice.begin(), twice.end());
}

const char* SymbolTable::Find(Address pc, Address start) const {
  auto after = std::ranges::upper_bound(symbols_, pc, {}, &Symbol::start);
  if (after == symbols_.begin()) return nullptr;
  const Symbol& symbol = *--after;
  const bool has = symbol.size == 0 ? symbol.start >= start : pc - symbol.start < symbol.size;
  return has ? symbol.name : nullptr;
}

}  // namespace pystrobe::native
