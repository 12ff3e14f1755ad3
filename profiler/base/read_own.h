// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>
#include <unistd.h>

#include <cstddef>

namespace pystrobe {

/// Copies memory of this process, where there may be none. False where there is none, or the kernel
/// refuses (process_vm_readv(2)); then nothing is said of what is in `to`. [any thread]
/// [async-signal-safe]
inline bool ReadOwn(const void* from, void* to, size_t bytes) {
  const iovec local{.iov_base = to, .iov_len = bytes};
  const iovec remote{.iov_base = const_cast<void*>(from), .iov_len = bytes};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
}

}  // namespace pystrobe
