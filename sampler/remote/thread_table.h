// SPDX-License-Identifier: Apache-2.0
//
// The Python threads of a target, grouped by the lock that serialises them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "profiler/base/hash_map.h"
#include "sampler/remote/sampled_thread.h"

namespace pystrobe::remote {

/// The threads under one GIL. Free-threaded targets have one domain without a lock.
struct LockDomain : LockHolders {
  LockDomain(const pyabi::Layout& layout, Address gil_address) : gil(layout, gil_address) {}

  GilReader gil;                        ///< address 0: no lock
  std::vector<SampledThread*> threads;  ///< not owned
  HashMap<Address, SampledThread*> by_tstate;
  uint64_t switch_number = 0;  ///< as of the last copy
  size_t next_check = 0;       ///< round robin over idle threads
  size_t next_running = 0;     ///< and over those that run, where not all fit into one look
  uint64_t locked_in = 0;      ///< the last tick that saw a thread with the lock
  SampledThread* last_subject = nullptr;
  Address missing_holder = 0;  ///< the lock's last holder, where it is none of `threads`
  Address sought_holder = 0;   ///< was missing when the threads were listed last

  bool free_threaded() const { return gil.address() == 0; }
  /// Null where there is none.
  GilReader* lock() { return free_threaded() ? nullptr : &gil; }
  void Add(SampledThread* thread);
  void Remove(SampledThread* thread);
  SampledThread* Find(Address tstate) const;
  std::optional<Holder> FindHolder(Address tstate) const override;
  /// True when the threads should be listed anew, as one that they lack has the lock, or had it
  /// last. The lock names its last holder for as long as nobody else takes it, so one that has
  /// ended since, which no list has, is worth one list only; so is one that was `refused`.
  bool LacksHolder(const GilState& gil, bool refused);
  /// The threads were listed.
  void NoteListed() { sought_holder = missing_holder; }
  /// The thread whose turn it is by `turn`, a place in the list, which moves on.
  SampledThread* Next(size_t& turn) const;
};

class ThreadNames;

/// Keeps up with threads that come and go. [one thread: the pacer]
class ThreadTable {
 public:
  explicit ThreadTable(RunContext& context) : context_(context) {}

  /// Lists the target's threads anew: adds those that appeared, drops those that went (what they
  /// had pending is yielded first). Fails as Target::ListThreads, and where a thread could not be
  /// looked at (too many open files), which may come in with the next call; all others are there.
  Result<void> Refresh(const Tick& tick);
  /// True when the target has threads that are not in the table, as far as one read of its memory
  /// tells: a state that is new stands first in its interpreter's list, and an interpreter in the
  /// runtime's (Python/pystate.c). Of a state that Refresh does not bring in (its thread has not
  /// begun, or has ended and left it) this is said only for some calls of Refresh.
  bool LacksThreads();
  /// As KernelThread::BeginAt, for all there are.
  void BeginAt(Nanoseconds now);
  /// Yields what every thread has pending.
  void FlushAll();
  /// As ThreadLedger::Replace, for all there are.
  void ReplaceStacks(FunctionRef<StackId(StackId)> now);
  /// The last call but for figures and names: yields all that is left.
  void FinishAll(const Tick& tick);
  /// Names threads as the program does, where it does; else as the kernel does. The main thread of
  /// a program that does not import threading is MainThread.
  void UpdateNames();
  /// The same some times more after a thread was found that the program had no name for: it gives
  /// one when the thread first has the lock (threading.Thread._bootstrap_inner). Call it often.
  void UpdateNewNames(Nanoseconds now);

  std::span<const std::unique_ptr<LockDomain>> domains() const { return domains_; }
  std::span<const std::unique_ptr<SampledThread>> threads() const { return threads_; }
  /// Run delay of all threads there were.
  uint64_t total_run_delay() const;
  /// The thread with this state was listed, but /proc does not show it.
  bool Refused(Address tstate) const { return refused_.contains(tstate); }
  bool exact_clock() const { return exact_clock_; }

 private:
  /// Null while the thread's interpreter has no lock yet, or no more.
  LockDomain* DomainOf(const PyThread& thread);
  std::optional<Address> GilOf(Address interpreter) const;
  bool IsKnown(Address tstate) const;
  /// False where it is refused, or its interpreter has no lock yet. Fails where the thread cannot
  /// be looked at.
  Result<bool> Add(const PyThread& thread, const Tick& tick);
  Result<KernelThread*> KernelThreadOf(const PyThread& thread, const Tick& tick);
  void ForgetGone(const Tick& tick);
  std::optional<std::string> NameOf(const KernelThread& thread, ThreadNames& names);

  RunContext& context_;
  HashMap<pid_t, std::unique_ptr<KernelThread>> kernel_threads_;
  std::vector<std::unique_ptr<SampledThread>> threads_;
  std::vector<std::unique_ptr<LockDomain>> domains_;
  HashMap<Address, pid_t> refused_;  // by state: the thread, which /proc does not show us
  bool lacks_names_ = false;
  Nanoseconds naming_wait_{}, next_naming_{};
  std::vector<Address> interpreters_;  // the youngest first
  Address sought_ = 0;                 // first in a list, and not in the table
  int searches_ = 0;                   // for that, in vain
  std::vector<Address> heads_;
  std::vector<pyabi::ReadRequest> requests_;
  uint64_t run_delay_of_gone_ = 0;
  bool exact_clock_ = true;
};

}  // namespace pystrobe::remote
