// SPDX-License-Identifier: Apache-2.0
//
// The one signal handler of this process, and the threads that it looks at.
#pragma once

#include <sys/types.h>

#include "profiler/base/error.h"

namespace pystrobe::signals {

class ThreadLook;

/// There is one handler for a process, hence one of these at a time. A signal that is not ours goes
/// to the handler that was there before. [one thread at a time; any]
class Dispatcher {
 public:
  /// Installs the handler. Fails with kExists where there is a Dispatcher already.
  static Result<Dispatcher> Install();
  /// Puts back what was there, unless somebody else has taken the signal since; where that was a
  /// handler, ours stays and passes on what is not ours: of our own a signal may still be pending.
  /// No CpuEvent may be left.
  ~Dispatcher();
  Dispatcher(Dispatcher&& other) noexcept;
  Dispatcher& operator=(Dispatcher&&) = delete;

  /// From now on a signal to `tid` is a look. False where no more threads fit.
  bool Add(pid_t tid, ThreadLook& look);
  /// The descriptor of the event that sends to `tid`, -1: none any more. While it is known here a
  /// child made by fork can close its copy.
  void SetEvent(pid_t tid, int fd);
  /// Forgets the thread, which has ended.
  void Remove(pid_t tid);
  /// No handler is at a look.
  static bool IsQuiet();
  /// No signal is a look any more. Returns once no handler is at one. Events stay known.
  void EndLooks();

  /// In a child made by fork, whatever the parent's threads were at: closes the events'
  /// descriptors, puts the handler back, and is ready for Install.
  static void Abandon();

 private:
  Dispatcher() = default;
  bool installed_ = true;
};

}  // namespace pystrobe::signals
