// SPDX-License-Identifier: Apache-2.0
#include "profiler/write/range_timeline.h"
#include "profiler/write/stack_limit.h"
#include "profiler/write/writer.h"

namespace pystrobe::write {
namespace {

Result<void> CheckTimeline(Format format, const RecordingSource& recording) {
  const Quality& quality = recording.quality();
  const bool has_no_calls = !quality.timeline_failure.empty() && quality.timeline_end_ns == 0;
  const bool has_calls = recording.metadata().timeline && !has_no_calls;
  if (has_calls || HasGpuTimeline(recording) || HasRangeTimeline(recording)) return {};
  if (recording.gpu() != nullptr) {
    return FailWithHint(
        ErrorCode::kInvalidArgument, "Record it again: Profiler(gpu=True, timeline=True).",
        "{} holds when each work of a GPU was done, of which this recording has the sums alone",
        FormatName(format));
  }
  if (const std::string& why = recording.metadata().gpu_failure; !why.empty()) {
    return FailWithHint(ErrorCode::kInvalidArgument, "Record it again where there is a GPU.",
                        "{} holds when each work of a GPU was done, and there was none to see: {}",
                        FormatName(format), why);
  }
  if (has_no_calls) {
    return FailWithHint(ErrorCode::kInvalidArgument,
                        "Trace the program again with room for it: where the .strobe file is that "
                        "is asked for, else in $TMPDIR.",
                        "{} holds when each call was made, which could not be kept: {}",
                        FormatName(format), quality.timeline_failure);
  }
  return FailWithHint(
      ErrorCode::kInvalidArgument,
      HasCalls(recording.metadata())
          ? "Trace the program again with pystrobe trace --timeline, or Tracer(timeline=True)."
          : "Trace the program with pystrobe trace --timeline, or Tracer(timeline=True); or, for a "
            "GPU's work, record it again with Profiler(gpu=True, timeline=True), or pystrobe run "
            "--gpu -o step.trace.json.",
      "{} holds when each call was made, which this recording does not tell", FormatName(format));
}

}  // namespace

Result<void> Write(Format format, const Profile& profile, const WriteOptions& options,
                   Output& output) {
  if (IsOfCalls(format) && !HasCalls(profile.recording->metadata())) {
    return FailWithHint(ErrorCode::kInvalidArgument, "Trace the program: pystrobe trace.",
                        "{} holds how often functions were called, which samples do not tell",
                        FormatName(format));
  }
  if (IsOfTimeline(format)) {
    if (auto possible = CheckTimeline(format, *profile.recording); !possible) return possible;
  }
  const bool has_gpu = IsOfTimeline(format) && HasGpuTimeline(*profile.recording);
  if (options.mode == Mode::kGpu && (IsOfCalls(format) || IsOfTimeline(format)) && !has_gpu) {
    return FailWithHint(
        ErrorCode::kInvalidArgument,
        "Write html, pprof, speedscope, collapsed or json, or leave --mode gpu out.",
        "{} holds calls of functions, and no work of a GPU", FormatName(format));
  }
  const bool lists_stacks =
      format == Format::kPprof || format == Format::kCollapsed || format == Format::kJson;
  if (lists_stacks) {
    if (auto possible = CheckStacksListed(format, profile); !possible) return possible;
  }
  switch (format) {
    case Format::kHtml:
      return WriteHtml(profile, options, output);
    case Format::kSpeedscope:
      return WriteSpeedscope(profile, options, output);
    case Format::kPprof:
      return WritePprof(profile, options, output);
    case Format::kCollapsed:
      return WriteCollapsed(profile, options, output);
    case Format::kJson:
      return WriteJson(profile, options, output);
    case Format::kCallgrind:
      return WriteCallgrind(profile, options, output);
    case Format::kPstats:
      return WritePstats(profile, options, output);
    case Format::kTraceEvents:
      return WriteTraceEvents(profile, options, output);
    case Format::kPerfetto:
      return WritePerfetto(profile, options, output);
    case Format::kStrobe:
      break;
  }
  return Fail(ErrorCode::kInvalidArgument, "a profile cannot be written as {}: it is a recording",
              FormatName(format));
}

}  // namespace pystrobe::write
