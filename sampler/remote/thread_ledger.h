// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of sampling: from what looks at one thread found, and what the kernel charged it,
// to the samples that account for its time. No clock is read here and nothing is copied: the same
// findings always make the same samples. [one thread: the pacer]
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "profiler/base/clock.h"
#include "profiler/base/function_ref.h"
#include "profiler/model/sample.h"
#include "sampler/remote/task_clock.h"
#include "sampler/remote/tick.h"

namespace pystrobe::remote {

/// What the kernel charged one of its threads, as far as samples account for it. Each nanosecond is
/// given out once, whoever asks.
class KernelAccount {
 public:
  struct Charge {
    uint64_t cpu_ns = 0, run_delay_ns = 0, switches = 0;
  };

  /// All that `stat` says is accounted for.
  explicit KernelAccount(const SchedStat& stat) : accounted_(stat) {}
  /// Of a thread that is new: `unwatched` ago it was not there, or had not been noticed. CPU time
  /// that it can have used since then it has, and none is accounted for.
  static KernelAccount OfNewThread(const SchedStat& stat, Nanoseconds unwatched);

  /// What was charged until `stat` and is not accounted for yet; now it is. Nothing where `stat` is
  /// older than what another look brought.
  Charge Settle(const SchedStat& stat);
  /// Leaves out what was charged until now.
  void SkipTo(const SchedStat& stat) { accounted_ = stat; }

 private:
  SchedStat accounted_;
};

/// Of SampleFlag, what stays true of a thread for as long as it does not run.
inline constexpr uint8_t kStandingFlags = kSampleMarked | kSampleIncomplete | kSampleGil;

/// A point on the sampling clock. `tick` is the last one up to it.
struct Moment {
  uint64_t tick = 0;
  Nanoseconds time{};

  static Moment At(const Tick& tick) { return {tick.number, tick.time}; }
  static Moment Before(const Tick& tick) { return {tick.number - 1, tick.previous}; }
};

/// The samples of one thread, end to end: each begins where the one before ended, so their lengths
/// add up to the time from the first moment to end(), and their counts to the ticks between. An
/// entry that would have no length has a nanosecond.
class Timeline {
 public:
  /// Sample::time_ns counts from `start`. `samples` outlives this.
  Timeline(ThreadIndex thread, Nanoseconds start, std::vector<Sample>& samples)
      : thread_(thread), start_(start), samples_(&samples) {}

  /// The next sample begins here.
  void SetEnd(const Moment& end) { end_ = end; }
  void SetStart(Nanoseconds start) { start_ = start; }
  const Moment& end() const { return end_; }
  /// Time from end() to `time`; 0 where that is past.
  uint64_t RoomUntil(Nanoseconds time) const;

  /// Appends the sample that ends at `end`.
  void Add(const Moment& end, uint64_t cpu_ns, StackId stack, uint8_t flags);

 private:
  ThreadIndex thread_;
  Nanoseconds start_;
  std::vector<Sample>* samples_;
  Moment end_;
};

/// When a thread was seen last, and when it was first found gone.
class Lifetime {
 public:
  void See(const Moment& moment) { alive_ = moment; }
  void Miss(const Moment& moment);
  bool gone() const { return missed_.has_value(); }
  /// Until when it lived, for all that is known. A thread that is gone ended at any time between
  /// two looks: half-way is right on the average.
  Moment End() const;
  const Moment& last_seen() const { return alive_; }

 private:
  Moment alive_;
  std::optional<Moment> missed_;
};

/// What a look at a thread found.
struct Finding {
  Tick tick;
  TaskLook task;
  StackId stack = kEmptyStack;
  uint8_t flags = 0;  ///< of SampleFlag: kSampleGil, kSampleMarked, kSampleIncomplete;
                      ///< kSampleKernel where the thread was in the kernel, if it was running
};

/// The account of one thread's time. Ticks come in rising order; not every tick needs to look at
/// every thread.
///
/// Looks come at random, so a stack that has the whole interval before each look that finds it has
/// its true time on the average, however short its visits. That is why the charges of the kernel
/// move no boundary between two stacks: they tell when a thread woke to the nanosecond, but then
/// what it does first would lose what came before it and get nothing of what follows.
///
/// Where wall time goes: a look's stack has the time since the tick before. Ticks before that,
/// which looked in vain, at others or had no need to, the stack seen before has: as idle time as
/// far as the thread is not known to have run or waited for a CPU, then as waiting; but for the CPU
/// time charged, which lies before the look. (A thread that had the lock then and has rested since
/// has them in a stack without it.) A thread that did not run yields nothing until it does, or
/// until Flush: then one run-length entry. Time that a look is too far from to stand for it
/// (Tick::longest) is kSampleUnseen, unless the thread is known not to have run.
///
/// Where CPU time goes: to stacks that are seen running, to each as much as its look stands for.
/// Looks find a thread running as often as it runs, but not exactly so often within a few
/// intervals: what is left waits for the next ones, which have a part of what has come to more than
/// many of them could take. A look at a thread that waits for a CPU gets nothing, and one that
/// cannot tell (TaskLook::on_cpu) what those that can are not likely to need. Finish gives the last
/// of these looks what is due to them and was kept, and spreads the rest over the last stacks seen
/// running, or as good as seen: a look that could not tell counts as far as such looks had CPU time
/// left to them.
///
/// What holds of the samples, whatever is found:
/// - they are a Timeline from the thread's birth, or BeginAt, to its end as Lifetime has it;
/// - their CPU time is what the account gave out: once Finish was called nothing is left over;
/// - those with the lock (kSampleGil) lie where a look, or the kernel, says that the thread had it:
///   threads that share a lock never have it at once;
/// - those with CPU time are the ones with kSampleOnCpu; run-length entries (kSampleIdle) have
///   none.
class ThreadLedger {
 public:
  /// Of a thread found at `now`; it may have been born at any time since the tick before. `stat`:
  /// of it, then; nullopt: it is gone already.
  ThreadLedger(const Timeline& timeline, const Tick& now, const std::optional<SchedStat>& stat,
               const KernelAccount& account);

