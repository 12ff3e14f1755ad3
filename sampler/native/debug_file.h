// SPDX-License-Identifier: Apache-2.0
//
// Where a binary's debug information is, if it is in a file of its own.
#pragma once

#include <elfutils/libdwfl.h>

namespace pystrobe::native {

/// As dwfl_standard_find_debuginfo, a Dwfl_Callbacks::find_debuginfo: by build-id below
/// /usr/lib/debug, or by the name that the binary has in .gnu_debuglink, beside it, in .debug
/// there, or below /usr/lib/debug
/// (https://sourceware.org/gdb/current/onlinedocs/gdb.html/Separate-Debug-Files.html). No server is
/// asked: libdwfl's own loads libdebuginfod for that, even where no server is named, and with it
/// two dozen libraries into a program that samples itself.
int FindDebugFile(Dwfl_Module* module, void** userdata, const char* name, Dwarf_Addr base,
                  const char* file, const char* link, GElf_Word link_checksum, char** found);

}  // namespace pystrobe::native
