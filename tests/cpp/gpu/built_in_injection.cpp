// SPDX-License-Identifier: Apache-2.0
//
// NVTX's headers know a tool that is built in by this pointer, of which they have a weak one.
#include <cstdint>

extern "C" {
using GetExportTable = const void*(uint32_t);
int InitializeInjectionNvtx2(GetExportTable* get_table);
int (*InitializeInjectionNvtx2_fnptr)(GetExportTable*) = &InitializeInjectionNvtx2;
}
