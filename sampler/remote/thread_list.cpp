// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/thread_list.h"

#include <algorithm>

#include "sampler/pyabi/bytes.h"

namespace pystrobe::remote {
namespace {

using pyabi::kAbsent;
using pyabi::Layout;
using pyabi::Memory;

// More than anyone runs; a list this long is a loop or not a list.
constexpr size_t kMaxInterpreters = 65536;
constexpr size_t kMaxThreads = 1'000'000;

bool LooksLikeObject(Address address) { return address != 0 && address % 8 == 0; }

Result<void> ReadThreadsOf(const Memory& memory, const Layout& layout, Address interpreter,
                           uint64_t interpreter_id, std::vector<PyThread>& threads) {
  auto head = memory.Read<Address>(interpreter + layout.interpreter.threads_head);
  if (!head) return Fail(ErrorCode::kUnreadable, "interpreter {:#x} is unreadable", interpreter);
  std::vector<std::byte> bytes(layout.thread.size);
  // `prev` and `next` are neighbours in every version (struct _ts, PyThreadState).
  const uint32_t prev = layout.thread.next - 8;
  Address before = 0;
  for (Address tstate = *head; tstate != 0;
       tstate = pyabi::Load<uint64_t>(bytes, layout.thread.next)) {
    if (!LooksLikeObject(tstate) || !memory.Read(tstate, bytes.data(), bytes.size())) {
      return Fail(ErrorCode::kUnreadable, "thread state {:#x} is unreadable", tstate);
    }
    if (Address seen = pyabi::Load<uint64_t>(bytes, layout.thread.interp); seen != interpreter) {
      return Fail(ErrorCode::kUnreadable,
                  "thread state {:#x} points to interpreter {:#x}, not {:#x}", tstate, seen,
                  interpreter);
    }
    if (layout.thread.next >= 8 && pyabi::Load<uint64_t>(bytes, prev) != before) {
      return Fail(ErrorCode::kUnreadable, "thread state {:#x} does not point back to {:#x}", tstate,
                  before);
    }
    if (threads.size() >= kMaxThreads) {
      return Fail(ErrorCode::kUnreadable, "more than {} thread states", kMaxThreads);
    }
    PyThread thread{.tstate = tstate, .interpreter = interpreter, .interpreter_id = interpreter_id};
    thread.pthread = pyabi::Load<uint64_t>(bytes, layout.thread.thread_id);
    if (layout.thread.native_thread_id != kAbsent) {
      thread.tid = static_cast<pid_t>(pyabi::Load<uint64_t>(bytes, layout.thread.native_thread_id));
    }
    threads.push_back(thread);
    before = tstate;
  }
  return {};
}

}  // namespace

Result<ThreadStates> ReadThreadStates(const Memory& memory, const Layout& layout, Address runtime) {
  ThreadStates result;
  auto head = memory.Read<Address>(runtime + layout.runtime.interpreters_head);
  if (!head) return Fail(ErrorCode::kUnreadable, "the runtime at {:#x} is unreadable", runtime);
  std::vector<Address>& seen = result.interpreters;
  for (Address interpreter = *head; interpreter != 0;) {
    if (!LooksLikeObject(interpreter) || seen.size() >= kMaxInterpreters ||
        std::find(seen.begin(), seen.end(), interpreter) != seen.end()) {
      return Fail(ErrorCode::kUnreadable, "the list of interpreters leads to {:#x}", interpreter);
    }
    seen.push_back(interpreter);
    auto next = memory.Read<Address>(interpreter + layout.interpreter.next);
    auto id = memory.Read<uint64_t>(interpreter + layout.interpreter.id);
    if (!next || !id) {
      return Fail(ErrorCode::kUnreadable, "interpreter {:#x} is unreadable", interpreter);
    }
    if (auto done = ReadThreadsOf(memory, layout, interpreter, *id, result.threads); !done) {
      return std::unexpected(done.error());
    }
    interpreter = *next;
  }
  return result;
}

Address ReadCurrentFrame(const Memory& memory, const Layout& layout, Address tstate) {
  Address holder = tstate + layout.thread.frame;
  if (layout.thread.cframe != kAbsent) {
    auto cframe = memory.Read<Address>(tstate + layout.thread.cframe);
    if (!cframe || *cframe == 0) return 0;
    holder = *cframe + layout.cframe.current_frame;
  }
  return memory.Read<Address>(holder).value_or(0);
}

}  // namespace pystrobe::remote
