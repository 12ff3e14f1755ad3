// SPDX-License-Identifier: Apache-2.0
#include "profiler/print/quality.h"

#include <fmt/format.h>

#include "profiler/print/text.h"
#include "profiler/write/labels.h"

namespace pystrobe::print {

std::string FormatQuality(const Metadata& metadata, const Quality& quality,
                          const QualityOptions& options) {
  constexpr int kIndent = 2;
  const std::string line = Printable(write::QualityLine(metadata, quality));
  std::string text =
      Wrap(fmt::format("Quality{}: {}.", options.of_a_part ? " of the whole recording" : "", line),
           options.width, kIndent);
  const std::string more = write::HowToGetMore(metadata, quality);
  if (!more.empty()) text += Wrap(more + ".", options.width, kIndent);
  if (!options.cut_off.empty()) text += Wrap(Printable(options.cut_off), options.width, kIndent);
  return text;
}

}  // namespace pystrobe::print
