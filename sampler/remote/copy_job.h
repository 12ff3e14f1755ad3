// SPDX-License-Identifier: Apache-2.0
//
// Copying the stacks of one or several threads in one instant, with the proof that it was one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "profiler/base/clock.h"
#include "profiler/base/proc.h"
#include "sampler/pyabi/code.h"
#include "sampler/pyabi/layout.h"
#include "sampler/pyabi/objects.h"
#include "sampler/pyabi/regions.h"
#include "sampler/pyabi/stack_copy.h"
#include "sampler/pyabi/walk.h"
#include "sampler/remote/process_memory.h"
#include "sampler/remote/stack_plan.h"
#include "sampler/remote/stopped_stack.h"
#include "sampler/remote/task_clock.h"

namespace pystrobe::remote {

struct FrameLocals {
  Address frame = 0;
  std::vector<pyabi::Local> values;
};

/// How to look at a thread in the pause, and what was known of it when it was chosen.
struct TaskWatch {
  pid_t tid = 0;
  int schedstat_fd = -1;  ///< as those of a CpuWitness
  int syscall_fd = -1;
  Address rseq_cpu_id = 0;
  bool awake_before = true;
  std::optional<SchedStat> stat_before;
};

/// One thread's stack as it stood. Buffers are kept from sample to sample.
struct ThreadCopy {
  StackPlan* plan = nullptr;  ///< not owned
  TaskWatch watch;            ///< of who may be copied along
  pyabi::StackCopy memory;
  std::vector<pyabi::RawFrame> frames;                    ///< leaf first
  std::vector<Address> loop_frames;                       ///< where the evaluation loop's own lie
  std::optional<pyabi::WalkResult> walk;                  ///< as far as it came
  pyabi::WalkStatus status = pyabi::WalkStatus::kBroken;  ///< kMissing: cut where it got too long
  std::vector<FrameLocals> locals;  ///< of `frames`, where the job asks for them
  StoppedStack native;              ///< of the subject, where the job asks for it
  uint32_t cpu = 0;                 ///< of who is copied along, where rseq tells: where it ran last
  std::optional<TaskLook> look;     ///< of who is copied along, just after the copy
};

/// The words of a GIL that matter, as they were at the end of the copy.
struct GilState {
  Address last_holder = 0;
  int32_t locked = 0;  ///< 1: last_holder has it
  uint64_t switch_number = 0;

  bool HeldBy(Address tstate) const { return locked == 1 && last_holder == tstate; }
};

/// Reads GilState; with no GIL (address 0) leaves it as it is.
class GilReader {
 public:
  GilReader(const pyabi::Layout& layout, Address gil) : layout_(&layout), gil_(gil) {}
  /// When in a copy the lock is read.
  enum Moment { kBefore, kAfter };
  /// One request; Decode() after the read.
  void AppendRequest(Moment moment, std::vector<pyabi::ReadRequest>& requests);
  GilState Decode(Moment moment) const;
  Address address() const { return gil_; }

 private:
  const pyabi::Layout* layout_;
  Address gil_;
  std::byte bytes_[2][pyabi::kGilBytes] = {};
};

/// A code object as a copy found it.
struct SeenCode {
  Address code = 0;
  pyabi::CodeIdentity identity;         ///< zeros where it could not be read
  std::optional<pyabi::CodeInfo> info;  ///< of one that was not known, where there was time for it
};

/// Says which code objects must be looked at while the threads are still paused; see CodeCache.
/// [threads that run jobs, several at once]
class CodeWatch {
 public:
  virtual ~CodeWatch() = default;
  /// Appends the codes of `frames` to look at, leaf first. `generation`: what the copy brought.
  virtual void Select(const std::vector<pyabi::RawFrame>& frames, uint64_t generation,
                      std::vector<Address>& codes) const = 0;
  enum class Knowledge {
    kNone,     ///< that code object is not the one known at its address
    kPassing,  ///< it is, but the address has had others: what is known may be another's by the
               ///< time this copy is taken over, after those before it
    kLasting,
  };
  virtual Knowledge KnowledgeOf(const SeenCode& seen) const = 0;
  /// Reads names and lines: some microseconds. Nullopt when it is gone.
  virtual std::optional<pyabi::CodeInfo> Read(Address code) const = 0;
};

/// Which CPU a thread last ran user code on, read as the last thing of a copy.
///
/// With rseq the kernel writes the CPU before user code runs there (struct rseq in <linux/rseq.h>),
/// so the number, read last, tells that the thread ran nowhere else during the copy. Without rseq,
/// and for more time, /proc tells where the thread is queued and how often it was put on a CPU:
/// both must be what they were before the copy, for a thread is queued on a CPU before it runs
/// there.
struct CpuWitness {
  Address rseq_cpu_id = 0;  ///< address of rseq.cpu_id; 0: use stat and schedstat
  int stat_fd = -1;         ///< kept open on task/TID/stat
  int schedstat_fd = -1;    ///< kept open on task/TID/schedstat; -1: there is none
  int syscall_fd = -1;      ///< kept open on task/TID/syscall; -1: there is none
};

/// Who may turn out to have the lock when the time has come.
class LockHolders {
 public:
  struct Holder {
    ThreadCopy* copy;
    CpuWitness witness;
    Address generation_address;
    pid_t tid;
    Address thread_pointer;  ///< its pthread_self()
  };

