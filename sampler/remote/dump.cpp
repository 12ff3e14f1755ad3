// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/dump.h"

#include <algorithm>
#include <tuple>

#include "sampler/remote/code_cache.h"
#include "sampler/remote/native_dump.h"
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
// From then on a stack that was copied is good enough: of those of a million frames, which are not
// whole in any copy, each round is hundreds of megabytes.
constexpr Nanoseconds kLongestForProof = std::chrono::seconds(2);

// Who had a lock each time when another thread was looked at has mostly kept it for a moment.
constexpr int kMostLooksForHolder = 20;

const std::vector<pyabi::Local>* LocalsOf(const SampledThread& thread, Address frame) {
  const auto& all = thread.locals();
  auto found = std::find_if(all.begin(), all.end(),
                            [frame](const FrameLocals& locals) { return locals.frame == frame; });
  return found == all.end() ? nullptr : &found->values;
}

// `thread`: null where it runs no Python.
DumpFrame FrameOf(const Tables& tables, const SampledThread* thread, FrameId id, Address raw) {
  const Frame& frame = tables.frame(id);
  const Function& function = tables.function(frame.function);
  DumpFrame out{.function = tables.text(function.name),
                .file = tables.text(function.file),
                .line = frame.line,
                .is_native = function.is_native,
                .locals = {}};
  if (const auto* locals = thread == nullptr ? nullptr : LocalsOf(*thread, raw)) {
    out.locals = *locals;
  }
  return out;
}

std::vector<DumpFrame> FramesOf(const RunContext& context, const SampledThread& thread) {
  std::vector<FrameId> ids = context.tables.FramesOf(thread.stack());
  const std::vector<pyabi::RawFrame> shown = thread.ShownFrames();
  std::vector<DumpFrame> frames;
  // What stands for callers that were not reached is no frame of the target.
  const size_t base = ids.size() - std::min(ids.size(), shown.size());
  for (size_t i = ids.size(); i-- > base;) {
    frames.push_back(FrameOf(context.tables, &thread, ids[i], shown[frames.size()].frame));
  }
  return frames;
}

std::vector<DumpFrame> FramesOf(const Tables& tables, const SampledThread* thread,
                                const NativeDump::Look& look) {
  std::vector<DumpFrame> frames;
  for (const NativeDump::Entry& entry : look.frames) {
    frames.push_back(FrameOf(tables, thread, entry.frame, entry.raw));
  }
  return frames;
}

char StateOf(const RunContext& context, pid_t tid) {
  const auto stat = ReadTaskStat(context.target.pid(), tid);
  return stat ? stat->state : '?';
}

DumpThread Describe(const RunContext& context, const SampledThread& thread, char state) {
  const Thread& named = context.tables.thread(thread.index());
  DumpThread out;
  out.tid = thread.id().tid;
  out.name = context.tables.text(named.name);
  out.interpreter = thread.id().interpreter_id;
  out.holds_gil = (thread.standing_flags() & kSampleGil) != 0;
  out.state = state;
  out.proved = thread.has_stack() && (thread.standing_flags() & kSampleMarked) == 0;
  out.complete = thread.has_stack() && (thread.standing_flags() & kSampleIncomplete) == 0;
  return out;
}

