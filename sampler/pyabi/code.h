// SPDX-License-Identifier: Apache-2.0
//
// Code objects, strings and line tables of the target.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sampler/pyabi/layout.h"
#include "sampler/pyabi/memory.h"
#include "sampler/pyabi/walk.h"

namespace pystrobe::pyabi {

/// Fields of a code object that do not change while it lives and hardly agree by chance with those
/// of another one at the same address.
struct CodeIdentity {
  Address type = 0, name = 0, qualname = 0, filename = 0, line_table = 0;
  int32_t first_line = 0, flags = 0, arg_count = 0;
  friend bool operator==(const CodeIdentity&, const CodeIdentity&) = default;
};

struct CodeInfo {
  CodeIdentity identity;
  std::string name;  ///< qualname if the version has one, else name
  std::string file;
  std::vector<std::byte> line_table;
  Address bytecode = 0;        ///< address of the first code unit
  uint64_t bytecode_size = 0;  ///< in bytes
  std::vector<Address> tlbc;   ///< 3.14t+: address of each thread-local copy of the bytecode
};

/// Extracts the identity from `layout.code.size` bytes copied from a code object.
CodeIdentity IdentityOf(const Layout& layout, std::span<const std::byte> code_object);

/// Reads everything about the code object at `code` in three scattered reads, the last of which
/// brings its identity again. Nullopt when it changed meanwhile or makes no sense (wrong type, wild
/// sizes). `code_type` is the address of PyCode_Type; 0 when it is not known, then any type will
/// do.
std::optional<CodeInfo> ReadCode(const Memory& memory, const Layout& layout, Address code_type,
                                 Address code);

/// How many bytes into the bytecode the instruction of `frame` is; negative before the first one.
/// Nullopt when it lies outside `code`: the frame runs other code than that, or (3.14t+) its thread
/// made a copy of the bytecode after `code` was read, which should be read again.
std::optional<int64_t> InstructionOffset(const Layout& layout, const CodeInfo& code,
                                         const RawFrame& frame);

/// The line `frame` is executing, as the target itself would say; 0 when there is none (an
/// instruction without a line, or one that lies outside the code).
uint32_t LineOf(const Layout& layout, const CodeInfo& code, const RawFrame& frame);

/// A str of the target, or of a subclass of str, as UTF-8. Nullopt when it is none, or longer than
/// `max_length` characters.
std::optional<std::string> ReadString(const Memory& memory, const Layout& layout, Address str,
                                      size_t max_length = 4096);

}  // namespace pystrobe::pyabi
