// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/sampling_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "profiler/model/append_interval.h"
#include "sampler/remote/target_facts.h"

namespace pystrobe::remote {
namespace {

constexpr size_t kBatch = 16 * 1024;
// A look stands for the time since the one before; not for so much when none was made for long, as
// the sampler itself was stopped, or had no CPU.
constexpr Nanoseconds kLeastGap = std::chrono::milliseconds(100);
constexpr int kGapPeriods = 20;
// Of the process' CPU time, not charged to a thread that was sampled: less is not worth a row.
constexpr uint64_t kUnsampledShare = 100;
constexpr int kMostBeginnings = 3;
constexpr Nanoseconds kPromptBeginning = std::chrono::milliseconds(1);
// Who waits so long for a CPU looks when others let go of it, not at a time that it has chosen.
constexpr Nanoseconds kLateAfter = std::chrono::milliseconds(1);
// Looks are begun at most so long before their time: what they find is taken over after the last.
constexpr Nanoseconds kHorizon = std::chrono::milliseconds(20);

// What waits for its C functions at the end takes long where debug information is large or far.
// Less than what parts two Ctrl-C, so that the second finds what it may ask for.
constexpr Nanoseconds kProgressAtEnd = std::chrono::milliseconds(100);

}  // namespace

SamplingRun::SamplingRun(const Target& target, const SamplerOptions& options, RecordingSink& sink,
                         Quality& quality)
    : target_(target),
      options_(options),
      sink_(sink),
      quality_(quality),
      own_process_(target.pid() == getpid()),
      own_cpu_start_(own_process_ ? ThreadCpuNow() : ProcessCpuNow()),
      start_(MonotonicNow()),
      codes_(target, tables_, quality),
      context_{target, tables_, codes_, start_, samples_},
      threads_(context_),
      pauser_(options.native ? PauseMode::kPtrace : options.pause, own_process_),
      ticks_(context_, threads_, pauser_),
      upkeep_(context_, threads_),
      deadlines_(start_, options.rate_hz, static_cast<uint64_t>(start_.count())),
      governor_(options.rate_hz, options.max_overhead, start_),
      tick_{.number = 1, .time = start_, .previous = start_},
      next_append_(start_ + AppendInterval({})) {}

Result<void> SamplingRun::Start() {
  if (options_.native) {
    auto native = NativeStacks::Start(target_, tables_, quality_);
    if (!native) return std::unexpected(native.error());
    native_ = *std::move(native);
    context_.native = native_.get();
  }
  if (auto listed = upkeep_.Begin(tick_); !listed) return listed;
  Begin();
  // A first look at once: it also shows which way of pausing there is.
  ticks_.Start(tick_);
  const TickOutcome first = ticks_.Finish();
  tick_.time = first.time;
  previous_ = first.first;
  Count(first);
  deadlines_.Pop();
  if (auto possible = pauser_.Check(); !possible) return possible;
  if (auto begun = sink_.Begin(MakeMetadata()); !begun) return begun;
  ApplyRate();
  return {};
}

// With thousands of threads it takes a while until all are known; it is no part of the recording.
// What they are charged after the time is read and before it is asked for is in no sample: where
// we lost the CPU in between, once more.
void SamplingRun::Begin() {
  for (int tries = 0; tries < kMostBeginnings; ++tries) {
    const Nanoseconds cpu = ThreadCpuNow();
    start_ = MonotonicNow();
    upkeep_.BeginAt(start_);
    if (MonotonicNow() - start_ - (ThreadCpuNow() - cpu) < kPromptBeginning) break;
  }
  context_.start = previous_ = start_;
  tick_ = {.number = 1, .time = start_, .previous = start_};
  samples_.clear();
  process_cpu_start_ = process_cpu_ = ProcessCpuOf(target_.pid());
  deadlines_ = Deadlines(start_, governor_.rate_hz(), static_cast<uint64_t>(start_.count()));
}

void SamplingRun::ApplyRate() {
  pauser_.ExpectEvery(deadlines_.period());
  DeadlineSeries series = deadlines_.series();
  series.last_ns -= start_.count();
  sink_.Expect(series);
}

Result<std::optional<EndReason>> SamplingRun::Step(const std::atomic<bool>& stop) {
  // A long interval is slept in pieces, so that the end and the progress are on time.
  constexpr Nanoseconds kNap = std::chrono::milliseconds(200);
  Nanoseconds now = MonotonicNow();
  Nanoseconds wake = std::min(deadlines_.Ahead(ahead_) - pauser_.lead(), now + kNap);
  if (options_.duration) wake = std::min(wake, start_ + *options_.duration);
  if (wake > now) {
    pauser_.Sleep(wake);
    now = MonotonicNow();
  }
  const bool each_by_itself = ahead_ == 0;
  // The copies of the deadline before: awake for them at once if one needs it, else for free now.
  if (ticks_.started()) {
    auto reason = TakeOver();
    if (!reason || *reason) return reason;
    now = MonotonicNow();
  }
  if (auto reason = ReasonToEnd(now, stop)) return reason;
  // Where it takes most of a period to be ready, nobody catches up who wakes a probe for each look.
  if (each_by_itself && pauser_.lead() > deadlines_.period() / 2) CountLost(deadlines_.Skip(now));
  if (now < deadlines_.next() - pauser_.lead()) return std::nullopt;

  NextTick(now, NextDueBy());
  tick_.at = deadlines_.next();
  pauser_.ExpectNext(deadlines_.Ahead(1), deadlines_.Ahead(2));
  ticks_.Start(tick_);
  now = MonotonicNow();
  CountLost(deadlines_.Advance(now));
  StartAhead(now);
  return std::nullopt;
}

void SamplingRun::CountLost(uint64_t deadlines) {
  quality_.deadlines += deadlines;
  quality_.lost += deadlines;
}

void SamplingRun::StartAhead(Nanoseconds now) {
  for (ahead_ = 0;; ++ahead_) {
    // One that has passed is next all the same: who makes up for it by itself falls behind further.
    const Nanoseconds at = deadlines_.Ahead(ahead_);
    if (at > now + kHorizon || !ticks_.StartAhead(at)) break;
  }
  if (ahead_ > 0) pauser_.ExpectNext(deadlines_.Ahead(ahead_), deadlines_.Ahead(ahead_ + 1));
}

Result<std::optional<EndReason>> SamplingRun::TakeOver() {
  auto reason = TakeLooks();
  if (!reason || *reason) return reason;
  const Nanoseconds now = MonotonicNow();
  if (!upkeep_.DoDue(now, tick_, stale_threads_)) return HowItEnded();
  codes_.CheckSome(now);
  const bool due = now >= next_append_;
  if (due || samples_.size() - waiting_ >= kBatch) {
    if (due) threads_.FlushAll();
    ReadProcessCpu();
    if (auto sent = Append(now); !sent) return std::unexpected(sent.error());
    next_append_ = now + AppendInterval(now - start_);
  }
  return std::nullopt;
}

Result<std::optional<EndReason>> SamplingRun::TakeLooks() {
  ahead_ = 0;
  stale_threads_ = false;
  const size_t made = ticks_.EndAhead();
  return made == 0 ? Take(ticks_.Finish()) : TakeMade(made);
}

Result<std::optional<EndReason>> SamplingRun::TakeMade(size_t ahead) {
  Missed missed;
  Nanoseconds due_by = tick_.due_by;  // of the first one, as it was started
  --tick_.number;
  tick_.time = tick_.previous;
  for (size_t i = 0; i <= ahead; ++i) {
    if (i > 0) {
      due_by = NextDueBy();
      deadlines_.Pop();
    }
    if (!ticks_.IsGood(i)) {
      ++missed.count;
      missed.due_by = due_by;
      missed.held += ticks_.HeldInVain(i);
      continue;
    }
    NextTick(ticks_.TimeOf(i), due_by);
    auto reason = Take(ticks_.FinishMade(i, tick_));
    if (!reason || *reason) return reason;
  }
  return missed.count == 0 ? std::nullopt : MakeUpFor(missed);
}

// One look now for those that came to nothing: more would only see the same again.
Result<std::optional<EndReason>> SamplingRun::MakeUpFor(const Missed& missed) {
  CountLost(missed.count - 1);
  ++quality_.retries;
  NextTick(MonotonicNow(), missed.due_by);
  pauser_.ExpectNext(deadlines_.next(), deadlines_.Ahead(1));
  ticks_.Start(tick_);
  TickOutcome outcome = ticks_.Finish();
  outcome.held += missed.held;
  return Take(outcome);
}

Nanoseconds SamplingRun::NextDueBy() const {
  return deadlines_.next() + std::min(deadlines_.period(), kLateAfter);
}

void SamplingRun::NextTick(Nanoseconds time, Nanoseconds due_by) {
  const Nanoseconds longest = std::max(kLeastGap, kGapPeriods * deadlines_.period());
  tick_ = {.number = tick_.number + 1,
           .time = time,
           .previous = previous_,
           .longest = longest,
           .due_by = due_by};
}

Result<std::optional<EndReason>> SamplingRun::Take(const TickOutcome& outcome) {
  tick_.time = outcome.time;
  previous_ = outcome.first;
  Count(outcome);
  stale_threads_ |= outcome.stale_threads;
  if (auto possible = pauser_.Check(); !possible) return std::unexpected(possible.error());
  if (!outcome.taken && !target_.StillThere()) return HowItEnded();
  if (auto rate = governor_.Account(outcome.held, tick_.time)) {
    deadlines_.SetRate(*rate);
    ApplyRate();
  }
  return std::nullopt;
}

std::optional<EndReason> SamplingRun::ReasonToEnd(Nanoseconds now,
                                                  const std::atomic<bool>& stop) const {
  if (stop.load(std::memory_order_relaxed)) return EndReason::kStopped;
  if (options_.duration && now - start_ >= *options_.duration) return EndReason::kDuration;
  return std::nullopt;
}

EndReason SamplingRun::HowItEnded() const {
  auto stat = ReadTaskStat(target_.pid(), target_.pid());
  const bool lives = stat && stat->start_ticks == target_.info().start_ticks && stat->state != 'Z';
  // A process on its way out has lost its memory, and with it its executable, before it is a
  // zombie.
  const bool has_memory = access(fmt::format("/proc/{}/exe", target_.pid()).c_str(), F_OK) == 0;
  return lives && has_memory ? EndReason::kTargetExecuted : EndReason::kTargetExited;
}

Result<void> SamplingRun::Finish(ProgressCallback progress) {
  ReadProcessCpu();
  TakeLastLook();
  // Equal stacks are one only when they are made.
  WaitForStacks(progress);
  MakeStacks();
  threads_.FinishAll(tick_);
  threads_.UpdateNames();
  AddUnsampled();
  // The recording ends with the last look: what comes after it, a slow disk say, is no part of it.
  if (auto sent = Append(tick_.time); !sent) return sent;
  UpdateFigures(tick_.time);
  quality_.complete = true;
  return sink_.Finish(tables_, quality_);
}

// The time since the look before belongs to the recording as well: at a low rate, or when the
// sampler was stopped or starved at the end, that is seconds.
void SamplingRun::TakeLastLook() {
  if (!pauser_.Check() || !target_.StillThere()) return;
  const Nanoseconds now = MonotonicNow();
  const Nanoseconds due_by = NextDueBy();
  const uint64_t missed = deadlines_.Skip(now);
  if (missed > 1) {
    quality_.deadlines += missed - 1;
    quality_.lost += missed - 1;
  }
  NextTick(now, due_by);
  ticks_.Start(tick_);
  std::ignore = Take(ticks_.Finish());
}

// The last figure there was, should it be gone.
void SamplingRun::ReadProcessCpu() {
  if (auto now = ProcessCpuOf(target_.pid())) process_cpu_ = now;
}

Nanoseconds SamplingRun::OwnCpu() {
  if (!own_process_) return ProcessCpuNow() - own_cpu_start_;
  return ThreadCpuNow() - own_cpu_start_ + pauser_.ProbesCpu();
}

// Threads that ended between two looks, or that run no Python, were charged CPU time too.
void SamplingRun::AddUnsampled() {
  if (!process_cpu_ || !process_cpu_start_ || !threads_.exact_clock()) return;
  if (*process_cpu_ < *process_cpu_start_) return;  // another process' by now, of the same number
  uint64_t sampled = quality_.cpu_ns;
  if (own_process_) sampled += static_cast<uint64_t>(OwnCpu().count());
  for (const Sample& sample : samples_) sampled += sample.cpu_ns;
  const auto all = static_cast<uint64_t>((*process_cpu_ - *process_cpu_start_).count());
  const uint64_t rest = all - std::min(all, sampled);
  const auto last_looks = static_cast<uint64_t>(2 * deadlines_.period().count());
  if (rest < all / kUnsampledShare || rest < last_looks) return;
  Sample sample;
  sample.time_ns = (tick_.time - start_).count();
  sample.cpu_ns = rest;
  sample.thread = tables_.AddThread({0, 0, tables_.Intern("threads not sampled")});
  sample.count = 0;
  sample.flags = kSampleUnseen | kSampleOnCpu;
  samples_.push_back(sample);
}

Progress SamplingRun::MakeProgress() {
  const Nanoseconds now = MonotonicNow();
  UpdateFigures(now);
  return {now - start_, quality_};
}

Metadata SamplingRun::MakeMetadata() const {
  Metadata metadata = DescribeTarget(target_, options_.pystrobe_version, start_);
  metadata.pause_mode = PauseModeName(pauser_.mode_in_use());
  metadata.wanted_rate_hz = options_.rate_hz;
  metadata.max_overhead = options_.max_overhead;
  metadata.native = options_.native;
  return metadata;
}

void SamplingRun::Count(const TickOutcome& outcome) {
  ++quality_.deadlines;
  quality_.retries += outcome.retries;
  quality_.held_ns += outcome.held.count();
  if (!outcome.taken) {
    ++quality_.lost;
    return;
  }
  ++quality_.taken;
  if (outcome.time > tick_.due_by) ++quality_.late;
  const bool incomplete = outcome.incomplete || outcome.failed;
  if (outcome.marked) ++quality_.marked;
  if (incomplete) ++quality_.incomplete;
  if (!outcome.marked && !incomplete) ++quality_.proved;
}

void SamplingRun::UpdateFigures(Nanoseconds now) {
  quality_.duration_ns = (now - start_).count();
  quality_.run_delay_ns = static_cast<int64_t>(threads_.total_run_delay());
  quality_.held_each = ticks_.held_each();
  quality_.own_cpu_ns = OwnCpu().count();
  quality_.achieved_rate_hz = static_cast<double>(quality_.taken) * 1e9 /
                              static_cast<double>(std::max<int64_t>(1, quality_.duration_ns));
  quality_.final_rate_hz = governor_.rate_hz();
  quality_.limited_ns = governor_.limited().count();
  quality_.pause_mode = PauseModeName(pauser_.mode_in_use());
  quality_.cpu_source = threads_.exact_clock() ? "schedstat" : "stat";
}

Result<void> SamplingRun::Append(Nanoseconds now) {
  UpdateFigures(now);
  MakeStacks();
  const std::span<const Sample> finished(samples_.data(), CountFinished());
  quality_.samples += finished.size();
  for (const Sample& sample : finished) {
    quality_.thread_ns += sample.wall_ns;
    quality_.cpu_ns += sample.cpu_ns;
    if ((sample.flags & kSampleUnseen) == 0) continue;
    quality_.unseen_ns += sample.wall_ns;
    quality_.unseen_cpu_ns += sample.cpu_ns;
  }
  auto result = sink_.Append(tables_, finished, quality_);
  sink_failed_ = !result;
  samples_.erase(samples_.begin(), samples_.begin() + static_cast<std::ptrdiff_t>(finished.size()));
  waiting_ = samples_.size();
  return result;
}

void SamplingRun::WaitForStacks(ProgressCallback progress) {
  if (native_ == nullptr) return;
  while (const size_t left = native_->Wait(kProgressAtEnd)) {
    Progress now = MakeProgress();
    now.stacks_left = left;
    if (!progress(now)) return native_->MakeWithoutWaiting();
  }
}

void SamplingRun::MakeStacks() {
  if (native_ == nullptr) return;
  native_->Make();
  const auto made = [this](StackId stack) { return native_->Made(stack); };
  for (Sample& sample : samples_) sample.stack = made(sample.stack);
  threads_.ReplaceStacks(made);
  native_->Forget();
}

size_t SamplingRun::CountFinished() const {
  const auto first = std::ranges::find_if_not(samples_, NativeStacks::IsMade, &Sample::stack);
  return static_cast<size_t>(first - samples_.begin());
}

}  // namespace pystrobe::remote
