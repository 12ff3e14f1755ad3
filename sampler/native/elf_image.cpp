// SPDX-License-Identifier: Apache-2.0
#include "sampler/native/elf_image.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace pystrobe::native {
namespace {

// Limits far above what real files have; they bound the work on damaged or hostile memory.
constexpr size_t kMaxProgramHeaders = 128;
constexpr size_t kMaxDynamicEntries = 1024;
constexpr size_t kMaxNoteBytes = 4096;
constexpr uint32_t kMaxChain = 65536;

bool IsElf64(const Elf64_Ehdr& header) {
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
         header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_ident[EI_DATA] == ELFDATA2LSB &&
         header.e_phentsize == sizeof(Elf64_Phdr) && header.e_phnum > 0 &&
         header.e_phnum <= kMaxProgramHeaders;
}

uint32_t GnuHash(std::string_view name) {
  uint32_t hash = 5381;
  for (char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
  return hash;
}

uint32_t SysvHash(std::string_view name) {
  uint32_t hash = 0;
  for (char c : name) {
    hash = (hash << 4) + static_cast<unsigned char>(c);
    uint32_t top = hash & 0xf0000000;
    hash = (hash ^ (top >> 24)) & ~top;
  }
  return hash;
}

}  // namespace

std::optional<ElfImage> ElfImage::Read(const pyabi::Memory& memory, Address header_address) {
  auto header = memory.Read<Elf64_Ehdr>(header_address);
  if (!header || !IsElf64(*header)) return std::nullopt;
  std::vector<Elf64_Phdr> segments(header->e_phnum);
  if (!memory.Read(header_address + header->e_phoff, segments.data(),
                   segments.size() * sizeof(Elf64_Phdr))) {
    return std::nullopt;
  }
  auto first = std::find_if(segments.begin(), segments.end(),
                            [](const Elf64_Phdr& segment) { return segment.p_type == PT_LOAD; });
  if (first == segments.end()) return std::nullopt;

  ElfImage image;
  image.bias_ = header_address - (first->p_vaddr - first->p_offset);
  image.range_ = {header_address, header_address};
  AddressRange dynamic;
  for (const Elf64_Phdr& segment : segments) {
    Address start = image.bias_ + segment.p_vaddr;
    AddressRange range{start, start + segment.p_memsz};
    if (range.end < range.start) return std::nullopt;
    if (segment.p_type == PT_DYNAMIC) dynamic = range;
    if (segment.p_type == PT_GNU_EH_FRAME) image.frame_header_ = start;
    if (segment.p_type == PT_NOTE && image.build_id_.empty()) image.ReadBuildId(memory, range);
    if (segment.p_type != PT_LOAD) continue;
    image.range_.end = std::max(image.range_.end, range.end);
    if (segment.p_flags & PF_W) {
      image.writable_.push_back(range);
    } else if (segment.p_flags & PF_R) {
      image.constant_.push_back(range);
    }
  }
  image.ReadDynamic(memory, dynamic);
  return image;
}

void ElfImage::ReadDynamic(const pyabi::Memory& memory, AddressRange dynamic) {
  size_t count = std::min<size_t>(dynamic.size() / sizeof(Elf64_Dyn), kMaxDynamicEntries);
  std::vector<Elf64_Dyn> entries(count);
  if (count == 0 || !memory.Read(dynamic.start, entries.data(), count * sizeof(Elf64_Dyn))) return;
  for (const Elf64_Dyn& entry : entries) {
    // glibc rewrites these pointers to addresses in memory, musl leaves them as in the file.
    Address target =
        range_.Contains(entry.d_un.d_ptr) ? entry.d_un.d_ptr : entry.d_un.d_ptr + bias_;
    switch (entry.d_tag) {
      case DT_NULL:
        return;
      case DT_SYMTAB:
        symbols_ = target;
        break;
      case DT_STRTAB:
        strings_ = target;
        break;
      case DT_GNU_HASH:
        gnu_hash_ = target;
        break;
      case DT_HASH:
        sysv_hash_ = target;
        break;
      default:
        break;
    }
  }
}

void ElfImage::ReadBuildId(const pyabi::Memory& memory, AddressRange notes) {
  std::vector<char> bytes(std::min<size_t>(notes.size(), kMaxNoteBytes));
  if (bytes.empty() || !memory.Read(notes.start, bytes.data(), bytes.size())) return;
  auto padded = [](uint32_t size) { return (size_t{size} + 3) & ~size_t{3}; };
  for (size_t at = 0; at + sizeof(Elf64_Nhdr) <= bytes.size();) {
    Elf64_Nhdr note;
    std::memcpy(&note, bytes.data() + at, sizeof note);
    size_t name = at + sizeof note, content = name + padded(note.n_namesz);
    size_t next = content + padded(note.n_descsz);
    if (next > bytes.size()) return;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(bytes.data() + name, "GNU", 4) == 0) {
      build_id_.assign(bytes.data() + content, note.n_descsz);
      return;
    }
    at = next;
  }
}

