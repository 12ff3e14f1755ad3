// SPDX-License-Identifier: Apache-2.0
//
// How long a stream takes for what it is given between two moments.
#pragma once

#include <cstdint>
#include <optional>

#include "gpu/handles.h"
#include "profiler/base/error.h"

namespace pystrobe::gpu {

/// Two events on one stream. The interval is the device's: from when it came to the first until it
/// came to the second, so what it waited for in between is in it. Resolution about half a
/// microsecond (cuEventElapsedTime in <cuda.h>). [one thread at a time]
class EventTimer {
 public:
  /// Makes the context where there is none yet, which takes long: then Start does not.
  static Result<void> Prepare(Stream stream);
  /// Records the first event. Of a stream that is being captured into a graph it fails.
  static Result<EventTimer> Start(Stream stream);

  EventTimer(EventTimer&& other) noexcept;
  EventTimer& operator=(EventTimer&&) = delete;
  ~EventTimer();

  /// Records the second one, once. Fails where the stream is gone: then there is nothing to read.
  Result<void> Stop();
  /// Seconds; nullopt while the device has not come to the second event. Waits for nothing.
  Result<std::optional<double>> Read();
  /// Seconds, once the device has come to the second event.
  Result<double> Wait();

  /// Waits until the device has done all that the stream was given so far.
  static Result<void> Synchronize(Stream stream);
  /// The same of all streams of the context that is current.
  static Result<void> SynchronizeAll();

 private:
  EventTimer(Stream stream, Context context, uint64_t context_id)
      : stream_(stream), context_(context), context_id_(context_id) {}
  Result<double> Elapsed();

  Stream stream_;
  Context context_;
  uint64_t context_id_;
  Event begin_ = nullptr;
  Event end_ = nullptr;
  std::optional<double> seconds_;  // once they are known
  bool failed_ = false;            // the events may be of a context that is gone
};

}  // namespace pystrobe::gpu
