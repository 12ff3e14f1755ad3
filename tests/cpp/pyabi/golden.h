// SPDX-License-Identifier: Apache-2.0
//
// The first bytes of _PyRuntime as builds of CPython for x86-64 hold them; "t" is free-threaded.
// Those of 3.14t and 3.15t were compiled from the headers of the release with Py_GIL_DISABLED, the
// rest copied from its library.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace pystrobe::pyabi {

inline constexpr const char* kGoldenDebugOffsets[] = {"3.13.0",   "3.13.5t", "3.14.10",
                                                      "3.14.10t", "3.15.2",  "3.15.2t"};

inline std::vector<std::byte> GoldenDebugOffsets(const std::string& name) {
  std::ifstream file(std::string(PYSTROBE_GOLDEN_DIR) + "/debug_offsets/" + name + ".bin",
                     std::ios::binary);
  const std::vector<char> text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_FALSE(text.empty()) << name;
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

}  // namespace pystrobe::pyabi
