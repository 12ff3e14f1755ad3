// SPDX-License-Identifier: Apache-2.0
#include "profiler/write/range_labels.h"

#include <fmt/format.h>

#include "profiler/write/number_text.h"

namespace pystrobe::write {
namespace {

/// Of what the program names by pystrobe.gpu: to its reader the default one.
constexpr std::string_view kOwnDomain = "pystrobe";

}  // namespace

std::string RangeName(const NamedRange& range, const Tables& tables) {
  const std::string& domain = tables.text(range.domain);
  const std::string& name = tables.text(range.name);
  return domain.empty() || domain == kOwnDomain ? name : fmt::format("{}: {}", domain, name);
}

std::string RangeSummary(const RangeRecord& record) {
  uint64_t count = 0;
  for (const NamedRange& range : record.ranges) count += range.count;
  std::string text = fmt::format("{}, begun {} {}", GroupDigits(record.ranges.size()),
                                 GroupDigits(count), count == 1 ? "time" : "times");
  if (record.overflowed > 0) {
    text += fmt::format("; {} of these stand together, as there was no room for more names",
                        GroupDigits(record.overflowed));
  }
  return text;
}

}  // namespace pystrobe::write
