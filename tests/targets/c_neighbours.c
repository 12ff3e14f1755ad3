/* SPDX-License-Identifier: Apache-2.0 */
/* What other C code in a process does. Of tests/python/test_profiler_neighbours.py. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static char* page;
static volatile int faults;

/* As a garbage collector's that has pages write-protected to learn who writes. */
static void on_fault(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)context;
  if (info->si_addr == page) ++faults;
  mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

int install(void) {
  page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaddset(&action.sa_mask, SIGUSR2);
  return page == MAP_FAILED ? -1 : sigaction(SIGSEGV, &action, NULL);
}

/* Whether all of the action is as it was installed. */
int is_installed(void) {
  struct sigaction now;
  sigaction(SIGSEGV, NULL, &now);
  return now.sa_sigaction == on_fault &&
         (now.sa_flags & (SA_SIGINFO | SA_ONSTACK | SA_RESTART)) == (SA_SIGINFO | SA_ONSTACK) &&
         sigismember(&now.sa_mask, SIGUSR2) == 1 && sigismember(&now.sa_mask, SIGURG) == 0;
}

/* Returns how often the handler was called. */
int fault(int times) {
  faults = 0;
  for (int i = 0; i < times; ++i) {
    mprotect(page, 4096, PROT_NONE);
    *(volatile char*)page = 1;
  }
  return faults;
}

static volatile uint64_t sum;

static void* burn(void* seconds) {
  struct timespec now;
  do {
    for (int i = 0; i < 10000; ++i) sum += i;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  } while (now.tv_sec + now.tv_nsec / 1e9 < *(double*)seconds);
  return NULL;
}

/* Threads that know nothing of Python, each burning so much CPU time; returns when they have. */
int burn_in_threads(int count, double seconds) {
  pthread_t threads[64];
  int made = 0;
  while (made < count && pthread_create(&threads[made], NULL, burn, &seconds) == 0) {
    pthread_setname_np(threads[made++], "of c");
  }
  for (int i = 0; i < made; ++i) pthread_join(threads[i], NULL);
  return made;
}
