// SPDX-License-Identifier: Apache-2.0
//
// A child process of a test.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pystrobe::testing {

/// Killed and reaped with this object, and killed when the test dies.
class Child {
 public:
  /// `main`: what the child does; it ends when that returns.
  template <typename Main>
  explicit Child(Main main) : pid_(fork()) {
    EXPECT_GE(pid_, 0);
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    main();
    _exit(127);
  }
  ~Child() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

}  // namespace pystrobe::testing
