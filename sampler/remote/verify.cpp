// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/verify.h"

#include <algorithm>
#include <set>
#include <thread>

#include "sampler/pyabi/bytes.h"
#include "sampler/pyabi/code.h"
#include "sampler/remote/thread_list.h"

namespace pystrobe::remote {
namespace {

using pyabi::kAbsent;
using pyabi::Layout;
using pyabi::Memory;

constexpr int kLooks = 50;
constexpr int kLooksForFrames = 10;
constexpr auto kBetweenLooks = std::chrono::milliseconds(1);
constexpr size_t kMaxThreads = 32;  // whose frames are looked at, spread over all
constexpr size_t kMaxFrames = 64;   // of each thread; enough to see that the chain is one

bool IsTypeNamed(const Memory& memory, const Layout& layout, Address type, std::string_view name) {
  auto text = memory.Read<Address>(type + layout.object.type_name);
  std::string seen(name.size() + 1, '\1');
  return text && memory.Read(*text, seen.data(), seen.size()) && seen.back() == '\0' &&
         seen.starts_with(name);
}

/// glibc's and musl's thread structures hold their own address in one of their first words.
bool IsPthread(const Memory& memory, Address pthread) {
  uint64_t words[3] = {};
  if (pthread == 0 || !memory.Read(pthread, words, sizeof words)) return false;
  return words[0] == pthread || words[2] == pthread;
}

/// Counts what fits and what does not; remembers the first thing that did not.
class Checker {
 public:
  Checker(const Memory& memory, const Layout& layout, Address code_type)
      : memory_(memory), layout_(layout), code_type_(code_type) {}

  void CheckThread(const PyThread& thread) {
    if (!IsPthread(memory_, thread.pthread)) {
      Complain(fmt::format("{:#x} is not the thread structure of thread {}", thread.pthread,
                           thread.tid));
    }
    CheckDataStack(thread);
    CheckFrames(ReadCurrentFrame(memory_, layout_, thread.tstate));
  }

  /// A lock that is held is held by one of the threads.
  void CheckGil(Address gil, const std::vector<PyThread>& threads) {
    if (layout_.gil.enabled != kAbsent &&
        memory_.Read<int32_t>(gil + layout_.gil.enabled).value_or(0) == 0) {
      return;
    }
    auto locked = memory_.Read<int32_t>(gil + layout_.gil.locked);
    auto holder = memory_.Read<Address>(gil + layout_.gil.last_holder);
    if (!locked || !holder || *locked < -1 || *locked > 1) {
      return Complain(fmt::format("there is no interpreter lock at {:#x} (locked = {})", gil,
                                  locked.value_or(0)));
    }
    if (*locked == 1 && std::none_of(threads.begin(), threads.end(), [&](const PyThread& thread) {
          return thread.tstate == *holder;
        })) {
      Complain(
          fmt::format("the holder of the interpreter lock, {:#x}, is no thread state", *holder));
    }
  }

  Address code_type() const { return code_type_; }
  size_t good() const { return good_; }
  size_t bad() const { return bad_; }
  const std::string& seen() const { return seen_; }

 private:
  void Complain(std::string what) {
    if (bad_++ == 0) seen_ = std::move(what);
  }

  void CheckDataStack(const PyThread& thread) {
    if (layout_.thread.datastack_chunk == kAbsent) return;
    auto chunk = memory_.Read<Address>(thread.tstate + layout_.thread.datastack_chunk);
    auto top = memory_.Read<Address>(thread.tstate + layout_.thread.datastack_top);
    if (!chunk || !top || *chunk == 0) return;  // no frame was ever pushed
    auto size = memory_.Read<uint64_t>(*chunk + layout_.chunk.size);
    if (!size || *size < layout_.chunk.data || *size % 4096 != 0 ||
        *top < *chunk + layout_.chunk.data || *top > *chunk + *size) {
      Complain(fmt::format("thread {} has no data stack at {:#x} (size {}, top {:#x})", thread.tid,
                           *chunk, size.value_or(0), *top));
    }
  }

  void CheckFrames(Address frame) {
    std::vector<std::byte> bytes(layout_.frame.size);
    for (size_t depth = 0; frame != 0 && depth < kMaxFrames; ++depth) {
      if (!memory_.Read(frame, bytes.data(), bytes.size())) {
        return Complain(fmt::format("frame {:#x} is unreadable", frame));
      }
      bool python = layout_.frame.owner == kAbsent ||
                    pyabi::IsPythonFrame(layout_, pyabi::Load<uint8_t>(bytes, layout_.frame.owner));
      Address code = pyabi::Load<Address>(bytes, layout_.frame.code) & ~layout_.frame.code_tag_mask;
      if (python) CheckCode(frame, code);
      frame = pyabi::Load<Address>(bytes, layout_.frame.previous);
    }
  }

