// SPDX-License-Identifier: Apache-2.0
//
// What only the file of a module tells: its full symbol table and its sections. [one thread]
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "profiler/base/scoped_fd.h"
#include "sampler/native/elf_image.h"

struct Elf;

namespace pystrobe::native {

class ElfFile {
 public:
  /// Opens the file behind `module` of process `pid` wherever it still can be reached: under the
  /// target's own root, by its map_files entry, or as its executable. Nullopt when it cannot, or
  /// when what lies there now is another file.
  static std::optional<ElfFile> OpenFor(pid_t pid, const Module& module);
  static std::optional<ElfFile> Open(const std::string& path);

  ElfFile(ElfFile&&) = default;
  ElfFile& operator=(ElfFile&&) = default;
  ~ElfFile() = default;

  /// Addresses here are those of the file: add ElfImage::bias().
  std::optional<ElfSymbol> FindSymbol(std::string_view name) const;  ///< in .symtab
  std::optional<AddressRange> FindSection(std::string_view name) const;
  std::string BuildId() const;
  uint64_t inode() const;
  /// Its descriptor, for a reader of its own.
  ScopedFd TakeFd() && {
    elf_.reset();
    return std::move(fd_);
  }

 private:
  struct Closer {
    void operator()(Elf* elf) const;
  };
  ElfFile(ScopedFd fd, Elf* elf) : fd_(std::move(fd)), elf_(elf) {}

  ScopedFd fd_;  // outlives elf_, which reads from it
  std::unique_ptr<Elf, Closer> elf_;
};

}  // namespace pystrobe::native