  /// The recording begins now: what was before is not counted, and samples yielded before are void.
  void BeginAt(Nanoseconds now, const std::optional<SchedStat>& stat);

  /// The thread lives.
  void SeeAlive(const Tick& now) { life_.See(Moment::At(now)); }
  /// With an exact clock: true when `stat`, which the kernel says at `now`, tells that the thread
  /// did not run since the last look, which found it off CPU: its stack is what it was. SeeAlive in
  /// any case.
  bool SeeStill(const Tick& now, const SchedStat& stat);
  /// A look: yields the samples that end at its tick.
  void Take(Finding found);
  /// The thread was found gone.
  void Miss(const Tick& now) { life_.Miss(Moment::At(now)); }
  /// Yields what is pending as a run-length entry, as far as the thread is known not to have run,
  /// or to have lived without a look. Of a thread seen running nothing is: the next look tells.
  void Flush();
  /// The last call of all, at `tick`: yields all that is left, also the CPU time that no stack was
  /// seen for. `lives`: the thread is there still.
  void Finish(const Tick& tick, bool lives);

  /// Has each stack that is in no sample yet be what `now` says of it.
  void Replace(FunctionRef<StackId(StackId)> now);

  bool gone() const { return life_.gone(); }
  /// True when the last look found the thread off CPU.
  bool off_cpu() const { return off_cpu_; }
  /// True when a look after `time` found that it had run since the one before.
  bool RanSince(Nanoseconds time) const { return ran_ > time; }
  /// What the kernel charged between the look before the last and the last one.
  const KernelAccount::Charge& last_charge() const { return last_charge_; }
  /// Time it waited for a CPU, in all.
  uint64_t total_run_delay() const { return total_run_delay_; }

 private:
  /// How far a look says that its stack used CPU time.
  enum class Claim : uint8_t { kNone, kDoubtful, kSure };
  struct Run {
    StackId stack = kEmptyStack;
    bool in_kernel = false;
    uint64_t room = 0;  // what its look stood for
  };
  /// Looks with a claim, of one kind.
  struct Runs {
    std::vector<Run> last;  // a ring
    size_t next = 0;
    uint64_t room_ns = 0;   // what they stood for, in all
    uint64_t given_ns = 0;  // the CPU time they had, in all

    void Add(const Run& run, uint64_t cpu_ns);
  };
  /// A stack's part of the CPU time that is left at the end.
  struct Part {
    StackId stack = kEmptyStack;
    bool in_kernel = false;
    double weight = 0;
  };
  static constexpr size_t kMostRuns = 32;

  void Settle(const SchedStat& stat);
  /// True when, before a look at `time`, the thread has slept since the last one or waits for a
  /// CPU: its last charge does not cover the time.
  bool HasRested(Nanoseconds time) const;
  Claim ClaimOf(const Finding& found, bool awake, bool ran, bool has_rested) const;
  /// Yields the ticks without a look before this one.
  void AddUnlooked(const Finding& found, bool ran, bool has_rested);
  /// Yields the time before tick.from as unseen, with the CPU time that cannot be later.
  void AddGap(const Tick& tick, bool awake);
  /// The CPU time that goes to the stack of this look, the first one or not.
  uint64_t TakeCpu(const Finding& found, Claim claim, bool first);
  /// Yields the CPU time that is left.
  void SpreadRest();
  void Spread(uint64_t cpu_ns, std::vector<Part> parts);
  /// How often looks that could not tell found the thread running after all: they have what the
  /// others left of all CPU time. 0 to 1.
  double DoubtfulWeight() const;
  /// What looks that could not tell have not had of that.
  uint64_t DueToDoubtful() const;
  static void AddParts(const Runs& runs, double weight, std::vector<Part>& parts);
  void AddIdle(const Moment& end);
  void AddWait(const Moment& end);
  void AddRun(const Finding& found, uint64_t cpu_ns);
  void Add(const Moment& end, uint64_t cpu_ns, uint8_t flags);

  Timeline timeline_;
  Lifetime life_;
  KernelAccount account_;
  KernelAccount::Charge last_charge_;
  uint64_t total_run_delay_ = 0;

  // As of the last look.
  SchedStat last_;
  Nanoseconds last_time_{};
  Nanoseconds ran_{};  // the last look that found that it had run
  bool has_stack_ = false;
  bool off_cpu_ = false;  // not on a CPU, and sure to be found so as long as it is not put on one
  Moment still_;          // off CPU, it is known not to have run until then
  StackId stack_ = kEmptyStack;
  StackId unlocked_stack_ = kEmptyStack;  // the last one seen without the lock
  uint8_t standing_flags_ = 0;

  uint64_t unseen_cpu_ns_ = 0;  // charged, and in no sample yet
  uint64_t looked_cpu_ns_ = 0;  // charged, and not left to a gap
  Runs sure_, doubtful_;
};

}  // namespace pystrobe::remote
