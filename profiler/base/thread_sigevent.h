// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/types.h>

// glibc names the member in sigevent(3type) only from 2.38 on.
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace pystrobe {

/// What has a timer (timer_create) send `signal` to one thread of this process. [any thread]
inline sigevent ThreadSigevent(pid_t tid, int signal) {
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = signal;
  event.sigev_notify_thread_id = tid;
  return event;
}

}  // namespace pystrobe
