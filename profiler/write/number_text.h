// SPDX-License-Identifier: Apache-2.0
//
// Numbers as people read them. [any thread]
#pragma once

#include <cstdint>
#include <string>

namespace pystrobe::write {

/// "1,234,567".
std::string GroupDigits(uint64_t number);
/// "12,345", "12.3", "0.4": a rate with as many digits as matter.
std::string RateText(double hz);
/// "450 us", "12.3 ms", "4.52 s", "123 s": three digits that matter; "0 s" for nothing.
std::string TimeText(uint64_t ns);
/// "45.2", "0.38", "0": a share in per cent, without the sign, two digits that matter below 1.
std::string PercentText(double share);

}  // namespace pystrobe::write
