// SPDX-License-Identifier: Apache-2.0
//
// The foreign formats. A writer turns a profile into bytes; where the bytes go is the caller's
// business. One file per format.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "profiler/analyze/profile.h"
#include "profiler/base/error.h"

namespace pystrobe::write {

/// Where bytes go. Implementations report the first failure and stay failed.
class Output {
 public:
  virtual ~Output() = default;
  virtual Result<void> Write(std::string_view bytes) = 0;
};

enum class Format {
  kStrobe,
  kHtml,
  kSpeedscope,
  kPprof,
  kCollapsed,
  kJson,
  kCallgrind,
  kPstats,
  kTraceEvents,
  kPerfetto,
};

/// Whether it is no text, which a terminal could show.
bool IsBinary(Format format);
/// Whether it holds calls, which only a traced recording has.
bool IsOfCalls(Format format);
/// Whether it holds each call by itself, or each work of a GPU, which only a timeline has.
bool IsOfTimeline(Format format);

/// Unit of the numbers in collapsed stacks.
enum class Unit { kSamples, kMicroseconds, kNanoseconds };
/// "samples", "us", "ns".
std::optional<Unit> UnitByName(std::string_view name);

struct WriteOptions {
  Mode mode = Mode::kWall;  ///< for formats with one value per stack; the others carry all
  Unit unit = Unit::kSamples;
  std::string title;  ///< for people; default: the command
  bool idle = false;  ///< HTML: the page opens with idle threads shown, of those in the profile
};

/// By the name given to -f: "strobe", "html", "speedscope", "pprof", "collapsed", "json",
/// "callgrind", "pstats", "trace-events", "perfetto".
std::optional<Format> FormatByName(std::string_view name);
/// By file name: .strobe .html .speedscope.json .trace.json .pb.gz (.pprof) .collapsed (.folded,
/// .txt) .json .callgrind .pstats (.prof) .perfetto-trace (.pftrace)
std::optional<Format> FormatByFileName(std::string_view file_name);
std::string_view FormatName(Format format);
/// `path` apart from what tells its format, "a/out" and ".speedscope.json"; else from what follows
/// the last dot of its name, which may be nothing.
std::pair<std::string_view, std::string_view> SplitSuffix(std::string_view path);
/// What a profile for a format is folded with, where `asked` was asked for: a page has switches of
/// its own for idle threads and GPUs, and pprof has all times beside each other.
FoldOptions FoldOptionsFor(Format format, const RecordingSource& recording, FoldOptions asked);
/// One line telling how to open a file of that format.
std::string HowToOpen(Format format, std::string_view file_name);
/// Of a file that is large for those who open it, how large, to follow its name; else empty.
std::string SizeNote(Format format, uint64_t bytes);

/// A word as a POSIX shell takes it: as it is when nothing in it is special, else in single quotes.
std::string ShellQuoted(std::string_view word);

/// Writes `profile`. Fails with kInvalidArgument for kStrobe, which is no foreign format, and for
/// formats of calls or of timelines where the recording has none, or where what they would list is
/// beyond all measure (stack_limit.h).
Result<void> Write(Format format, const Profile& profile, const WriteOptions& options,
                   Output& output);

// What each makes of a profile is told in docs/formats.md. All stop at the first failure of
// `output` and return it; what was written before is then of no use.

/// One page that needs no network: flame graph, table, all modes and threads.
Result<void> WriteHtml(const Profile& profile, const WriteOptions& options, Output& output);
/// Threads in order of time, weights of `mode` in nanoseconds. Reads the samples themselves,
/// several times; memory does not grow with their number.
Result<void> WriteSpeedscope(const Profile& profile, const WriteOptions& options, Output& output);
/// Gzipped; samples, wall, CPU and lock time of each thread and stack, `mode` shown first.
Result<void> WritePprof(const Profile& profile, const WriteOptions& options, Output& output);
/// One line for each thread and stack that has a value in `mode` and `unit`.
Result<void> WriteCollapsed(const Profile& profile, const WriteOptions& options, Output& output);
/// Functions and their calls of each other, wall and CPU time: KCachegrind, callgrind_annotate. Of
/// traced recordings only, as the next.
Result<void> WriteCallgrind(const Profile& profile, const WriteOptions& options, Output& output);
/// The same as cProfile has it, time of `mode`: pstats, snakeviz.
Result<void> WritePstats(const Profile& profile, const WriteOptions& options, Output& output);
/// Each call and each work of a GPU with its begin and its duration, as Chrome's tracing has it:
/// Perfetto, chrome://tracing. Of timelines only, as the next.
Result<void> WriteTraceEvents(const Profile& profile, const WriteOptions& options, Output& output);
/// The same in less room: Perfetto's own.
Result<void> WritePerfetto(const Profile& profile, const WriteOptions& options, Output& output);
/// Everything, for programs: docs/json.md.
Result<void> WriteJson(const Profile& profile, const WriteOptions& options, Output& output);

}  // namespace pystrobe::write