  virtual ~LockHolders() = default;
  /// Nullopt where that thread is not known, or not cheaply proved to stand still.
  /// [threads that run jobs, while the pacer changes nothing]
  virtual std::optional<Holder> FindHolder(Address tstate) const = 0;
};

/// What to copy, and the result. Filled by the pacer, run by whoever holds the subject's CPU, or by
/// the pacer while that is held.
/// [one thread at a time]
struct CopyJob {
  const ProcessMemory* memory = nullptr;
  const pyabi::Layout* layout = nullptr;
  GilReader* gil = nullptr;  ///< may be null: free-threaded
  /// Null: what is copied is the stack of who was chosen, whoever has the lock by then.
  const LockHolders* holders = nullptr;
  const CodeWatch* codes = nullptr;
  const pyabi::Regions* regions = nullptr;  ///< of this process, where that is the target
  Address generation_address = 0;           ///< 3.14+: where dead code objects are counted, else 0
  pid_t tid = 0;                            ///< the subject, the thread to be held
  CpuWitness witness;                       ///< of it
  /// The subject first. Where `holders` know somebody else who has the lock when the copy is made,
  /// that one is the subject then, and this one is copied along: it has let go of the lock, and
  /// what it does since is not to be left out.
  std::vector<ThreadCopy*> threads;
  /// Of the subject, when it was chosen. Our coming wakes a CPU that was idle, and sometimes with
  /// it the thread that sleeps there. So one that was asleep before and is awake in the pause ran
  /// only if it was charged something in between. Not known with `ahead_of_switch`, nor where the
  /// pacer had the CPU of one that was awake: that had been charged by then.
  std::optional<SchedStat> stat_before;
  bool awake_before = true;  ///< the same, and a moment later
  bool locals = false;       ///< read local variables too: some microseconds for each
  /// Take along what native frames are unwound from, of the subject, which is held by ptrace or
  /// sleeps.
  bool native = false;
  Address thread_pointer = 0;  ///< the subject's pthread_self()
  bool stopped = false;        ///< the subject is held by ptrace, and looks asleep therefore
  bool shares_cpu = false;     ///< the calling thread has woken on the subject's CPU just for it
  bool alone = true;           ///< no other copy is begun with this one
  bool woken_for = false;  ///< who holds the CPU was woken for it, and so had that CPU once before
  /// Made ahead of its time, as the subject had the lock and nobody else did since this count:
  /// further such jobs are of no use once that has changed.
  std::optional<uint64_t> ahead_of_switch;

  // Results.
  Nanoseconds began{};  ///< CLOCK_MONOTONIC
  bool read_ok = false;
  int subject_cpu = -1;      ///< where the subject last ran, as of the end of the copy
  int own_cpu = -1;          ///< where the copy was made
  bool descheduled = false;  ///< who held the CPU lost it meanwhile
  bool slept = false;        ///< the subject slept when it was chosen, and had no CPU since
  GilState gil_before;  ///< the lock before the first byte was copied, where threads are several
  GilState gil_state;   ///< and after the last
  uint64_t generation = 0;               ///< what was read at generation_address
  std::optional<TaskLook> subject_look;  ///< as of the copy; nullopt when the kernel does not tell
  std::vector<SeenCode> seen_codes;      ///< what `codes` asked for
  bool new_codes = false;                ///< among them are some that `codes` should know soon
  Nanoseconds took{};  ///< that we had the CPU for it; `descheduled`: that we and others had

  /// The subject ran no user code during the copy: it was not elsewhere, and not here.
  bool HeldStill() const { return read_ok && !descheduled && subject_cpu == own_cpu; }
  /// It ran none, wherever it was.
  bool StoodStill() const { return HeldStill() || (read_ok && slept); }

