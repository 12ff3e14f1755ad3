// SPDX-License-Identifier: Apache-2.0
//
// Starting threads. std::thread throws when the kernel gives none; here that is an error like any
// other. [any thread]
#pragma once

#include <signal.h>

#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "profiler/base/error.h"

namespace pystrobe {

/// Blocks every signal for the calling thread while it lives, but for SIGBUS: of that the threads
/// may have a handler that mends what they did themselves, and where it is blocked such a fault
/// ends the process. The kernel gives one that is sent to the process to its main thread first.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

/// A thread that runs `function`, with signals blocked: they are for the threads that were
/// there before. Fails with kIo when there may be no more threads (limits of the
/// user or of a container); `name` tells in the message what it was to be: "the pacer".
template <typename Function>
[[nodiscard]] Result<std::thread> StartThread(std::string_view name, Function&& function) {
  const SignalsBlocked inherited;
  try {
    return std::thread(std::forward<Function>(function));
  } catch (const std::system_error& error) {
    auto failed =
        FailErrno(error.code().value(), ErrorCode::kIo, "cannot start a thread for {}", name);
    failed.error().hint =
        "The user or the container has as many threads as it may (see `ulimit -u` and pids.max of "
        "the cgroup), or no memory for one (`ulimit -v`).";
    return failed;
  }
}

}  // namespace pystrobe
