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

std::optional<LockHolders::Holder> LockDomain::FindHolder(Address tstate) const {
  SampledThread* const thread = Find(tstate);
  return thread == nullptr ? std::nullopt : thread->AsHolder();
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
  if (interpreters_.empty() || newest_interpreter != interpreters_.front()) {
    sought = newest_interpreter;
  }
  if (std::exchange(sought_, sought) != sought) searches_ = 0;
  return sought != 0 && searches_ < kMostSearches;
}

Result<void> ThreadTable::Refresh(const Tick& tick) {
  auto listed = context_.target.ListThreads();
  if (!listed) return std::unexpected(listed.error());
  ++searches_;
  interpreters_ = std::move(listed->interpreters);
  std::vector<PyThread>& threads = listed->threads;
  HashMap<Address, const PyThread*> now;
  for (const PyThread& thread : threads) {
    if (thread.tid != 0) now.emplace(thread.tstate, &thread);
  }
  std::erase_if(threads_, [&](const std::unique_ptr<SampledThread>& thread) {
    auto it = now.find(thread->id().tstate);
    if (it != now.end() && SameThread(*it->second, thread->id()) && !thread->gone()) {
      now.erase(it);
      return false;
    }
    for (auto& domain : domains_) domain->Remove(thread.get());
    return true;
  });
  ForgetGone(tick);
  for (auto it = refused_.begin(); it != refused_.end();) {
    it = now.contains(it->first) ? std::next(it) : refused_.erase(it);
  }
  // A thread is that of the interpreter that was first on it.
  std::ranges::stable_sort(threads, {}, &PyThread::interpreter_id);
  bool added = false;
  Result<void> not_looked_at;
  for (const PyThread& thread : threads) {
    if (!now.contains(thread.tstate)) continue;
    if (const auto done = Add(thread, tick)) {
      added |= *done;
    } else {
      not_looked_at = Wrap(done.error(), "thread {}", thread.tid);
    }
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

Result<bool> ThreadTable::Add(const PyThread& thread, const Tick& tick) {
  if (auto it = refused_.find(thread.tstate); it != refused_.end() && it->second == thread.tid) {
    return false;
  }
  LockDomain* domain = DomainOf(thread);
  if (domain == nullptr) return false;
  const auto kernel_thread = KernelThreadOf(thread, tick);
  if (!kernel_thread) return std::unexpected(kernel_thread.error());
  auto& fresh =
      threads_.emplace_back(std::make_unique<SampledThread>(context_, thread, **kernel_thread));
  if (fresh->gone() && !fresh->clock().unknown()) refused_[thread.tstate] = thread.tid;
  exact_clock_ = exact_clock_ && fresh->clock().exact();
  domain->Add(fresh.get());
  return true;
}

Result<KernelThread*> ThreadTable::KernelThreadOf(const PyThread& thread, const Tick& tick) {
  if (auto it = kernel_threads_.find(thread.tid); it != kernel_threads_.end()) {
    return it->second.get();
  }
  const pid_t pid = context_.target.pid();
  const auto name = KernelName(pid, thread.tid);
  if (!name) return std::unexpected(name.error());
  const ThreadIndex index = context_.tables.AddThread(
      {static_cast<uint64_t>(thread.tid), thread.interpreter_id, context_.tables.Intern(*name)});
  auto made = std::make_unique<KernelThread>(context_.files, pid, thread.tid,
                                             Timeline(index, context_.start, context_.samples),
                                             index, tick);
  return kernel_threads_.emplace(thread.tid, std::move(made)).first->second.get();
}

// A kernel thread id may be given to another thread later.
void ThreadTable::ForgetGone(const Tick& tick) {
  for (auto it = kernel_threads_.begin(); it != kernel_threads_.end();) {
    KernelThread& thread = *it->second;
    if (!thread.states().empty()) {
      ++it;
      continue;
    }
    thread.ledger().Miss(tick);
    thread.Finish(tick);
    run_delay_of_gone_ += thread.ledger().total_run_delay();
    it = kernel_threads_.erase(it);
  }
}

void ThreadTable::BeginAt(Nanoseconds now) {
  for (const auto& [tid, thread] : kernel_threads_) thread->BeginAt(now);
}

void ThreadTable::FlushAll() {
  for (const auto& [tid, thread] : kernel_threads_) thread->ledger().Flush();
}

void ThreadTable::ReplaceStacks(FunctionRef<StackId(StackId)> now) {
  for (const auto& [tid, thread] : kernel_threads_) thread->ledger().Replace(now);
}

void ThreadTable::FinishAll(const Tick& tick) {
  for (const auto& [tid, thread] : kernel_threads_) thread->Finish(tick);
}

void ThreadTable::UpdateNewNames(Nanoseconds now) {
  if (!lacks_names_ || naming_wait_ > kLongestNamingWait || now < next_naming_) return;
  const Nanoseconds begin = ThreadCpuNow();
  UpdateNames();
  naming_wait_ = std::max(2 * naming_wait_, kNamingShare * (ThreadCpuNow() - begin));
  next_naming_ = now + naming_wait_;
}

void ThreadTable::UpdateNames() {
  ThreadNames names(context_.target.memory(), context_.target.layout());
  Tables& tables = context_.tables;
  lacks_names_ = false;
  for (const auto& [tid, thread] : kernel_threads_) {
    const auto name = NameOf(*thread, names);
    if (!name) continue;
    const StringId id = tables.Intern(*name);
    if (tables.thread(thread->index()).name != id) tables.RenameThread(thread->index(), id);
  }
}

// Nullopt where it keeps the name that it has.
std::optional<std::string> ThreadTable::NameOf(const KernelThread& thread, ThreadNames& names) {
  for (const ThreadState* state : thread.states()) {
    const auto& of_interpreter = names.Of(state->id.interpreter);
    const auto it = of_interpreter.find(state->id.pthread);
    if (it != of_interpreter.end()) return it->second;
  }
  lacks_names_ = true;
  if (thread.tid() != context_.target.pid()) return std::nullopt;
  // The thread with which the process began. The threading module would call it so, should the
  // program import that; but up to 3.12 it calls the thread so that imports it, and every
  // interpreter has a module of its own.
  const PyThread& first = thread.states().front()->id;
  if (first.interpreter_id == 0 && names.Of(first.interpreter).empty()) return "MainThread";
  const auto name = KernelName(context_.target.pid(), thread.tid());
  return name ? std::optional(*name) : std::nullopt;
}

uint64_t ThreadTable::total_run_delay() const {
  uint64_t total = run_delay_of_gone_;
  for (const auto& [tid, thread] : kernel_threads_) total += thread->ledger().total_run_delay();
  return total;
}

}  // namespace pystrobe::remote
