// SPDX-License-Identifier: Apache-2.0
#include "cli/lost_pages.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace pystrobe::cli {
namespace {

uintptr_t page_size;

/// [async-signal-safe]
void PutZeros(int signal, siginfo_t* info, void*) {
  const int saved_errno = errno;
  const uintptr_t page = reinterpret_cast<uintptr_t>(info->si_addr) & ~(page_size - 1);
  const bool lost = info->si_code == BUS_ADRERR;
  if (!lost || mmap(reinterpret_cast<void*>(page), page_size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
    // Its own effect comes when this handler is left.
    ::signal(signal, SIG_DFL);
    ::raise(signal);
  }
  errno = saved_errno;
}

}  // namespace

void ReadLostPagesAsZeros() {
  page_size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  struct sigaction action{};
  action.sa_sigaction = PutZeros;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace pystrobe::cli
