// SPDX-License-Identifier: Apache-2.0
//
// Where _PyRuntime may lie, and what is known about the CPython it belongs to. Candidates only:
// verify.h decides. [any thread]
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sampler/native/elf_image.h"
#include "sampler/pyabi/layout.h"

namespace pystrobe::remote {

using pyabi::Address;

/// The first bytes of _PyRuntime from 3.13 on (struct _Py_DebugOffsets).
inline constexpr std::string_view kDebugOffsetsCookie = "xdebugpy";

/// Larger data segments are not those of a Python; reading them would take long.
inline constexpr uint64_t kMaxSegment = uint64_t{64} << 20;

struct RuntimeCandidate {
  Address runtime = 0;
  const native::Module* module = nullptr;  ///< holds it; belongs to the list that was searched
  std::string_view found_by;               ///< see TargetInfo::found_by
};

/// Symbols of a Python: the executable's own definition first, as the dynamic loader has it (a copy
/// relocation in a program that embeds Python), then the module's.
class SymbolFinder {
 public:
  SymbolFinder(pid_t pid, const pyabi::Memory& memory, const std::vector<native::Module>& modules,
               std::string executable)
      : pid_(pid), memory_(memory), modules_(modules), executable_(std::move(executable)) {}

  /// Exported by the executable or by `module`, else in the file's full symbol table.
  std::optional<Address> Find(const native::Module& module, std::string_view name) const;
  /// Only by the executable's or the module's dynamic symbols.
  std::optional<Address> FindExported(const native::Module& module, std::string_view name) const;

  /// Modules that may hold an interpreter, likeliest first: the executable, libpython, all others.
  std::vector<const native::Module*> ByLikelihood() const;

  pid_t pid() const { return pid_; }
  const pyabi::Memory& memory() const { return memory_; }

 private:
  pid_t pid_;
  const pyabi::Memory& memory_;
  const std::vector<native::Module>& modules_;
  std::string executable_;
};

/// Candidates in the order of how sure they are: dynamic symbols, then symbol tables and sections
/// of files. Stops at the first kind that gives any.
std::vector<RuntimeCandidate> FindRuntimes(const SymbolFinder& symbols);

/// The release a module holds: Py_Version (3.11+), else the banner of Py_GetVersion() in its data,
/// else its file name (then without a micro version).
std::optional<pyabi::PyVersion> FindVersion(const SymbolFinder& symbols,
                                            const native::Module& module);

/// Only by banner and file name: what is left without symbols.
std::optional<pyabi::PyVersion> FindVersionByText(const SymbolFinder& symbols,
                                                  const native::Module& module);

/// The first "3.x.y (" in `bytes` that stands like a banner of Py_GetVersion().
std::optional<pyabi::PyVersion> ParseBanner(std::string_view bytes);
/// "libpython3.9.so.1.0", "python3.13t" and the like.
std::optional<pyabi::PyVersion> ParseFileName(std::string_view file_name);

}  // namespace pystrobe::remote
