// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/read_at.h"

#include <unistd.h>

#include <cerrno>

namespace pystrobe::store {

Result<size_t> ReadAt(int fd, uint64_t offset, std::span<uint8_t> buffer, const std::string& name) {
  size_t done = 0;
  while (done < buffer.size()) {
    const ssize_t got =
        ::pread(fd, buffer.data() + done, buffer.size() - done, static_cast<off_t>(offset + done));
    if (got == 0) break;
    if (got > 0) {
      done += static_cast<size_t>(got);
    } else if (errno != EINTR) {
      return FailErrno(errno, ErrorCode::kUnreadable, "reading {}", name);
    }
  }
  return done;
}

}  // namespace pystrobe::store
