// SPDX-License-Identifier: Apache-2.0
#include "profiler/write/number_text.h"

#include <fmt/format.h>

#include <cmath>

namespace pystrobe::write {

std::string GroupDigits(uint64_t number) {
  std::string digits = fmt::format("{}", number);
  for (size_t from_end = 3; from_end < digits.size(); from_end += 4) {
    digits.insert(digits.size() - from_end, 1, ',');
  }
  return digits;
}

std::string RateText(double hz) {
  if (!(hz > 0)) return "0";
  if (hz >= 99.95) return GroupDigits(static_cast<uint64_t>(std::llround(hz)));
  return fmt::format("{:.3g}", hz);
}

std::string TimeText(uint64_t ns) {
  if (ns == 0) return "0 s";
  const auto scaled = [ns](double unit, std::string_view name) {
    const double value = static_cast<double>(ns) / unit;
    if (value >= 9999.5) return GroupDigits(static_cast<uint64_t>(value + 0.5)) + std::string(name);
    const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    return fmt::format("{:.{}f}{}", value, decimals, name);
  };
  // Each limit is where three digits would round up to the next unit.
  if (ns < 1'000) return fmt::format("{} ns", ns);
  if (ns < 999'500) return scaled(1e3, " us");
  if (ns < 999'500'000) return scaled(1e6, " ms");
  return scaled(1e9, " s");
}

std::string PercentText(double share) {
  const double percent = share * 100;
  if (!(percent > 0)) return "0";
  if (percent < 0.001) return "<0.001";
  if (percent < 0.995) return fmt::format("{:.2g}", percent);
  return fmt::format("{:.1f}", percent);
}

}  // namespace pystrobe::write
