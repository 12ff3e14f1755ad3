// SPDX-License-Identifier: Apache-2.0
#include "gpu/cupti_api.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "gpu/device.h"
#include "gpu/library.h"

namespace pystrobe::gpu {
namespace {

constexpr int kOldestMajor = 12;
constexpr uint32_t kOldestVersion = 19;  // of CUDA 12.0 (cupti_version.h)
constexpr const char* kCuptiHint =
    "CUPTI of CUDA 12.0 or later is needed, of the same major version as the CUDA that the program "
    "uses: `pip install nvidia-cuda-cupti` (for CUDA 12: nvidia-cuda-cupti-cu12), or the toolkit "
    "with its folder extras/CUPTI/lib64 in LD_LIBRARY_PATH.";

// 0 where the process has no runtime as a library of its own: it may be linked statically.
int RuntimeMajor() {
  constexpr std::string_view kStem = "libcudart.so.";
  const std::string path = PathOfLoaded(kStem);
  const size_t at = path.rfind(kStem);
  return at == std::string::npos ? 0 : std::atoi(path.c_str() + at + kStem.size());
}

std::string HintOf(CUptiResult result) {
  switch (result) {
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
      return "Another profiler has CUPTI, of which a process has one user at a time: "
             "torch.profiler, Proton, nsys, ncu, cuda-gdb or compute-sanitizer. End it first; "
             "torch.profiler keeps it when it has ended, so start a new process, or profile with "
             "it last.";
    case CUPTI_ERROR_NOT_INITIALIZED:
      return "Is the driver older than this CUPTI? One of the driver's CUDA version or earlier "
             "works.";
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
      return "The driver keeps profiling to administrators: the module option "
             "NVreg_RestrictProfilingToAdminUsers=0, or CAP_SYS_ADMIN.";
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
    case CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED:
    case CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED:
    case CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED:
      return "CUPTI does not trace such a device; CUDA events (pystrobe.gpu) do time it.";
    default:
      return {};
  }
}

}  // namespace

Result<CuptiApi> CuptiApi::Open(std::string_view stem, std::span<const std::string> names) {
  std::vector<const char*> texts;
  for (const std::string& name : names) texts.push_back(name.c_str());
  const auto library = Library::Open(stem, texts);
  if (!library) {
    return FailWithHint(ErrorCode::kGpu, kCuptiHint, "there is no CUPTI: {}",
                        library.error().message);
  }
  CuptiApi api;
  api.path = library->path();
#define PYSTROBE_FIND(name)                                                            \
  api.name = reinterpret_cast<decltype(api.name)>(library->Symbol(#name));             \
  if (api.name == nullptr) {                                                           \
    return FailWithHint(ErrorCode::kGpu, kCuptiHint, "{} has no {}", api.path, #name); \
  }
  PYSTROBE_CUPTI_FUNCTIONS(PYSTROBE_FIND)
#undef PYSTROBE_FIND
  auto done = api.Check(api.cuptiGetVersion(&api.version), "asking CUPTI for its version");
  if (!done) return std::unexpected(done.error());
  if (api.version < kOldestVersion) {
    return FailWithHint(ErrorCode::kGpu, kCuptiHint,
                        "CUPTI {} is too old: its version is {}, and {} is CUDA 12.0's", api.path,
                        api.version, kOldestVersion);
  }
  return api;
}

Result<const CuptiApi*> CuptiApi::Load(std::span<const std::string> paths) {
  static std::mutex mutex;
  static const CuptiApi* found = nullptr;
  const std::lock_guard lock(mutex);
  if (found != nullptr) return found;
  const auto driver = DriverVersion();
  if (!driver) return std::unexpected(driver.error());
  std::vector<std::string> names(paths.begin(), paths.end());
  for (std::string& name : CuptiNames(RuntimeMajor(), *driver / 1000)) {
    names.push_back(std::move(name));
  }
  auto api = Open("libcupti.so", names);
  if (!api) return std::unexpected(std::move(api.error()));
  found = new CuptiApi(*std::move(api));
  return found;
}

Error CuptiApi::ErrorOf(CUptiResult result, std::string_view what) const {
  const char* name = nullptr;
  if (cuptiGetResultString(result, &name) != CUPTI_SUCCESS) name = nullptr;
  return {ErrorCode::kGpu,
          fmt::format("{}: {} ({})", what, name != nullptr ? name : "an error without a name",
                      static_cast<int>(result)),
          HintOf(result)};
}

std::vector<std::string> CuptiNames(int runtime_major, int driver_major) {
  std::vector<int> majors;
  if (runtime_major >= kOldestMajor && runtime_major <= driver_major) {
    majors.push_back(runtime_major);
  }
  for (int major = driver_major; major >= kOldestMajor; --major) {
    if (std::ranges::find(majors, major) == majors.end()) majors.push_back(major);
  }
  std::vector<std::string> names;
  for (const int major : majors) names.push_back(fmt::format("libcupti.so.{}", major));
  return names;
}

}  // namespace pystrobe::gpu
