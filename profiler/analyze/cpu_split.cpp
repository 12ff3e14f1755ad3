// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <vector>

#include "profiler/analyze/profile.h"

namespace pystrobe {
namespace {

bool IsNative(const Tables& tables, StackId stack) {
  return tables.function(tables.frame(tables.stack(stack).frame).function).is_native;
}

/// By StackId, the part of a stack up to its innermost Python frame; kEmptyStack: it has none.
std::vector<StackId> PartsUpToPython(const Tables& tables) {
  std::vector<StackId> parts(tables.stack_count(), kEmptyStack);
  // Parents come before children in the ids.
  for (uint32_t i = 1; i < parts.size(); ++i) {
    const StackId stack{i};
    parts[i] = IsNative(tables, stack) ? parts[ToIndex(tables.stack(stack).parent)] : stack;
  }
  return parts;
}

CpuSplit SplitOf(const Weights& self, bool is_native) {
  const uint64_t rest = self.cpu_ns - self.kernel_ns;
  CpuSplit split{.kernel_ns = self.kernel_ns};
  (is_native ? split.native_ns : split.python_ns) = rest;
  return split;
}

}  // namespace

CpuSplit& CpuSplit::operator+=(const CpuSplit& other) {
  python_ns += other.python_ns;
  native_ns += other.native_ns;
  kernel_ns += other.kernel_ns;
  return *this;
}

SplitTimes SplitCpuTime(const Profile& profile) {
  const Tables& tables = profile.tables();
  const std::vector<StackId> up_to_python = PartsUpToPython(tables);
  SplitTimes times;
  std::map<FunctionId, std::map<uint32_t, CpuSplit>> functions;
  for (const ThreadProfile& thread : profile.threads) {
    for (const StackWeight& entry : thread.stacks) {
      if (entry.stack == kEmptyStack || entry.self.cpu_ns == 0) continue;
      const CpuSplit split = SplitOf(entry.self, IsNative(tables, entry.stack));
      times.total += split;
      const StackId python = up_to_python[ToIndex(entry.stack)];
      if (python == kEmptyStack) continue;
      const Frame& frame = tables.frame(tables.stack(python).frame);
      functions[frame.function][frame.line] += split;
    }
  }
  for (const auto& [function, lines] : functions) {
    FunctionSplit& into = times.functions.emplace_back(FunctionSplit{function, {}, {}});
    for (const auto& [line, split] : lines) {
      into.cpu += split;
      into.lines.push_back({line, split});
    }
  }
  return times;
}

}  // namespace pystrobe
