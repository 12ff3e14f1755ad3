// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "profiler/analyze/gpu_streams.h"
#include "profiler/analyze/idle_threads.h"
#include "profiler/analyze/profile.h"
#include "profiler/analyze/spans.h"
#include "profiler/analyze/stack_sums.h"
#include "profiler/analyze/thread_filter.h"
#include "profiler/base/hash.h"
#include "profiler/base/id_index.h"
#include "profiler/base/wrapping.h"

namespace pystrobe {
namespace {

void AddSample(Weights& weights, const Sample& sample) {
  weights.samples += sample.count;
  weights.wall_ns += sample.wall_ns;
  weights.cpu_ns += sample.cpu_ns;
  if (sample.flags & kSampleKernel) weights.kernel_ns += sample.cpu_ns;
  if (sample.flags & kSampleOnCpu) weights.cpu_samples += sample.count;
  if (sample.flags & kSampleGil) {
    weights.gil_samples += sample.count;
    weights.gil_ns += sample.wall_ns;
  }
}

double Seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

/// The stacks of one thread, each once.
class StackSums {
 public:
  Weights& Of(StackId stack) {
    // Successive samples mostly show the same stack.
    if (last_ < stacks_.size() && stacks_[last_].stack == stack) return stacks_[last_].self;
    const uint32_t fresh = static_cast<uint32_t>(stacks_.size());
    last_ = index_.FindOrAdd(
        HashOf(stack), fresh, [&](uint32_t i) { return stacks_[i].stack == stack; },
        [&](uint32_t i) { return HashOf(stacks_[i].stack); });
    if (last_ == fresh) Append(stack);
    return stacks_[last_].self;
  }

  /// Ordered by StackId, without those that are all zero. Leaves nothing behind.
  std::vector<StackWeight> Take() {
    index_ = {};
    std::erase_if(stacks_, [](const StackWeight& stack) { return analyze::IsZero(stack.self); });
    std::sort(stacks_.begin(), stacks_.end(),
              [](const StackWeight& a, const StackWeight& b) { return a.stack < b.stack; });
    return std::move(stacks_);
  }

 private:
  static uint64_t HashOf(StackId stack) { return MixBits(ToIndex(stack)); }

  void Append(StackId stack) {
    // A long recording has hundreds of thousands: no more than a quarter of the room is spare.
    const size_t size = stacks_.size();
    if (size == stacks_.capacity()) stacks_.reserve(size + size / 4 + 4);
    stacks_.push_back({stack, {}});
  }

  std::vector<StackWeight> stacks_;
  IdIndex index_;  // positions in stacks_
  uint32_t last_ = 0;
};

/// The folding itself: one entry for each distinct (thread, stack).
class Folder {
 public:
  Folder(std::vector<bool> kept_threads, const FoldOptions& options)
      : kept_(std::move(kept_threads)),
        since_(options.since_ns),
        until_(options.until_ns.value_or(std::numeric_limits<int64_t>::max())),
        sums_(kept_.size()),
        unseen_(kept_.size()) {}

  void Add(const Sample& sample) {
    end_ns_ = std::max(end_ns_, sample.time_ns);
    const uint32_t thread = ToIndex(sample.thread);
    if (thread >= kept_.size() || !kept_[thread]) return;
    const std::optional<Sample> part = PartOf(sample, since_, until_);
    if (!part) return;
    AddSample(sums_[thread].Of(sample.stack), *part);
    const bool unseen = (sample.flags & kSampleUnseen) != 0 && sample.stack == kEmptyStack;
    if (unseen) AddSample(unseen_[thread], *part);
  }

  bool Keeps(ThreadIndex thread) const { return kept_[ToIndex(thread)]; }

  /// End of the last sample, whether it was kept or not.
  int64_t end_ns() const { return end_ns_; }

  /// The threads that have any weight, by descending CPU time.
  std::vector<ThreadProfile> TakeThreads();

