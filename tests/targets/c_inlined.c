/* SPDX-License-Identifier: Apache-2.0 */
/* A library of which a stripped file tells one name. Of tests/python/test_profiler_debug_files.py.
 */
#include <stdint.h>

static inline __attribute__((always_inline)) uint64_t inlined_rounds(uint64_t x, int rounds) {
  for (int i = 0; i < rounds; ++i) x = x * 6364136223846793005u + (x >> 7);
  return x;
}

static __attribute__((noinline)) uint64_t static_work(uint64_t x) {
  for (int i = 0; i < 20; ++i) x += inlined_rounds(x, 5000);
  return x;
}

uint64_t exported(uint64_t x, int times) {
  for (int i = 0; i < times; ++i) x ^= static_work(x);
  return x;
}
