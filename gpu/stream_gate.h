// SPDX-License-Identifier: Apache-2.0
//
// Holding a stream back while work is put on it, so that the time it takes to put it there is not
// in what is timed.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

#include "gpu/handles.h"
#include "profiler/base/clock.h"
#include "profiler/base/error.h"

namespace pystrobe::gpu {

/// Makes a stream wait for a word in this process' memory (cuStreamWaitValue32). Who waits for the
/// stream while it is closed would wait for ever, as would who puts more on it than the driver has
/// room for, about a thousand launches: after a while it is opened all the same.
/// [one thread; the one that opens it in time is its own]
class StreamGate {
 public:
  /// In the context that is current. `patience`: for so long it stays closed at most. Fails where
  /// the device cannot do it.
  static Result<std::unique_ptr<StreamGate>> Make(Nanoseconds patience);
  /// Opens it, and waits for the stream. In the same context.
  ~StreamGate();

  /// What is put on the stream from here on is done once the gate is open.
  Result<void> Close(Stream stream);
  /// False where it had opened by itself, also when it is asked a second time.
  bool Open();

 private:
  explicit StreamGate(Nanoseconds patience) : patience_(patience) {}
  void Guard();
  void Release(uint32_t number);

  const Nanoseconds patience_;
  uint32_t* word_ = nullptr;  // what the device waits for, in memory that it can read
  uint64_t address_ = 0;      // of it, as the device sees it
  Stream stream_ = nullptr;   // closed last
  std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t closed_ = 0;   // how often it was
  uint32_t opened_ = 0;   // the last time of those that is over
  bool expired_ = false;  // that one ended by itself
  bool stop_ = false;
  Nanoseconds deadline_{};
  std::thread guard_;
};

}  // namespace pystrobe::gpu
