// SPDX-License-Identifier: Apache-2.0
//
// Of binaries_test.cpp, compiled with debug information: the lines are told there.
#include "tests/cpp/native/inlined.h"

namespace pystrobe::native::inlined {
namespace {

[[gnu::always_inline]] inline const void* Inner() {
  const void* here = nullptr;
  asm volatile("0: lea 0b(%%rip), %0" : "=r"(here));
  return here;
}

[[gnu::always_inline]] inline const void* Middle() { return Inner(); }

}  // namespace

const void* Outer() { return Middle(); }

}  // namespace pystrobe::native::inlined
