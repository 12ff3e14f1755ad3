// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/verify.h"

#include <cstring>
#include <thread>

#include "sampler/pyabi/code.h"
#include "sampler/remote/thread_list.h"

namespace pystrobe::remote {
namespace {

using pyabi::kAbsent;
using pyabi::Layout;
using pyabi::Memory;

constexpr int kLooks = 50;
constexpr auto kBetweenLooks = std::chrono::milliseconds(1);
constexpr size_t kMaxFrames = 64;  // of each thread; enough to see that the chain is one

template <typename T>
T ValueAt(const std::vector<std::byte>& bytes, uint32_t offset) {
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

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

/// Counts frames that lead to proper code objects; remembers the first thing that did not fit.
struct FrameCheck {
  const Memory& memory;
  const Layout& layout;
  Address code_type;  ///< 0: taken from the first object whose type is called "code"
  size_t good = 0;
  size_t bad = 0;
  std::string seen;

  void Complain(std::string what) {
    if (bad++ == 0) seen = std::move(what);
  }

  void CheckCode(Address frame, Address code) {
    auto type = memory.Read<Address>(code + layout.code.type);
    if (!type) return Complain(fmt::format("frame {:#x} leads to {:#x}, unreadable", frame, code));
    if (code_type == 0 && IsTypeNamed(memory, layout, *type, "code")) code_type = *type;
    if (*type != code_type) {
      return Complain(fmt::format("frame {:#x} leads to an object of type {:#x}, not code ({:#x})",
                                  frame, *type, code_type));
    }
    for (uint32_t field : {layout.code.name, layout.code.filename}) {
      auto text = memory.Read<Address>(code + field);
      if (!text || !pyabi::ReadString(memory, layout, *text)) {
        return Complain(fmt::format("the name of the code object {:#x} is no string", code));
      }
    }
    ++good;
  }

  void CheckChain(Address frame) {
    std::vector<std::byte> bytes(layout.frame.size);
    for (size_t depth = 0; frame != 0 && depth < kMaxFrames; ++depth) {
      if (!memory.Read(frame, bytes.data(), bytes.size())) {
        return Complain(fmt::format("frame {:#x} is unreadable", frame));
      }
      bool python = layout.frame.owner == kAbsent ||
                    pyabi::IsPythonFrame(layout, ValueAt<uint8_t>(bytes, layout.frame.owner));
      Address code = ValueAt<Address>(bytes, layout.frame.code) & ~layout.frame.code_tag_mask;
      if (python) CheckCode(frame, code);
      frame = ValueAt<Address>(bytes, layout.frame.previous);
    }
  }
};

/// One look at everything. An error may be due to a change meanwhile.
Result<Verified> LookOnce(const Memory& memory, const Layout& layout, Address runtime,
                          Address code_type, ThreadIds& ids) {
  auto states = ReadThreadStates(memory, layout, runtime);
  if (!states) return std::unexpected(states.error());
  if (states->threads.empty()) {
    return Fail(ErrorCode::kNotPython, "its Python interpreter has not started, or has ended");
  }
  size_t listed = states->threads.size();
  PyThread sample = states->threads.front();
  if (auto done = ids.Resolve(memory, layout, states->threads); !done) {
    return std::unexpected(done.error());
  }
  if (states->threads.empty()) {
    return Fail(ErrorCode::kUnsupported,
                "none of the {} thread states belongs to a thread of the process (the first has "
                "pthread {:#x}, thread id {})",
                listed, sample.pthread, sample.tid);
  }
  FrameCheck check{.memory = memory, .layout = layout, .code_type = code_type, .seen = {}};
  for (const PyThread& thread : states->threads) {
    if (!IsPthread(memory, thread.pthread)) {
      check.Complain(fmt::format("{:#x} is not the thread structure of thread {}", thread.pthread,
                                 thread.tid));
    }
    check.CheckChain(ReadCurrentFrame(memory, layout, thread.tstate));
  }
  if (check.bad > check.good) return Fail(ErrorCode::kUnsupported, "{}", check.seen);
  return Verified{check.code_type, states->interpreters, states->threads.size(), check.good};
}

}  // namespace

Result<Verified> VerifyLayout(const Memory& memory, const Layout& layout, Address runtime,
                              std::optional<Address> code_type, ThreadIds& ids) {
  if (code_type && !IsTypeNamed(memory, layout, *code_type, "code")) {
    return Fail(ErrorCode::kUnsupported, "PyCode_Type at {:#x} is not a type called 'code'",
                *code_type);
  }
  Result<Verified> result = std::unexpected(Error{ErrorCode::kUnreadable, "", ""});
  for (int look = 0; look < kLooks; ++look) {
    if (look > 0) std::this_thread::sleep_for(kBetweenLooks);
    result = LookOnce(memory, layout, runtime, code_type.value_or(0), ids);
    if (result || result.error().code == ErrorCode::kExited) return result;
  }
  if (result.error().code == ErrorCode::kUnreadable) result.error().code = ErrorCode::kUnsupported;
  return result;
}

}  // namespace pystrobe::remote
