// SPDX-License-Identifier: Apache-2.0
#include "profiler/base/switch_flag.h"

#include <linux/rseq.h>
#include <time.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>

// Of glibc 2.35 and later; weak, so that this runs with an older one too.
extern "C" {
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));
}

// A range of one byte that nobody runs. The kernel ends a thread whose descriptor it finds
// malformed: the instruction to go on at must be outside of the range and have the signature before
// it that glibc registers with (RSEQ_SIG in <sys/rseq.h>), here as the operand of an instruction.
asm(R"(
  .pushsection .text
  .byte 0x0f, 0xb9, 0x3d
  .long 0x53053053
  .globl pystrobe_rseq_abort
  .hidden pystrobe_rseq_abort
pystrobe_rseq_abort:
  ud2
  .globl pystrobe_rseq_start
  .hidden pystrobe_rseq_start
pystrobe_rseq_start:
  nop
  .popsection
)");
extern "C" const char pystrobe_rseq_abort[] __attribute__((visibility("hidden")));
extern "C" const char pystrobe_rseq_start[] __attribute__((visibility("hidden")));

namespace pystrobe {
namespace {

rseq_cs MakeNote() {
  rseq_cs note{};
  note.start_ip = reinterpret_cast<uint64_t>(pystrobe_rseq_start);
  note.post_commit_offset = 1;
  note.abort_ip = reinterpret_cast<uint64_t>(pystrobe_rseq_abort);
  return note;
}

// The kernel reads it whenever it preempts a thread whose field names it: it is never freed.
const rseq_cs note = MakeNote();

rseq* AreaOfThisThread() {
  return reinterpret_cast<rseq*>(static_cast<char*>(__builtin_thread_pointer()) + __rseq_offset);
}

bool HasArea() {
  if (&__rseq_size == nullptr || __rseq_size == 0) return false;
  return static_cast<int32_t>(AreaOfThisThread()->cpu_id) >= 0;
}

// Who sleeps loses the CPU. Where the note is still there afterwards, under a kernel that has the
// system call and not what it is for, it tells nothing. A brief sleep may be over before it has
// begun, when a hypervisor takes the CPU just then: that is tried again, longer.
bool IsClearedBySleep(uint64_t value) {
  auto* const field = reinterpret_cast<volatile uint64_t*>(&AreaOfThisThread()->rseq_cs);
  *field = value;
  for (const long ns : {50'000, 500'000, 5'000'000}) {
    const timespec brief{.tv_sec = 0, .tv_nsec = ns};
    nanosleep(&brief, nullptr);
    if (*field != value) return true;
  }
  *field = 0;
  return false;
}

}  // namespace

const uint64_t SwitchFlag::kNote = reinterpret_cast<uint64_t>(&note);

bool SwitchFlag::Available() {
  if (!HasArea()) return false;
  static const bool is_cleared = IsClearedBySleep(kNote);
  return is_cleared;
}

SwitchFlag SwitchFlag::OfThisThread() {
  static volatile uint64_t never_set = 0;
  if (!Available()) return {&never_set, 0};
  return {reinterpret_cast<volatile uint64_t*>(&AreaOfThisThread()->rseq_cs), kNote};
}

SwitchFlag SwitchFlag::AlwaysSet() {
  static volatile uint64_t set = kNote;
  return {&set, kNote};
}

}  // namespace pystrobe
