// SPDX-License-Identifier: Apache-2.0
//
// ELF objects as they lie in the target's memory. Needs no file, so it works for deleted binaries
// and across mount namespaces. [any thread]
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/base/proc.h"
#include "sampler/pyabi/memory.h"

namespace pystrobe::native {

using pyabi::Address;

/// Bytes [start, end) of the target.
struct AddressRange {
  Address start = 0, end = 0;
  bool Contains(Address address) const { return start <= address && address < end; }
  uint64_t size() const { return end - start; }
};

struct ElfSymbol {
  Address address = 0;
  uint64_t size = 0;
};

/// One executable or shared library, mapped.
class ElfImage {
 public:
  /// Reads the headers that lie at `header`. Nullopt when no 64-bit ELF object lies there.
  static std::optional<ElfImage> Read(const pyabi::Memory& memory, Address header);

  /// Looks `name` up among the symbols this object defines and exports, as the dynamic loader
  /// would. Undefined (imported) ones do not count.
  std::optional<ElfSymbol> FindSymbol(const pyabi::Memory& memory, std::string_view name) const;

  /// Difference between addresses in memory and in the file.
  uint64_t bias() const { return bias_; }
  /// The whole object, first to last byte of its segments.
  AddressRange range() const { return range_; }
  /// Its writable segments: .data, .bss and the like.
  const std::vector<AddressRange>& writable() const { return writable_; }
  /// Its readable segments that are not writable: code and constants.
  const std::vector<AddressRange>& constant() const { return constant_; }
  /// Where .eh_frame_hdr lies, the index of its call frame information; 0: it has none.
  Address frame_header() const { return frame_header_; }
  /// GNU build-id, empty when it has none.
  const std::string& build_id() const { return build_id_; }

 private:
  void ReadDynamic(const pyabi::Memory& memory, AddressRange dynamic);
  void ReadBuildId(const pyabi::Memory& memory, AddressRange notes);
  std::optional<ElfSymbol> SymbolAt(const pyabi::Memory& memory, uint64_t index,
                                    std::string_view name) const;
  std::optional<ElfSymbol> FindByGnuHash(const pyabi::Memory& memory, std::string_view name) const;
  std::optional<ElfSymbol> FindBySysvHash(const pyabi::Memory& memory, std::string_view name) const;

  uint64_t bias_ = 0;
  AddressRange range_;
  std::vector<AddressRange> writable_, constant_;
  std::string build_id_;
  Address frame_header_ = 0;
  Address symbols_ = 0, strings_ = 0, gnu_hash_ = 0, sysv_hash_ = 0;
};

/// An ELF file of the target's address space.
struct Module {
  std::string path;  ///< as the target sees it
  bool deleted = false;
  uint64_t inode = 0;
  AddressRange first_mapping;  ///< names its entry in /proc/PID/map_files
  ElfImage image;

  /// The last part of the path.
  std::string_view file_name() const;
};

/// Every mapped ELF object, in order of address, the kernel's "[vdso]" among them.
std::vector<Module> FindModules(const pyabi::Memory& memory, const std::vector<Mapping>& mappings);

}  // namespace pystrobe::native
