// SPDX-License-Identifier: Apache-2.0
#include "profiler/analyze/gpu_streams.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "profiler/analyze/kernel_labels.h"
#include "profiler/analyze/stack_sums.h"

namespace pystrobe::analyze {
namespace {

/// Device and stream.
using StreamKey = std::pair<uint32_t, uint32_t>;
using Stacks = std::map<StackId, Weights>;

/// The sum's stack with the kernel on top of it.
StackId PushKernel(const GpuSum& sum, StringId name, StringId file, Tables& tables) {
  const FunctionId function =
      tables.Intern(Function{.name = name, .file = file, .is_native = true});
  return tables.Push(sum.stack, tables.Intern(Frame{function}));
}

/// By number of the kernel; `recorded`: what the record's ids are of, and `tables` begin with.
std::vector<StringId> KernelNames(const GpuRecord& record, const Tables& recorded, Tables& tables) {
  const KernelLabels labels(record, recorded);
  std::map<StringId, StringId> told;
  std::vector<StringId> names;
  for (const GpuKernel& kernel : record.kernels) {
    names.push_back(kernel.short_name);
    if (!labels.IsTold(kernel.name)) continue;
    const auto [label, is_new] = told.try_emplace(kernel.name);
    if (is_new) label->second = tables.Intern(labels.Of(kernel.name, kernel.short_name));
    names.back() = label->second;
  }
  return names;
}

ThreadProfile ToThread(const Stacks& stacks, ThreadIndex thread) {
  ThreadProfile profile{.thread = thread, .total = {}, .unseen = {}, .stacks = {}};
  for (const auto& [stack, self] : stacks) {
    if (IsZero(self)) continue;
    profile.stacks.push_back({stack, self});
    profile.total += self;
  }
  return profile;
}

ThreadProfile ByLauncher(const Tables& tables, const ThreadProfile& stream) {
  Stacks stacks;
  for (const StackWeight& entry : stream.stacks) {
    stacks[tables.stack(entry.stack).parent] += entry.self;
  }
  return ToThread(stacks, stream.thread);
}

std::string ListStreams(const GpuRecord& record) {
  constexpr size_t kMost = 20;
  std::set<std::string> names;
  for (const GpuSum& sum : record.sums) names.insert(StreamName(sum));
  if (names.empty()) return "none";
  const size_t left = names.size() - std::min(names.size(), kMost);
  while (names.size() > kMost) names.erase(std::prev(names.end()));
  return fmt::format("{}{}", fmt::join(names, "; "),
                     left == 0 ? "" : fmt::format("; and {} more", left));
}

}  // namespace

Result<void> RequireGpu(const RecordingSource& recording, bool of_part) {
  if (recording.gpu() == nullptr) {
    if (const std::string& why = recording.metadata().gpu_failure; !why.empty()) {
      return FailWithHint(ErrorCode::kInvalidArgument, "Record it again where there is a GPU.",
                          "the recording does not tell what a GPU did: {}", why);
    }
    const bool is_cut_off = !recording.quality().complete;
    return FailWithHint(
        ErrorCode::kInvalidArgument,
        is_cut_off
            ? "It was cut off; by pystrobe run --gpu or Profiler(gpu=True) what a GPU did is there "
              "from two seconds on."
            : "Record it again where there is a GPU, by pystrobe run --gpu or Profiler(gpu=True): "
              "they warn where they find none.",
        "the recording does not tell what a GPU did");
  }
  if (!of_part) return {};
  return FailWithHint(ErrorCode::kInvalidArgument, "Leave --mode gpu out, or --since and --until.",
                      "a part of the time has no work of a GPU: when it ran is not kept");
}

std::string StreamName(const GpuSum& sum) {
  if (sum.stream == GpuSum::kNoStream) return fmt::format("GPU {}", sum.device);
  return fmt::format("GPU {} stream {}", sum.device, sum.stream);
}

bool IsMeant(const GpuSum& sum, const std::optional<std::string>& filter) {
  return !filter || StreamName(sum).find(*filter) != std::string::npos;
}

void AddStreams(const std::optional<std::string>& filter, Profile& profile) {
  const GpuRecord& record = *profile.recording->gpu();
  Tables tables = profile.recording->tables().Copy();
  const StringId file = tables.Intern(kGpuFile);
  const std::vector<StringId> names = KernelNames(record, profile.recording->tables(), tables);
  std::map<StreamKey, Stacks> streams;
  std::map<StreamKey, ThreadIndex> indexes;
  for (const GpuSum& sum : record.sums) {
    if (!IsMeant(sum, filter)) continue;
    const StreamKey key{sum.device, sum.stream};
    if (!indexes.contains(key)) {
      indexes[key] = tables.AddThread({.name = tables.Intern(StreamName(sum))});
    }
    streams[key][PushKernel(sum, names[sum.kernel], file, tables)] +=
        {.gpu_ns = sum.total_ns, .gpu_count = sum.count + sum.untimed};
  }
  std::vector<ThreadProfile> threads;
  for (const auto& [key, stacks] : streams) {
    ThreadProfile thread = ToThread(stacks, indexes[key]);
    if (!thread.stacks.empty()) threads.push_back(std::move(thread));
  }
  std::ranges::stable_sort(threads, std::ranges::greater{},
                           [](const ThreadProfile& thread) { return thread.total.gpu_ns; });
  for (ThreadProfile& thread : threads) {
    profile.total += thread.total;
    profile.threads.push_back(std::move(thread));
  }
  profile.until_ns = std::max(profile.until_ns, record.quality.duration_ns);
  profile.with_streams = std::make_shared<const Tables>(std::move(tables));
}

Result<Profile> FoldGpu(const RecordingSource& recording, const FoldOptions& options) {
  if (auto there = RequireGpu(recording, options.IsPart()); !there) {
    return std::unexpected(there.error());
  }
  const GpuRecord& record = *recording.gpu();
  const auto is_meant = [&](const GpuSum& sum) { return IsMeant(sum, options.thread); };
  if (options.thread && std::ranges::none_of(record.sums, is_meant)) {
    return FailWithHint(ErrorCode::kInvalidArgument, "Give a part of a stream's name.",
                        "no stream of a GPU matches '{}'; the recording has: {}", *options.thread,
                        ListStreams(record));
  }
  Profile profile;
  profile.recording = &recording;
  profile.until_ns = recording.quality().duration_ns;
  profile.is_whole = !options.thread;
  profile.has_cpu_time = HasCpuTime(recording.metadata());
  AddStreams(options.thread, profile);
  return profile;
}

}  // namespace pystrobe::analyze

namespace pystrobe {

Profile ByLauncher(const Profile& profile) {
  Profile by_launcher = profile;
  for (ThreadProfile& stream : by_launcher.threads) {
    stream = analyze::ByLauncher(profile.tables(), stream);
  }
  return by_launcher;
}

}  // namespace pystrobe
