// SPDX-License-Identifier: Apache-2.0
#include "sampler/signal/native_frames.h"

#include <link.h>

#include <algorithm>
#include <utility>

#include "profiler/base/proc.h"
#include "sampler/signal/native_look.h"

namespace pystrobe::signals {
namespace {

// All rules are copied for it, some ten nanoseconds each.
constexpr Nanoseconds kPublishInterval = std::chrono::milliseconds(2);
constexpr Nanoseconds kLearnAhead = std::chrono::milliseconds(1);
constexpr Nanoseconds kPublishIntervalPerRule = std::chrono::microseconds(2);

}  // namespace

Result<std::unique_ptr<NativeFrames>> NativeFrames::Open(const remote::Target& target) {
  auto binaries = native::Binaries::Of(target.pid(), target.memory());
  if (!binaries) return std::unexpected(binaries.error());
  const auto mappings = ReadMaps(target.pid());
  if (!mappings) return std::unexpected(mappings.error());
  const auto stack = std::ranges::find(*mappings, "[stack]", &Mapping::path);
  std::unique_ptr<NativeFrames> frames(
      new NativeFrames(target, *std::move(binaries), stack == mappings->end() ? 0 : stack->end));
  frames->Prepare(target);
  return frames;
}

NativeFrames::NativeFrames(const remote::Target& target, native::Binaries binaries,
                           native::Address first_stack_end)
    : binaries_(std::move(binaries)),
      code_(binaries_, target.memory()),
      first_stack_end_(first_stack_end) {}

// To read the interpreter's file takes some ten milliseconds, in which each sample would have to
// take its stack along.
void NativeFrames::Prepare(const remote::Target& target) {
  const native::Module* interpreter = binaries_.ModuleAt(target.info().code_type);
  if (interpreter == nullptr) return;
  const auto loop = interpreter->image.FindSymbol(target.memory(), native::kEvaluationLoop);
  if (!loop) return;
  cache_.Find(loop->address);
  while (cache_.LearnAhead()) continue;
  code_.Of(loop->address);
  known_.Publish(cache_.ranges());
}

native::StepResult NativeFrames::Complete(const RecordParts& record,
                                          std::vector<native::Address>& instructions) {
  native::UnwindCursor cursor = record.cursor;
  const native::StackBytes stack(cursor.stack(), record.stack);
  native::InstructionList list{instructions, NativeLook::kMostFrames};
  return native::UnwindOver(stack, cache_, cursor, list);
}

void NativeFrames::Publish(Nanoseconds now, bool quiet) {
  if (known_.has_old() && quiet) known_.FreeOld();
  const Nanoseconds end = now + kLearnAhead;
  while (MonotonicNow() < end && cache_.LearnAhead()) continue;
  if (cache_.ranges().size() == known_.published() || now < next_publish_) return;
  known_.Publish(cache_.ranges());
  next_publish_ = now + kPublishInterval +
                  kPublishIntervalPerRule * static_cast<int64_t>(cache_.ranges().size());
}

NativeFrames::Change NativeFrames::LibrariesChanged() const {
  const Loaded now = LoadedNow();
  if (now == loaded_) return Change::kNone;
  return now.removed == loaded_.removed ? Change::kCame : Change::kWent;
}

void NativeFrames::Renew() {
  const bool is_all_there = LibrariesChanged() == Change::kCame;
  loaded_ = LoadedNow();
  if (is_all_there) {
    cache_.ForgetUnknown();
    code_.ForgetUnknown();
  } else {
    cache_.Forget();
    code_.Forget();
    known_.Publish({});
  }
  // What cannot be read now is as it was.
  (void)binaries_.Refresh();
}

NativeFrames::Loaded NativeFrames::LoadedNow() {
  Loaded loaded;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* into) {
        *static_cast<Loaded*>(into) = {info->dlpi_adds, info->dlpi_subs};
        return 1;
      },
      &loaded);
  return loaded;
}

}  // namespace pystrobe::signals
