// SPDX-License-Identifier: Apache-2.0
#include "profiler/model/gpu_translation.h"

namespace pystrobe {
namespace {

class Translator {
 public:
  Translator(const Tables& from, Tables& to)
      : from_(from), to_(to), stacks_(from.stack_count(), kEmptyStack) {}

  StringId Of(StringId id) { return to_.Intern(from_.text(id)); }

  StackId Of(StackId id) {
    path_.clear();
    for (; id != kEmptyStack && stacks_[ToIndex(id)] == kEmptyStack; id = from_.stack(id).parent) {
      path_.push_back(id);
    }
    StackId translated = id == kEmptyStack ? kEmptyStack : stacks_[ToIndex(id)];
    for (auto next = path_.rbegin(); next != path_.rend(); ++next) {
      translated = to_.Push(translated, Of(from_.stack(*next).frame));
      stacks_[ToIndex(*next)] = translated;
    }
    return translated;
  }

 private:
  FrameId Of(FrameId id) {
    const Frame& frame = from_.frame(id);
    const Function& function = from_.function(frame.function);
    const FunctionId translated = to_.Intern(
        Function{Of(function.name), Of(function.file), function.first_line, function.is_native});
    return to_.Intern(Frame{translated, frame.line});
  }

  const Tables& from_;
  Tables& to_;
  std::vector<StackId> stacks_;  // by StackId; the empty one: not translated yet
  std::vector<StackId> path_;    // of one stack, leaf first
};

}  // namespace

GpuRecord TranslateGpu(GpuRecord record, const Tables& from, Tables& to) {
  Translator translator(from, to);
  for (GpuDevice& device : record.devices) device.name = translator.Of(device.name);
  for (GpuKernel& kernel : record.kernels) {
    kernel.name = translator.Of(kernel.name);
    kernel.short_name = translator.Of(kernel.short_name);
  }
  for (GpuSum& sum : record.sums) {
    sum.stack = translator.Of(sum.stack);
    sum.advice = translator.Of(sum.advice);
  }
  for (GpuIdle& idle : record.idles) {
    idle.from = translator.Of(idle.from);
    idle.to = translator.Of(idle.to);
  }
  for (GpuWait& wait : record.waits) wait.stack = translator.Of(wait.stack);
  record.quality.source = translator.Of(record.quality.source);
  return record;
}

RangeRecord TranslateRanges(RangeRecord record, const Tables& from, Tables& to) {
  Translator translator(from, to);
  for (NamedRange& range : record.ranges) {
    range.name = translator.Of(range.name);
    range.domain = translator.Of(range.domain);
  }
  return record;
}

}  // namespace pystrobe
