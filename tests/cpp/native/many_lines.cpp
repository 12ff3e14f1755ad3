// SPDX-License-Identifier: Apache-2.0
//
// Of binaries_test.cpp, compiled with debug information: a function with a table of so many lines
// that it is a large piece of memory.
#include "tests/cpp/native/many_lines.h"

namespace pystrobe::native::many_lines {

void Crowded() { asm volatile(".rept 1000\n .loc 1 1\n nop\n .loc 1 2\n nop\n .endr"); }

}  // namespace pystrobe::native::many_lines
