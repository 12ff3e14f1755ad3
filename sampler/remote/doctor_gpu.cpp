// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "profiler/base/proc.h"
#include "profiler/base/scoped_fd.h"
#include "sampler/remote/doctor.h"

namespace pystrobe::remote {
namespace {

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.03  Tue ...", or with "Open" in it: the
// first word of digits and points.
std::string VersionIn(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789.";
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of(" \n", at), text.size());
    const std::string_view word = text.substr(at, end - at);
    if (word.find('.') != word.npos && word.find_first_not_of(kDigits) == word.npos) {
      return std::string(word);
    }
    at = end + 1;
  }
  return "of a version that cannot be read";
}

}  // namespace

std::optional<Check> CheckGpu(const std::string& root) {
  const auto version = ReadSmallFile(root + "/proc/driver/nvidia/version");
  if (!version) return std::nullopt;
  Check check{.name = "GPU", .seen = "NVIDIA driver " + VersionIn(*version)};
  // Tried: a container may have the node, and not be let at it.
  const std::string path = root + "/dev/nvidiactl";
  const ScopedFd device(open(path.c_str(), O_RDWR | O_CLOEXEC));
  const int error = errno;
  if (device.valid()) {
    check.meaning =
        "what a program's own CUDA is good for it tells itself: python3 -c 'from pystrobe import "
        "gpu; print(gpu.why_not() or gpu.devices())'";
    return check;
  }
  check.state = CheckState::kWarn;
  if (error == ENOENT) {
    check.meaning = "there is no /dev/nvidiactl: no program here can use the GPU";
    check.cure = "In a container: start it with the GPU, as 'docker run --gpus all' does.";
  } else {
    check.meaning = "/dev/nvidiactl may not be opened: no program of this user can use the GPU";
    check.cure = "Let the user have /dev/nvidia*: often by the group video or render.";
  }
  return check;
}

}  // namespace pystrobe::remote