  void CheckCode(Address frame, Address code) {
    auto type = memory_.Read<Address>(code + layout_.code.type);
    if (!type) return Complain(fmt::format("frame {:#x} leads to {:#x}, unreadable", frame, code));
    if (code_type_ == 0 && IsTypeNamed(memory_, layout_, *type, "code")) code_type_ = *type;
    if (*type != code_type_) {
      return Complain(fmt::format("frame {:#x} leads to an object of type {:#x}, not code ({:#x})",
                                  frame, *type, code_type_));
    }
    if (!pyabi::ReadCode(memory_, layout_, code_type_, code)) {
      return Complain(fmt::format("the code object {:#x} makes no sense", code));
    }
    ++good_;
  }

  const Memory& memory_;
  const Layout& layout_;
  Address code_type_;  // 0: taken from the first object whose type is called "code"
  size_t good_ = 0, bad_ = 0;
  std::string seen_;
};

/// The interpreter locks of these threads' interpreters.
std::set<Address> FindGils(const Memory& memory, const Layout& layout, Address runtime,
                           const std::vector<PyThread>& threads) {
  if (layout.runtime.gil != kAbsent) return {runtime + layout.runtime.gil};
  std::set<Address> gils;
  if (layout.interpreter.ceval_gil == kAbsent) return gils;
  for (const PyThread& thread : threads) {
    auto gil = memory.Read<Address>(thread.interpreter + layout.interpreter.ceval_gil);
    if (gil && *gil != 0) gils.insert(*gil);
  }
  return gils;
}

/// One look at everything. An error may be due to a change meanwhile.
Result<Verified> LookOnce(const Memory& memory, const Layout& layout, Address runtime,
                          Address code_type, ThreadIds& ids) {
  auto states = ReadThreadStates(memory, layout, runtime);
  if (!states) return std::unexpected(states.error());
  if (states->threads.empty()) {
    return Fail(ErrorCode::kNotPython, "its Python interpreter has not started, or has ended");
  }
  // Not before: in a process just begun the loader has yet to relocate the type objects.
  if (code_type != 0 && !IsTypeNamed(memory, layout, code_type, "code")) {
    return Fail(ErrorCode::kUnsupported, "PyCode_Type at {:#x} is not a type called 'code'",
                code_type);
  }
  const std::vector<PyThread> listed = states->threads;
  if (auto done = ids.Resolve(memory, layout, states->threads); !done) {
    return std::unexpected(done.error());
  }
  if (states->threads.empty()) {
    return Fail(ErrorCode::kUnsupported,
                "none of the {} thread states belongs to a thread of the process (the first has "
                "pthread {:#x}, thread id {})",
                listed.size(), listed.front().pthread, listed.front().tid);
  }
  Checker checker(memory, layout, code_type);
  const size_t step = states->threads.size() / kMaxThreads + 1;
  for (size_t i = 0; i < states->threads.size(); i += step) {
    checker.CheckThread(states->threads[i]);
  }
  for (Address gil : FindGils(memory, layout, runtime, listed)) checker.CheckGil(gil, listed);
  if (checker.bad() > checker.good()) return Fail(ErrorCode::kUnsupported, "{}", checker.seen());
  return Verified{checker.code_type(), states->interpreters.size(), states->threads.size(),
                  checker.good()};
}

}  // namespace

Result<Verified> VerifyLayout(const Memory& memory, const Layout& layout, Address runtime,
                              std::optional<Address> code_type, ThreadIds& ids) {
  Result<Verified> result = std::unexpected(Error{ErrorCode::kUnreadable, "", ""});
  for (int look = 0; look < kLooks; ++look) {
    if (look > 0) std::this_thread::sleep_for(kBetweenLooks);
    result = LookOnce(memory, layout, runtime, code_type.value_or(0), ids);
    // A program that runs no Python code at the moment is looked at some more times for a frame.
    if (result && (result->frames > 0 || look >= kLooksForFrames)) return result;
    if (!result && (result.error().code == ErrorCode::kExited ||
                    result.error().code == ErrorCode::kNotPython)) {
      return result;
    }
  }
  if (result.error().code == ErrorCode::kUnreadable) result.error().code = ErrorCode::kUnsupported;
  return result;
}

}  // namespace pystrobe::remote
