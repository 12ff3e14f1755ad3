// SPDX-License-Identifier: Apache-2.0
#include "profiler/write/labels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "profiler/write/number_text.h"

namespace pystrobe::write {
namespace {

double Share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string Time(int64_t ns) { return TimeText(static_cast<uint64_t>(std::max<int64_t>(0, ns))); }

std::string Counted(uint64_t count, std::string_view one, std::string_view several) {
  return fmt::format("{} {}", GroupDigits(count), count == 1 ? one : several);
}

/// Why there were fewer deadlines than wanted, if max_overhead made them fewer.
enum class Fewer { kNo, kAtTheStart, kForAWhile, kToHoldTheLimit };

Fewer WhyFewer(const Metadata& metadata, const Quality& quality) {
  if (metadata.max_overhead <= 0) return Fewer::kNo;
  const double seconds = static_cast<double>(quality.duration_ns) / 1e9;
  const double wanted = metadata.wanted_rate_hz * seconds;
  const bool below_at_end =
      quality.final_rate_hz > 0 && quality.final_rate_hz < metadata.wanted_rate_hz * 0.995;
  // Distances of deadlines are random: few of them prove nothing.
  constexpr double kEnough = 100;
  const auto deadlines = static_cast<double>(quality.deadlines);
  if (!below_at_end && (wanted < kEnough || deadlines >= 0.9 * wanted)) return Fewer::kNo;
  if (!quality.limited_ns) return Fewer::kNo;  // an older file, which does not tell why
  if (*quality.limited_ns == 0) return Fewer::kAtTheStart;
  return below_at_end ? Fewer::kToHoldTheLimit : Fewer::kForAWhile;
}

/// How far a share may be from what more samples would show, where that is much: two standard
/// errors, sqrt(p (1 - p) / n), of a share p of one half, the worst. Samples of several threads at
/// one time, and of unequal weight, are taken for one each.
std::string Precision(uint64_t taken) {
  constexpr uint64_t kEnough = 400;  // five points
  if (taken < kFewestSamples || taken >= kEnough) return "";
  return fmt::format(" (shares are known to about {:.0f} points)",
                     100 / std::sqrt(static_cast<double>(taken)));
}

std::string Rate(const Metadata& metadata, const Quality& quality) {
  std::string text = fmt::format(", {} a second", RateText(quality.achieved_rate_hz));
  if (metadata.wanted_rate_hz <= 0) return text;
  text += fmt::format(" ({} wanted", RateText(metadata.wanted_rate_hz));
  switch (WhyFewer(metadata, quality)) {
    case Fewer::kNo:
      break;
    case Fewer::kAtTheStart:
      text += "; begun slowly, to learn the cost";
      break;
    case Fewer::kForAWhile:
      text += fmt::format(", lowered for {} to hold the target less than {} % of its time",
                          Time(*quality.limited_ns), PercentText(metadata.max_overhead));
      break;
    case Fewer::kToHoldTheLimit:
      text += fmt::format(", lowered to hold the target about {} % of its time",
                          PercentText(metadata.max_overhead));
  }
  return text + ")";
}

bool IsBySignals(const Metadata& metadata) { return metadata.pause_mode == kBySignals; }

std::string RateBySignals(const Metadata& metadata, const Quality& quality) {
  std::string text =
      fmt::format(", {} a second of CPU time ({} wanted", RateText(quality.achieved_rate_hz),
                  RateText(metadata.wanted_rate_hz));
  // Neither is known of one that was cut off at once.
  const bool is_known = !quality.cpu_source.empty();
  if (is_known && quality.final_rate_hz < metadata.wanted_rate_hz * 0.995) {
    text += "; no more can be had";
  }
  return text + ")" + (is_known ? " by " + quality.cpu_source : "");
}

std::string Trust(const Quality& quality) {
  if (quality.taken == 0) return "";
  if (quality.proved == quality.taken) return "; all proved exact";
  if (quality.proved == 0) return "; none proved exact: stacks may be torn";
  // Never rounds a doubt away.
  const double percent =
      100.0 * static_cast<double>(quality.proved) / static_cast<double>(quality.taken);
  std::string text = fmt::format("; {:.1f} % proved exact", std::min(percent, 99.9));
  if (quality.marked > 0)
    text += fmt::format(", {} marked as unproved", GroupDigits(quality.marked));
  return text;
}

bool ManyLost(const Quality& quality) {
  constexpr uint64_t kWorthAWord = 10;
  return quality.lost >= kWorthAWord && quality.lost > quality.deadlines / 10;
}

std::string Misses(const Metadata& metadata, const Quality& quality) {
  // Nothing is due at a time where signals come as CPU time is used.
  if (IsBySignals(metadata)) return fmt::format("; {} lost", GroupDigits(quality.lost));
  std::string text =
      fmt::format("; {} late, {} lost", GroupDigits(quality.late), GroupDigits(quality.lost));
  if (ManyLost(quality)) {
    // With a limit the rate was left to us.
    text +=
        metadata.max_overhead > 0
            ? " (the machine was too busy for more)"
            : " (more deadlines than the machine could meet: ask for a lower rate, or free a CPU)";
  }
  return text;
}

constexpr uint64_t kLittleCpuNs = 10'000'000;

double UnseenWall(const Quality& quality) {
  return Share(static_cast<int64_t>(quality.unseen_ns), static_cast<int64_t>(quality.thread_ns));
}

// Of a program that hardly used any there is nothing to miss.
double UnseenCpu(const Quality& quality) {
  if (quality.cpu_ns < kLittleCpuNs) return 0;
  return Share(static_cast<int64_t>(quality.unseen_cpu_ns), static_cast<int64_t>(quality.cpu_ns));
}

/// From this share on: threads that are born while sampling wait a moment for their first look.
constexpr double kWorthSaying = 0.01;
/// From this share on what is shown is not what the program mostly does.
constexpr double kMuchUnseen = 0.1;
constexpr double kMuchWithoutNative = 0.2;

std::string Unseen(const Quality& quality) {
  const double wall = UnseenWall(quality), cpu = UnseenCpu(quality);
  std::vector<std::string> parts;
  if (wall >= kWorthSaying) {
    parts.push_back(fmt::format("{} % of the threads' wall time", PercentText(wall)));
  }
  if (cpu >= kWorthSaying) parts.push_back(fmt::format("{} % of the CPU time", PercentText(cpu)));
  if (parts.empty()) return "";
  return fmt::format(
      "; {} without a stack: before the first look at a thread, in threads that no look found "
      "running "
      "or without Python, or while the sampler had no CPU",
      fmt::join(parts, " and "));
}

std::string OtherPause(const Metadata& metadata, const Quality& quality) {
  if (quality.pause_mode.empty() || quality.pause_mode == metadata.pause_mode) return "";
  return fmt::format("; pausing by {} at first, by {} at the end", metadata.pause_mode,
                     quality.pause_mode);
}

std::string OwnCpu(const Quality& quality) {
  return fmt::format("; own CPU {} %", PercentText(Share(quality.own_cpu_ns, quality.duration_ns)));
}

std::string CostOfSignals(const Quality& quality) {
  return fmt::format("; its handlers took {} ({} % of the CPU time)", Time(quality.held_ns),
                     PercentText(Share(quality.held_ns, static_cast<int64_t>(quality.cpu_ns)))) +
         OwnCpu(quality);
}

std::string Cost(const Quality& quality) {
  std::string text = fmt::format("; target held {} ({} % of the time)", Time(quality.held_ns),
                                 PercentText(Share(quality.held_ns, quality.duration_ns)));
  if (quality.run_delay_ns > 0) {
    text += fmt::format("; it waited {} for a CPU in all, for us and for others",
                        Time(quality.run_delay_ns));
  }
  return text + OwnCpu(quality);
}

/// More than so many percent of the whole; one or two of a short run say nothing of it.
bool IsMuch(uint64_t part, uint64_t whole, uint64_t percent) {
  return part > 2 && 100 * part > percent * whole;
}

/// Why a recording is doubtful; nullptr: it is not. A lost sample is one less; a wrong one
/// misleads.
const char* Doubt(const Quality& quality) {
  if (!quality.complete) return "cut off";
  if (IsMuch(quality.lost, quality.deadlines, 10)) return "samples lost";
  if (IsMuch(quality.incomplete, quality.taken, 1)) return "stacks incomplete";
  if (IsMuch(quality.taken - quality.proved, quality.taken, 1)) return "stacks not proved";
  return nullptr;
}

bool LostSome(const Quality& quality) { return IsMuch(quality.lost, quality.deadlines, 1); }

/// Why a recording that is not doubtful is no more than fair; nullptr: it is good.
const char* Reservation(const Quality& quality) {
  if (quality.taken < kFewSamples) return "few samples";
  if (LostSome(quality)) return "samples lost";
  if (IsMuch(quality.late, quality.taken, 10)) return "samples late";
  if (quality.proved != quality.taken) return "some stacks not proved";
  if (std::max(UnseenWall(quality), UnseenCpu(quality)) > kMuchUnseen) {
    return "much time without a stack";
  }
  const auto without_native = static_cast<double>(quality.native_cut + quality.native_unfit);
  if (without_native > kMuchWithoutNative * static_cast<double>(quality.taken)) {
    return "C functions missing";
  }
  return nullptr;
}

std::string VerdictText(const Quality& quality) {
  const char* doubt = Doubt(quality);
  if (doubt != nullptr) return fmt::format("doubtful ({}); ", doubt);
  if (quality.taken < kFewestSamples) return "too few to judge; ";
  const char* reservation = Reservation(quality);
  return reservation == nullptr ? "good; " : fmt::format("fair ({}); ", reservation);
}

}  // namespace

Verdict Judge(const Quality& quality) {
  if (quality.pause_mode == kByTracing) {
    return quality.lost == 0 && quality.complete ? Verdict::kGood : Verdict::kDoubtful;
  }
  if (Doubt(quality) != nullptr) return Verdict::kDoubtful;
  return Reservation(quality) == nullptr ? Verdict::kGood : Verdict::kFair;
}

std::string ThreadLabel(const Thread& thread, const Tables& tables) {
  const std::string& name = tables.text(thread.name);
  if (!thread.is_real()) return name;
  std::string label = fmt::format("{} [{}", name.empty() ? "thread" : name, thread.tid);
  if (thread.interpreter != 0) label += fmt::format(", interpreter {}", thread.interpreter);
  return label + "]";
}

std::string FirstLine(std::string_view argument, std::string_view ellipsis) {
  constexpr std::string_view kBlank = " \t\r\n";
  if (argument.find('\n') == std::string_view::npos) return std::string(argument);
  argument.remove_prefix(std::min(argument.find_first_not_of(kBlank), argument.size()));
  const std::string_view line = argument.substr(0, argument.find_first_of("\r\n"));
  const bool is_all = argument.find_last_not_of(kBlank) < line.size() || argument.empty();
  return std::string(line) + std::string(is_all ? "" : ellipsis);
}

std::string Title(const Metadata& metadata, const WriteOptions& options) {
  if (!options.title.empty()) return options.title;
  if (!metadata.command.empty()) {
    std::vector<std::string> lines;
    for (const std::string& argument : metadata.command) lines.push_back(FirstLine(argument, "…"));
    return fmt::format("{}", fmt::join(lines, " "));
  }
  return metadata.executable.empty() ? "pystrobe" : metadata.executable;
}

std::string_view FunctionName(const Function& function, const Tables& tables) {
  const std::string& name = tables.text(function.name);
  return name.empty() ? std::string_view("<unknown>") : std::string_view(name);
}

namespace {

// Where they are no few: they cost what calls do.
std::string Uncounted(const Quality& quality) {
  if (!IsMuch(quality.uncounted, quality.taken, 10)) return "";
  return fmt::format(
      "with {} that are not counted (of functions left out or of C, or a "
      "generator's steps) ",
      GroupDigits(quality.uncounted));
}

std::string CostOfTracing(const Quality& quality) {
  if (quality.taken == 0 || quality.held_ns == 0 || quality.thread_ns == 0) return "";
  const auto held_ns = static_cast<uint64_t>(quality.held_ns);
  const auto percent_of = [&quality](uint64_t whole_ns) {
    return PercentText(std::min(1.0, Share(quality.held_ns, static_cast<int64_t>(whole_ns))));
  };
  // These cost somewhat less.
  const std::string_view about = quality.left_out == 0 ? "about" : "at most about";
  const uint64_t told = quality.taken + quality.left_out + quality.uncounted;
  const std::string text = fmt::format("; that took {} {} a call, {}{} or {} % of the threads' ",
                                       about, TimeText(held_ns / told), Uncounted(quality),
                                       TimeText(held_ns), percent_of(quality.thread_ns));
  // It is about what a call costs, times calls: that may come to more than there is.
  const bool is_of_cpu = quality.cpu_ns >= held_ns;
  const std::string of_cpu = percent_of(quality.cpu_ns);
  if (!is_of_cpu || of_cpu == percent_of(quality.thread_ns)) return text + "time";
  return text + fmt::format("elapsed time and {} % of their CPU time", of_cpu);
}

std::string TimelineEnd(const Quality& quality) {
  if (quality.timeline_failure.empty()) return "";
  if (quality.timeline_end_ns == 0) {
    return fmt::format("; there is no timeline: {}", quality.timeline_failure);
  }
  return fmt::format("; the timeline is whole up to {} and ends then: {}",
                     Time(quality.timeline_end_ns), quality.timeline_failure);
}

std::string DepthText(const Metadata& metadata) {
  return metadata.max_depth == 0
             ? ""
             : fmt::format(" down to a depth of {}", GroupDigits(metadata.max_depth));
}

std::string LeftOut(const Metadata& metadata, const Quality& quality) {
  if (metadata.max_depth == 0) return "";
  if (quality.left_out == 0) return "; none was deeper";
  return fmt::format("; {} left out, {} time is that of the caller at this depth",
                     Counted(quality.left_out, "deeper call", "deeper calls"),
                     quality.left_out == 1 ? "its" : "their");
}

std::string WithoutGpu(const Metadata& metadata) {
  if (metadata.gpu_failure.empty()) return "";
  return "; what a GPU did is not in it: " + metadata.gpu_failure;
}

// Nothing is left to chance: there is no rate, and nothing to be late for.
std::string QualityOfCalls(const Metadata& metadata, const Quality& quality) {
  if (!quality.complete) {
    return fmt::format(
        "cut off: the calls of Python{} until then, without CPU time; a generator's as often as it "
        "went on",
        DepthText(metadata));
  }
  return fmt::format("{} of Python{} traced, {}, by {}{}{}{}",
                     quality.lost == 0 ? "every call" : "not every call", DepthText(metadata),
                     Counted(quality.taken, "call", "calls"), quality.cpu_source,
                     LeftOut(metadata, quality), CostOfTracing(quality), TimelineEnd(quality));
}

}  // namespace

std::string PartLine(const Profile& profile) {
  if (!profile.part) return "";
  const CallsOfPart& part = *profile.part;
  return fmt::format(
      "a part, from {} to {}: {} in it (a generator's as often as it went on); {} before and {} "
      "after it, and {} cut there; CPU time is not known of a part",
      Time(profile.since_ns), Time(profile.until_ns),
      Counted(part.began, "call began", "calls began"),
      Counted(part.began_before, "had begun", "had begun"), Counted(part.go_on, "goes on", "go on"),
      part.began_before + part.go_on == 1 ? "is" : "are");
}

std::string QualityLine(const Metadata& metadata, const Quality& quality) {
  if (HasCalls(metadata)) return QualityOfCalls(metadata, quality) + WithoutGpu(metadata);
  std::string line =
      VerdictText(quality) + Counted(quality.taken, "sample", "samples") + Precision(quality.taken);
  const bool by_signals = IsBySignals(metadata);
  line += by_signals ? RateBySignals(metadata, quality) : Rate(metadata, quality);
  line += Trust(quality) + Misses(metadata, quality);
  if (quality.incomplete > 0) {
    line += fmt::format(", {} incomplete", GroupDigits(quality.incomplete));
  }
  if (quality.unresolved > 0) {
    line += ", " + Counted(quality.unresolved, "frame without a name", "frames without a name");
  }
  if (quality.native_cut > 0) {
    line += fmt::format(", native frames cut in {}", GroupDigits(quality.native_cut));
  }
  if (quality.native_unfit > 0) {
    line += fmt::format(", native frames beside Python's in {}", GroupDigits(quality.native_unfit));
  }
  line += Unseen(quality) + OtherPause(metadata, quality);
  line += by_signals ? CostOfSignals(quality) : Cost(quality);
  if (quality.cpu_source == "stat") line += "; CPU times from 10 ms ticks";
  if (!quality.complete) line += "; cut off: figures are as of the last block";
  return line + WithoutGpu(metadata);
}

std::string HowToGetMore(const Metadata& metadata, const Quality& quality) {
  if (WhyFewer(metadata, quality) != Fewer::kToHoldTheLimit || ManyLost(quality)) return "";
  // What those have who ask for neither; a rate of their own goes without a limit.
  constexpr double kDefaultRateHz = 1000, kDefaultLimit = 0.01;
  const bool by_default =
      metadata.wanted_rate_hz == kDefaultRateHz && metadata.max_overhead == kDefaultLimit;
  return fmt::format("For more samples: record with -r {:.6g}{}; the cost is told after the run",
                     metadata.wanted_rate_hz,
                     by_default ? ", which lifts the default limit"
                                : " and without --max-overhead, which lifts the limit");
}

std::string OriginLine(const Metadata& metadata) {
  std::string line = "pystrobe";
  if (!metadata.pystrobe_version.empty()) line += " " + metadata.pystrobe_version;
  if (!metadata.python_version.empty()) line += ", Python " + metadata.python_version;
  if (metadata.pid != 0) line += fmt::format(", process {}", metadata.pid);
  if (!metadata.host.empty()) line += " on " + metadata.host;
  if (IsBySignals(metadata)) {
    line += ", by signals";
  } else if (!metadata.pause_mode.empty()) {
    line += ", pause " + metadata.pause_mode;
  }
  return line;
}

}  // namespace pystrobe::write
