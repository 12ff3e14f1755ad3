/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that C makes and that calls back for ever. Of tests/targets/c_callbacks.py. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

typedef void (*callback)(void);

static volatile uint64_t sum;

/* Some time of its own between the calls, and memory that moves what is allocated in them. */
static void* call(void* argument) {
  void* kept[64] = {0};
  for (unsigned i = 0;; ++i) {
    ((callback)argument)();
    free(kept[i % 64]);
    kept[i % 64] = malloc(64 + i % 64 * 16);
    for (int turn = 0; turn < 200000; ++turn) sum += turn;
  }
  return NULL;
}

int start(callback function) {
  pthread_t thread;
  return pthread_create(&thread, NULL, call, (void*)function);
}
