// SPDX-License-Identifier: Apache-2.0
#include "sampler/native/source_lines.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include <cstdlib>
#include <memory>
#include <span>
#include <string>

#include "sampler/native/function_name.h"

namespace pystrobe::native {
namespace {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

std::string OrEmpty(const char* text) { return text == nullptr ? std::string() : text; }

/// Of the functions around an instruction those that stand in one another's machine code.
class Scopes {
 public:
  Scopes(Dwfl_Module* module, Dwarf_Die* unit, Address pc) {
    Dwarf_Die* found = nullptr;
    if (dwarf_getscopes(unit, pc, &found) <= 0) return;
    const std::unique_ptr<Dwarf_Die, Free> innermost(found);
    // What dwarf_getscopes goes on with is where the source has the inlined function, not where it
    // was inlined.
    Dwarf_Addr bias = 0;
    Dwarf* dwarf = dwfl_module_getdwarf(module, &bias);
    Dwarf_Die own;
    if (dwarf_offdie(dwarf, dwarf_dieoffset(innermost.get()), &own) == nullptr) return;
    const int count = dwarf_getscopes_die(&own, &found);
    if (count <= 0) return;
    scopes_.reset(found);
    count_ = static_cast<size_t>(count);
  }

  std::span<Dwarf_Die> all() const { return {scopes_.get(), count_}; }

 private:
  std::unique_ptr<Dwarf_Die, Free> scopes_;
  size_t count_ = 0;
};

std::string NameOf(Dwarf_Die& scope) {
  Dwarf_Attribute attribute;
  const char* linkage =
      dwarf_formstring(dwarf_attr_integrate(&scope, DW_AT_linkage_name, &attribute));
  if (linkage != nullptr) return FunctionName(linkage);
  return OrEmpty(dwarf_diename(&scope));
}

uint32_t NumberOf(Dwarf_Die& scope, unsigned int attribute_name) {
  Dwarf_Attribute attribute;
  Dwarf_Word number = 0;
  if (dwarf_attr(&scope, attribute_name, &attribute) == nullptr) return 0;
  return dwarf_formudata(&attribute, &number) == 0 ? static_cast<uint32_t>(number) : 0;
}

std::string CallFile(Dwarf_Die* unit, Dwarf_Die& scope) {
  Dwarf_Files* files = nullptr;
  if (dwarf_getsrcfiles(unit, &files, nullptr) != 0) return {};
  return OrEmpty(dwarf_filesrc(files, NumberOf(scope, DW_AT_call_file), nullptr, nullptr));
}

}  // namespace

std::vector<NativeFunction> FunctionsAt(Dwfl_Module* module, Address pc) {
  std::vector<NativeFunction> functions;
  Dwarf_Addr bias = 0;
  Dwarf_Die* unit = dwfl_module_addrdie(module, pc, &bias);
  if (unit == nullptr) return functions;
  // Where the innermost function is; then, for each that it was inlined into, the call.
  NativeFunction current;
  if (Dwarf_Line* line = dwarf_getsrc_die(unit, pc - bias)) {
    int number = 0;
    dwarf_lineno(line, &number);
    current.line = static_cast<uint32_t>(number);
    current.file = OrEmpty(dwarf_linesrc(line, nullptr, nullptr));
  }
  const Scopes scopes(module, unit, pc - bias);
  for (Dwarf_Die& scope : scopes.all()) {
    const int tag = dwarf_tag(&scope);
    if (tag == DW_TAG_subprogram) {
      current.name = NameOf(scope);
      break;
    }
    if (tag != DW_TAG_inlined_subroutine) continue;
    current.name = NameOf(scope);
    functions.push_back(current);
    current = {.file = CallFile(unit, scope), .line = NumberOf(scope, DW_AT_call_line)};
  }
  functions.push_back(std::move(current));
  return functions;
}

}  // namespace pystrobe::native
