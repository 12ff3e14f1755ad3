// SPDX-License-Identifier: Apache-2.0
//
// A recording: what was sampled, how well, and the samples. Engines write one through a
// RecordingSink while they sample; reports read one from a RecordingSource. No engine knows a file
// format and no report knows an engine.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/base/error.h"
#include "profiler/base/function_ref.h"
#include "profiler/model/call_clock.h"
#include "profiler/model/call_event.h"
#include "profiler/model/deadline_series.h"
#include "profiler/model/duration_histogram.h"
#include "profiler/model/gpu_record.h"
#include "profiler/model/range_record.h"
#include "profiler/model/sample.h"
#include "profiler/model/tables.h"

namespace pystrobe {

/// Metadata::pause_mode where each thread looked at itself in a signal handler, by its CPU time:
/// such samples have no wall time and do not tell of the lock.
inline constexpr std::string_view kBySignals = "signal";

/// Metadata::pause_mode where every call was traced. There is one sample for each function and each
/// way to it then: Sample::count is its calls, the time is all its own. When it ran is not kept.
inline constexpr std::string_view kByTracing = "trace";

/// Metadata::pause_mode where nothing was sampled: the recording is of a GPU's work alone.
inline constexpr std::string_view kOfGpu = "gpu";

/// Facts known when sampling starts.
struct Metadata {
  int64_t pid = 0;
  std::vector<std::string> command;  ///< the target's argument vector
  std::string executable;            ///< what /proc/PID/exe names
  std::string python_version;        ///< "3.13.0", "3.14.0 free-threading build"
  std::string host;                  ///< uname nodename
  std::string pystrobe_version;
  std::string pause_mode;          ///< begun with: "preempt", "ptrace", "none"; or kBySignals,
                                   ///< kByTracing, kOfGpu
  int64_t start_unix_ns = 0;       ///< wall-clock time of the start
  int64_t start_monotonic_ns = 0;  ///< CLOCK_MONOTONIC of the start; Sample::time_ns counts from it
  double wanted_rate_hz = 0;       ///< deadlines a second that were asked for; by signals: a second
                                   ///< of CPU time
  double max_overhead = 0;         ///< share of the target's time we may hold it, 0 = no limit
  uint32_t cpu_count = 0;          ///< CPUs online
  bool native = false;     ///< stacks have C functions, and samples tell kernel time; false: older
                           ///< files, or it was not asked for
  bool timeline = false;   ///< each call is there by itself, with its time: CallEvents
  uint32_t max_depth = 0;  ///< by tracing: so many calls within each other are told; 0: all
  CallClock clock = CallClock::kBoth;  ///< by tracing
  std::string gpu_failure;  ///< why what a GPU does is not in it, as was asked for; empty: it is,
                            ///< or nobody has asked

