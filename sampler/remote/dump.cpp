// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/dump.h"

#include <algorithm>
#include <tuple>

#include "sampler/remote/code_cache.h"
#include "sampler/remote/pauser.h"
#include "sampler/remote/permission.h"
#include "sampler/remote/promptness.h"
#include "sampler/remote/sleepers.h"
#include "sampler/remote/thread_table.h"
#include "sampler/remote/tick_sampler.h"

namespace pystrobe::remote {
namespace {

// Each round copies a handful of threads; a thread that could not be proved gets this many more.
constexpr uint64_t kRoundsPerThread = 2;
constexpr uint64_t kLeastRounds = 16;

const std::vector<pyabi::Local>* LocalsOf(const SampledThread& thread, Address frame) {
  const auto& all = thread.locals();
  auto found = std::find_if(all.begin(), all.end(),
                            [frame](const FrameLocals& locals) { return locals.frame == frame; });
  return found == all.end() ? nullptr : &found->values;
}

std::vector<DumpFrame> FramesOf(const RunContext& context, const SampledThread& thread) {
  const Tables& tables = context.tables;
  std::vector<FrameId> ids = tables.FramesOf(thread.stack());
  std::vector<DumpFrame> frames;
  // What stands for callers that were not reached is no frame of the target.
  const size_t base = ids.size() - std::min(ids.size(), thread.frames().size());
  for (size_t i = ids.size(); i-- > base;) {
    const Frame& frame = tables.frame(ids[i]);
    const Function& function = tables.function(frame.function);
    DumpFrame& out = frames.emplace_back();
    out.function = tables.text(function.name);
    out.file = tables.text(function.file);
    out.line = frame.line;
    const Address raw = thread.frames()[frames.size() - 1].frame;
    if (const auto* locals = LocalsOf(thread, raw)) out.locals = *locals;
  }
  return frames;
}

DumpThread Describe(const RunContext& context, const SampledThread& thread) {
  const Thread& named = context.tables.thread(thread.index());
  DumpThread out;
  out.tid = thread.id().tid;
  out.name = context.tables.text(named.name);
  out.interpreter = thread.id().interpreter_id;
  out.holds_gil = (thread.standing_flags() & kSampleGil) != 0;
  if (auto stat = ReadTaskStat(context.target.pid(), out.tid)) out.state = stat->state;
  out.proved = thread.has_stack() && (thread.standing_flags() & kSampleMarked) == 0;
  out.complete = thread.has_stack() && (thread.standing_flags() & kSampleIncomplete) == 0;
  out.frames = FramesOf(context, thread);
  return out;
}

bool Sound(const SampledThread& thread) {
  constexpr uint8_t kUnsound = kSampleMarked | kSampleIncomplete;
  return thread.has_stack() && (thread.standing_flags() & kUnsound) == 0;
}

bool AllTaken(const ThreadTable& threads, bool proved) {
  return std::all_of(threads.threads().begin(), threads.threads().end(), [&](const auto& thread) {
    return thread->gone() || (proved ? Sound(*thread) : thread->has_stack());
  });
}

}  // namespace

Result<Dump> TakeDump(pid_t pid, const DumpOptions& options) {
  if (options.pause == PauseMode::kPtrace) {
    if (auto free = CheckFreeToTrace(pid); !free) return std::unexpected(free.error());
  }
  auto target = Target::Open(pid);
  if (!target) return std::unexpected(target.error());

  ScopedPromptness prompt;
  Tables tables;
  Quality quality;
  std::vector<Sample> samples;  // not asked for here
  CodeCache codes(*target, tables, quality);
  RunContext context{*target, tables, codes, MonotonicNow(), samples, options.locals};
  ThreadTable threads(context);
  Pauser pauser(options.pause);
  TickSampler ticks(context, threads, pauser);

  const Nanoseconds start = MonotonicNow();
  Tick tick{.number = 1, .time = start, .previous = start};
  if (auto listed = threads.Refresh(tick); !listed) return std::unexpected(listed.error());
  Sleepers(context, threads).Take(tick);
  Dump dump;
  const uint64_t rounds = kLeastRounds + kRoundsPerThread * threads.threads().size();
  const bool proved = options.pause != PauseMode::kNone;
  while (tick.number < rounds && !AllTaken(threads, proved)) {
    ticks.Start(tick);
    TickOutcome outcome = ticks.Finish();
    dump.held_ns += outcome.held.count();
    if (auto possible = pauser.Check(); !possible) return std::unexpected(possible.error());
    tick = {.number = tick.number + 1, .time = MonotonicNow(), .previous = outcome.time};
    if (!outcome.taken && !target->StillThere()) {
      return Fail(ErrorCode::kExited, "process {} ended while its stacks were read", pid);
    }
    if (outcome.stale_threads) {
      if (auto listed = threads.Refresh(tick); !listed) return std::unexpected(listed.error());
    }
  }
  for (const auto& thread : threads.threads()) {
    dump.threads.push_back(Describe(context, *thread));
  }
  std::sort(dump.threads.begin(), dump.threads.end(), [pid](const auto& a, const auto& b) {
    return std::tuple(a.tid != pid, a.tid) < std::tuple(b.tid != pid, b.tid);
  });
  dump.target = target->info();
  return dump;
}

}  // namespace pystrobe::remote
