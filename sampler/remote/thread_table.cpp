// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/thread_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "profiler/base/proc.h"
#include "sampler/remote/thread_names.h"

namespace pystrobe::remote {
namespace {

// A thread begins within a millisecond of its state; listing goes on for ten or more.
constexpr int kMostSearches = 20;
// From when it was found until a thread has its name.
constexpr Nanoseconds kFirstNamingWait = std::chrono::milliseconds(5);
constexpr Nanoseconds kLongestNamingWait = std::chrono::milliseconds(320);
// The names of thousands take milliseconds: one part in this many of the time goes into them.
constexpr int kNamingShare = 100;

// Empty when the thread is gone. Fails when it cannot be looked at for another reason.
Result<std::string> KernelName(pid_t pid, pid_t tid) {
  auto text = ReadSmallFile(fmt::format("/proc/{}/task/{}/comm", pid, tid));
  if (!text) {
    const ErrorCode code = text.error().code;
    if (code == ErrorCode::kNotFound || code == ErrorCode::kExited) return std::string();
    return text;
  }
  while (!text->empty() && text->back() == '\n') text->pop_back();
  return text;
}

bool SameThread(const PyThread& a, const PyThread& b) {
  return a.tstate == b.tstate && a.pthread == b.pthread && a.tid == b.tid;
}

}  // namespace

void LockDomain::Add(SampledThread* thread) {
  threads.push_back(thread);
  by_tstate[thread->id().tstate] = thread;
}

void LockDomain::Remove(SampledThread* thread) {
  if (std::erase(threads, thread) == 0) return;
  by_tstate.erase(thread->id().tstate);
  if (last_subject == thread) last_subject = nullptr;
}

SampledThread* LockDomain::Find(Address tstate) const {
  auto it = by_tstate.find(tstate);
  return it == by_tstate.end() ? nullptr : it->second;
}

bool LockDomain::LacksHolder(const GilState& gil, bool refused) {
  missing_holder = Find(gil.last_holder) == nullptr ? gil.last_holder : 0;
  if (missing_holder == 0) return false;
  return missing_holder != sought_holder || (gil.locked == 1 && !refused);
}

SampledThread* LockDomain::Next(size_t& turn) const {
  turn = (turn + 1) % threads.size();
  return threads[turn];
}

std::optional<Address> ThreadTable::GilOf(Address interpreter) const {
  const pyabi::Layout& layout = context_.target.layout();
  const ProcessMemory& memory = context_.target.memory();
  if (layout.runtime.gil != pyabi::kAbsent) {
    return context_.target.info().runtime + layout.runtime.gil;
  }
  const auto gil = memory.Read<Address>(interpreter + layout.interpreter.ceval_gil);
  if (!gil || *gil == 0) return std::nullopt;
  if (!layout.free_threaded) return gil;
  // A free-threaded build can be run with a GIL (PYTHON_GIL=1, or an extension that needs it).
  const auto enabled = memory.Read<int32_t>(*gil + layout.gil.enabled);
  if (!enabled) return std::nullopt;
  return *enabled > 0 ? *gil : 0;
}

LockDomain* ThreadTable::DomainOf(const PyThread& thread) {
  const auto gil = GilOf(thread.interpreter);
  if (!gil) return nullptr;
  for (auto& domain : domains_) {
    if (domain->gil.address() == *gil) return domain.get();
  }
  domains_.push_back(std::make_unique<LockDomain>(context_.target.layout(), *gil));
  return domains_.back().get();
}

bool ThreadTable::IsKnown(Address tstate) const {
  return Refused(tstate) || std::ranges::any_of(domains_, [tstate](const auto& domain) {
           return domain->Find(tstate) != nullptr;
         });
}

bool ThreadTable::LacksThreads() {
  const pyabi::Layout& layout = context_.target.layout();
  Address newest_interpreter = 0;
  heads_.assign(interpreters_.size(), 0);
  requests_.clear();
  requests_.push_back({context_.target.info().runtime + layout.runtime.interpreters_head,
                       &newest_interpreter, sizeof newest_interpreter});
  for (size_t i = 0; i < heads_.size(); ++i) {
    requests_.push_back(
        {interpreters_[i] + layout.interpreter.threads_head, &heads_[i], sizeof heads_[i]});
  }
  // Where an interpreter has ended its threads are found gone.
  if (!context_.target.memory().ReadAll(requests_)) return false;
  const auto unknown =
      std::ranges::find_if_not(heads_, [this](Address head) { return head == 0 || IsKnown(head); });
  Address sought = unknown != heads_.end() ? *unknown : 0;
  if (newest_interpreter != newest_interpreter_) sought = newest_interpreter;
  if (std::exchange(sought_, sought) != sought) searches_ = 0;
  return sought != 0 && searches_ < kMostSearches;
}

void ThreadTable::NoteListed(std::span<const PyThread> listed, Address newest_interpreter) {
  ++searches_;
  newest_interpreter_ = newest_interpreter;
  interpreters_.clear();
  for (const PyThread& thread : listed) interpreters_.push_back(thread.interpreter);
  std::ranges::sort(interpreters_);
  const auto rest = std::ranges::unique(interpreters_);
  interpreters_.erase(rest.begin(), rest.end());
}

Result<void> ThreadTable::Refresh(const Tick& tick) {
  const auto newest_interpreter = context_.target.memory().Read<Address>(
      context_.target.info().runtime + context_.target.layout().runtime.interpreters_head);
  auto listed = context_.target.ListThreads();
  if (!listed) return std::unexpected(listed.error());
  NoteListed(*listed, newest_interpreter.value_or(0));
  HashMap<Address, const PyThread*> now;
  for (const PyThread& thread : *listed) {
    if (thread.tid != 0) now.emplace(thread.tstate, &thread);
  }
  std::erase_if(threads_, [&](const std::unique_ptr<SampledThread>& thread) {
    auto it = now.find(thread->id().tstate);
    if (it != now.end() && SameThread(*it->second, thread->id()) && !thread->gone()) {
      now.erase(it);
      return false;
    }
    Drop(*thread, tick);
    return true;
  });
  ForgetGone();
  for (auto it = refused_.begin(); it != refused_.end();) {
    it = now.contains(it->first) ? std::next(it) : refused_.erase(it);
  }
  bool added = false;
  Result<void> not_looked_at;
  for (const PyThread& thread : *listed) {
    if (!now.contains(thread.tstate)) continue;
    if (auto it = refused_.find(thread.tstate); it != refused_.end() && it->second == thread.tid) {
      continue;
    }
    LockDomain* domain = DomainOf(thread);
    if (domain == nullptr) continue;
    const auto name = KernelName(context_.target.pid(), thread.tid);
    if (!name) {
      not_looked_at = Wrap(name.error(), "thread {}", thread.tid);
      continue;
    }
    Tables& tables = context_.tables;
    ThreadIndex index = tables.AddThread(
        {static_cast<uint64_t>(thread.tid), thread.interpreter_id, tables.Intern(*name)});
    auto& fresh = threads_.emplace_back(
        std::make_unique<SampledThread>(context_, thread, index, tick, accounted_[thread.tid]));
    if (fresh->gone() && !fresh->clock().unknown()) refused_[thread.tstate] = thread.tid;
    exact_clock_ = exact_clock_ && fresh->clock().exact();
    domain->Add(fresh.get());
    added = true;
  }
  std::erase_if(domains_, [](const auto& domain) { return domain->threads.empty(); });
  for (auto& domain : domains_) domain->NoteListed();
  if (added) {
    UpdateNames();
    naming_wait_ = kFirstNamingWait;
    next_naming_ = MonotonicNow() + naming_wait_;
  }
  return not_looked_at;
}

void ThreadTable::Drop(SampledThread& thread, const Tick& tick) {
  thread.Miss(tick);
  thread.Finish(tick);
  run_delay_of_gone_ += thread.total_run_delay();
  for (auto& domain : domains_) domain->Remove(&thread);
}

// A kernel thread id may be given to another thread later.
void ThreadTable::ForgetGone() {
  HashSet<pid_t> live;
  for (const auto& thread : threads_) live.insert(thread->id().tid);
  for (auto it = accounted_.begin(); it != accounted_.end();) {
    it = live.contains(it->first) ? std::next(it) : accounted_.erase(it);
  }
}

void ThreadTable::BeginAt(Nanoseconds now) {
  for (auto& thread : threads_) thread->BeginAt(now);
}

void ThreadTable::FlushAll() {
  for (auto& thread : threads_) thread->Flush();
}

void ThreadTable::FinishAll(const Tick& tick) {
  for (auto& thread : threads_) thread->Finish(tick);
}

void ThreadTable::UpdateNewNames(Nanoseconds now) {
  if (!lacks_names_ || naming_wait_ > kLongestNamingWait || now < next_naming_) return;
  const Nanoseconds begin = ThreadCpuNow();
  UpdateNames();
  naming_wait_ = std::max(2 * naming_wait_, kNamingShare * (ThreadCpuNow() - begin));
  next_naming_ = now + naming_wait_;
}

void ThreadTable::UpdateNames() {
  ThreadNames all(context_.target.memory(), context_.target.layout());
  lacks_names_ = false;
  for (auto& thread : threads_) {
    const auto& names = all.Of(thread->id().interpreter);
    const auto it = names.find(thread->id().pthread);
    if (it != names.end()) {
      Rename(*thread, it->second);
      continue;
    }
    lacks_names_ = true;
    if (thread->id().tid == context_.target.pid()) NameLeader(*thread, names.empty());
  }
}

// The thread with which the process began, which the program has no name for. The threading module
// would call it so, should the program import that; but up to 3.12 it calls the thread so that
// imports it, and every interpreter has a module of its own.
void ThreadTable::NameLeader(SampledThread& thread, bool no_names) {
  if (no_names && thread.id().interpreter_id == 0) {
    Rename(thread, "MainThread");
  } else if (const auto name = KernelName(context_.target.pid(), thread.id().tid)) {
    Rename(thread, *name);
  }
}

void ThreadTable::Rename(const SampledThread& thread, const std::string& name) {
  const StringId id = context_.tables.Intern(name);
  if (context_.tables.thread(thread.index()).name == id) return;
  context_.tables.RenameThread(thread.index(), id);
}

uint64_t ThreadTable::total_run_delay() const {
  uint64_t total = run_delay_of_gone_;
  for (auto& thread : threads_) total += thread->total_run_delay();
  return total;
}

}  // namespace pystrobe::remote
