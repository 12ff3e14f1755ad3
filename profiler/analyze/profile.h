// SPDX-License-Identifier: Apache-2.0
//
// A recording folded: for each thread, how much time each distinct stack got. Everything that
// prints or writes, except time-ordered formats, starts from this.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/base/error.h"
#include "profiler/model/recording.h"

namespace pystrobe {

/// Which of a sample's weights counts.
enum class Mode {
  kWall,  ///< elapsed time, waiting included
  kCpu,   ///< time the kernel charged to the thread
  kGil,   ///< elapsed time holding the interpreter's lock
  kGpu,   ///< time of a GPU, by what launched its work
};

/// "wall", "cpu", "gil", "gpu".
std::string_view ModeName(Mode mode);
std::optional<Mode> ModeByName(std::string_view name);
/// The mode to show a recording in: `asked`, else wall, or CPU or GPU time where there is no other
/// or the recording wants it. `of_part`: it is for a range of time, of which calls have no CPU
/// time, and GPUs nothing. Fails with kInvalidArgument where the recording does not have what is
/// asked for.
Result<Mode> ChooseMode(const RecordingSource& recording, std::optional<Mode> asked,
                        bool of_part = false);

/// All weights of a stack or function at once, so that a report can switch between them.
struct Weights {
  uint64_t samples = 0;      ///< deadlines covered
  uint64_t cpu_samples = 0;  ///< of those, where the thread used CPU time
  uint64_t gil_samples = 0;  ///< of those, while holding the interpreter's lock
  uint64_t wall_ns = 0;
  uint64_t cpu_ns = 0;
  uint64_t gil_ns = 0;
  uint64_t kernel_ns = 0;  ///< of cpu_ns: in the kernel; 0 without Metadata::native
  uint64_t gpu_ns = 0;
  uint64_t gpu_count = 0;  ///< works that a GPU did, those without times too

  Weights& operator+=(const Weights& other);
  /// `other`: a part of these.
  Weights& operator-=(const Weights& other);
  uint64_t nanoseconds(Mode mode) const;
  uint64_t count(Mode mode) const;
  friend bool operator==(const Weights&, const Weights&) = default;
};

/// Whose time is folded.
enum class Work {
  kThreads,
  kGpu,   ///< streams of GPUs, which stand in the place of threads
  kBoth,  ///< threads, then streams where there are any; of a part of the time none
};
/// What `mode` shows.
constexpr Work WorkOf(Mode mode) { return mode == Mode::kGpu ? Work::kGpu : Work::kThreads; }

struct FoldOptions {
  /// Keep only threads whose name contains this, or whose tid it is.
  std::optional<std::string> thread;
  /// Keep the time of (since, until], from the start of the recording: see PartOf(). 0 or less: no
  /// lower bound.
  int64_t since_ns = 0;
  std::optional<int64_t> until_ns;
  /// Keep idle threads: see analyze::MarkIdle(). All are kept where every thread that was seen is
  /// idle: a program that only waits is shown waiting.
  bool include_idle = false;
  Work work = Work::kThreads;

  bool IsPart() const { return since_ns > 0 || until_ns.has_value(); }
  friend bool operator==(const FoldOptions&, const FoldOptions&) = default;
};

/// What of a sample lies in (since_ns, until_ns]; nullopt: nothing. `since_ns` as in FoldOptions.
/// Its times are shared out in proportion, and so are the deadlines of a run-length entry; the one
/// deadline of any other belongs to the instant it ends. Parts that make up the whole add up to it.
std::optional<Sample> PartOf(const Sample& sample, int64_t since_ns, int64_t until_ns);

/// Whether there is a thread that `filter`, a FoldOptions::thread, means.
bool MeansAThread(const Tables& tables, const std::string& filter);

struct StackWeight {
  StackId stack;
  Weights self;
};

struct ThreadProfile {
  ThreadIndex thread;
  Weights total;
  Weights unseen;  ///< of `total`: with no look at the thread; in no stack but the empty
  std::vector<StackWeight> stacks;  ///< ordered by StackId, each once, none all zero
  bool idle = false;                ///< see analyze::MarkIdle(); none is whose calls were traced

