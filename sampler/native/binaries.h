// SPDX-License-Identifier: Apache-2.0
//
// The ELF files that a process runs, and what they say of its machine code: how to unwind from an
// instruction, and what function it belongs to. The one place that knows libdwfl.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "profiler/base/error.h"
#include "profiler/base/proc.h"
#include "profiler/base/scoped_fd.h"
#include "sampler/native/elf_image.h"
#include "sampler/native/native_place.h"
#include "sampler/native/unwind_rule.h"

struct Dwfl;
struct Dwfl_Module;
struct Elf;

namespace pystrobe::native {

/// Files are opened, and debug information is looked for (.gnu_debugdata, separate files by
/// build-id and .gnu_debuglink below /usr/lib/debug, a debuginfod server where $DEBUGINFOD_URLS
/// names one), when an address in them is first asked about: milliseconds to seconds for a file.
/// What was mapped since the last Refresh is not known. [one thread]
class Binaries {
 public:
  /// Of process `pid`, or our own, whose memory `memory` reads and which outlives it. Each file
  /// stays open: they take no more than a third of the descriptors that are free now, and what
  /// comes after that stays unknown. Fails where less than 30 are free.
  static Result<Binaries> Of(pid_t pid, const pyabi::Memory& memory);
  Binaries(Binaries&&) noexcept;
  Binaries& operator=(Binaries&&) = delete;
  ~Binaries();

  /// Since the Refresh before, files have come; or some have gone too, in whose place others may
  /// be.
  enum class Change : uint8_t { kNone, kCame, kWent };
  /// Reads anew what is mapped. What is still where it was stays known. Fails where that cannot be
  /// read, or where this process has closed all descriptors, and those of the files with them.
  Result<Change> Refresh();

  /// How to unwind from `pc`, and for which other instructions it is the same.
  RuleRange RuleAt(Address pc);
  /// The same from `pc` on: several times as fast.
  RuleRange RuleFrom(Address pc);
  /// The function, or part of one, that `pc` is in, where that is known.
  std::optional<AddressRange> FunctionAt(Address pc) const;
  /// Which binary and function. `source`: with files and lines, and with the functions that were
  /// inlined, as far as debug information tells.
  NativePlace PlaceOf(Address pc, bool source);
  /// The file that `pc` lies in, or null: good until Refresh.
  const Module* ModuleAt(Address pc) const;

 private:
  struct File;
  struct DwflEnd {
    void operator()(Dwfl* dwfl) const;
  };

  /// `most`: binaries whose files may be open at once.
  Binaries(pid_t pid, const pyabi::Memory& memory, Dwfl* dwfl, size_t most);
  File* FileAt(Address pc) const;
  template <typename Finder>
  RuleRange RuleBy(Address pc, Finder find);
  static int OpenFile(Dwfl_Module*, void** userdata, const char*, uint64_t, char** file_name,
                      Elf** elf);

  pid_t pid_;
  const pyabi::Memory* memory_;
  std::unique_ptr<size_t> room_;              // for files that are not open yet
  std::vector<Mapping> code_;                 // what files_ were found in
  std::vector<std::unique_ptr<File>> files_;  // by address; outlive dwfl_, which refers to them
  // A program that samples itself may close all descriptors, as daemons do, and open others under
  // their numbers, which libdwfl would close in the end. It has closed this one as well, then.
  ScopedFd one_of_all_;
  std::unique_ptr<Dwfl, DwflEnd> dwfl_;
};

}  // namespace pystrobe::native
