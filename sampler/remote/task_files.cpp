// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/task_files.h"

#include <fmt/format.h>

#include <cerrno>

#include "profiler/base/descriptors.h"

namespace pystrobe::remote {
TaskFiles::TaskFiles() : TaskFiles(CountFreeDescriptors() / 3) {}

void TaskFiles::CloseLent() {
  lent_.clear();
  ++lending_;
}

TaskFile::~TaskFile() {
  if (fd_.valid()) --files_.kept_;
}

bool TaskFile::unknown() const { return error_ != 0 && error_ != ENOENT && error_ != ESRCH; }

ScopedFd TaskFile::Open() {
  const std::string path = fmt::format("/proc/{}/task/{}/{}", pid_, tid_, name_);
  ScopedFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  error_ = fd.valid() ? 0 : errno;
  return fd;
}

bool TaskFile::Keep() {
  if (fd_.valid()) return true;
  if (files_.kept_ >= files_.most_) return false;
  fd_ = Open();
  if (fd_.valid()) ++files_.kept_;
  return fd_.valid();
}

std::string_view TaskFile::Read(char* buffer, size_t size) {
  ScopedFd for_once;
  if (!Keep()) for_once = Open();
  const int fd = fd_.valid() ? fd_.get() : for_once.get();
  if (fd < 0) return {};
  const ssize_t length = pread(fd, buffer, size, 0);
  error_ = length < 0 ? errno : 0;
  return {buffer, length > 0 ? static_cast<size_t>(length) : 0};
}

int TaskFile::Lend() {
  if (Keep()) return fd_.get();
  if (lent_in_ == files_.lending_) return lent_;
  if (files_.lent_.size() >= files_.most_) return -1;
  ScopedFd fd = Open();
  lent_ = fd.get();
  lent_in_ = files_.lending_;
  if (fd.valid()) files_.lent_.push_back(std::move(fd));
  return lent_;
}

}  // namespace pystrobe::remote
