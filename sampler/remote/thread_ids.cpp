// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/thread_ids.h"

#include <algorithm>
#include <array>
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

/// Two states of one interpreter never belong to one thread: the second is one being born (it
/// carries its parent's ids until it runs) or left over. The one that runs Python code stays.
void DropDoubles(const Memory& memory, const Layout& layout, std::vector<PyThread>& threads) {
  std::map<std::pair<Address, pid_t>, size_t> first;
  std::vector<bool> drop(threads.size());
  for (size_t i = 0; i < threads.size(); ++i) {
    auto [found, added] = first.try_emplace({threads[i].interpreter, threads[i].tid}, i);
    if (added) continue;
    bool first_runs = ReadCurrentFrame(memory, layout, threads[found->second].tstate) != 0;
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
  auto tasks = ListTasks(pid_);
  if (!tasks) return std::unexpected(tasks.error());
  TidMap known_inner;
  for (const auto& [inner, outer] : outer_by_inner_) known_inner[outer] = inner;
  TidMap now;
  auto leader = ReadStatus(pid_);
  bool same_namespace = leader && leader->namespace_pids.size() <= 1;
  for (pid_t outer : *tasks) {
    pid_t inner = outer;
    if (!same_namespace) {
      if (auto known = known_inner.find(outer); known != known_inner.end()) {
        inner = known->second;
      } else if (auto status = ReadTaskStatus(pid_, outer);
                 status && !status->namespace_pids.empty()) {
        inner = status->namespace_pids.back();
      } else {
        continue;  // gone meanwhile
      }
    }
    now[inner] = outer;
  }
  outer_by_inner_ = std::move(now);
  return {};
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
  // States left over from threads that ended lead nowhere, so most must fit, not all.
  size_t most = copies.size() / 2;
  std::optional<uint32_t> best;
  for (uint32_t offset = 0; offset + sizeof(pid_t) <= kSearchBytes; offset += sizeof(pid_t)) {
    std::set<pid_t> seen;
    for (const auto& [pthread, bytes] : copies) {
      if (pid_t tid = TidAt(bytes, offset); outer_by_inner_.contains(tid)) seen.insert(tid);
    }
    if (seen.size() > most) {
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
  if (layout.thread.native_thread_id == kAbsent && !FillFromPthread(memory, threads)) {
    tid_offset_ = FindTidOffset(memory, threads);
    if (!FillFromPthread(memory, threads)) {
      for (PyThread& thread : threads) thread.tid = 0;
      return {};
    }
  }
  size_t kept = 0;
  for (PyThread& thread : threads) {
    auto found = outer_by_inner_.find(thread.tid);
    if (found == outer_by_inner_.end()) continue;
    thread.tid = found->second;
    threads[kept++] = thread;
  }
  threads.resize(kept);
  FindBorrowers(memory, layout, pid_, threads);
  DropDoubles(memory, layout, threads);
  return {};
}

}  // namespace pystrobe::remote
