// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/stopped_stack.h"

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace pystrobe::remote {
namespace {

// Read at once, and then twice as much: a stack ends where its mapping does, somewhere in a piece.
constexpr size_t kFirstPiece = 16384, kPage = 4096;

native::Registers FromUser(const user_regs_struct& from) {
  native::Registers registers;
  registers.value[native::kRbx] = from.rbx;
  registers.value[native::kRbp] = from.rbp;
  registers.value[native::kRsp] = from.rsp;
  registers.value[native::kR12] = from.r12;
  registers.value[native::kR13] = from.r13;
  registers.value[native::kR14] = from.r14;
  registers.value[native::kR15] = from.r15;
  registers.value[native::kRip] = from.rip;
  return registers;
}

/// Takes the last word off `text`, a number with 0x before it.
std::optional<Address> TakeLastNumber(std::string_view& text) {
  const size_t at = text.rfind(" 0x");
  if (at == std::string_view::npos) return std::nullopt;
  Address number = 0;
  const char* const end = text.data() + text.size();
  if (std::from_chars(text.data() + at + 3, end, number, 16).ptr != end) return std::nullopt;
  text = text.substr(0, at);
  return number;
}

/// The number of the call and its arguments, or -1 outside of one, then the stack pointer and where
/// the thread stands (proc(5)).
std::optional<native::Registers> FromSyscall(std::string_view text) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  const auto pc = TakeLastNumber(text);
  const auto sp = TakeLastNumber(text);
  if (!pc || !sp) return std::nullopt;
  native::Registers registers;
  registers.value[native::kRip] = *pc;
  registers.value[native::kRsp] = *sp;
  for (const native::Register saved : native::kCalleeSaved) {
    registers.unknown |= uint32_t{1} << saved;
  }
  return registers;
}

}  // namespace

bool Unwind(const NativeCopy& copy, native::RuleCache& rules, std::vector<Address>& instructions) {
  // Deeper is no stack that was copied.
  constexpr size_t kMostFrames = StoppedStack::kMostBytes / sizeof(Address);
  instructions.clear();
  native::UnwindCursor cursor{copy.registers};
  const native::StackBytes bytes(copy.begin, copy.bytes);
  native::InstructionList list{instructions, kMostFrames};
  return native::UnwindOver(bytes, rules, cursor, list) == native::StepResult::kOutermost;
}

bool StoppedStack::Take(pid_t tid, const pyabi::Memory& memory) {
  user_regs_struct user{};
  iovec into{&user, sizeof user};
  copy_.in_kernel = false;
  copy_.bytes.clear();
  if (ptrace(PTRACE_GETREGSET, tid, reinterpret_cast<void*>(NT_PRSTATUS), &into) != 0) return false;
  copy_.registers = FromUser(user);
  // The number of the system call, negative outside of any (arch/x86/entry).
  copy_.in_kernel = static_cast<int64_t>(user.orig_rax) >= 0;
  TakeBytes(memory, user.fs_base);
  return !copy_.empty();
}

bool StoppedStack::TakeAsleep(std::string_view syscall_text, Address thread_pointer,
                              const pyabi::Memory& memory) {
  copy_.in_kernel = false;
  copy_.bytes.clear();
  const auto registers = FromSyscall(syscall_text);
  if (!registers) return false;
  copy_.registers = *registers;
  TakeBytes(memory, thread_pointer);
  return !copy_.empty();
}

// Behind a stack other memory may follow without a gap.
void StoppedStack::TakeBytes(const pyabi::Memory& memory, Address thread_pointer) {
  const Address begin = copy_.begin = copy_.registers.sp() - native::kRedZone;
  size_t most = kMostBytes;
  if (thread_pointer > begin) most = std::min<size_t>(most, thread_pointer - begin);
  if (known_end_ > begin && known_end_ - begin <= most && TryBytes(memory, known_end_ - begin)) {
    return;
  }
  size_t step = kFirstPiece - begin % kPage;
  bool has_failed = false;
  while (copy_.bytes.size() < most) {
    const size_t have = copy_.bytes.size();
    step = std::min(step, most - have);
    if (TryBytes(memory, step)) {
      if (!has_failed) step = copy_.bytes.size();
      continue;
    }
    has_failed = true;
    if (step <= kPage) {
      known_end_ = begin + have;
      return;
    }
    step = (step / 2 + kPage - 1) / kPage * kPage - (begin + have) % kPage;
  }
}

bool StoppedStack::TryBytes(const pyabi::Memory& memory, size_t size) {
  const size_t have = copy_.bytes.size();
  copy_.bytes.resize(have + size);
  if (memory.Read(copy_.begin + have, copy_.bytes.data() + have, size)) return true;
  copy_.bytes.resize(have);
  return false;
}

}  // namespace pystrobe::remote