DumpThread DescribeWithoutPython(const RunContext& context, pid_t tid, char state,
                                 const NativeDump::Look& look) {
  DumpThread out;
  out.tid = tid;
  out.state = state;
  out.has_python = false;
  if (auto stat = ReadTaskStat(context.target.pid(), tid)) out.name = stat->name;
  out.proved = look.stopped;
  out.complete = out.native_whole = look.is_whole;
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

/// The first look at what there is.
struct Beginning {
  explicit Beginning(const Target& target, bool locals)
      : codes(target, tables, quality),
        context{target, tables, codes, MonotonicNow(), samples, locals},
        threads(context) {}

  Tables tables;
  Quality quality;
  std::vector<Sample> samples;  // not asked for here
  CodeCache codes;
  RunContext context;
  ThreadTable threads;
  Tick tick{.number = 1, .time = context.start, .previous = context.start};
};

std::unexpected<Error> FailEnded(const Beginning& all) {
  return Fail(ErrorCode::kExited, "process {} ended while its stacks were read",
              all.context.target.pid());
}

Result<void> LookAtPython(Beginning& all, const DumpOptions& options, Dump& dump) {
  Pauser pauser(options.pause);
  TickSampler ticks(all.context, all.threads, pauser);
  Tick tick = all.tick;
  Sleepers(all.context, all.threads).Take(tick);
  const uint64_t rounds = kLeastRounds + kRoundsPerThread * all.threads.threads().size();
  const auto must_be_proved = [&] {
    return options.pause != PauseMode::kNone && tick.time - all.tick.time < kLongestForProof;
  };
  while (tick.number < rounds && !AllTaken(all.threads, must_be_proved())) {
    ticks.Start(tick);
    TickOutcome outcome = ticks.Finish();
    dump.held_ns += outcome.held.count();
    if (auto possible = pauser.Check(); !possible) return possible;
    tick = {.number = tick.number + 1, .time = MonotonicNow(), .previous = outcome.time};
    if (!outcome.taken && !all.context.target.StillThere()) {
      return FailEnded(all);
    }
    if (outcome.stale_threads) {
      if (auto listed = all.threads.Refresh(tick); !listed) return listed;
    }
  }
  for (const auto& thread : all.threads.threads()) {
    dump.threads.push_back(Describe(all.context, *thread, StateOf(all.context, thread->id().tid)));
    dump.threads.back().frames = FramesOf(all.context, *thread);
  }
  return {};
}

/// Looks at the threads of one lock. The lock changes hands between these looks.
class DomainDump {
 public:
  DomainDump(Beginning& all, NativeDump& native, LockDomain& domain)
      : all_(all), native_(native), domain_(domain), threads_(domain.threads.size()) {}

  /// One has the lock at most: who was seen with it last, when its own stack was copied.
  std::vector<DumpThread> Take() {
    for (size_t i = 0; i < threads_.size(); ++i) LookAt(i);
    for (int looks = 0; looks < kMostLooksForHolder && !has_holder_; ++looks) {
      const auto place = std::ranges::find(domain_.threads, domain_.Find(seen_with_lock_));
      if (place == domain_.threads.end()) break;
      all_.tick = {all_.tick.number + 1, MonotonicNow(), all_.tick.time};
      LookAt(static_cast<size_t>(place - domain_.threads.begin()));
    }
    return std::move(threads_);
  }

 private:
  void LookAt(size_t place) {
    SampledThread& thread = *domain_.threads[place];
    // As it is before the stop, from which it comes back awake.
    const char state = StateOf(all_.context, thread.id().tid);
    const NativeDump::Look look = native_.LookAt(thread, domain_, all_.tick);
    DumpThread out = Describe(all_.context, thread, state);
    out.native_whole = look.is_whole;
    out.frames = FramesOf(all_.context.tables, &thread, look);
    seen_with_lock_ = look.lock_holder;
    if (out.holds_gil && !domain_.free_threaded()) {
      for (DumpThread& other : threads_) other.holds_gil = false;
      has_holder_ = true;
    }
    threads_[place] = std::move(out);
  }

  Beginning& all_;
  NativeDump& native_;
  LockDomain& domain_;
  std::vector<DumpThread> threads_;  // as domain_ has them
  bool has_holder_ = false;
  Address seen_with_lock_ = 0;  // in the last look
};

Result<void> LookAtAll(Beginning& all, Dump& dump) {
  RunContext& context = all.context;
  auto native = NativeDump::Begin(context);
  if (!native) return std::unexpected(native.error());
  const auto tasks = ListTasks(context.target.pid());
  if (!tasks) return std::unexpected(tasks.error());
  std::vector<pid_t> without_python = *tasks;
  for (const auto& domain : all.threads.domains()) {
    for (DumpThread& thread : DomainDump(all, **native, *domain).Take()) {
      std::erase(without_python, thread.tid);
      dump.threads.push_back(std::move(thread));
    }
  }
  for (const pid_t tid : without_python) {
    const char state = StateOf(context, tid);
    const NativeDump::Look look = (*native)->LookAt(tid);
    if (!look.stopped) continue;
    dump.threads.push_back(DescribeWithoutPython(context, tid, state, look));
    dump.threads.back().frames = FramesOf(context.tables, nullptr, look);
  }
  if (!context.target.StillThere()) return FailEnded(all);
  dump.held_ns += (*native)->held().count();
  return {};
}

}  // namespace

Result<Dump> TakeDump(pid_t pid, const DumpOptions& options) {
  if (options.native || options.pause == PauseMode::kPtrace) {
    if (auto free = CheckFreeToTrace(pid); !free) return std::unexpected(free.error());
  }
  auto target = Target::Open(pid);
  if (!target) return std::unexpected(target.error());

  ScopedPromptness prompt;
  Beginning all(*target, options.locals);
  if (auto listed = all.threads.Refresh(all.tick); !listed) return std::unexpected(listed.error());
  Dump dump;
  const Result<void> taken =
      options.native ? LookAtAll(all, dump) : LookAtPython(all, options, dump);
  if (!taken) return std::unexpected(taken.error());
  std::sort(dump.threads.begin(), dump.threads.end(), [pid](const auto& a, const auto& b) {
    return std::tuple(a.tid != pid, a.tid) < std::tuple(b.tid != pid, b.tid);
  });
  dump.target = target->info();
  return dump;
}

}  // namespace pystrobe::remote
