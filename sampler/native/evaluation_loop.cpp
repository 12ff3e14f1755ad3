// SPDX-License-Identifier: Apache-2.0
#include "sampler/native/evaluation_loop.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace pystrobe::native {
namespace {

// It has some 50 KiB.
constexpr uint64_t kMostBytes = uint64_t{4} << 20;

// Bytes that are no jump may look like one: that one leads into a given function happens once in
// some hundred programs.
constexpr std::ptrdiff_t kFewestJumps = 3;

// Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2: JMP rel32 and Jcc rel32,
// which count from the instruction's end.
constexpr uint8_t kJump = 0xe9, kTwoBytes = 0x0f, kFirstCondition = 0x80, kLastCondition = 0x8f;

bool IsJumpBefore(const std::vector<uint8_t>& code, size_t displacement) {
  const uint8_t last = code[displacement - 1];
  if (last == kJump) return true;
  return displacement >= 2 && code[displacement - 2] == kTwoBytes && last >= kFirstCondition &&
         last <= kLastCondition;
}

}  // namespace

std::optional<EvaluationLoop> EvaluationLoop::Find(const pyabi::Memory& memory,
                                                   const Module& module) {
  const auto symbol = module.image.FindSymbol(memory, kEvaluationLoop);
  if (!symbol) return std::nullopt;
  const AddressRange function{symbol->address, symbol->address + symbol->size};
  std::vector<uint8_t> code(std::min(symbol->size, kMostBytes));
  std::vector<Address> jumps;
  if (!memory.Read(function.start, code.data(), code.size())) code.clear();
  for (size_t at = 1; at + sizeof(int32_t) <= code.size(); ++at) {
    if (!IsJumpBefore(code, at)) continue;
    int32_t distance = 0;
    std::memcpy(&distance, code.data() + at, sizeof distance);
    const Address to =
        function.start + at + sizeof distance + static_cast<Address>(int64_t{distance});
    if (!function.Contains(to) && module.image.range().Contains(to)) jumps.push_back(to);
  }
  std::ranges::sort(jumps);
  return EvaluationLoop(function, std::move(jumps));
}

bool EvaluationLoop::Has(const AddressRange& function) const {
  if (function_.Contains(function.start)) return true;
  // A jump to the start may be a call that the compiler has made one.
  const auto first = std::ranges::upper_bound(jumps_, function.start);
  const auto last = std::ranges::lower_bound(jumps_, function.end);
  return last - first >= kFewestJumps;
}

}  // namespace pystrobe::native
