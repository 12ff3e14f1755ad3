// SPDX-License-Identifier: Apache-2.0
#include "profiler/analyze/gpu_lines.h"

namespace pystrobe::analyze {

bool IsPythonLine(FrameId frame, const Tables& tables) {
  const Function& function = tables.function(tables.frame(frame).function);
  return !function.is_native && tables.text(function.file) != kRegionFile;
}

std::vector<std::optional<FrameId>> PythonLinesOf(const Tables& tables) {
  std::vector<std::optional<FrameId>> lines(tables.stack_count());
  // Parents come before children in the ids.
  for (uint32_t i = 1; i < lines.size(); ++i) {
    const StackNode& stack = tables.stack(StackId{i});
    lines[i] = IsPythonLine(stack.frame, tables) ? std::optional(stack.frame)
                                                 : lines[ToIndex(stack.parent)];
  }
  return lines;
}

}  // namespace pystrobe::analyze
