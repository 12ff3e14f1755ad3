// SPDX-License-Identifier: Apache-2.0
//
// A tool as NVTX_INJECTION64_PATH names them: prints to stderr what it hears of ranges in domains.
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

nvtxDomainHandle_t CreateDomain(const char* name) {
  return reinterpret_cast<nvtxDomainHandle_t>(strdup(name));
}

int Push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  std::fprintf(stderr, "push %s: %s\n", reinterpret_cast<const char*>(domain),
               attributes->message.ascii);
  return 0;
}

int Pop(nvtxDomainHandle_t domain) {
  std::fprintf(stderr, "pop %s\n", reinterpret_cast<const char*>(domain));
  return 0;
}

template <typename Function>
void Put(NvtxFunctionTable table, int index, Function* function) {
  *table[index] = reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get_table) {
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) return 0;
  Put(table, NVTX_CBID_CORE2_DomainCreateA, &CreateDomain);
  Put(table, NVTX_CBID_CORE2_DomainRangePushEx, &Push);
  Put(table, NVTX_CBID_CORE2_DomainRangePop, &Pop);
  return 1;
}
