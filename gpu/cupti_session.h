// SPDX-License-Identifier: Apache-2.0
//
// Every kernel, copy and set of this process, with the path of the call that launched it, by CUPTI.
//
// A launch pays for two callbacks of the driver's and, unless CuptiOptions::records says no, for
// the record that CUPTI makes; records are read on a thread of our own. While it runs no other
// profiler can use CUPTI; once it is stopped, launches cost what they did before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpu/idle_time.h"
#include "gpu/kernel_sums.h"
#include "gpu/launch_counts.h"
#include "gpu/launch_path.h"
#include "gpu/range_projection.h"
#include "profiler/base/clock.h"
#include "profiler/base/error.h"
#include "profiler/base/function_ref.h"

namespace pystrobe::gpu {

struct CuptiOptions {
  /// Where CUPTI may be, if the process has not loaded it.
  std::vector<std::string> library_paths;
  KernelSumsOptions sums;
  IdleOptions idle;
  /// False: launches are counted by path and kernel as they are made, and nobody tells what became
  /// of them on the device. A launch costs a part of what it does else. KernelSums has them without
  /// times, IdleTime the waits alone, and no range has work.
  bool records = true;
  /// What LaunchOrigin::range is of; outlives the session. Null: ranges are not looked at.
  const RangeInstances* ranges = nullptr;
  size_t buffers = 16;            ///< at most ActivityBuffers::kMaxBuffers
  size_t buffer_bytes = 4 << 20;  ///< 19,000 records of kernels
  /// What has ended is read at least so often, once a millisecond at most. It is also what keeps
  /// the launch of a record from being forgotten: a thread may have a buffer of its own, which it
  /// fills slowly.
  Nanoseconds flush_every = std::chrono::seconds(1);
};

/// What is true of the figures. Where all is well, the records that are not of graphs are as many
/// as the launches of kernels, copies and sets that neither failed nor were captured.
struct CuptiFacts {
  bool launches_only = false;  ///< no records were asked for
  LaunchTotals launches;
  uint64_t records = 0;           ///< of kernels, copies and sets that were read
  uint64_t of_graphs = 0;         ///< of these, of graphs: a launch of one has many
  uint64_t unmatched = 0;         ///< of these, whose launch was not seen
  uint64_t other_records = 0;     ///< that nobody asked for
  uint64_t dropped = 0;           ///< records that CUPTI had no buffer for, known after the end
  uint64_t declined_buffers = 0;  ///< times that all buffers were in use
  uint64_t lost_waits = 0;        ///< of threads for a device, that were too many to keep
  uint64_t discarded_bytes = 0;   ///< of records that were not read, where CUPTI cannot drop them
  uint32_t cupti_version = 0;     ///< as cuptiGetVersion has it
  int driver_version = 0;         ///< CUDA's, 1000 * major + 10 * minor
  std::string cupti_path;
  Nanoseconds decoder_cpu{};  ///< CPU time of the thread that reads records
};

/// [any thread, but for a callback of CUPTI's and LaunchPath]
class CuptiSession {
 public:
  /// From the moment that this returns. Neither initialises CUDA nor needs it to be. `path` lives
  /// as long as the process. Fails where there is no CUPTI, another profiler has it, or this one
  /// has; then nothing is left behind.
  static Result<std::unique_ptr<CuptiSession>> Start(const CuptiOptions& options, LaunchPath& path);
  /// Stops. In a child of fork() it does nothing.
  ~CuptiSession();

  /// Of a process that has had a session: there is nothing to be had of CUDA or of one.
  static bool IsInChild();

  /// Starts over: what has begun on the device until now counts for nothing. What is launched and
  /// has not begun does, so synchronise before. In a child of fork() it does nothing.
  void Restart();

  /// Whether a thread captures a stream into a graph, or is about to, and has begun since Start:
  /// who waits for a device meanwhile spoils that. A stream that is destroyed meanwhile counts as
  /// captured until the end. False in a child of fork().
  bool IsCapturing() const;

  /// What threads wait for from now on counts for nothing: whoever is about to stop waits first.
  void NoMoreWaits();

  /// Reads what the device has done so far, and leaves CUPTI; takes milliseconds, and waits for the
  /// device and for launches that others are in: whatever these may wait for, such as the GIL, the
  /// caller does not hold. What the device has not ended is without times: synchronise before.
  /// Again it returns what it did. In a child of fork() it does nothing.
  Result<void> Stop();

  CuptiFacts Facts() const;
  /// What there is so far, or of all once it is stopped. Holds up the reading of records meanwhile;
  /// `reader` calls nothing of this. False, without a call, in a child of fork().
  bool Read(FunctionRef<void(const KernelSums&, const IdleTime&)> reader) const;
  /// What was launched in ranges. In a child of fork() there is nothing.
  std::vector<RangeStreamSum> RangeSums() const;

 private:
  class Impl;
  explicit CuptiSession(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace pystrobe::gpu
