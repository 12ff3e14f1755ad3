// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <limits>

#include "profiler/analyze/profile.h"
#include "profiler/analyze/stack_sums.h"
#include "profiler/base/hash.h"

namespace pystrobe {
namespace {

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
constexpr size_t kThreadsListedInMessages = 20;

void AddSample(Weights& weights, const Sample& sample) {
  weights.samples += sample.count;
  weights.wall_ns += sample.wall_ns;
  weights.cpu_ns += sample.cpu_ns;
  if (sample.flags & kSampleOnCpu) weights.cpu_samples += sample.count;
  if (sample.flags & kSampleGil) {
    weights.gil_samples += sample.count;
    weights.gil_ns += sample.wall_ns;
  }
}

double Seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

/// The folding itself: one entry for each distinct (thread, stack).
class Folder {
 public:
  Folder(std::vector<bool> kept_threads, const FoldOptions& options)
      : kept_(std::move(kept_threads)),
        since_(options.since_ns > 0 ? options.since_ns : std::numeric_limits<int64_t>::min()),
        until_(options.until_ns.value_or(std::numeric_limits<int64_t>::max())),
        last_entry_(kept_.size(), kNone) {}

  void Add(const Sample& sample) {
    end_ns_ = std::max(end_ns_, sample.time_ns);
    const uint32_t thread = ToIndex(sample.thread);
    if (thread >= kept_.size() || !kept_[thread]) return;
    if (sample.time_ns <= since_ || sample.time_ns > until_) return;
    AddSample(EntryOf(thread, sample.stack).weights, sample);
  }

  /// End of the last sample, whether it was kept or not.
  int64_t end_ns() const { return end_ns_; }

  std::vector<ThreadProfile> TakeThreads();

 private:
  struct Entry {
    uint32_t thread;
    StackId stack;
    Weights weights;
  };

  Entry& EntryOf(uint32_t thread, StackId stack) {
    // A thread's successive samples mostly show the same stack.
    uint32_t& last = last_entry_[thread];
    if (last != kNone && entries_[last].stack == stack) return entries_[last];
    const uint64_t key = uint64_t{thread} << 32 | ToIndex(stack);
    const auto [it, added] = index_.try_emplace(key, static_cast<uint32_t>(entries_.size()));
    if (added) entries_.push_back({thread, stack, {}});
    last = it->second;
    return entries_[last];
  }

  std::vector<bool> kept_;
  int64_t since_;
  int64_t until_;
  int64_t end_ns_ = 0;
  std::vector<uint32_t> last_entry_;
  std::vector<Entry> entries_;
  HashMap<uint64_t, uint32_t, PairHash> index_;  // thread << 32 | stack
};

std::vector<ThreadProfile> Folder::TakeThreads() {
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.thread, a.stack) < std::pair(b.thread, b.stack);
  });
  std::vector<ThreadProfile> threads;
  for (const Entry& entry : entries_) {
    if (analyze::IsZero(entry.weights)) continue;
    if (threads.empty() || ToIndex(threads.back().thread) != entry.thread) {
      threads.push_back({ThreadIndex{entry.thread}, {}, {}});
    }
    threads.back().total += entry.weights;
    threads.back().stacks.push_back({entry.stack, entry.weights});
  }
  std::stable_sort(threads.begin(), threads.end(),
                   [](const ThreadProfile& a, const ThreadProfile& b) {
                     return a.total.cpu_ns > b.total.cpu_ns;
                   });
  return threads;
}

std::optional<uint64_t> ParseNumber(std::string_view text) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

std::string ListThreads(const Tables& tables) {
  std::string list;
  const size_t shown = std::min(tables.thread_count(), kThreadsListedInMessages);
  for (uint32_t i = 0; i < shown; ++i) {
    const Thread& thread = tables.thread(ThreadIndex{i});
    const std::string& name = tables.text(thread.name);
    if (i > 0) list += ", ";
    list += name.empty() ? fmt::format("{}", thread.tid) : fmt::format("{} ({})", name, thread.tid);
  }
  if (shown < tables.thread_count()) {
    list += fmt::format(" and {} more", tables.thread_count() - shown);
  }
  return list.empty() ? "none" : list;
}

