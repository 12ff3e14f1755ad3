// SPDX-License-Identifier: Apache-2.0
//
// The functions of CUPTI, found at run time: its first interface, of which a process has one user
// at a time. For gpu's own source files: this header needs <cupti.h>.
#pragma once

#include <cupti.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/base/error.h"

namespace pystrobe::gpu {

#define PYSTROBE_CUPTI_FUNCTIONS(X)    \
  X(cuptiGetVersion)                   \
  X(cuptiGetResultString)              \
  X(cuptiSubscribe)                    \
  X(cuptiUnsubscribe)                  \
  X(cuptiEnableCallback)               \
  X(cuptiActivityEnable)               \
  X(cuptiActivityDisable)              \
  X(cuptiActivityRegisterCallbacks)    \
  X(cuptiActivityFlushAll)             \
  X(cuptiActivityGetNextRecord)        \
  X(cuptiActivitySetAttribute)         \
  X(cuptiActivityGetNumDroppedRecords) \
  X(cuptiGetGraphId)                   \
  X(cuptiGetGraphNodeId)               \
  X(cuptiGetDeviceId)                  \
  X(cuptiGetTimestamp)                 \
  X(cuptiFinalize)

/// [any thread]
struct CuptiApi {
#define PYSTROBE_DECLARE(name) decltype(&::name) name = nullptr;
  PYSTROBE_CUPTI_FUNCTIONS(PYSTROBE_DECLARE)
#undef PYSTROBE_DECLARE

  uint32_t version = 0;  ///< as cuptiGetVersion has it: 19 is CUDA 12.0's, 130001 is 13.0's
  std::string path;      ///< of its file

  /// The library that the process has already, else the first that is there of `paths` (in wheels
  /// of the CUDA that the process uses, say) and of CuptiNames(). What was found once is kept.
  /// Fails where there is none, no driver for it, or it is older than CUDA 12.0. Starts nothing.
  static Result<const CuptiApi*> Load(std::span<const std::string> paths);
  /// The same by other names, and not kept.
  static Result<CuptiApi> Open(std::string_view stem, std::span<const std::string> names);

  /// The failure that `result` is, of `what` was tried.
  Error ErrorOf(CUptiResult result, std::string_view what) const;
  Result<void> Check(CUptiResult result, std::string_view what) const {
    if (result == CUPTI_SUCCESS) return {};
    return std::unexpected(ErrorOf(result, what));
  }
};

/// By which the dynamic linker may find CUPTI: of the runtime's major version (0: unknown), then of
/// the driver's and of those before, as far back as 12. One later than the driver's would not work.
std::vector<std::string> CuptiNames(int runtime_major, int driver_major);

}  // namespace pystrobe::gpu
