// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/process_memory.h"

#include <limits.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace pystrobe::remote {
namespace {

/// On the stack: no allocation on the hot path. Two of these are 32 KiB.
constexpr size_t kBatch = IOV_MAX;

}  // namespace

bool ProcessMemory::ReadAll(std::span<const pyabi::ReadRequest> requests) const {
  return TryReadAll(requests) == 0;
}

int ProcessMemory::TryReadAll(std::span<const pyabi::ReadRequest> requests) const {
  while (!requests.empty()) {
    std::array<iovec, kBatch> local, remote;
    size_t count = std::min(requests.size(), kBatch);
    size_t total = 0;
    for (size_t i = 0; i < count; ++i) {
      const pyabi::ReadRequest& request = requests[i];
      local[i] = {request.into, request.size};
      // An address in the other process, which the kernel alone follows.
      remote[i] = {reinterpret_cast<void*>(request.address), request.size};
      total += request.size;
    }
    ssize_t got = process_vm_readv(pid_, local.data(), count, remote.data(), count, 0);
    if (got < 0) return errno;
    if (static_cast<size_t>(got) != total) return EFAULT;
    requests = requests.subspan(count);
  }
  return 0;
}

}  // namespace pystrobe::remote
