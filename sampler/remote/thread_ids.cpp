// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/thread_ids.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

#include "profiler/base/proc.h"
#include "sampler/remote/thread_list.h"

namespace pystrobe::remote {
namespace {

using pyabi::kAbsent;
using pyabi::Layout;
using pyabi::Memory;

/// The tid lies at 720 in glibc's struct pthread on x86-64 and at 48 in musl's; searching finds
/// both, and whatever comes next.
constexpr size_t kSearchBytes = 1024;
using PthreadBytes = std::array<std::byte, kSearchBytes>;

pid_t TidAt(const PthreadBytes& bytes, size_t offset) {
  int32_t value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// In our own pid namespace, that of the tids in /proc.
std::optional<pid_t> LastIdGivenOut() {
  const auto loads = ReadSmallFile("/proc/loadavg");
  if (!loads) return std::nullopt;
  const size_t last = loads->find_last_of(' ');
  if (last == std::string::npos) return std::nullopt;
  return std::atoi(loads->c_str() + last);
}

/// The ids that a thread state has.
struct StateIds {
  std::optional<uint64_t> pthread, native;
  friend bool operator==(const StateIds&, const StateIds&) = default;
};

StateIds ReadIds(const Memory& memory, const Layout& layout, Address tstate) {
  StateIds ids{memory.Read<uint64_t>(tstate + layout.thread.thread_id), {}};
  if (layout.thread.native_thread_id != kAbsent) {
    ids.native = memory.Read<uint64_t>(tstate + layout.thread.native_thread_id);
  }
  return ids;
}

/// Two states of one interpreter never belong to one thread: the second is left over or, up to
/// 3.11, one being born. That has its parent's ids until its own thread runs, which first gives it
/// its own and then runs Python code (t_bootstrap in Modules/_threadmodule.c): so what runs, and
/// has the same ids still, has its own. The one that does stays. `listed`: the ids at the time.
void DropDoubles(const Memory& memory, const Layout& layout, const std::vector<StateIds>& listed,
                 std::vector<PyThread>& threads) {
  const auto runs = [&](size_t i) {
    const Address tstate = threads[i].tstate;
    return ReadCurrentFrame(memory, layout, tstate) != 0 &&
           ReadIds(memory, layout, tstate) == listed[i];
  };
  std::map<std::pair<Address, pid_t>, size_t> first;
  std::vector<bool> drop(threads.size());
  for (size_t i = 0; i < threads.size(); ++i) {
    auto [found, added] = first.try_emplace({threads[i].interpreter, threads[i].tid}, i);
    if (added) continue;
    const bool first_runs = runs(found->second);
    drop[first_runs ? i : found->second] = true;
    if (!first_runs) found->second = i;
  }
  size_t kept = 0;
  for (size_t i = 0; i < threads.size(); ++i) {
    if (!drop[i]) threads[kept++] = threads[i];
  }
  threads.resize(kept);
}

/// Before 3.13, _xxsubinterpreters runs code in the thread state that made the sub-interpreter,
/// whatever thread calls it. Where the state points into the C stack (3.11, 3.12), the stack tells
/// whose thread it is: a thread's own structure lies at the end of its stack.
void FindBorrowers(const Memory& memory, const Layout& layout, pid_t pid,
                   std::vector<PyThread>& threads) {
  if (layout.thread.cframe == kAbsent) return;
  for (PyThread& borrowed : threads) {
    if (borrowed.interpreter_id == 0) continue;
    auto cframe = memory.Read<Address>(borrowed.tstate + layout.thread.cframe);
    const bool idle = !cframe || *cframe == borrowed.tstate + layout.thread.root_cframe;
    if (idle) continue;
    // The main thread's stack lies above all others, and its structure elsewhere.
    const PyThread* owner = nullptr;
    for (const PyThread& thread : threads) {
      if (thread.interpreter_id != 0) continue;
      bool fits = thread.pthread > *cframe && thread.tid != pid;
      if (fits && (owner == nullptr || owner->tid == pid || thread.pthread < owner->pthread)) {
        owner = &thread;
      } else if (owner == nullptr && thread.tid == pid) {
        owner = &thread;
      }
    }
    if (owner == nullptr) continue;
    borrowed.pthread = owner->pthread;
    borrowed.tid = owner->tid;
  }
}

}  // namespace

Result<void> ThreadIds::UpdateTasks() {
  // A task begun after this line is one that the next look must not take from this one.
  const pid_t given_before = LastIdGivenOut().value_or(0);
  auto tasks = ListTasks(pid_);
  if (!tasks) return std::unexpected(tasks.error());
  auto leader = ReadStatus(pid_);
  TidMap now;
  if (leader && leader->namespace_pids.size() <= 1) {
    for (const pid_t tid : *tasks) now[tid] = tid;
  } else {
    // Where nobody can tell, any may have been given out.
    now = Translate(*tasks, {given_before_, LastIdGivenOut().value_or(INT_MAX)});
  }
  outer_by_inner_ = std::move(now);
  given_before_ = given_before;
  return {};
}

ThreadIds::TidMap ThreadIds::Translate(const std::vector<pid_t>& tasks,
                                       IdsGivenOut since_last_look) const {
  TidMap known;
  for (const auto& [inner, outer] : outer_by_inner_) known[outer] = inner;
  TidMap now;
  for (const pid_t outer : tasks) {
    const auto found = known.find(outer);
    if (found != known.end() && !since_last_look.Contain(outer)) {
      now[found->second] = outer;
    } else if (auto status = ReadTaskStatus(pid_, outer);
               status && !status->namespace_pids.empty()) {
      now[status->namespace_pids.back()] = outer;
    }
  }
  return now;
}

std::optional<uint32_t> ThreadIds::FindTidOffset(const Memory& memory,
                                                 const std::vector<PyThread>& threads) const {
  constexpr size_t kEnough = 16;
  std::map<uint64_t, PthreadBytes> copies;
  for (const PyThread& thread : threads) {
    PthreadBytes bytes;
    if (thread.pthread % 8 == 0 && memory.Read(thread.pthread, bytes.data(), bytes.size())) {
      copies[thread.pthread] = bytes;
    }
    if (copies.size() == kEnough) break;
  }
  // States left over from threads that ended lead nowhere, so most must fit, not all; those whose
  // memory is still there do not count, for the kernel has made their id 0 (set_tid_address(2)).
  size_t most = 0;
  std::optional<uint32_t> best;
  for (uint32_t offset = 0; offset + sizeof(pid_t) <= kSearchBytes; offset += sizeof(pid_t)) {
    std::set<pid_t> seen;
    size_t ended = 0;
    for (const auto& [pthread, bytes] : copies) {
      const pid_t tid = TidAt(bytes, offset);
      if (tid == 0) ++ended;
      if (outer_by_inner_.contains(tid)) seen.insert(tid);
    }
    if (seen.size() > most && 2 * seen.size() > copies.size() - ended) {
      most = seen.size();
      best = offset;
    }
  }
  return best;
}

/// False when no offset is known or the one known gives an id that two threads would share.
bool ThreadIds::FillFromPthread(const Memory& memory, std::vector<PyThread>& threads) {
  if (!tid_offset_) return false;
  HashMap<pid_t, uint64_t> owner;
  for (PyThread& thread : threads) {
    auto tid = memory.Read<pid_t>(thread.pthread + *tid_offset_);
    thread.tid = tid.value_or(-1);
    if (!tid) continue;
    auto [found, added] = owner.try_emplace(*tid, thread.pthread);
    if (!added && found->second != thread.pthread && *tid > 0) return false;
  }
  return true;
}

Result<void> ThreadIds::Resolve(const Memory& memory, const Layout& layout,
                                std::vector<PyThread>& threads) {
  std::lock_guard lock(mutex_);
  if (auto done = UpdateTasks(); !done) return done;
  std::vector<StateIds> listed;
  for (const PyThread& thread : threads) {
    listed.push_back({thread.pthread, {}});
    if (layout.thread.native_thread_id != kAbsent) {
      listed.back().native = static_cast<uint64_t>(thread.tid);
    }
  }
  if (layout.thread.native_thread_id == kAbsent && !FillFromPthread(memory, threads)) {
    tid_offset_ = FindTidOffset(memory, threads);
    if (!FillFromPthread(memory, threads)) {
      for (PyThread& thread : threads) thread.tid = 0;
      return {};
    }
  }
  size_t kept = 0;
  for (size_t i = 0; i < threads.size(); ++i) {
    auto found = outer_by_inner_.find(threads[i].tid);
    if (found == outer_by_inner_.end()) continue;
    threads[i].tid = found->second;
    listed[kept] = listed[i];
    threads[kept++] = threads[i];
  }
  threads.resize(kept);
  FindBorrowers(memory, layout, pid_, threads);
  DropDoubles(memory, layout, listed, threads);
  return {};
}

}  // namespace pystrobe::remote
