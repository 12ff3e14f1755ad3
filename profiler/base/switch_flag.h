// SPDX-License-Identifier: Apache-2.0
//
// Whether the calling thread has had its CPU all the time since it last asked: one load and one
// compare, where to ask for its CPU time takes a system call of half a microsecond.
#pragma once

#include <cstdint>

namespace pystrobe {

/// The kernel's restartable sequences, put to a use of ours. A thread may note in rseq.rseq_cs a
/// sequence of instructions that is not to be interrupted; the kernel clears that field when it
/// finds, on preempting the thread, migrating it or delivering a signal, that it is outside of that
/// range ("set to NULL by the kernel", <linux/rseq.h>). We note a range that nobody ever runs: as
/// long as the note is there the thread was not taken off its CPU.
///
/// The note is missing more often than it need be: others may use the field for what it is for
/// (tcmalloc), and the kernel clears it at other work of its own, too, a few times a second. That
/// costs a look at the clock and no truth. glibc 2.35 and later registers the area of each thread.
/// A kernel that looks at the field only where it interrupted user code, not a system call (Linux
/// 6.19, rseq_update_usr in include/linux/rseq_entry.h), is of no use: Available() is false there.
/// [the thread itself]
class SwitchFlag {
 public:
  /// Of the calling thread. Where there is no rseq it always says that the thread may have lost its
  /// CPU.
  static SwitchFlag OfThisThread();
  /// Of none: always set, for where nobody wants to know.
  static SwitchFlag AlwaysSet();
  /// Whether the C library and the kernel have rseq for the calling thread; and, tried once,
  /// whether a note goes away when its thread sleeps.
  static bool Available();

  void Set() const { *field_ = value_; }
  bool IsSet() const { return *field_ == kNote; }
  /// Takes the note away, before the thread ends.
  void Clear() const {
    if (IsSet()) *field_ = 0;
  }

 private:
  static const uint64_t kNote;
  SwitchFlag(volatile uint64_t* field, uint64_t value) : field_(field), value_(value) {}

  volatile uint64_t* field_;
  uint64_t value_;  // what Set writes
};

}  // namespace pystrobe
