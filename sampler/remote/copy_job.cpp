// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/copy_job.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "sampler/pyabi/bytes.h"
#include "sampler/remote/cpu_stay.h"
#include "sampler/remote/last_run.h"

namespace pystrobe::remote {
namespace {

using pyabi::kAbsent;
using pyabi::WalkStatus;

// A pause that does not end is worse than a stack that is cut: this many extra reads, each a few
// microseconds. A first look at a stack of 10,000 frames needs about 70, and before 3.11, where
// frames lie on the heap, 1,200.
constexpr int kMostFetches = 1500;
// Code objects that cannot be read, in one look: a stack with more of them is no stack.
constexpr int kMostRefused = 4;
// Names of code objects that are new, in one look: a few microseconds each.
constexpr int kMostRead = 16;

// Nullopt where the kernel does not tell.
std::optional<bool> ReadAwake(int syscall_fd) {
  char text[256];
  const std::string_view says = ReadInto(syscall_fd, text);
  if (says.empty()) return std::nullopt;
  return SaysAwake(says);
}

}  // namespace

void GilReader::AppendRequest(Moment moment, std::vector<pyabi::ReadRequest>& requests) {
  if (gil_ != 0) requests.push_back({gil_, bytes_[moment], sizeof bytes_[moment]});
}

GilState GilReader::Decode(Moment moment) const {
  if (gil_ == 0) return {};
  return {pyabi::Load<Address>(bytes_[moment], layout_->gil.last_holder),
          pyabi::Load<int32_t>(bytes_[moment], layout_->gil.locked),
          pyabi::Load<uint64_t>(bytes_[moment], layout_->gil.switch_number)};
}

void CopyJob::Run() {
  Reset();
  const CpuStay stay;
  own_cpu = stay.cpu();
  CopyWhoHasLock();
  descheduled = !stay.Lasts();
  LookAtOthers();
  LookAtSubject();
  TakeNative();
  took = MonotonicNow() - began;
  ConfirmPlans();
}

void CopyJob::RunUnproved() {
  Reset();
  descheduled = true;
  Copy();
  if (witness.rseq_cpu_id != 0) ReadWitness();
  LookAtOthers();
  LookAtSubject();
  TakeNative();
}

bool CopyJob::RunAsleep() {
  char text[256];
  const auto before = ParseSchedStat(ReadInto(witness.schedstat_fd, text));
  if (!before || !before->exact() || ReadAwake(witness.syscall_fd).value_or(true)) return false;
  RunUnproved();
  const bool asleep = !ReadAwake(witness.syscall_fd).value_or(true);
  const auto after = ParseSchedStat(ReadInto(witness.schedstat_fd, text));
  if (!asleep || !after || !SameRun(*before, *after)) return false;
  subject_look->awake = false;
  return true;
}

void CopyJob::RunBeside(int held_cpu) {
  Reset();
  own_cpu = held_cpu;
  CopyWhoHasLock();
  LookAtOthers();
  LookAtSubject();
}

void CopyJob::EndBeside(Nanoseconds stay) {
  took = stay;
  ConfirmPlans();
}

void CopyJob::ConfirmPlans() {
  if (AllFrozen()) {
    for (ThreadCopy* thread : threads) thread->plan->Confirm();
  } else if (StoodStill()) {
    threads.front()->plan->Confirm();
  }
}

void CopyJob::Reset() {
  began = MonotonicNow();
  own_cpu = subject_cpu = -1;
  read_ok = descheduled = slept = new_codes = false;
  gil_before = gil_state = {};
  generation = 0;
  subject_look.reset();
  seen_codes.clear();
  took = {};
  let_go_ = nullptr;
}

// The subject was chosen some time ago. To choose anew later would be to leave out what runs for
// less time than that takes.
void CopyJob::CopyWhoHasLock() {
  CopyWithWitness();
  if (!stopped && read_ok && AnotherHoldsLock() && TurnToHolder()) CopyWithWitness();
}

bool CopyJob::TurnToHolder() {
  if (holders == nullptr) return false;
  const auto holder = holders->FindHolder(gil_state.last_holder);
  if (!holder) return false;
  // What there is to look at it with is of an earlier time, unless it was to be copied along.
  if (std::erase(threads, holder->copy) == 0) holder->copy->watch = {};
  ThreadCopy* const chosen = std::exchange(threads.front(), holder->copy);
  if (!native) {
    threads.push_back(chosen);
    let_go_ = chosen;
  }
  witness = holder->witness;
  generation_address = holder->generation_address;
  tid = holder->tid;
  thread_pointer = holder->thread_pointer;
  stat_before.reset();
  return true;
}

void CopyJob::CopyWithWitness() {
  if (witness.rseq_cpu_id == 0) place_before_ = ReadPlace();
  Copy();
  ReadWitness();
}

void CopyJob::Copy() {
  read_ok = ReadPredicted();
  if (!read_ok) {
    // Something predicted is no longer mapped: start from the thread states alone.
    for (ThreadCopy* thread : threads) thread->plan->Reset();
    read_ok = ReadPredicted();
  }
  for (int fetches = 0; read_ok && fetches < kMostFetches; ++fetches) {
    WalkAll();
    if (!Fetch()) break;
    read_ok = ReadPending();
  }
  LearnCut();
  if (regions != nullptr) {
    for (ThreadCopy* thread : threads) regions->Note(thread->frames);
  }
  if (read_ok && locals) ReadLocals();
  if (read_ok && codes != nullptr) LookAtCodes();
  if (gil != nullptr) gil_state = gil->Decode(GilReader::kAfter);
}

bool CopyJob::HoldsLock(const ThreadCopy& thread) const {
  const Address tstate = thread.plan->tstate();
  if (gil != nullptr) return gil_state.HeldBy(tstate);
  return (thread.memory.ValueOr0<uint32_t>(tstate + layout->thread.status) &
          pyabi::kStatusActive) != 0;
}

bool CopyJob::IsWhole() const {
  const WalkStatus status = threads.front()->status;
  return status == WalkStatus::kComplete || status == WalkStatus::kMissing;
}

bool CopyJob::NeedsAttention() const {
  if (!StoodStill() || !IsWhole() || new_codes) return true;
  if (ahead_of_switch) return !SubjectHoldsLock() || LockChangedHands();
  return AnotherHoldsLock();
}

bool CopyJob::ReadPredicted() {
  first_pending_.assign(threads.size(), 0);
  for (ThreadCopy* thread : threads) {
    thread->memory.Clear();
    thread->walk.reset();
    thread->status = WalkStatus::kMissing;
    thread->plan->AddPredicted(thread->memory);
  }
  return ReadPending();
}

// Every read ends with the GIL and the witness, so that whichever is last carries the proof.
bool CopyJob::ReadPending() {
  requests_.clear();
  const bool first = std::all_of(first_pending_.begin(), first_pending_.end(),
                                 [](size_t pending) { return pending == 0; });
  const bool both = first && gil != nullptr && threads.size() > 1;
  if (both) gil->AppendRequest(GilReader::kBefore, requests_);
  for (size_t i = 0; i < threads.size(); ++i) {
    threads[i]->memory.AppendRequests(first_pending_[i], requests_);
    first_pending_[i] = threads[i]->memory.ranges().size();
  }
  if (generation_address != 0) {
    requests_.push_back({generation_address, &generation, sizeof generation});
  }
  AppendProof();
  if (!memory->ReadAll(requests_)) return false;
  if (both) gil_before = gil->Decode(GilReader::kBefore);
  return true;
}

void CopyJob::WalkAll() {
  for (ThreadCopy* thread : threads) {
    if (thread->status == WalkStatus::kMissing) WalkOne(*thread);
  }
}

// Where nothing more can be added the copy is full, and the walk stays where it is.
void CopyJob::WalkOne(ThreadCopy& thread) {
  StackPlan& plan = *thread.plan;
  if (!thread.walk) {
    const std::optional<Address> first = plan.FindFirst(thread.memory);
    if (!first) {
      plan.AddFirst(thread.memory);
      return;
    }
    thread.walk = pyabi::Walk(thread.memory, *layout, *first, thread.frames, thread.loop_frames);
  } else {
    pyabi::ResumeWalk(thread.memory, *layout, thread.frames, thread.loop_frames, *thread.walk);
  }
  thread.status = thread.walk->status;
  if (thread.status == WalkStatus::kMissing) {
    plan.AddMissing(thread.memory, thread.walk->missing);
  } else if (thread.status == WalkStatus::kComplete) {
    if (plan.IsSettled(thread.memory, *thread.walk, thread.loop_frames)) {
      plan.Learn(thread.memory, thread.frames, thread.loop_frames);
    } else {
      thread.status = WalkStatus::kIncomplete;
    }
  }
}

// The next copy goes on from there in one read.
void CopyJob::LearnCut() {
  for (ThreadCopy* thread : threads) {
    if (!read_ok || thread->status != WalkStatus::kMissing || !thread->walk) continue;
    thread->plan->Learn(thread->memory, thread->frames, thread->loop_frames);
  }
}

bool CopyJob::Fetch() {
  for (size_t i = 0; i < threads.size(); ++i) {
    if (first_pending_[i] < threads[i]->memory.ranges().size()) return true;
  }
  return false;
}

void CopyJob::LookAtCodes() {
  code_list_.clear();
  for (ThreadCopy* thread : threads) {
    if (thread->status == WalkStatus::kComplete) {
      codes->Select(thread->frames, generation, code_list_);
    }
  }
  if (code_list_.empty()) return;
  const size_t size = layout->code.size;
  code_bytes_.assign(code_list_.size() * size, std::byte{0});
  requests_.clear();
  for (size_t i = 0; i < code_list_.size(); ++i) {
    requests_.push_back({code_list_[i], code_bytes_.data() + i * size, size});
  }
  AppendProof();
  // What cannot be read stays zero, which is no code object's identity.
  std::span<const pyabi::ReadRequest> left = requests_;
  const size_t proof = requests_.size() - code_list_.size();
  for (int refused = 0; refused <= kMostRefused; ++refused) {
    left = left.subspan(memory->ReadSome(left));
    if (left.size() <= proof) break;  // all read, or the proof refused
    left = left.subspan(1);
  }
  read_ok = left.empty();
  for (size_t i = 0; i < code_list_.size(); ++i) {
    seen_codes.push_back(
        {code_list_[i], pyabi::IdentityOf(*layout, {code_bytes_.data() + i * size, size}), {}});
  }
  if (read_ok) ReadNewCodes();
}

// What has only just been made may be gone a moment later, its names too: the code of a module when
// its import ends. The leaf's end first.
void CopyJob::ReadNewCodes() {
  int read = 0;
  for (SeenCode& seen : seen_codes) {
    const CodeWatch::Knowledge knowledge = codes->KnowledgeOf(seen);
    if (knowledge == CodeWatch::Knowledge::kLasting) continue;
    new_codes |= knowledge == CodeWatch::Knowledge::kNone;
    if (read++ == kMostRead) break;
    seen.info = codes->Read(seen.code);
  }
  if (read > 0) ReadProof();
}

// Object by object, straight from the target: the proof is read again after it.
void CopyJob::ReadLocals() {
  for (ThreadCopy* thread : threads) {
    thread->locals.clear();
    if (thread->status != WalkStatus::kComplete) continue;
    for (const pyabi::RawFrame& frame : thread->frames) {
      thread->locals.push_back({frame.frame, pyabi::ReadLocals(*memory, *layout, frame)});
    }
  }
  ReadProof();
}

// After what is read past the copy.
void CopyJob::ReadProof() {
  requests_.clear();
  AppendProof();
  read_ok = memory->ReadAll(requests_);
  if (gil != nullptr && read_ok) gil_state = gil->Decode(GilReader::kAfter);
}

void CopyJob::AppendProof() {
  if (gil != nullptr) gil->AppendRequest(GilReader::kAfter, requests_);
  for (ThreadCopy* other : std::span(threads).subspan(1)) {
    if (other->watch.rseq_cpu_id == 0) continue;
    requests_.push_back({other->watch.rseq_cpu_id, &other->cpu, sizeof other->cpu});
  }
  if (witness.rseq_cpu_id != 0) {
    requests_.push_back({witness.rseq_cpu_id, &rseq_cpu_, sizeof rseq_cpu_});
  }
}

void CopyJob::ReadWitness() {
  if (witness.rseq_cpu_id != 0) {
    // The target may write there what it likes.
    if (rseq_cpu_ < CPU_SETSIZE) subject_cpu = static_cast<int>(rseq_cpu_);
    return;
  }
  const std::optional<Place> place = ReadPlace();
  if (place && place == place_before_) subject_cpu = place->cpu;
}

std::optional<CopyJob::Place> CopyJob::ReadPlace() const {
  char text[1024];
  const auto stat = ParseTaskStat(ReadInto(witness.stat_fd, text));
  if (!stat) return std::nullopt;
  const auto schedule = ParseSchedStat(ReadInto(witness.schedstat_fd, text));
  if (!schedule) return std::nullopt;
  return Place{stat->processor, schedule->switches};
}

void CopyJob::LookAtSubject() {
  char text[256];
  const auto stat = ParseSchedStat(ReadInto(witness.schedstat_fd, text));
  if (!stat) return;
  // Often our timer has just woken it, and the CPU that it comes to is another, as this one is
  // ours.
  slept = !awake_before && stat_before && stat->exact() && SameRun(*stat_before, *stat);
  subject_look = {*stat, true, !stopped && StoodStill()};
  subject_look->on_cpu = WasOnCpu(*stat);
  // Who has the lock is awake.
  if (gil != nullptr && SubjectHoldsLock()) return;
  subject_look->unsure = ahead_of_switch.has_value();
  const bool ran = awake_before || subject_look->on_cpu == OnCpu::kYes;
  subject_look->awake =
      ran && (!subject_look->in_pause || ReadAwake(witness.syscall_fd).value_or(true));
  const bool is_here = HeldStill() && own_cpu == sched_getcpu();
  if (shares_cpu && is_here && subject_look->awake) subject_look->on_cpu = WasLastOnThisCpu(tid);
}

// What they do by now is not what they did when they were chosen.
void CopyJob::LookAtOthers() {
  for (ThreadCopy* thread : std::span(threads).subspan(1)) thread->look = LookAt(*thread);
}

std::optional<TaskLook> CopyJob::LookAt(const ThreadCopy& other) const {
  const TaskWatch& watch = other.watch;
  char text[256];
  const auto stat = ParseSchedStat(ReadInto(watch.schedstat_fd, text));
  const auto awake = ReadAwake(watch.syscall_fd);
  if (!stat || !awake) return std::nullopt;
  TaskLook look{*stat, *awake, &other == LetGoHeldStill()};
  const OnCpu ran = watch.stat_before ? RanSince(*watch.stat_before, *stat) : OnCpu::kUnknown;
  if (look.in_pause) look.on_cpu = ran;
  // What has woken where we are has had no CPU yet: by now it would sleep again, had we not come.
  const int cpu = static_cast<int>(other.cpu);
  const bool is_here = watch.rseq_cpu_id != 0 && (cpu == own_cpu || cpu == sched_getcpu());
  if (!is_here) return look;
  look.awake &= watch.awake_before || ran == OnCpu::kYes;
  if (shares_cpu && look.awake) look.on_cpu = WasLastOnThisCpu(watch.tid);
  return look;
}

void CopyJob::TakeNative() {
  if (!native) return;
  StoppedStack& stack = threads.front()->native;
  char text[256];
  if (stopped) {
    stack.Take(tid, *memory);
  } else {
    stack.TakeAsleep(ReadInto(witness.syscall_fd, text), thread_pointer, *memory);
  }
}

// Taken off its CPU it is charged what it ran there; one that waits for a CPU is charged nothing.
// (To be stopped by ptrace every thread runs.)
OnCpu CopyJob::WasOnCpu(const SchedStat& now) const {
  if (stopped) return before_stop_;
  if (!stat_before || !StoodStill()) return OnCpu::kUnknown;
  return RanSince(*stat_before, now);
}

// It was charged before anything was known of it; what our own timer woke waits here like what ran.
OnCpu CopyJob::WasLastOnThisCpu(pid_t thread) {
  const auto had = HadCpuBefore(thread);
  if (!had) return OnCpu::kUnknown;
  return *had ? OnCpu::kYes : OnCpu::kNo;
}

OnCpu CopyJob::RanSince(const SchedStat& before, const SchedStat& now) {
  if (!now.exact()) return OnCpu::kUnknown;
  return now.cpu_ns > before.cpu_ns ? OnCpu::kYes : OnCpu::kNo;
}

// Queued on this CPU it does not run, for we do.
OnCpu CopyJob::WasOnThisCpu() {
  char text[256];
  const auto stat = ParseSchedStat(ReadInto(witness.schedstat_fd, text));
  subject_cpu = -1;
  if (witness.rseq_cpu_id == 0) place_before_ = ReadPlace();
  ReadProof();
  ReadWitness();
  const bool is_here = read_ok && subject_cpu == sched_getcpu();
  if (!is_here || !stat || !stat_before) return OnCpu::kUnknown;
  return RanSince(*stat_before, *stat);
}

pid_t CopyJob::WhomToStop() {
  before_stop_ = WasOnThisCpu();
  if (read_ok && AnotherHoldsLock() && TurnToHolder()) before_stop_ = OnCpu::kUnknown;
  stopped = ReadAwake(witness.syscall_fd).value_or(true);
  return stopped ? tid : 0;
}

void CopyJob::LookAgain(Nanoseconds before) {
  char text[256];
  const auto stat = ParseSchedStat(ReadInto(witness.schedstat_fd, text));
  const bool awake = ReadAwake(witness.syscall_fd).value_or(true);
  if (MonotonicNow() >= before) return;
  if (stat) stat_before = stat;
  awake_before = awake;
}

}  // namespace pystrobe::remote
