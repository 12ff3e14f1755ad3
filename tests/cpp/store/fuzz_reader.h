// SPDX-License-Identifier: Apache-2.0
//
// What a fuzzer calls; fuzz_test.cpp calls it with mutations of golden files.
#pragma once

#include <cstddef>
#include <cstdint>

/// Reads `data` as a .strobe file, and again with every checksum put right. Stops the process when
/// the reader hands out what its interface forbids.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
