// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/task_files.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <memory>

namespace pystrobe::remote {
namespace {

size_t CountOpen() {
  std::unique_ptr<DIR, decltype([](DIR* dir) { closedir(dir); })> dir(opendir("/proc/self/fd"));
  size_t count = 0;
  while (dir != nullptr && readdir(dir.get()) != nullptr) ++count;
  return count;
}

}  // namespace

size_t CountFreeDescriptors() {
  rlimit limit{};
  const size_t open = CountOpen();
  // Not even one for the count.
  if (open == 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return limit.rlim_cur - std::min<size_t>(limit.rlim_cur, open);
}

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
