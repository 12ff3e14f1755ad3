// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/native_stacks.h"

#include <utility>

namespace pystrobe::remote {

Result<std::unique_ptr<NativeStacks>> NativeStacks::Start(const Target& target, Tables& tables,
                                                          Quality& quality, size_t most_bytes) {
  auto unwinder = Unwinder::Start(target);
  if (!unwinder) return std::unexpected(unwinder.error());
  return std::unique_ptr<NativeStacks>(
      new NativeStacks(tables, quality, *std::move(unwinder), most_bytes));
}

StackId NativeStacks::Add(ThreadIndex thread, StackId base, std::vector<NamedFrame> frames,
                          NativeCopy copy) {
  Part part{base, std::move(frames)};
  std::vector<uint8_t> begins_run = RunBeginnings(part.frames);
  part.bytes = sizeof(Part) + sizeof(UnwindOrder) + copy.bytes.capacity() + begins_run.capacity() +
               part.frames.capacity() * sizeof(NamedFrame);
  if (waiting_bytes_ + part.bytes > most_bytes_) Make();
  if (copy.empty() || waiting_bytes_ + part.bytes > most_bytes_) return WithoutNative(part);
  unwinder_->Submit({thread, std::move(copy), std::move(begins_run)});
  waiting_bytes_ += part.bytes;
  parts_.push_back(std::move(part));
  const auto waiting = static_cast<uint32_t>(made_.size() + parts_.size() - 1);
  return StackId{kPending | ((first_ + waiting) & kNumber)};
}

StackId NativeStacks::WithoutNative(const Part& part) {
  ++quality_.native_cut;
  std::vector<native::MergedFrame> frames;
  for (uint32_t i = 0; i < part.frames.size(); ++i) frames.push_back({false, i});
  return PushMerged(tables_, ids_, part.base, part.frames, {}, frames);
}

void NativeStacks::Make() {
  for (const UnwoundStack& unwound : unwinder_->TakeDone()) {
    made_.push_back(Finish(parts_.front(), unwound));
    RemoveFirstPart();
  }
}

void NativeStacks::MakeWithoutWaiting() {
  unwinder_->Drop();
  Make();
  for (; !parts_.empty(); RemoveFirstPart()) made_.push_back(WithoutNative(parts_.front()));
}

void NativeStacks::RemoveFirstPart() {
  waiting_bytes_ -= parts_.front().bytes;
  parts_.pop_front();
}

StackId NativeStacks::Finish(const Part& part, const UnwoundStack& unwound) {
  quality_.native_cut += unwound.result == native::MergeResult::kCut ? 1 : 0;
  quality_.native_unfit += unwound.result == native::MergeResult::kUnfit ? 1 : 0;
  if (std::exchange(epoch_, unwound.epoch) != unwound.epoch) ids_.Clear();
  for (const auto& [instruction, place] : unwound.places) ids_.Set(instruction, place);
  return PushMerged(tables_, ids_, part.base, part.frames, unwound.instructions, unwound.frames);
}

StackId NativeStacks::Made(StackId stack) const {
  if (IsMade(stack)) return stack;
  const uint32_t place = (ToIndex(stack) - first_) & kNumber;
  return place < made_.size() ? made_[place] : stack;
}

void NativeStacks::Forget() {
  first_ = (first_ + static_cast<uint32_t>(made_.size())) & kNumber;
  made_.clear();
}

}  // namespace pystrobe::remote
