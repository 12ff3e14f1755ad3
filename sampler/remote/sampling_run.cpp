// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/sampling_run.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>

namespace pystrobe::remote {
namespace {

constexpr Nanoseconds kAppendInterval = std::chrono::seconds(1);
constexpr Nanoseconds kRefreshInterval = std::chrono::milliseconds(500);
// Listing thousands of threads takes milliseconds: one part in this many of the time goes into it.
constexpr int kRefreshShare = 100;
constexpr int kStaleRefreshShare = 10;  // while threads are known to be missing
constexpr size_t kBatch = 16 * 1024;

std::string HostName() {
  utsname name{};
  return uname(&name) == 0 ? name.nodename : "";
}

std::string VersionText(const pyabi::Layout& layout) {
  return layout.version.ToString() + (layout.free_threaded ? " free-threading build" : "");
}

}  // namespace

SamplingRun::SamplingRun(const Target& target, const SamplerOptions& options, RecordingSink& sink,
                         Quality& quality)
    : target_(target),
      options_(options),
      sink_(sink),
      quality_(quality),
      own_cpu_start_(ProcessCpuNow()),
      start_(MonotonicNow()),
      codes_(target, tables_, quality),
      context_{target, tables_, codes_, start_, samples_},
      threads_(context_),
      pauser_(options.pause),
      ticks_(context_, threads_, pauser_),
      deadlines_(start_, options.rate_hz, static_cast<uint64_t>(start_.count())),
      governor_(options.rate_hz, options.max_overhead, start_),
      tick_{1, start_, start_, false},
      next_refresh_(start_ + kRefreshInterval),
      next_stale_refresh_(start_),
      next_append_(start_ + kAppendInterval) {}

Result<void> SamplingRun::Start() {
  deadlines_.SetRate(governor_.rate_hz());
  if (auto listed = threads_.Refresh(tick_); !listed) return listed;
  // A first look at once: it also shows which way of pausing there is.
  ticks_.Start(tick_);
  Count(ticks_.Finish());
  if (auto possible = CheckPause(); !possible) return possible;
  return sink_.Begin(MakeMetadata());
}

Result<void> SamplingRun::CheckPause() const {
  if (pauser_.failure().empty()) return {};
  return FailWithHint(ErrorCode::kPermission,
                      "let it choose (--pause auto), or stop the thread instead (--pause ptrace)",
                      "pausing by preemption: {}", pauser_.failure());
}

Result<std::optional<EndReason>> SamplingRun::Step(const std::atomic<bool>& stop) {
  // A long interval is slept in pieces, so that the end and the progress are on time.
  constexpr Nanoseconds kNap = std::chrono::milliseconds(200);
  Nanoseconds now = MonotonicNow();
  Nanoseconds wake = std::min(deadlines_.next(), now + kNap);
  if (options_.duration) wake = std::min(wake, start_ + *options_.duration);
  if (wake > now) {
    pauser_.Sleep(wake);
    now = MonotonicNow();
  }
  // The copies of the deadline before: awake for them at once if one needs it, else for free now.
  if (ticks_.started()) {
    auto reason = TakeOver();
    if (!reason || *reason) return reason;
  }
  if (auto reason = ReasonToEnd(now, stop)) return reason;
  if (now < deadlines_.next()) return std::nullopt;

  tick_ = {tick_.number + 1, now, tick_.time, now > deadlines_.next() + deadlines_.period()};
  ticks_.Start(tick_);
  uint64_t skipped = deadlines_.Advance(MonotonicNow());
  quality_.deadlines += skipped;
  quality_.lost += skipped;
  return std::nullopt;
}

Result<std::optional<EndReason>> SamplingRun::TakeOver() {
  TickOutcome outcome = ticks_.Finish();
  Count(outcome);
  if (auto possible = CheckPause(); !possible) return std::unexpected(possible.error());
  if (!outcome.taken && !target_.StillThere()) {
    return HowItEnded();
  }
  Nanoseconds now = MonotonicNow();
  if (now >= (outcome.stale_threads ? next_stale_refresh_ : next_refresh_)) {
    if (auto reason = RefreshThreads(now)) return reason;
  }
  if (auto rate = governor_.Account(outcome.held, now)) deadlines_.SetRate(*rate);
  codes_.CheckSome(now);
  if (now >= next_append_ || samples_.size() >= kBatch) {
    threads_.FlushAll(tick_);
    if (auto sent = Append(); !sent) return std::unexpected(sent.error());
    next_append_ = now + kAppendInterval;
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

std::optional<EndReason> SamplingRun::RefreshThreads(Nanoseconds now) {
  const Nanoseconds begin = ThreadCpuNow();
  auto listed = threads_.Refresh(tick_);
  const Nanoseconds cost = ThreadCpuNow() - begin;
  next_refresh_ = now + std::max(kRefreshInterval, cost * kRefreshShare);
  next_stale_refresh_ = now + cost * kStaleRefreshShare;
  // Lists that made no sense this time will the next; only the end of the process is final.
  if (!listed && listed.error().code == ErrorCode::kExited) return EndReason::kTargetExited;
  return target_.StillThere() ? std::nullopt : std::optional(HowItEnded());
}

Result<void> SamplingRun::Finish() {
  if (ticks_.started()) Count(ticks_.Finish());
  threads_.FinishAll(tick_);
  threads_.UpdateNames();
  if (auto sent = Append(); !sent) return sent;
  UpdateFigures();
  quality_.complete = true;
  return sink_.Finish(tables_, quality_);
}

Progress SamplingRun::MakeProgress() {
  UpdateFigures();
  return {MonotonicNow() - start_, quality_};
}

Metadata SamplingRun::MakeMetadata() const {
  Metadata metadata;
  metadata.pid = target_.pid();
  metadata.command = target_.info().command;
  metadata.executable = target_.info().executable;
  metadata.python_version = VersionText(target_.layout());
  metadata.host = HostName();
  metadata.pystrobe_version = options_.pystrobe_version;
  metadata.pause_mode = PauseModeName(pauser_.mode_in_use());
  metadata.start_unix_ns = (UnixNow() - (MonotonicNow() - start_)).count();
  metadata.start_monotonic_ns = start_.count();
  metadata.wanted_rate_hz = options_.rate_hz;
  metadata.max_overhead = options_.max_overhead;
  metadata.cpu_count = static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN));
  return metadata;
}

void SamplingRun::Count(const TickOutcome& outcome) {
  ++quality_.deadlines;
  quality_.retries += outcome.retries;
  quality_.held_ns += outcome.held.count();
  if (tick_.late) ++quality_.late;
  if (!outcome.taken) {
    ++quality_.lost;
    return;
  }
  ++quality_.taken;
  const bool incomplete = outcome.incomplete || outcome.failed;
  if (outcome.marked) ++quality_.marked;
  if (incomplete) ++quality_.incomplete;
  if (!outcome.marked && !incomplete) ++quality_.proved;
}

void SamplingRun::UpdateFigures() {
  quality_.duration_ns = (MonotonicNow() - start_).count();
  quality_.run_delay_ns = static_cast<int64_t>(threads_.total_run_delay());
  quality_.own_cpu_ns = (ProcessCpuNow() - own_cpu_start_).count();
  quality_.achieved_rate_hz = static_cast<double>(quality_.taken) * 1e9 /
                              static_cast<double>(std::max<int64_t>(1, quality_.duration_ns));
  quality_.final_rate_hz = governor_.rate_hz();
  quality_.cpu_source = threads_.exact_clock() ? "schedstat" : "stat";
}

Result<void> SamplingRun::Append() {
  UpdateFigures();
  quality_.samples += samples_.size();
  auto result = sink_.Append(tables_, samples_, quality_);
  samples_.clear();
  return result;
}

}  // namespace pystrobe::remote
