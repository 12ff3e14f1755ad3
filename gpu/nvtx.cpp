// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvtx.h"

#include <nvtx3/nvToolsExt.h>

namespace pystrobe::gpu {
namespace {

nvtxDomainHandle_t Domain() {
  static const nvtxDomainHandle_t domain = nvtxDomainCreateA("pystrobe");
  return domain;
}

}  // namespace

void PushNvtxRange(const std::string& name) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name.c_str();
  nvtxDomainRangePushEx(Domain(), &attributes);
}

void PopNvtxRange() { nvtxDomainRangePop(Domain()); }

}  // namespace pystrobe::gpu
