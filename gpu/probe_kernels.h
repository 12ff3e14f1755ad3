// SPDX-License-Identifier: Apache-2.0
//
// The two kernels of ours that a measurement needs, without a compiler for the device: their PTX is
// compiled by the driver.
#pragma once

#include <memory>
#include <optional>

#include "gpu/driver_api.h"
#include "gpu/handles.h"

namespace pystrobe::gpu {

/// Of the context that was current when it was made, which is so in every call. [one thread]
class ProbeKernels {
 public:
  static Result<std::unique_ptr<ProbeKernels>> Make(const DriverApi& cuda, int multiprocessors);
  ~ProbeKernels();

  /// Launches a kernel that does nothing.
  Result<void> LaunchEmpty(Stream stream);
  /// Launches a kernel that notes the clocks of one multiprocessor: as the first note or the
  /// second.
  enum Note { kFirst, kSecond };
  Result<void> LaunchNote(Stream stream, Note note);
  /// Cycles of that multiprocessor in a second, from the first note to the second. Nullopt where
  /// one of them is missing, or they are too near to each other to tell: the steps of the clock,
  /// which are learnt from the notes, are 32 ns on an H100 and up to a microsecond elsewhere. After
  /// the device has come to both; forgets them.
  std::optional<double> ClockBetweenNotes();

 private:
  struct Clocks {
    uint64_t cycles, nanoseconds;
  };

  ProbeKernels(const DriverApi& cuda, int multiprocessors)
      : cuda_(cuda), multiprocessors_(multiprocessors) {}

  const DriverApi& cuda_;
  const int multiprocessors_;
  CUmodule module_ = nullptr;
  CUfunction empty_ = nullptr, note_ = nullptr;
  Clocks* notes_ = nullptr;  // two, in memory that the device writes
  CUdeviceptr address_ = 0;  // of them, as the device sees them
  uint64_t step_ns_ = 0;     // of the device's clock: what divides all its times so far
};

}  // namespace pystrobe::gpu