std::optional<ElfSymbol> ElfImage::FindSymbol(const pyabi::Memory& memory,
                                              std::string_view name) const {
  if (symbols_ == 0 || strings_ == 0) return std::nullopt;
  if (gnu_hash_ != 0) return FindByGnuHash(memory, name);
  if (sysv_hash_ != 0) return FindBySysvHash(memory, name);
  return std::nullopt;
}

std::optional<ElfSymbol> ElfImage::SymbolAt(const pyabi::Memory& memory, uint64_t index,
                                            std::string_view name) const {
  auto symbol = memory.Read<Elf64_Sym>(symbols_ + index * sizeof(Elf64_Sym));
  if (!symbol || symbol->st_shndx == SHN_UNDEF) return std::nullopt;
  std::string seen(name.size() + 1, '\1');
  if (!memory.Read(strings_ + symbol->st_name, seen.data(), seen.size())) return std::nullopt;
  if (seen.back() != '\0' || std::string_view(seen).substr(0, name.size()) != name) {
    return std::nullopt;
  }
  return ElfSymbol{symbol->st_value + bias_, symbol->st_size};
}

// DT_GNU_HASH: four counts, a Bloom filter, buckets (first symbol of each), then one hash for every
// symbol from `first_symbol` on, its lowest bit set where a bucket ends.
std::optional<ElfSymbol> ElfImage::FindByGnuHash(const pyabi::Memory& memory,
                                                 std::string_view name) const {
  struct {
    uint32_t bucket_count, first_symbol, bloom_words, bloom_shift;
  } header;
  if (!memory.Read(gnu_hash_, &header, sizeof header) || header.bucket_count == 0) {
    return std::nullopt;
  }
  uint32_t hash = GnuHash(name);
  Address buckets = gnu_hash_ + sizeof header + uint64_t{header.bloom_words} * sizeof(uint64_t);
  Address hashes = buckets + uint64_t{header.bucket_count} * sizeof(uint32_t);
  auto index = memory.Read<uint32_t>(buckets + hash % header.bucket_count * sizeof(uint32_t));
  if (!index || *index < header.first_symbol) return std::nullopt;
  for (uint32_t i = *index - header.first_symbol, left = kMaxChain; left > 0; ++i, --left) {
    auto seen = memory.Read<uint32_t>(hashes + uint64_t{i} * sizeof(uint32_t));
    if (!seen) return std::nullopt;
    if ((*seen | 1) == (hash | 1)) {
      if (auto symbol = SymbolAt(memory, uint64_t{i} + header.first_symbol, name)) return symbol;
    }
    if (*seen & 1) return std::nullopt;
  }
  return std::nullopt;
}

// DT_HASH: two counts, buckets, then for each symbol the next one of its bucket.
std::optional<ElfSymbol> ElfImage::FindBySysvHash(const pyabi::Memory& memory,
                                                  std::string_view name) const {
  struct {
    uint32_t bucket_count, chain_count;
  } header;
  if (!memory.Read(sysv_hash_, &header, sizeof header) || header.bucket_count == 0) {
    return std::nullopt;
  }
  Address buckets = sysv_hash_ + sizeof header;
  Address chain = buckets + uint64_t{header.bucket_count} * sizeof(uint32_t);
  Address link = buckets + SysvHash(name) % header.bucket_count * sizeof(uint32_t);
  for (uint32_t left = kMaxChain; left > 0; --left) {
    auto index = memory.Read<uint32_t>(link);
    if (!index || *index == STN_UNDEF || *index >= header.chain_count) return std::nullopt;
    if (auto symbol = SymbolAt(memory, *index, name)) return symbol;
    link = chain + uint64_t{*index} * sizeof(uint32_t);
  }
  return std::nullopt;
}

std::string_view Module::file_name() const {
  return std::string_view(path).substr(path.rfind('/') + 1);
}

namespace {

/// Some of the file is mapped to be executed, within the image. Who reads a file maps it too, as
/// libdw does: an image that is not loaded there would reach into what lies behind.
bool IsLoaded(const ElfImage& image, const Mapping& first, const std::vector<Mapping>& mappings) {
  return std::ranges::any_of(mappings, [&](const Mapping& mapping) {
    const bool is_its = mapping.inode == first.inode && mapping.path == first.path;
    // Programs move their code into large pages, which are of no file.
    return mapping.executable && (is_its || mapping.path.empty()) &&
           image.range().Contains(mapping.start);
  });
}

}  // namespace

std::vector<Module> FindModules(const pyabi::Memory& memory, const std::vector<Mapping>& mappings) {
  std::vector<Module> modules;
  for (const Mapping& mapping : mappings) {
    if (mapping.offset != 0 || !mapping.readable) continue;
    if (!mapping.path.starts_with('/') && mapping.path != "[vdso]") continue;
    if (mapping.end - mapping.start < sizeof(Elf64_Ehdr)) continue;
    auto image = ElfImage::Read(memory, mapping.start);
    if (image && IsLoaded(*image, mapping, mappings)) {
      modules.push_back({mapping.path,
                         mapping.deleted,
                         mapping.inode,
                         {mapping.start, mapping.end},
                         std::move(*image)});
    }
  }
  return modules;
}

}  // namespace pystrobe::native
