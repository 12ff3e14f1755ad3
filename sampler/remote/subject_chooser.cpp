// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/subject_chooser.h"

#include <algorithm>
#include <utility>

namespace pystrobe::remote {
namespace {

// Each thread copied along lengthens the pause by a microsecond or a few.
constexpr size_t kMostOthers = 16;
// Threads stopped by ptrace, which takes some ten microseconds for each.
constexpr size_t kMostStopped = 16;
// Of those, kept for threads that wake, however many run all the time.
constexpr size_t kKeptForWoken = 4;
// Looks at idle threads in one tick: many after the lock changed hands or ticks without any, a few
// otherwise (a thread may run without ever taking the lock).
constexpr size_t kManyChecks = 64;
constexpr size_t kFewChecks = 8;
// Without a lock, so many are looked at although they slept a moment ago.
constexpr size_t kFewThreads = 4;

}  // namespace

std::optional<SubjectChooser::Choice> SubjectChooser::Choose(LockDomain& domain, const Tick& tick,
                                                             std::vector<SampledThread*>& others) {
  const auto gil = Peek(domain);
  if (!gil) return std::nullopt;
  SampledThread& subject = SubjectOf(domain, *gil);
  // Looks ahead leave more of the others to be checked now.
  const bool many = std::exchange(made_ahead_, false) || gil->switch_number != domain.switch_number;
  CollectChanged(domain, {&subject, many}, tick, others);
  const bool may_have_run = !others.empty() || !subject.off_cpu() || MayRun(subject, tick);
  if (!may_have_run) domain.switch_number = gil->switch_number;
  return Choice{&subject, gil->switch_number, may_have_run};
}

std::optional<SubjectChooser::EachChoice> SubjectChooser::ChooseEach(
    LockDomain& domain, const Tick& tick, std::vector<SampledThread*>& subjects) {
  if (domain.free_threaded()) {
    CollectChanged(domain, {nullptr, true}, tick, subjects);
    return EachChoice{0, nullptr};
  }
  const auto gil = Peek(domain);
  if (!gil) return std::nullopt;
  return EachChoice{gil->switch_number, CollectEach(domain, *gil, tick, subjects)};
}

// A few in turns, whoever has the lock: one that is looked at now where it has that, and later
// where it has not, would be seen with it more often than it has. Of many, not all of which are
// looked at, whoever has it is first.
const SampledThread* SubjectChooser::CollectEach(LockDomain& domain, const GilState& gil,
                                                 const Tick& tick,
                                                 std::vector<SampledThread*>& subjects) {
  const bool has_changed = gil.switch_number != domain.switch_number;
  SampledThread& holder = SubjectOf(domain, gil);
  const bool is_first = domain.threads.size() > kFewThreads;
  CollectChanged(domain, {is_first ? &holder : nullptr, has_changed}, tick, subjects);
  if (!is_first) return nullptr;
  if (MayRun(holder, tick) || !subjects.empty()) subjects.insert(subjects.begin(), &holder);
  return &holder;
}

// One that is gone may have a successor already, with a state at the same address.
bool SubjectChooser::MayHaveRun(SampledThread& thread, const Tick& tick) {
  const bool may = thread.MayHaveRun(tick);
  if (thread.gone()) stale_threads_ = true;
  return may;
}

bool SubjectChooser::MayRun(SampledThread& thread, const Tick& tick) {
  return MayHaveRun(thread, tick) || (tick.at > tick.time && thread.MayWakeSoon(tick));
}

std::optional<GilState> SubjectChooser::Peek(LockDomain& domain) {
  if (domain.threads.size() == 1 && !domain.threads.front()->off_cpu()) {
    // Nobody to choose from; the copy itself brings the lock. (While that thread sleeps there may
    // be none, and the lock shows a thread that is new.)
    return GilState{domain.threads.front()->id().tstate, 0, domain.switch_number};
  }
  requests_.clear();
  domain.gil.AppendRequest(GilReader::kAfter, requests_);
  if (!context_.target.memory().ReadAll(requests_)) return std::nullopt;
  return domain.gil.Decode(GilReader::kAfter);
}

void SubjectChooser::SeekHolder(LockDomain& domain, const GilState& gil) {
  if (domain.LacksHolder(gil, threads_.Refused(gil.last_holder))) stale_threads_ = true;
}

SampledThread& SubjectChooser::SubjectOf(LockDomain& domain, const GilState& gil) {
  SampledThread* subject = domain.Find(gil.last_holder);
  SeekHolder(domain, gil);
  // The lock names its last holder even after that has ended.
  if (subject == nullptr || subject->gone()) subject = domain.last_subject;
  if (subject != nullptr && !subject->gone()) return *subject;
  const auto lives = std::ranges::find_if_not(domain.threads, &SampledThread::gone);
  return lives != domain.threads.end() ? **lives : *domain.threads.front();
}

void SubjectChooser::NoteIfGone(SampledThread& thread, const Tick& tick) {
  if (thread.clock().Read() || thread.clock().unknown()) return;
  thread.Miss(tick);
  stale_threads_ = true;
}

void SubjectChooser::CollectChanged(LockDomain& domain, const Extent& extent, const Tick& tick,
                                    std::vector<SampledThread*>& changed) {
  changed.clear();
  const size_t count = domain.threads.size();
  size_t most = SharesCopies(domain) ? kMostOthers : count;
  if (context_.native != nullptr) most = std::min(most, kMostStopped);
  size_t checks = std::min(count, extent.many ? kManyChecks : kFewChecks);
  // Each by itself is looked at when its time has come; but not many for nothing.
  const bool each_in_time = extent.subject == nullptr && count <= kFewThreads;
  const auto may_have_run = [&](SampledThread& thread) {
    return each_in_time ? MayRun(thread, tick) : MayHaveRun(thread, tick);
  };
  const auto check_idle = [&](size_t room) {
    for (; checks > 0 && changed.size() < room; --checks) {
      SampledThread* thread = domain.Next(domain.next_check);
      if (thread == extent.subject || !thread->off_cpu()) continue;
      if (may_have_run(*thread)) changed.push_back(thread);
    }
  };
  check_idle(std::min(most, kKeptForWoken));
  // Where not all fit they take turns: who comes last in the list runs as much as who comes first.
  for (size_t left = count; left > 0 && changed.size() < most; --left) {
    SampledThread* thread = domain.Next(domain.next_running);
    if (thread == extent.subject || thread->off_cpu()) continue;
    if (may_have_run(*thread)) changed.push_back(thread);
  }
  check_idle(most);
}

}  // namespace pystrobe::remote
