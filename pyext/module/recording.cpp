// SPDX-License-Identifier: Apache-2.0
#include "pyext/module/recording.h"

#include <fcntl.h>
#include <unistd.h>

#include "profiler/base/clock.h"
#include "profiler/base/proc.h"
#include "sampler/remote/target.h"
#include "sampler/remote/target_facts.h"

namespace pystrobe::pyext {

Result<std::unique_ptr<Recording>> Recording::Open(const std::string& path) {
  auto fd = OpenForReading(path);
  if (!fd) return std::unexpected(fd.error());
  return Open(std::move(*fd), path);
}

Result<std::unique_ptr<Recording>> Recording::Open(ScopedFd fd, const std::string& name) {
  if (!fd.IsIntact()) return Fail(ErrorCode::kUnreadable, "the program has closed {}", name);
  ScopedFd reading(fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
  if (!reading.valid()) return FailErrno(errno, ErrorCode::kIo, "opening {} again", name);
  auto file = store::StrobeFile::Open(std::move(reading), name);
  if (!file) return std::unexpected(file.error());
  return std::unique_ptr<Recording>(new Recording(std::move(fd), std::move(*file)));
}

Result<int> Recording::fd() const {
  if (fd_.IsIntact()) return fd_.get();
  return Fail(ErrorCode::kUnreadable, "reading the recording: the program has closed its file");
}

Result<Metadata> DescribeThisProcess() {
  const auto target = remote::Target::Open(getpid());
  if (!target) return std::unexpected(target.error());
  return remote::DescribeTarget(*target, PYSTROBE_VERSION, MonotonicNow());
}

}  // namespace pystrobe::pyext
