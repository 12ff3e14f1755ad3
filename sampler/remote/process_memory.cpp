// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/process_memory.h"

#include <limits.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace pystrobe::remote {
namespace {

/// On the stack: no allocation on the hot path. Two of these are 32 KiB.
constexpr size_t kBatch = IOV_MAX;

size_t TotalSize(std::span<const pyabi::ReadRequest> requests) {
  size_t total = 0;
  for (const pyabi::ReadRequest& request : requests) total += request.size;
  return total;
}

/// At most kBatch requests; returns what process_vm_readv does.
ssize_t ReadBatch(pid_t pid, std::span<const pyabi::ReadRequest> requests) {
  std::array<iovec, kBatch> local, remote;
  for (size_t i = 0; i < requests.size(); ++i) {
    const pyabi::ReadRequest& request = requests[i];
    local[i] = {request.into, request.size};
    // An address in the other process, which the kernel alone follows.
    remote[i] = {reinterpret_cast<void*>(request.address), request.size};
  }
  return process_vm_readv(pid, local.data(), requests.size(), remote.data(), requests.size(), 0);
}

}  // namespace

bool ProcessMemory::ReadAll(std::span<const pyabi::ReadRequest> requests) const {
  return TryReadAll(requests) == 0;
}

int ProcessMemory::TryReadAll(std::span<const pyabi::ReadRequest> requests) const {
  while (!requests.empty()) {
    const auto batch = requests.first(std::min(requests.size(), kBatch));
    const ssize_t got = ReadBatch(pid_, batch);
    if (got < 0) return errno;
    if (static_cast<size_t>(got) != TotalSize(batch)) return EFAULT;
    requests = requests.subspan(batch.size());
  }
  return 0;
}

// The kernel stops at the first piece that it cannot copy (process_vm_readv(2), "partial
// transfer").
size_t ProcessMemory::ReadSome(std::span<const pyabi::ReadRequest> requests) const {
  size_t done = 0;
  while (done < requests.size()) {
    const auto batch = requests.subspan(done, std::min(requests.size() - done, kBatch));
    const ssize_t got = ReadBatch(pid_, batch);
    if (got < 0) return done;
    auto bytes = static_cast<size_t>(got);
    for (const pyabi::ReadRequest& request : batch) {
      if (bytes < request.size) return done;
      bytes -= request.size;
      ++done;
    }
  }
  return done;
}

bool AddressSpace::ReadAll(std::span<const pyabi::ReadRequest> requests) const {
  return std::ranges::all_of(requests, [this](const pyabi::ReadRequest& request) {
    const ssize_t got =
        pread(fd_.get(), request.into, request.size, static_cast<off_t>(request.address));
    return got >= 0 && static_cast<size_t>(got) == request.size;
  });
}

}  // namespace pystrobe::remote
