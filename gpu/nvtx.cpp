// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvtx.h"

#include <nvtx3/nvToolsExt.h>

namespace pystrobe::gpu {
namespace {

nvtxDomainHandle_t Domain() {
  static const nvtxDomainHandle_t domain = nvtxDomainCreateA("pystrobe");
  return domain;
}

nvtxEventAttributes_t Called(const std::string& name) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name.c_str();
  return attributes;
}

}  // namespace

void PushNvtxRange(const std::string& name) {
  const nvtxEventAttributes_t attributes = Called(name);
  nvtxDomainRangePushEx(Domain(), &attributes);
}

void PopNvtxRange() { nvtxDomainRangePop(Domain()); }

uint64_t StartNvtxRange(const std::string& name) {
  const nvtxEventAttributes_t attributes = Called(name);
  return nvtxDomainRangeStartEx(Domain(), &attributes);
}

void EndNvtxRange(uint64_t number) { nvtxDomainRangeEnd(Domain(), number); }

}  // namespace pystrobe::gpu
