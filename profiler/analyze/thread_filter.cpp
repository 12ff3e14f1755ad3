// SPDX-License-Identifier: Apache-2.0
#include "profiler/analyze/thread_filter.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "profiler/base/ascii.h"

namespace pystrobe {
namespace {

constexpr size_t kThreadsListedInMessages = 20;

std::optional<uint64_t> ParseNumber(std::string_view text) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

/// "Thread-7 (work)" is one of "Thread-N (work)".
std::string WithoutNumbers(std::string_view name) {
  std::string text;
  bool in_number = false;
  for (const char c : name) {
    if (!IsDigit(c)) text += c;
    if (IsDigit(c) && !in_number) text += 'N';
    in_number = IsDigit(c);
  }
  return text;
}

/// Threads whose names differ in numbers only.
struct ThreadGroup {
  std::string text;
  std::string name;  // that all have, or what their names have in common
  uint64_t threads = 0;
  uint64_t cpu_ns = 0, wall_ns = 0;
};

std::vector<ThreadGroup> GroupThreads(const Tables& tables, const std::vector<Weights>& used) {
  std::vector<ThreadGroup> groups;
  std::map<std::string, size_t> places;
  for (uint32_t i = 0; i < tables.thread_count(); ++i) {
    const Thread& thread = tables.thread(ThreadIndex{i});
    if (!thread.is_real()) continue;
    const std::string& name = tables.text(thread.name);
    const std::string id = fmt::to_string(thread.tid);
    const std::string common = name.empty() ? id : WithoutNumbers(name);
    const auto [place, is_new] = places.try_emplace(common, groups.size());
    if (is_new) groups.push_back({name.empty() ? id : fmt::format("{} ({})", name, id), name});
    ThreadGroup& group = groups[place->second];
    if (name != group.name) group.name = common;
    if (++group.threads > 1) group.text = group.name;
    group.cpu_ns += used[i].cpu_ns;
    group.wall_ns += used[i].wall_ns;
  }
  std::stable_sort(groups.begin(), groups.end(), [](const ThreadGroup& a, const ThreadGroup& b) {
    return std::pair(a.cpu_ns, a.wall_ns) > std::pair(b.cpu_ns, b.wall_ns);
  });
  return groups;
}

/// `used` by thread: those that used most come first.
std::string ListThreads(const Tables& tables, const std::vector<Weights>& used) {
  std::string list;
  uint64_t left = 0;
  size_t shown = 0;
  for (const ThreadGroup& group : GroupThreads(tables, used)) {
    if (shown++ >= kThreadsListedInMessages) {
      left += group.threads;
      continue;
    }
    if (!list.empty()) list += "; ";
    list += group.text;
    if (group.threads > 1) list += fmt::format(", {} of them", group.threads);
  }
  if (left > 0) list += fmt::format("; and {} more", left);
  return list.empty() ? "none" : list;
}

bool IsMeant(const Tables& tables, const Thread& thread, const std::string& filter) {
  if (!thread.is_real()) return false;
  return ParseNumber(filter) == thread.tid ||
         tables.text(thread.name).find(filter) != std::string::npos;
}

}  // namespace

bool MeansAThread(const Tables& tables, const std::string& filter) {
  for (uint32_t i = 0; i < tables.thread_count(); ++i) {
    if (IsMeant(tables, tables.thread(ThreadIndex{i}), filter)) return true;
  }
  return false;
}

namespace analyze {

Result<std::vector<bool>> KeptThreads(const RecordingSource& recording,
                                      const std::optional<std::string>& filter) {
  const Tables& tables = recording.tables();
  if (!filter) return std::vector<bool>(tables.thread_count(), true);
  std::vector<bool> kept(tables.thread_count(), false);
  for (uint32_t i = 0; i < kept.size(); ++i) {
    kept[i] = IsMeant(tables, tables.thread(ThreadIndex{i}), *filter);
  }
  if (std::find(kept.begin(), kept.end(), true) != kept.end()) return kept;
  std::vector<Weights> used(tables.thread_count());
  const auto read = recording.ForEachSample([&](const Sample& sample) {
    if (ToIndex(sample.thread) >= used.size()) return;
    used[ToIndex(sample.thread)].cpu_ns += sample.cpu_ns;
    used[ToIndex(sample.thread)].wall_ns += sample.wall_ns;
  });
  if (!read) return std::unexpected(read.error());
  return FailWithHint(
      ErrorCode::kInvalidArgument, "Give a part of a thread's name, or its thread id.",
      "no thread matches '{}'; the recording has: {}", *filter, ListThreads(tables, used));
}

}  // namespace analyze
}  // namespace pystrobe
