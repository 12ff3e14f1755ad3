// SPDX-License-Identifier: Apache-2.0
#include "pyext/launch/forward_paths.h"

#include <atomic>
#include <bit>

#include "profiler/base/hash.h"

namespace pystrobe::launch {
namespace {

constexpr int kSlotBits = std::countr_zero(ForwardPaths::kSlots);
constexpr int kThreadShift = std::bit_width(ForwardPaths::kMaxPath);
constexpr uint64_t kThreads = 1 << 14, kSessions = 1 << 6;
constexpr int kSessionShift = kThreadShift + std::countr_zero(kThreads);
constexpr int kSequenceShift = kSessionShift + std::countr_zero(kSessions);

// What the slot of the node has, above the path.
uint64_t MarkOf(NodeNumber node, uint32_t session) {
  return node.sequence >> kSlotBits << kSequenceShift | session % kSessions << kSessionShift |
         node.thread % kThreads << kThreadShift;
}

// Threads that run alike count alike: each has a place of its own to begin at. C++23 has no
// atomic_ref of a const object yet.
std::atomic_ref<uint64_t> SlotOf(const LazyArray<uint64_t>& slots, NodeNumber node) {
  const uint64_t begin = MixBits(node.thread % kThreads);
  const uint64_t place = (begin + node.sequence) % ForwardPaths::kSlots;
  return std::atomic_ref(const_cast<uint64_t&>(slots[place]));
}

}  // namespace

Result<ForwardPaths> ForwardPaths::Make() {
  auto slots = LazyArray<uint64_t>::Make(kSlots);
  if (!slots) return Wrap(slots.error(), "remembering what is to be gone back through");
  return ForwardPaths(*std::move(slots));
}

void ForwardPaths::Note(NodeNumber node, uint32_t session, uint32_t path) const noexcept {
  if (path > kMaxPath || Find(node, session)) return;
  SlotOf(slots_, node).store(MarkOf(node, session) | path, std::memory_order_release);
}

std::optional<uint32_t> ForwardPaths::Find(NodeNumber node, uint32_t session) const noexcept {
  const uint64_t found = SlotOf(slots_, node).load(std::memory_order_acquire);
  const uint32_t path = static_cast<uint32_t>(found) & kMaxPath;
  if (path == 0 || found >> kThreadShift != MarkOf(node, session) >> kThreadShift)
    return std::nullopt;
  return path;
}

void ForwardPaths::Clear() { slots_.Zero(); }

}  // namespace pystrobe::launch
