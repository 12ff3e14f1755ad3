// SPDX-License-Identifier: Apache-2.0
//
// How long a device takes for a piece of work, over and over, with what is not its own time kept
// out.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "gpu/handles.h"
#include "profiler/base/clock.h"
#include "profiler/base/error.h"
#include "profiler/base/function_ref.h"

namespace pystrobe::gpu {

/// What is measured. [the thread that measures]
class Workload {
 public:
  virtual ~Workload() = default;
  /// Puts the work on the stream. Fails where the work does; that ends the measurement.
  virtual Result<void> Run() = 0;
};

/// Calls what waits for the device, or for time to pass: here what Run needs may be let go.
using Wait = std::function<Result<void>(FunctionRef<Result<void>()> waits)>;

struct MeasureOptions {
  Stream stream = nullptr;
  size_t num_warmups = 1;
  bool flush_l2 = true;   ///< each time finds nothing of the last one's in the device's cache
  bool hold_back = true;  ///< the device begins once all of it is on the stream
  size_t min_samples = 10;
  double min_seconds = 0.05;  ///< of the device's time, all samples together
  double max_noise = 0.005;
  double time_cap_seconds = 10;
  /// Samples are left out where a multiprocessor ran below so much of the clock that it can have.
  double low_clock = 0.75;
  Nanoseconds patience = std::chrono::seconds(2);  ///< a stream is held back no longer
  Wait wait = [](FunctionRef<Result<void>()> waits) { return waits(); };
};

struct Measurement {
  enum class Stop {
    kQuiet,    ///< the noise is below what was asked, or has settled
    kTimeCap,  ///< before that
  };

  std::vector<double> gpu_seconds;  ///< of each sample: from the first event to the second
  std::vector<double> cpu_seconds;  ///< that Run took, by the clock on the wall
  Stop stop = Stop::kQuiet;
  size_t throttled = 0;  ///< samples left out: the device's clock was low
  /// What a kernel that does nothing takes, measured so; nullopt where nothing was held back.
  std::optional<double> empty_seconds;
  std::optional<double> clock_hz;  ///< median over the samples, where it can be told
};

/// Measures each workload, one sample of each in turn, until all of them have enough: all of them
/// as many, but for those left out. A sample is: the device's cache flushed, the stream held back,
/// a note of the clock, an event, Run, an event, a note, the stream let go, and the wait until all
/// is done. After one that is
/// left out the device is given time to cool. Fails where all of them are, where Run waits for the
/// device that is held back, and of a stream that is captured. In Run the context is current that
/// was before. [one thread]
Result<std::vector<Measurement>> MeasureInTurn(std::span<Workload* const> workloads,
                                               const MeasureOptions& options);

}  // namespace pystrobe::gpu
