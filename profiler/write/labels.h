// SPDX-License-Identifier: Apache-2.0
//
// The words that every format uses for the same thing. Not yet escaped for any format.
// [any thread]
#pragma once

#include <string>
#include <string_view>

#include "profiler/model/recording.h"
#include "profiler/write/writer.h"

namespace pystrobe::write {

/// Stand for a stack: ThreadProfile::OutsidePython and ThreadProfile::unseen.
inline constexpr std::string_view kNoPythonFrames = "[no Python frames]";
inline constexpr std::string_view kNotLookedAt = "[not looked at]";

/// "MainThread [4242]", "thread [4242]" without a name; a sub-interpreter is named too. Unique in a
/// recording as far as thread ids are. What is no thread has its name alone.
std::string ThreadLabel(const Thread& thread, const Tables& tables);

/// The first line of a command's argument, such as an inline script; `ellipsis` for the rest.
std::string FirstLine(std::string_view argument, std::string_view ellipsis);

/// WriteOptions::title, else the command with the first line of each argument, else the executable,
/// else "pystrobe".
std::string Title(const Metadata& metadata, const WriteOptions& options);

/// The function's name; "<unknown>" instead of an empty one.
std::string_view FunctionName(const Function& function, const Tables& tables);

/// From fewer samples than this nothing is concluded.
inline constexpr uint64_t kFewestSamples = 10;
/// From fewer than this no verdict is good: a share may be ten points off.
inline constexpr uint64_t kFewSamples = 100;

/// A verdict on a recording, at a glance.
enum class Verdict {
  kGood,      ///< every stack is proved exact, and hardly a sample is missing
  kFair,      ///< up to 1 % are in doubt or missing; or there are fewer than 100 samples, or more
              ///< than 10 % of the wall or CPU time is in no stack
  kDoubtful,  ///< more than that and more than two, or the recording was cut off
};
Verdict Judge(const Quality& quality);

/// How far the recording can be trusted, without a full stop: the verdict, samples, achieved and
/// wanted rate, proved or marked, late, lost, time the target was held, own CPU; and whatever was
/// unusual (rate lowered, many lost, incomplete stacks, threads not seen for long, another way of
/// pausing than at first, cut off). Every report shows this one sentence.
std::string QualityLine(const Metadata& metadata, const Quality& quality);
/// Of a part of a timeline: what was cut. Empty: it is none.
std::string PartLine(const Profile& profile);

/// What to ask for where a limit kept the rate low; empty where none did.
std::string HowToGetMore(const Metadata& metadata, const Quality& quality);

/// One line telling what was recorded: tool, interpreter, process, host, way of pausing.
std::string OriginLine(const Metadata& metadata);

}  // namespace pystrobe::write
