// SPDX-License-Identifier: Apache-2.0
#include "sampler/native/elf_file.h"

#include <gelf.h>
#include <libelf.h>
#include <sys/stat.h>

#include <cstring>
#include <utility>
#include <vector>

#include "profiler/base/proc.h"

namespace pystrobe::native {
namespace {

bool IsFileOf(const ElfFile& file, const Module& module) {
  const std::string& wanted = module.image.build_id();
  return wanted.empty() ? file.inode() == module.inode : file.BuildId() == wanted;
}

std::string_view StringAt(Elf* elf, size_t section, size_t offset) {
  const char* text = elf_strptr(elf, section, offset);
  return text == nullptr ? std::string_view() : std::string_view(text);
}

}  // namespace

void ElfFile::Closer::operator()(Elf* elf) const { elf_end(elf); }

std::optional<ElfFile> ElfFile::Open(const std::string& path) {
  auto fd = OpenForReading(path);
  // A device or a pipe in the place of a library could block or have effects.
  struct stat info{};
  if (!fd || fstat(fd->get(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  if (elf_version(EV_CURRENT) == EV_NONE) return std::nullopt;
  Elf* elf = elf_begin(fd->get(), ELF_C_READ, nullptr);
  if (elf == nullptr) return std::nullopt;
  ElfFile file(std::move(*fd), elf);
  if (elf_kind(elf) != ELF_K_ELF || gelf_getclass(elf) != ELFCLASS64) return std::nullopt;
  return file;
}

std::optional<ElfFile> ElfFile::OpenFor(pid_t pid, const Module& module) {
  std::vector<std::string> places;
  if (!module.deleted) {
    places.push_back(fmt::format("/proc/{}/root{}", pid, module.path));
    // Of a process in a chroot of our own mount namespace, the kernel tells paths as we see them.
    places.push_back(module.path);
  }
  places.push_back(fmt::format("/proc/{}/map_files/{:x}-{:x}", pid, module.first_mapping.start,
                               module.first_mapping.end));
  places.push_back(fmt::format("/proc/{}/exe", pid));
  for (const std::string& place : places) {
    auto file = Open(place);
    if (file && IsFileOf(*file, module)) return file;
  }
  return std::nullopt;
}

std::optional<ElfSymbol> ElfFile::FindSymbol(std::string_view name) const {
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(elf_.get(), section)) != nullptr) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_SYMTAB ||
        header.sh_entsize == 0) {
      continue;
    }
    Elf_Data* data = elf_getdata(section, nullptr);
    if (data == nullptr) continue;
    for (size_t i = 0; i < header.sh_size / header.sh_entsize; ++i) {
      GElf_Sym symbol;
      if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) break;
      if (symbol.st_shndx == SHN_UNDEF || GELF_ST_TYPE(symbol.st_info) != STT_OBJECT) continue;
      if (StringAt(elf_.get(), header.sh_link, symbol.st_name) == name) {
        return ElfSymbol{symbol.st_value, symbol.st_size};
      }
    }
  }
  return std::nullopt;
}

std::optional<AddressRange> ElfFile::FindSection(std::string_view name) const {
  size_t names = 0;
  if (elf_getshdrstrndx(elf_.get(), &names) != 0) return std::nullopt;
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(elf_.get(), section)) != nullptr) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    if (StringAt(elf_.get(), names, header.sh_name) == name) {
      return AddressRange{header.sh_addr, header.sh_addr + header.sh_size};
    }
  }
  return std::nullopt;
}

std::string ElfFile::BuildId() const {
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(elf_.get(), section)) != nullptr) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_NOTE) continue;
    Elf_Data* data = elf_getdata(section, nullptr);
    GElf_Nhdr note;
    size_t name = 0, content = 0, at = 0;
    while (data != nullptr && (at = gelf_getnote(data, at, &note, &name, &content)) > 0) {
      const char* bytes = static_cast<const char*>(data->d_buf);
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
          std::memcmp(bytes + name, "GNU", 4) == 0) {
        return {bytes + content, note.n_descsz};
      }
    }
  }
  return {};
}

uint64_t ElfFile::inode() const {
  struct stat info{};
  return fstat(fd_.get(), &info) == 0 ? info.st_ino : 0;
}

}  // namespace pystrobe::native
