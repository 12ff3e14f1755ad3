// SPDX-License-Identifier: Apache-2.0
#include "profiler/base/descriptors.h"

#include <dirent.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <memory>

namespace pystrobe {
namespace {

size_t CountOpen() {
  std::unique_ptr<DIR, decltype([](DIR* dir) { closedir(dir); })> dir(opendir("/proc/self/fd"));
  if (dir == nullptr) return 0;
  size_t entries = 0;
  while (readdir(dir.get()) != nullptr) ++entries;
  constexpr size_t kNoneOfOurs = 3;  // ".", ".." and that of the directory itself
  return entries - kNoneOfOurs;
}

}  // namespace

std::unexpected<Error> FailToOpen(int error_number, std::string_view what,
                                  const std::string& path) {
  auto failed = FailErrno(error_number, ErrorCode::kIo, "{} {}", what, path);
  if (error_number == EMFILE) failed.error().hint = "Raise the limit of open files: ulimit -n 4096";
  return failed;
}

size_t CountFreeDescriptors() {
  rlimit limit{};
  const size_t open = CountOpen();
  // Not even one for the count.
  if (open == 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return limit.rlim_cur - std::min<size_t>(limit.rlim_cur, open);
}

}  // namespace pystrobe
