// SPDX-License-Identifier: Apache-2.0
#include "sampler/pyabi/layout.h"

#include <fmt/format.h>

#include "sampler/pyabi/layout_tables.h"

namespace pystrobe::pyabi {

PyVersion PyVersion::FromHex(uint32_t hex) {
  return {.major = static_cast<uint8_t>(hex >> 24),
          .minor = static_cast<uint8_t>(hex >> 16),
          .micro = static_cast<uint8_t>(hex >> 8),
          .release_level = static_cast<uint8_t>(hex >> 4 & 0xf),
          .serial = static_cast<uint8_t>(hex & 0xf)};
}

std::string PyVersion::ToString() const {
  std::string text = fmt::format("{}.{}.{}", major, minor, micro);
  if (release_level == 0xa) text += fmt::format("a{}", serial);
  if (release_level == 0xb) text += fmt::format("b{}", serial);
  if (release_level == 0xc) text += fmt::format("rc{}", serial);
  return text;
}

Result<Layout> LayoutFromTable(PyVersion version) {
  if (version.major != 3 || version.minor < kFirstTableMinor || version.minor > kLastTableMinor) {
    // Later ones than the last table describe themselves.
    return Fail(ErrorCode::kUnsupported, "no table for Python {}: known are 3.{} to 3.15",
                version.ToString(), kFirstTableMinor);
  }
  // Structures moved until the last candidates of each release.
  if (version.release_level != 0xf) {
    return Fail(ErrorCode::kUnsupported,
                "Python {} is a pre-release, whose layout may differ from that of 3.{}",
                version.ToString(), version.minor);
  }
  Layout layout;
  layout.version = version;
  layout.frame_style =
      version.minor < 11 ? FrameStyle::kFrameObjects : FrameStyle::kInterpreterFrames;
  layout.line_table_style = version.minor < 10   ? LineTableStyle::kLnotab
                            : version.minor < 11 ? LineTableStyle::kLinetable
                                                 : LineTableStyle::kLocations;
  for (const LayoutRow& row : LayoutRows()) {
    row.field(layout) = row.values[version.minor - kFirstTableMinor];
  }
  return layout;
}

}  // namespace pystrobe::pyabi
