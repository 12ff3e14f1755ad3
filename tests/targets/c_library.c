/* SPDX-License-Identifier: Apache-2.0
 *
 * A library for c_libraries.py; `burn` is another name in each.
 */
#include <time.h>

int burn(int milliseconds) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const long long end = now.tv_sec * 1000000000LL + now.tv_nsec + milliseconds * 1000000LL;
  volatile int count = 0;
  do {
    for (int i = 0; i < 1000; ++i) count += i;
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while (now.tv_sec * 1000000000LL + now.tv_nsec < end);
  return count;
}