  /// Of `total`: where a look found the thread in no Python function.
  Weights OutsidePython() const;
};

/// What became of the calls of a timeline of which a range is shown. A generator's call is as many
/// as it went on.
struct CallsOfPart {
  uint64_t began = 0;         ///< in the range
  uint64_t began_before = 0;  ///< and are cut at its begin
  uint64_t go_on = 0;         ///< after it, and are cut at its end; of either kind
};

struct Profile {
  const RecordingSource* recording = nullptr;  ///< metadata, tables, quality; must outlive this
  /// Where streams are among `threads`: the recording's tables by the same ids, and more. A stream
  /// is a Thread without a tid. A stack of it is that which launched the work, and on it a function
  /// by the kernel's short name, of kGpuFile.
  std::shared_ptr<const Tables> with_streams;
  std::vector<ThreadProfile> threads;  ///< by descending CPU time, then wall time
  Weights total;
  Weights unseen;  ///< of `total`: with no look at a thread, also of threads that were not sampled
  std::vector<ThreadIndex> idle_hidden;  ///< the idle threads left out, by descending CPU time
  int64_t since_ns = 0, until_ns = 0;    ///< the range covered
  bool is_whole = true;                  ///< of all threads, and of all the time
  bool has_cpu_time = true;              ///< else none of it is to be shown, not even as 0
  std::optional<CallsOfPart> part;       ///< where a range of a timeline was asked for

  const Tables& tables() const { return with_streams ? *with_streams : recording->tables(); }
  /// Whether it is a stream of a GPU.
  bool IsStream(ThreadIndex thread) const {
    return with_streams && ToIndex(thread) >= recording->tables().thread_count();
  }
  /// How many of `threads` are threads; see Thread::is_real().
  size_t CountThreads() const;
};

/// Folds the recording. One pass, memory in proportion to the distinct (thread, stack) pairs.
/// Fails when a thread filter matches no thread (the message lists those there are), or the range
/// is empty or of calls whose times were not kept. In a range of a timeline calls are cut exactly.
/// With Work::kGpu: fails where the recording has no work of a GPU, or of a part.
Result<Profile> Fold(const RecordingSource& recording, const FoldOptions& options);

/// One line of the table: a function, all its lines and all threads together.
struct FunctionRow {
  FunctionId function;
  Weights self;               ///< time in the function itself
  Weights total;              ///< time in it and whatever it called; recursion counted once
  uint32_t hottest_line = 0;  ///< the line with the most self time (else total time) in `mode`
};

/// Rows of all functions seen, by descending self time in `mode`, ties by total, then by name:
/// stable output. In all modes but kWall rows may have no time at all: they come last.
std::vector<FunctionRow> FunctionTable(const Profile& profile, Mode mode);

/// A profile of Work::kGpu by what launched: each kernel, copy and set is its launcher's own time
/// and none is a function of its own. What was launched outside of Python is in the empty stack.
Profile ByLauncher(const Profile& profile);

/// CPU time by what used it, in ns. The three add up to Weights::cpu_ns.
struct CpuSplit {
  uint64_t python_ns = 0;  ///< in the interpreter, its built-in functions included
  uint64_t native_ns = 0;  ///< in C functions that are not the interpreter's
  uint64_t kernel_ns = 0;  ///< in the kernel, whoever called it

  CpuSplit& operator+=(const CpuSplit& other);
  friend bool operator==(const CpuSplit&, const CpuSplit&) = default;
};

/// The CPU time that a Python function spent itself, and in the C functions that it called without
/// another Python function between.
struct FunctionSplit {
  struct Line {
    uint32_t line;
    CpuSplit cpu;
  };
  FunctionId function;
  CpuSplit cpu;             ///< all its lines
  std::vector<Line> lines;  ///< by line number, those with any
};

/// What used the CPU time of a recording with Metadata::native.
struct SplitTimes {
  CpuSplit total;                        ///< of all stacks but those without any frame
  std::vector<FunctionSplit> functions;  ///< Python's, by FunctionId, those with any
};
SplitTimes SplitCpuTime(const Profile& profile);

/// The stacks of one or all threads as a call tree of functions (lines merged), children ordered by
/// descending total in `mode`, ties by name. Node 0 is the root and has no function; a node comes
/// after its parent.
struct CallTree {
  struct Line {
    uint32_t line;
    Weights self;
  };
  struct Node {
    FunctionId function{};
    uint32_t parent = 0;
    Weights self;
    Weights total;
    std::vector<uint32_t> children;
    std::vector<Line> lines;  ///< by line number: where this node's self time and its calls are
  };
  std::vector<Node> nodes;
};
CallTree BuildCallTree(const Tables& tables, std::span<const ThreadProfile> threads, Mode mode);

}  // namespace pystrobe