 private:
  std::vector<bool> kept_;
  int64_t since_;
  int64_t until_;
  int64_t end_ns_ = 0;
  std::vector<StackSums> sums_;  // by thread
  std::vector<Weights> unseen_;  // by thread
};

std::vector<ThreadProfile> Folder::TakeThreads() {
  std::vector<ThreadProfile> threads;
  for (uint32_t i = 0; i < sums_.size(); ++i) {
    std::vector<StackWeight> stacks = sums_[i].Take();
    if (stacks.empty()) continue;
    Weights total;
    for (const StackWeight& stack : stacks) total += stack.self;
    threads.push_back({ThreadIndex{i}, total, unseen_[i], std::move(stacks), false});
  }
  std::stable_sort(threads.begin(), threads.end(),
                   [](const ThreadProfile& a, const ThreadProfile& b) {
                     return std::pair(a.total.cpu_ns, a.total.wall_ns) >
                            std::pair(b.total.cpu_ns, b.total.wall_ns);
                   });
  return threads;
}

/// Where a timeline is not whole up to the end of the range, the range ends where it is.
Result<void> CutToTimeline(const Quality& quality, FoldOptions& options) {
  if (quality.timeline_failure.empty()) return {};
  if (options.since_ns >= quality.timeline_end_ns) {
    return FailWithHint(
        ErrorCode::kInvalidArgument,
        "Let the range begin before that, or trace the program again where there is room.",
        "the range begins at {:.3f} s, but the timeline of the calls is whole up to {:.3f} s only: "
        "{}",
        Seconds(options.since_ns), Seconds(quality.timeline_end_ns), quality.timeline_failure);
  }
  options.until_ns =
      std::min(options.until_ns.value_or(quality.timeline_end_ns), quality.timeline_end_ns);
  return {};
}

/// Cuts the calls of a timeline to the range, of which `part` is told.
Result<void> FoldCalls(const RecordingSource& recording, const FoldOptions& options, Folder& folder,
                       CallsOfPart& part) {
  TimeRange range{.since_ns = options.since_ns};
  if (options.until_ns) range.until_ns = *options.until_ns;
  return ForEachSampleOfCalls(
      recording, range, [&folder](const Sample& sample) { folder.Add(sample); },
      [&](const Span& span, bool begins) {
        if (!folder.Keeps(span.thread)) return;
        if (begins) {
          ++(span.began_before ? part.began_before : part.began);
        } else if (span.goes_on) {
          ++part.go_on;
        }
      });
}

/// Leaves out the idle threads, unless that is all there were.
void HideIdle(Profile& profile) {
  const auto works = [&](const ThreadProfile& thread) {
    return !thread.idle && profile.tables().thread(thread.thread).is_real();
  };
  if (std::ranges::none_of(profile.threads, works)) return;
  for (const ThreadProfile& thread : profile.threads) {
    if (thread.idle) profile.idle_hidden.push_back(thread.thread);
  }
  std::erase_if(profile.threads, [](const ThreadProfile& thread) { return thread.idle; });
}

}  // namespace

std::optional<Sample> PartOf(const Sample& sample, int64_t since_ns, int64_t until_ns) {
  if (since_ns <= 0) since_ns = std::numeric_limits<int64_t>::min();
  const int64_t begin = WrappingSubtract(sample.time_ns, static_cast<int64_t>(sample.wall_ns));
  const bool ends_later = sample.time_ns > since_ns;
  const bool begins_before = sample.wall_ns > 0 ? begin < until_ns : begin <= until_ns;
  if (!ends_later || !begins_before) return std::nullopt;
  if (begin >= since_ns && sample.time_ns <= until_ns) return sample;
  const int64_t from = std::max(begin, since_ns);
  const int64_t to = std::min(sample.time_ns, until_ns);
  const auto distance = [](int64_t first, int64_t last) {
    return static_cast<uint64_t>(WrappingSubtract(last, first));
  };
  // Of `whole`, what falls to the time up to `end`.
  const auto share = [&](uint64_t whole, int64_t end) {
    const uint64_t length = distance(begin, end);
    if (length >= sample.wall_ns) return whole;
    const double part = static_cast<double>(length) / static_cast<double>(sample.wall_ns);
    const double product = static_cast<double>(whole) * part;
    return product < static_cast<double>(whole) ? static_cast<uint64_t>(product) : whole;
  };
  Sample part = sample;
  part.time_ns = to;
  part.wall_ns = distance(from, to);
  part.cpu_ns = share(sample.cpu_ns, to) - share(sample.cpu_ns, from);
  part.count = static_cast<uint32_t>(share(sample.count, to) - share(sample.count, from));
  return part;
}

size_t Profile::CountThreads() const {
  return static_cast<size_t>(std::count_if(
      threads.begin(), threads.end(),
      [this](const ThreadProfile& thread) { return tables().thread(thread.thread).is_real(); }));
}

Result<Profile> Fold(const RecordingSource& recording, const FoldOptions& wanted) {
  FoldOptions options = wanted;
  if (options.work == Work::kGpu) return analyze::FoldGpu(recording, options);
  if (options.until_ns && *options.until_ns <= options.since_ns) {
    return Fail(ErrorCode::kInvalidArgument, "the range from {:.3f} s until {:.3f} s is empty",
                Seconds(options.since_ns), Seconds(*options.until_ns));
  }
  const bool has_calls = HasCalls(recording.metadata());
  const bool has_timeline = recording.metadata().timeline;
  if (has_calls && options.IsPart() && !has_timeline) {
    return FailWithHint(
        ErrorCode::kInvalidArgument,
        "Leave --since and --until out, or trace the program again with --timeline.",
        "the figures of these traced calls are of the whole program, not of a part of its time");
  }
  if (has_calls && options.IsPart()) {
    if (auto cut = CutToTimeline(recording.quality(), options); !cut) {
      return std::unexpected(cut.error());
    }
  }
  auto kept = analyze::KeptThreads(recording, options.thread);
  if (!kept) return std::unexpected(kept.error());

  Folder folder(std::move(*kept), options);
  CallsOfPart part;
  const bool is_part_of_timeline = has_timeline && options.IsPart();
  // The samples come last.
  const bool lacks_samples = has_timeline && !recording.quality().complete;
  const auto read =
      is_part_of_timeline || lacks_samples
          ? FoldCalls(recording, options, folder, part)
          : recording.ForEachSample([&folder](const Sample& sample) { folder.Add(sample); });
  if (!read) return std::unexpected(read.error());

  const int64_t end_ns = std::max(folder.end_ns(), recording.quality().duration_ns);
  if (options.since_ns > 0 && options.since_ns >= end_ns) {
    return Fail(ErrorCode::kInvalidArgument,
                "the range begins at {:.3f} s, but the recording ends at {:.3f} s",
                Seconds(options.since_ns), Seconds(end_ns));
  }
  Profile profile;
  profile.recording = &recording;
  profile.since_ns = std::max<int64_t>(options.since_ns, 0);
  profile.until_ns = std::min(options.until_ns.value_or(end_ns), end_ns);
  profile.is_whole = !options.IsPart() && !options.thread;
  profile.has_cpu_time = HasCpuTime(recording.metadata()) && !is_part_of_timeline;
  if (is_part_of_timeline) profile.part = part;
  profile.threads = folder.TakeThreads();
  const int64_t range_ns = profile.until_ns - profile.since_ns;
  if (!has_calls) {
    analyze::MarkIdle(profile.threads, static_cast<uint64_t>(std::max<int64_t>(0, range_ns)));
  }
  if (!options.include_idle) HideIdle(profile);
  for (const ThreadProfile& thread : profile.threads) {
    profile.total += thread.total;
    profile.unseen += thread.unseen;
  }
  const bool with_streams = options.work == Work::kBoth && !options.IsPart();
  if (with_streams && recording.gpu() != nullptr) analyze::AddStreams(options.thread, profile);
  return profile;
}

}  // namespace pystrobe
