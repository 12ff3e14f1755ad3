// SPDX-License-Identifier: Apache-2.0
#include "sampler/signal/signal_run.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <string_view>
#include <utility>

#include "profiler/base/descriptors.h"
#include "profiler/base/proc.h"
#include "profiler/model/append_interval.h"
#include "sampler/remote/target_facts.h"
#include "sampler/remote/thread_names.h"

namespace pystrobe::signals {
namespace {

// A ring holds what comes in far more than that; and who stops waits no longer.
constexpr Nanoseconds kNap = std::chrono::milliseconds(10);
// As many threads may have been born as have ended.
constexpr Nanoseconds kFindInterval = std::chrono::milliseconds(50);
// Then a thread that waits for the interpreter's lock at its birth has told its name.
constexpr Nanoseconds kNamedAfter = std::chrono::milliseconds(500);
constexpr Nanoseconds kTryAgainAfter = std::chrono::seconds(1);
constexpr size_t kBatch = 16 * 1024;
// Of the process' CPU time, not charged to a thread that was sampled: less is not worth a row.
constexpr uint64_t kUnsampledShare = 100;

// An interrupt of a timer may take a virtual machine tens of microseconds, and goes on coming while
// a thread looks: with less between them neither gets on.
constexpr Nanoseconds kShortestPeriod = std::chrono::microseconds(100);

Nanoseconds PeriodFor(double rate_hz, CpuSource source) {
  // Rates are from one sample in ten hours on: that many nanoseconds are an integer.
  const Nanoseconds period(std::llround(1e9 / rate_hz));
  if (source == CpuSource::kTimer) return TimerPeriod(period);
  return std::max(period, kShortestPeriod);
}

}  // namespace

SignalRun::SignalRun(const remote::Target& target, const SignalOptions& options, CpuSource source,
                     KnownCodes known, std::unique_ptr<NativeFrames> native, Dispatcher dispatcher,
                     RecordingSink& sink)
    : target_(target),
      options_(options),
      source_(source),
      known_(std::move(known)),
      native_(std::move(native)),
      dispatcher_(std::move(dispatcher)),
      sink_(sink),
      codes_(target, tables_, quality_),
      context_{target, tables_, codes_, known_, native_.get(), nullptr, quality_, samples_},
      own_tid_(gettid()),
      own_cpu_start_(ThreadCpuNow()),
      most_events_(CountFreeDescriptors() / 2) {
  context_.source = source_;
  if (native_ == nullptr) return;
  merger_.emplace(tables_, native_->code());
  context_.merger = &*merger_;
}

// Handlers look at what is about to go.
SignalRun::~SignalRun() { EndSignals(); }

Result<void> SignalRun::Start() {
  context_.period = PeriodFor(options_.rate_hz, source_);
  context_.start = MonotonicNow();
  process_cpu_start_ = ProcessCpuNow();
  FindThreads(true);
  if (threads_.empty() && refusal_) return std::unexpected(*refusal_);
  UpdateNames();
  Metadata metadata = remote::DescribeTarget(target_, options_.pystrobe_version, context_.start);
  metadata.pause_mode = kBySignals;
  metadata.wanted_rate_hz = options_.rate_hz;
  metadata.native = native_ != nullptr;
  next_find_ = context_.start + kFindInterval;
  next_append_ = context_.start + AppendInterval({});
  return sink_.Begin(metadata);
}

Result<void> SignalRun::Step() {
  news_.Sleep(MonotonicNow() + kNap);
  Drain();
  const Nanoseconds now = MonotonicNow();
  if (now < next_check_) return {};
  next_check_ = now + kNap;
  if (now >= next_find_ || CountTasks() != listed_tasks_) {
    FindThreads(false);
    next_find_ = now + kFindInterval;
  }
  codes_.CheckSome(now);
  if (now < next_append_ && samples_.size() < kBatch) return {};
  next_append_ = now + AppendInterval(now - context_.start);
  UpdateNames();
  return Append();
}

// A directory has a link for each of its directories, and two more.
size_t SignalRun::CountTasks() const {
  struct stat status{};
  return stat("/proc/self/task", &status) == 0 ? status.st_nlink - 2 : 0;
}

void SignalRun::FindThreads(bool first) {
  const auto tasks = ListTasks(target_.pid());
  if (!tasks) return;
  listed_tasks_ = tasks->size();
  ListStates();
  bool changed = first || MonotonicNow() < named_until_;
  for (auto it = threads_.begin(); it != threads_.end();) {
    // A list that is read while threads end may lack one that lives.
    if (std::ranges::binary_search(*tasks, it->first) || CpuTimeOf(it->first)) {
      ++it;
      continue;
    }
    LetGo(*it->second);
    it = threads_.erase(it);
    changed = true;
  }
  for (auto it = refused_.begin(); it != refused_.end();) {
    const bool lives = CpuTimeOf(it->first).has_value();
    gone_refused_ += lives ? 0 : 1;
    it = lives ? std::next(it) : refused_.erase(it);
  }
  for (const pid_t tid : *tasks) {
    if (tid != options_.only_thread.value_or(tid)) continue;
    if (tid == own_tid_ || threads_.contains(tid)) continue;
    Watch(tid, first);
    changed = true;
  }
  for (const auto& [tid, thread] : threads_) thread->SetStates(StatesOf(tid));
  if (changed) UpdateNames();
}

void SignalRun::Watch(pid_t tid, bool first) {
  const Nanoseconds now = MonotonicNow();
  auto refused = refused_.find(tid);
  if (refused != refused_.end() && now < refused->second.try_again) return;
  const auto used = CpuTimeOf(tid);
  if (!used) return;  // it has ended
  // A thread that is new since the beginning has used all its time since.
  Nanoseconds cpu = first ? *used : Nanoseconds{};
  if (refused != refused_.end()) cpu = refused->second.cpu;
  auto armed = Arm(tid, cpu);
  if (!armed) {
    if (armed.error().code == ErrorCode::kExited) return;
    refusal_ = armed.error();
    refused_[tid] = {cpu, now + kTryAgainAfter};
    return;
  }
  refused_.erase(tid);
  named_until_ = now + kNamedAfter;
  std::unique_ptr<WatchedThread> thread = *std::move(armed);
  if (const auto& lack = thread->lack(); lack && lack->code != ErrorCode::kExited) {
    lack_ = lack;
    ++lacking_;
  }
  thread->Begin(tables_.AddThread({static_cast<uint64_t>(tid), 0, tables_.Intern(NameOf(tid))}));
  threads_.emplace(tid, std::move(thread));
}

Result<std::unique_ptr<WatchedThread>> SignalRun::Arm(pid_t tid, Nanoseconds cpu) {
  if (source_ != CpuSource::kTimer && threads_.size() >= most_events_) {
    return FailWithHint(ErrorCode::kIo,
                        "Each thread that is sampled takes one, of half of those that are free.",
                        "too few file descriptors for all threads (see `ulimit -n`)");
  }
  auto look = ThreadLook::Make(
      {target_.pid(), target_.layout(), known_, news_, state_key_, context_.period,
       native_ != nullptr ? &native_->rules() : nullptr,
       native_ != nullptr && tid == target_.pid() ? native_->first_stack_end() : 0});
  if (!look) return std::unexpected(look.error());
  auto thread = std::make_unique<WatchedThread>(context_, tid, cpu, *std::move(look));
  thread->SetStates(StatesOf(tid));
  if (!dispatcher_.Add(tid, thread->look())) {
    return Fail(ErrorCode::kIo, "there are too many threads");
  }
  if (auto armed = thread->Arm(); !armed) {
    dispatcher_.Remove(tid);
    return std::unexpected(armed.error());
  }
  dispatcher_.SetEvent(tid, thread->event_fd());
  return thread;
}

void SignalRun::LetGo(WatchedThread& thread) {
  dispatcher_.Remove(thread.tid());
  thread.Disarm();
  thread.Drain();
  while (thread.Settle()) {
  }
  thread.Finish(MonotonicNow(), std::nullopt);
}

// The youngest interpreter's first: it is called from older ones. What cannot be listed just now is
// as it was.
void SignalRun::ListStates() {
  auto listed = target_.ListThreads();
  if (!listed) return;
  states_ = std::move(listed->threads);
  std::ranges::stable_sort(states_, std::greater{}, &remote::PyThread::interpreter_id);
}

std::vector<Address> SignalRun::StatesOf(pid_t tid) const {
  std::vector<Address> states;
  for (const remote::PyThread& state : states_) {
    if (state.tid == tid) states.push_back(state.tstate);
  }
  return states;
}

void SignalRun::UpdateNames() {
  remote::ThreadNames names(target_.memory(), target_.layout());
  for (const remote::PyThread& state : states_) {
    const auto watched = threads_.find(state.tid);
    if (watched == threads_.end()) continue;
    const auto& of_interpreter = names.Of(state.interpreter);
    const auto name = of_interpreter.find(state.pthread);
    if (name == of_interpreter.end()) continue;
    const ThreadIndex index = watched->second->index();
    const StringId id = tables_.Intern(name->second);
    if (tables_.thread(index).name != id) tables_.RenameThread(index, id);
  }
}

// Where the threading module has no name for it: it may not be imported, or not know the thread.
std::string SignalRun::NameOf(pid_t tid) const {
  if (tid == target_.pid()) return "MainThread";
  const auto stat = ReadTaskStat(target_.pid(), tid);
  return stat ? stat->name : "";
}

Result<void> SignalRun::Finish() {
  EndSignals();
  Drain();
  const Nanoseconds now = MonotonicNow();
  for (const auto& [tid, thread] : threads_) {
    thread->Finish(now, CpuTimeOf(tid));
  }
  UpdateNames();
  AddUnsampled();
  if (auto sent = Append(); !sent) return sent;
  quality_.complete = true;
  return sink_.Finish(tables_, quality_);
}

// First the handlers, which use the events.
void SignalRun::EndSignals() {
  dispatcher_.EndLooks();
  for (const auto& [tid, thread] : threads_) {
    dispatcher_.SetEvent(tid, -1);
    thread->Disarm();
  }
}

void SignalRun::Drain() {
  TakeRecords();
  if (native_ == nullptr) return;
  Settle();
  // Most of what came is from before these went.
  if (native_->LibrariesChanged() == NativeFrames::Change::kWent) RenewNative();
}

void SignalRun::TakeRecords() {
  if (native_ != nullptr && native_->LibrariesChanged() == NativeFrames::Change::kCame) {
    RenewNative();
  }
  for (const auto& [tid, thread] : threads_) thread->Drain();
  if (native_ != nullptr) native_->Publish(MonotonicNow(), Dispatcher::IsQuiet());
}

void SignalRun::RenewNative() {
  native_->Renew();
  merger_->Forget();
}

// While a file is read for the first time handlers go on, and what they bring must not wait.
void SignalRun::Settle() {
  Nanoseconds drained = MonotonicNow();
  for (const auto& [tid, thread] : threads_) {
    while (thread->Settle()) {
      const Nanoseconds now = MonotonicNow();
      if (now < drained + kNap) continue;
      TakeRecords();
      drained = now;
    }
  }
}

// Threads that came and went between two lists of them were charged CPU time too.
void SignalRun::AddUnsampled() {
  if (options_.only_thread) return;
  const Nanoseconds own = ThreadCpuNow() - own_cpu_start_;
  uint64_t sampled =
      quality_.cpu_ns + static_cast<uint64_t>(std::max(own, Nanoseconds::zero()).count());
  for (const Sample& sample : samples_) sampled += sample.cpu_ns;
  // A filter of system calls may refuse the clock by now.
  const Nanoseconds used = ProcessCpuNow() - process_cpu_start_;
  const auto all = static_cast<uint64_t>(std::max(used, Nanoseconds::zero()).count());
  const uint64_t rest = all - std::min(all, sampled);
  if (rest < all / kUnsampledShare || rest < 2 * static_cast<uint64_t>(context_.period.count())) {
    return;
  }
  Sample sample;
  sample.time_ns = (MonotonicNow() - context_.start).count();
  sample.cpu_ns = rest;
  sample.thread = tables_.AddThread({0, 0, tables_.Intern("threads not sampled")});
  sample.count = 0;
  sample.flags = kSampleUnseen | kSampleOnCpu;
  samples_.push_back(sample);
}

Result<void> SignalRun::Append() {
  // Ordered by time for each thread, which they are; each thread has its own.
  quality_.samples += samples_.size();
  for (const Sample& sample : samples_) {
    quality_.cpu_ns += sample.cpu_ns;
    if ((sample.flags & kSampleUnseen) != 0) quality_.unseen_cpu_ns += sample.cpu_ns;
  }
  UpdateFigures();
  auto result = sink_.Append(tables_, samples_, quality_);
  samples_.clear();
  return result;
}

void SignalRun::UpdateFigures() {
  quality_.duration_ns = (MonotonicNow() - context_.start).count();
  quality_.own_cpu_ns = (ThreadCpuNow() - own_cpu_start_).count() + quality_.held_ns;
  quality_.achieved_rate_hz = static_cast<double>(quality_.taken) * 1e9 /
                              static_cast<double>(std::max<uint64_t>(1, quality_.cpu_ns));
  quality_.limited_ns = 0;
  quality_.final_rate_hz = 1e9 / static_cast<double>(context_.period.count());
  quality_.pause_mode = kBySignals;
  quality_.cpu_source = DescribeSource();
}

std::string SignalRun::DescribeSource() const {
  std::string text(CpuSourceName(source_));
  const auto add = [&text](uint64_t count, std::string_view what, const Error& why) {
    text += fmt::format("; {} {} without samples{}: {}", count, count == 1 ? "thread" : "threads",
                        what, why.message);
  };
  const uint64_t refused = gone_refused_ + refused_.size();
  if (refused > 0 && refusal_) add(refused, "", *refusal_);
  if (lack_) add(lacking_, " of time in the kernel", *lack_);
  return text;
}

}  // namespace pystrobe::signals
