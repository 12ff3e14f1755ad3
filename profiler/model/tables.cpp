// SPDX-License-Identifier: Apache-2.0
#include "profiler/model/tables.h"

#include <algorithm>
#include <limits>

namespace pystrobe {
namespace {

uint64_t Join(uint32_t high, uint32_t low) { return uint64_t{high} << 32 | low; }

/// The start of a text that is too long, up to the end of a character of UTF-8.
std::string Cut(std::string_view text) {
  constexpr std::string_view kMore = "...";
  size_t end = Tables::kMostOfText - kMore.size();
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)).append(kMore);
}

uint64_t HashOf(const StackNode& node) {
  return MixBits(Join(ToIndex(node.parent), ToIndex(node.frame)));
}

}  // namespace

size_t Tables::FunctionHash::operator()(const Function& f) const {
  return MixBits(MixBits(Join(ToIndex(f.name), ToIndex(f.file))) + f.first_line * 2 +
                 (f.is_native ? 1 : 0));
}

Tables::Tables() {
  Intern(std::string_view{});
  stacks_.push_back({kEmptyStack, FrameId{0}});
}

StringId Tables::Intern(std::string_view text) {
  if (text.size() > kMostOfText) return Intern(Cut(text));
  if (auto it = string_ids_.find(text); it != string_ids_.end()) return it->second;
  const StringId id{static_cast<uint32_t>(strings_.size())};
  strings_.emplace_back(text);
  string_ids_.emplace(std::string_view(strings_.back()), id);
  return id;
}

FunctionId Tables::Intern(const Function& function) {
  auto [it, added] =
      function_ids_.try_emplace(function, FunctionId{static_cast<uint32_t>(functions_.size())});
  if (added) functions_.push_back(function);
  return it->second;
}

FrameId Tables::Intern(const Frame& frame) {
  auto [it, added] = frame_ids_.try_emplace(Join(ToIndex(frame.function), frame.line),
                                            FrameId{static_cast<uint32_t>(frames_.size())});
  if (added) frames_.push_back(frame);
  return it->second;
}

StackId Tables::Push(StackId parent, FrameId frame) {
  const StackNode node{parent, frame};
  const uint32_t fresh = static_cast<uint32_t>(stacks_.size());
  const uint32_t id = stack_ids_.FindOrAdd(
      HashOf(node), fresh, [&](uint32_t other) { return stacks_[other] == node; },
      [&](uint32_t other) { return HashOf(stacks_[other]); });
  if (id == fresh) stacks_.push_back(node);
  return StackId{id};
}

ThreadIndex Tables::AddThread(const Thread& thread) {
  const ThreadIndex index{static_cast<uint32_t>(threads_.size())};
  threads_.push_back(thread);
  thread_changes_.push_back(index);
  return index;
}

void Tables::RenameThread(ThreadIndex index, StringId name) {
  threads_[ToIndex(index)].name = name;
  thread_changes_.push_back(index);
}

StackId Tables::PushAll(StackId base, StackId top) {
  for (const FrameId frame : FramesOf(top)) base = Push(base, frame);
  return base;
}

std::vector<FrameId> Tables::FramesOf(StackId id) const {
  std::vector<FrameId> frames;
  for (; id != kEmptyStack; id = stack(id).parent) frames.push_back(stack(id).frame);
  std::reverse(frames.begin(), frames.end());
  return frames;
}

// In this order: what a definition refers to is there before it.
bool Tables::Follow(const Tables& from, size_t most) {
  const auto left = [&most](bool is_left) { return is_left && most > 0 && most-- > 0; };
  while (left(strings_.size() < from.strings_.size())) Intern(from.strings_[strings_.size()]);
  while (left(functions_.size() < from.functions_.size())) {
    Intern(from.functions_[functions_.size()]);
  }
  while (left(frames_.size() < from.frames_.size())) Intern(from.frames_[frames_.size()]);
  while (left(stacks_.size() < from.stacks_.size())) {
    const StackNode& node = from.stacks_[stacks_.size()];
    Push(node.parent, node.frame);
  }
  return most > 0;
}

Tables Tables::Copy() const {
  Tables copy;
  copy.Follow(*this, std::numeric_limits<size_t>::max());
  for (const Thread& thread : threads_) copy.AddThread(thread);
  return copy;
}

}  // namespace pystrobe
