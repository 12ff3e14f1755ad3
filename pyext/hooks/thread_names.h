// SPDX-License-Identifier: Apache-2.0
//
// What threads are called that may have ended by the time that one asks. [GIL held; several threads
// at once where there is none]
#pragma once

#include <Python.h>
#include <sys/types.h>

#include <mutex>
#include <string>

#include "profiler/base/hash_map.h"

namespace pystrobe::hooks {

class ThreadNames {
 public:
  /// Notes what `threading` calls the calling thread, once it knows it. Runs no Python.
  void Look();
  /// Empty: not known.
  std::string Of(pid_t tid);

 private:
  std::mutex mutex_;
  HashMap<pid_t, std::string> names_;
};

}  // namespace pystrobe::hooks
