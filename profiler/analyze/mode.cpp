// SPDX-License-Identifier: Apache-2.0
#include "profiler/analyze/gpu_streams.h"
#include "profiler/analyze/profile.h"

namespace pystrobe {
namespace {

/// Of what is no recording of a GPU alone.
Result<Mode> ChooseModeOfThreads(const Metadata& metadata, std::optional<Mode> asked,
                                 bool of_part) {
  if (HasCalls(metadata) && asked == Mode::kGil) {
    return FailWithHint(ErrorCode::kInvalidArgument, "It has wall and cpu.",
                        "traced calls do not tell who had the interpreter's lock");
  }
  if (!HasCpuTime(metadata) && asked == Mode::kCpu) {
    return FailWithHint(ErrorCode::kInvalidArgument,
                        "Trace the program again without --clock wall.",
                        "its calls were traced by elapsed time alone, and have no CPU time");
  }
  const bool is_of_calls = HasCalls(metadata) && of_part;
  if (is_of_calls && asked == Mode::kCpu) {
    return FailWithHint(ErrorCode::kInvalidArgument,
                        "Leave --mode cpu out, or --since and --until.",
                        "a part of a timeline has no CPU time: it is known of the whole alone");
  }
  if (metadata.clock == CallClock::kCpu && !is_of_calls) return asked.value_or(Mode::kCpu);
  if (metadata.pause_mode != kBySignals) return asked.value_or(Mode::kWall);
  if (asked.value_or(Mode::kCpu) == Mode::kCpu) return Mode::kCpu;
  return FailWithHint(
      ErrorCode::kInvalidArgument,
      "To have it all, record by wall time: Profiler(mode=\"wall\"), or pystrobe attach.",
      "the recording was made by CPU time, and has no {} time", ModeName(*asked));
}

}  // namespace

std::string_view ModeName(Mode mode) {
  switch (mode) {
    case Mode::kWall:
      return "wall";
    case Mode::kCpu:
      return "cpu";
    case Mode::kGil:
      return "gil";
    case Mode::kGpu:
      return "gpu";
  }
  return "";
}

std::optional<Mode> ModeByName(std::string_view name) {
  for (const Mode mode : {Mode::kWall, Mode::kCpu, Mode::kGil, Mode::kGpu}) {
    if (ModeName(mode) == name) return mode;
  }
  return std::nullopt;
}

Result<Mode> ChooseMode(const RecordingSource& recording, std::optional<Mode> asked, bool of_part) {
  const bool only_gpu = recording.metadata().pause_mode == kOfGpu;
  if (asked.value_or(only_gpu ? Mode::kGpu : Mode::kWall) != Mode::kGpu) {
    if (!only_gpu) return ChooseModeOfThreads(recording.metadata(), asked, of_part);
    return FailWithHint(ErrorCode::kInvalidArgument, "It has gpu. To have both, sample it too.",
                        "the recording is of a GPU's work alone, and has no {} time",
                        ModeName(*asked));
  }
  if (auto there = analyze::RequireGpu(recording, of_part); !there) {
    return std::unexpected(there.error());
  }
  return Mode::kGpu;
}

Weights& Weights::operator+=(const Weights& other) {
  samples += other.samples;
  cpu_samples += other.cpu_samples;
  gil_samples += other.gil_samples;
  wall_ns += other.wall_ns;
  cpu_ns += other.cpu_ns;
  gil_ns += other.gil_ns;
  kernel_ns += other.kernel_ns;
  gpu_ns += other.gpu_ns;
  gpu_count += other.gpu_count;
  return *this;
}

Weights& Weights::operator-=(const Weights& other) {
  samples -= other.samples;
  cpu_samples -= other.cpu_samples;
  gil_samples -= other.gil_samples;
  wall_ns -= other.wall_ns;
  cpu_ns -= other.cpu_ns;
  gil_ns -= other.gil_ns;
  kernel_ns -= other.kernel_ns;
  gpu_ns -= other.gpu_ns;
  gpu_count -= other.gpu_count;
  return *this;
}

Weights ThreadProfile::OutsidePython() const {
  if (stacks.empty() || stacks.front().stack != kEmptyStack) return {};
  Weights outside = stacks.front().self;
  outside -= unseen;
  return outside;
}

uint64_t Weights::nanoseconds(Mode mode) const {
  switch (mode) {
    case Mode::kWall:
      return wall_ns;
    case Mode::kCpu:
      return cpu_ns;
    case Mode::kGil:
      return gil_ns;
    case Mode::kGpu:
      return gpu_ns;
  }
  return 0;
}

uint64_t Weights::count(Mode mode) const {
  switch (mode) {
    case Mode::kWall:
      return samples;
    case Mode::kCpu:
      return cpu_samples;
    case Mode::kGil:
      return gil_samples;
    case Mode::kGpu:
      return gpu_count;
  }
  return 0;
}

}  // namespace pystrobe