Result<std::vector<bool>> KeptThreads(const Tables& tables,
                                      const std::optional<std::string>& filter) {
  if (!filter) return std::vector<bool>(tables.thread_count(), true);
  const std::optional<uint64_t> tid = ParseNumber(*filter);
  std::vector<bool> kept(tables.thread_count(), false);
  bool any = false;
  for (uint32_t i = 0; i < kept.size(); ++i) {
    const Thread& thread = tables.thread(ThreadIndex{i});
    kept[i] = tid == thread.tid || tables.text(thread.name).find(*filter) != std::string::npos;
    any = any || kept[i];
  }
  if (!any) {
    return FailWithHint(
        ErrorCode::kInvalidArgument, "Give a part of a thread's name, or its thread id.",
        "no thread matches '{}'; the recording has: {}", *filter, ListThreads(tables));
  }
  return kept;
}

/// Leaves out the threads that hardly ran, unless that is all there are.
uint32_t HideIdle(std::vector<ThreadProfile>& threads) {
  const auto idle = [](const ThreadProfile& thread) { return IsIdle(thread.total); };
  if (std::all_of(threads.begin(), threads.end(), idle)) return 0;
  return static_cast<uint32_t>(std::erase_if(threads, idle));
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
  }
  return "";
}

std::optional<Mode> ModeByName(std::string_view name) {
  for (const Mode mode : {Mode::kWall, Mode::kCpu, Mode::kGil}) {
    if (ModeName(mode) == name) return mode;
  }
  return std::nullopt;
}

Weights& Weights::operator+=(const Weights& other) {
  samples += other.samples;
  cpu_samples += other.cpu_samples;
  gil_samples += other.gil_samples;
  wall_ns += other.wall_ns;
  cpu_ns += other.cpu_ns;
  gil_ns += other.gil_ns;
  return *this;
}

uint64_t Weights::nanoseconds(Mode mode) const {
  switch (mode) {
    case Mode::kWall:
      return wall_ns;
    case Mode::kCpu:
      return cpu_ns;
    case Mode::kGil:
      return gil_ns;
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
  }
  return 0;
}

bool IsIdle(const Weights& thread_total) {
  return thread_total.cpu_ns < thread_total.wall_ns / 100;
}

Result<Profile> Fold(const RecordingSource& recording, const FoldOptions& options) {
  if (options.until_ns && *options.until_ns <= options.since_ns) {
    return Fail(ErrorCode::kInvalidArgument, "the range from {:.3f} s until {:.3f} s is empty",
                Seconds(options.since_ns), Seconds(*options.until_ns));
  }
  auto kept = KeptThreads(recording.tables(), options.thread);
  if (!kept) return std::unexpected(kept.error());

  Folder folder(std::move(*kept), options);
  const auto read = recording.ForEachSample([&](const Sample& sample) { folder.Add(sample); });
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
  profile.threads = folder.TakeThreads();
  if (!options.include_idle) profile.idle_threads_hidden = HideIdle(profile.threads);
  for (const ThreadProfile& thread : profile.threads) profile.total += thread.total;
  return profile;
}

namespace analyze {

std::vector<Weights> SelfByStack(const Tables& tables, std::span<const ThreadProfile> threads) {
  std::vector<Weights> by_stack(tables.stack_count());
  for (const ThreadProfile& thread : threads) {
    for (const StackWeight& stack : thread.stacks) by_stack[ToIndex(stack.stack)] += stack.self;
  }
  return by_stack;
}

void AddChildrenToParents(const Tables& tables, std::vector<Weights>& by_stack) {
  for (uint32_t i = static_cast<uint32_t>(by_stack.size()); i-- > 1;) {
    by_stack[ToIndex(tables.stack(StackId{i}).parent)] += by_stack[i];
  }
}

}  // namespace analyze
}  // namespace pystrobe