  /// No thread of the subject's interpreter lock ran bytecode during the copy. The subject was the
  /// lock's last holder and stood still, and whoever else takes the lock becomes its last holder
  /// and is counted (take_gil in Python/ceval_gil.c), so nobody did.
  bool AllFrozen() const {
    return StoodStill() && gil_before.last_holder == tstate() &&
           gil_before.last_holder == gil_state.last_holder &&
           gil_before.switch_number == gil_state.switch_number;
  }

  /// Who was to be the subject and had let go of the lock, as somebody else had taken it: that
  /// one's copy is proved by itself. Null: there is none.
  const ThreadCopy* LetGoHeldStill() const {
    if (let_go_ == nullptr || !read_ok || descheduled) return nullptr;
    return static_cast<int>(let_go_->cpu) == own_cpu ? let_go_ : nullptr;
  }

  /// Of the subject.
  Address tstate() const { return threads.front()->plan->tstate(); }

  /// The subject's interpreter lock was its own; without such a lock: it was attached.
  bool SubjectHoldsLock() const { return HoldsLock(*threads.front()); }
  bool HoldsLock(const ThreadCopy& thread) const;

  /// The subject's stack was walked to its end; what is cut for its length will be again.
  bool IsWhole() const;
  bool AnotherHoldsLock() const {
    return gil_state.locked == 1 && gil_state.last_holder != tstate();
  }

  /// Of a job made ahead: the lock was not the subject's all the time.
  bool LockChangedHands() const {
    return read_ok && ahead_of_switch && gil_state.switch_number != *ahead_of_switch;
  }

  /// The copy is not what a sample needs, or brought code objects that are new, or
  /// the jobs after it should be reconsidered.
  bool NeedsAttention() const;

  /// Copies, walks, fetches what the prediction missed, looks at the codes asked for. That is
  /// proved where the calling thread is on the subject's CPU.
  void Run();
  /// There was no memory for it: it proves nothing.
  void Fail() {
    read_ok = false;
    descheduled = true;
  }
  /// As Run, with nothing spent on the proof, which there is none of then.
  void RunUnproved();
  /// The same. True when the subject slept all the while, by the kernel's count of how often it was
  /// put on a CPU: then the copy is proved.
  bool RunAsleep();
  /// The subject, to be stopped by ptrace, or 0 where that sleeps. Notes whether it had the CPU
  /// where the calling thread is now.
  pid_t WhomToStop();
  /// Makes who has the lock, as of the last copy, the subject. False where it is nobody that is
  /// known.
  bool TurnToHolder();
  /// Reads `stat_before` and `awake_before` again, as time has passed since they were set. What is
  /// read at `before` or later does not count: by then somebody else may have the subject's CPU.
  void LookAgain(Nanoseconds before = Nanoseconds::max());
  /// As Run, but while another thread of ours has the subject's CPU, `held_cpu`. There is a result
  /// only after EndBeside.
  void RunBeside(int held_cpu);
  /// The other thread had that CPU all the time, `stay` in all.
  void EndBeside(Nanoseconds stay);

 private:
  struct Place {
    int cpu;
    uint64_t switches;
    friend bool operator==(const Place&, const Place&) = default;
  };

  void Reset();
  void CopyWhoHasLock();
  void CopyWithWitness();
  void ConfirmPlans();
  void Copy();
  bool ReadPredicted();
  bool ReadPending();
  void WalkAll();
  void WalkOne(ThreadCopy& thread);
  void LearnCut();
  bool Fetch();
  void LookAtCodes();
  void ReadNewCodes();
  void ReadLocals();
  void AppendProof();
  void ReadProof();
  void ReadWitness();
  std::optional<Place> ReadPlace() const;
  void LookAtSubject();
  void LookAtOthers();
  std::optional<TaskLook> LookAt(const ThreadCopy& other) const;
  void TakeNative();
  /// Whether the subject, of which the kernel says `now` in the pause, had a CPU before it.
  OnCpu WasOnCpu(const SchedStat& now) const;
  static OnCpu WasLastOnThisCpu(pid_t thread);
  static OnCpu RanSince(const SchedStat& before, const SchedStat& now);
  OnCpu WasOnThisCpu();

  std::vector<pyabi::ReadRequest> requests_;
  std::vector<size_t> first_pending_;
  std::vector<Address> code_list_;
  std::vector<std::byte> code_bytes_;
  uint32_t rseq_cpu_ = 0;
  ThreadCopy* let_go_ = nullptr;
  OnCpu before_stop_ = OnCpu::kUnknown;
  std::optional<Place> place_before_;  // without rseq
};

}  // namespace pystrobe::remote