  friend bool operator==(const Metadata&, const Metadata&) = default;
};

/// Whether every call was traced, and its samples are calls.
inline bool HasCalls(const Metadata& metadata) { return metadata.pause_mode == kByTracing; }

/// Whether elapsed time was recorded, waiting included.
inline bool HasWallTime(const Metadata& metadata) {
  return metadata.pause_mode != kBySignals && metadata.pause_mode != kOfGpu;
}

/// Whether it was seen who has the interpreter's lock.
inline bool HasLock(const Metadata& metadata) {
  return HasWallTime(metadata) && !HasCalls(metadata);
}

/// Whether CPU time was read.
inline bool HasCpuTime(const Metadata& metadata) { return metadata.clock != CallClock::kWall; }

/// How far the recording can be trusted; filled while sampling, complete at the end.
struct Quality {
  uint64_t deadlines = 0;   ///< deadlines that were due
  uint64_t samples = 0;     ///< thread stacks recorded, run-length entries counted once each
  uint64_t taken = 0;       ///< deadlines at which stacks were taken, or nobody had run
  uint64_t proved = 0;      ///< of `taken`: neither marked nor incomplete
  uint64_t marked = 0;      ///< of `taken`: kept without proof that the copy is consistent
  uint64_t incomplete = 0;  ///< of `taken`: a chain not reaching the base frame, or a frame unnamed
  uint64_t late = 0;        ///< of `taken`: more than one period late, or a millisecond
  uint64_t lost = 0;        ///< deadlines without a sample (read failed, overrun)
  uint64_t retries = 0;     ///< copies repeated to get the proof
  uint64_t unresolved = 0;  ///< frames whose code object could not be read in time
  uint64_t reused_code = 0;  ///< code objects found replaced by another at the same address
  int64_t duration_ns = 0;   ///< from the first deadline to the last look
  int64_t held_ns = 0;  ///< time the target's threads waited because of us (estimate, see below);
                        ///< by tracing: what it took of their time, about
  /// The kernel's run_delay of the sampled threads: all they waited for a CPU, because of us and of
  /// others. What held_ns has of pauses by preemption is part of it; a thread that ptrace stops
  /// waits for no CPU.
  int64_t run_delay_ns = 0;
  int64_t own_cpu_ns = 0;       ///< CPU time of the sampler itself
  double achieved_rate_hz = 0;  ///< taken / duration; by signals: / CPU time
  double final_rate_hz = 0;     ///< the rate in force at the end (lowered by max_overhead?)
  bool complete = false;   ///< false: the sampler was cut off; figures are as of the last block
  std::string cpu_source;  ///< "schedstat" (exact) or "stat" (10 ms ticks); by signals: what sent
                           ///< them, and behind semicolons which threads had none; by tracing: what
                           ///< the calls were seen by, and behind semicolons what is left out or
                           ///< missing, of which `lost` is the number
  std::string pause_mode;  ///< in force at the end; empty: nobody wrote it down (older files)
  uint64_t thread_ns = 0;  ///< wall time of all threads together
  uint64_t unseen_ns = 0;  ///< of `thread_ns`: without a stack, in samples with kSampleUnseen
  /// Of `duration_ns`: at less than the wanted rate because of max_overhead, not counting the
  /// start, when the rate rises from a low one. Nobody wrote it down in older files.
  std::optional<int64_t> limited_ns;
  uint64_t cpu_ns = 0;         ///< CPU time of all threads together; 0 in older files
  uint64_t unseen_cpu_ns = 0;  ///< of `cpu_ns`: without a stack, as unseen_ns
  uint64_t native_cut = 0;     ///< stacks with native frames that do not reach the thread's first
                               ///< function; those further in are in the stack
  uint64_t native_unfit = 0;   ///< stacks with native frames that fit no place between those of
                               ///< Python; those of the innermost C functions are in the stack
  uint64_t left_out = 0;  ///< by tracing: calls deeper than Metadata::max_depth, not in `taken`
  /// Each time that a thread was held for a sample: for how long by our clock, all copies of that
  /// sample together, without the context switches around them, which are in `held_ns`; by signals
  /// the CPU time of the handler. Empty by tracing, and in older files.
  DurationHistogram held_each;
  /// By tracing: what hooks were told of and is no call in `taken` or `left_out`, each time with
  /// its end: a generator's steps after the first, functions that are left out, functions of C. In
  /// `held_ns` as a call is.
  uint64_t uncounted = 0;
  /// Why a timeline ends before its recording does, which has all counts and times nevertheless;
  /// empty: it does not, or there is none.
  std::string timeline_failure;
  int64_t timeline_end_ns = 0;  ///< until when it has all calls then, since the start, and later
                                ///< only some; 0: it has none

  friend bool operator==(const Quality&, const Quality&) = default;
};

/// Receives a recording while it is taken: Begin once, Append any number of times, Finish once.
/// [one thread at a time] After an error no further call is made but the destructor, unless it says
/// otherwise; what was accepted before stays readable.
class RecordingSink {
 public:
  virtual ~RecordingSink() = default;
  virtual Result<void> Begin(const Metadata& metadata) = 0;
  /// `samples` are ordered by time for each thread. `tables` holds every definition they use.
  /// `so_far` lets a cut-off file carry figures.
  virtual Result<void> Append(const Tables& tables, std::span<const Sample> samples,
                              const Quality& so_far) = 0;
  virtual Result<void> Finish(const Tables& tables, const Quality& quality) = 0;
  /// Samples are due at the times of this series from its last_ns on, in ns since the start, until
  /// the next call. After Begin. Only helps to store them in less space.
  virtual void Expect(const DeadlineSeries& series) { static_cast<void>(series); }
};

/// Takes the calls of a traced program too, each by itself, as they come.
class TimelineSink : public RecordingSink {
 public:
  /// What `thread` did next. `tables` holds every stack of it. Between Begin and Finish, beside
  /// Append. After an error no more calls are taken, but it is noted since when there are some; all
  /// else is taken, as far as it can be.
  virtual Result<void> AppendCalls(const Tables& tables, ThreadIndex thread,
                                   std::span<const CallEvent> calls) = 0;
};

/// A finished (or cut-off) recording, read as often as needed. [any thread, const]
class RecordingSource {
 public:
  virtual ~RecordingSource() = default;
  virtual const Metadata& metadata() const = 0;
  virtual const Tables& tables() const = 0;
  virtual const Quality& quality() const = 0;
  /// Calls `visit` for every sample, ordered by time for each thread. Streams: memory does not
  /// grow with the number of samples.
  virtual Result<void> ForEachSample(FunctionRef<void(const Sample&)> visit) const = 0;
  /// Calls `visit` for some of a thread's calls at a time, ordered by time for each thread, each
  /// one level from the one before; for none where Metadata::timeline is not set. Streams, too.
  using CallVisitor = FunctionRef<void(ThreadIndex thread, std::span<const CallEvent> calls)>;
  virtual Result<void> ForEachCall(CallVisitor visit) const = 0;
  /// What a GPU did; null where nobody asked. Ids are of tables(). As long as this lives.
  virtual const GpuRecord* gpu() const { return nullptr; }
  /// The ranges that the program named; null where nobody asked. Ids are of tables(). As long as
  /// this lives.
  virtual const RangeRecord* ranges() const { return nullptr; }
};

}  // namespace pystrobe
