// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/stack_plan.h"

#include <algorithm>

namespace pystrobe::remote {
namespace {

using pyabi::FrameStyle;
using pyabi::kAbsent;
using pyabi::StackCopy;

// A read costs the same for 8 bytes and for 4 KiB (measured: 3.1-3.3 us on a VM), so a prediction
// is rounded up to that.
constexpr uint32_t kPage = 4096;
constexpr uint32_t kSlack = 1024;
// CPython makes chunks of 16 KiB unless one frame needs more (Python/pystate.c,
// DATA_STACK_CHUNK_SIZE), and at most 16 MiB is believed.
constexpr uint32_t kUsualChunk = 16 * 1024;
constexpr uint64_t kLargestChunk = uint64_t{16} << 20;
constexpr uint32_t kChunkHeader = 24;
constexpr size_t kMostChunks = 4096;
constexpr size_t kMostPages = 48;
constexpr size_t kMostExtras = 256;
// Of all chunks together, so that the thread state and the frames that lie elsewhere fit too.
constexpr size_t kMostPredicted = StackCopy::kMostBytes - (size_t{1} << 20);

Address PageOf(Address address) { return address & ~Address{kPage - 1}; }

uint32_t RoundUpToPage(uint64_t bytes) {
  return static_cast<uint32_t>((bytes + kPage - 1) & ~uint64_t{kPage - 1});
}

// With the outermost cframe in one piece, where there is one: each piece of a read costs half a
// microsecond.
uint32_t ThreadBytes(const pyabi::Layout& layout) {
  const auto& thread = layout.thread;
  if (thread.root_cframe == kAbsent) return thread.size;
  const uint32_t cframe_end =
      thread.root_cframe + layout.cframe.current_frame + pyabi::ChainStart::kCframeBytes;
  return std::max(thread.size, cframe_end);
}

}  // namespace

StackPlan::StackPlan(const pyabi::Layout& layout, Address tstate)
    : layout_(&layout), start_(layout, tstate), thread_bytes_(ThreadBytes(layout)) {}

void StackPlan::AddPredicted(StackCopy& copy) {
  reached_ = 0;
  start_.Begin();
  copy.Add(tstate(), thread_bytes_);
  for (Address cframe : cframes_) {
    copy.Add(cframe + layout_->cframe.current_frame, pyabi::ChainStart::kCframeBytes);
  }
  for (size_t i = 0; i < pages_.size();) {
    // Neighbouring pages in one piece: a piece costs about as much as 8 KiB of bytes.
    size_t end = i + 1;
    while (end < pages_.size() && pages_[end].address == pages_[end - 1].address + kPage) ++end;
    copy.Add(pages_[i].address, static_cast<uint32_t>((end - i) * kPage));
    i = end;
  }
  for (const Chunk& chunk : older_) copy.Add(chunk.address, chunk.used);
  for (Address frame : extras_) copy.Add(frame, layout_->frame.size);
  if (current_.address != 0) copy.Add(current_.address, current_.used);
}

std::optional<Address> StackPlan::FindFirst(const StackCopy& copy) const {
  return start_.FindFirst(copy);
}

bool StackPlan::AddFirst(StackCopy& copy) const {
  return copy.Add(start_.MissingCframe(copy), pyabi::ChainStart::kCframeBytes);
}

bool StackPlan::IsSettled(const StackCopy& copy, const pyabi::WalkResult& walk,
                          const std::vector<Address>& loop_frames) {
  return start_.IsSettled(copy, walk, loop_frames);
}

bool StackPlan::BeginsAtBottom(const StackCopy& copy,
                               const std::vector<pyabi::RawFrame>& frames) const {
  const bool is_311 = layout_->version.major == 3 && layout_->version.minor == 11;
  if (!is_311 || frames.empty()) return true;
  Address chunk = copy.ValueOr0<Address>(tstate() + layout_->thread.datastack_chunk);
  for (size_t older = 0; older < kMostChunks; ++older) {
    const Address previous = copy.ValueOr0<Address>(chunk + layout_->chunk.previous);
    if (previous == 0) break;
    chunk = previous;
  }
  // The first word of a thread's first chunk stays free (push_chunk in Python/pystate.c).
  return frames.back().frame == chunk + layout_->chunk.data + sizeof(Address);
}

bool StackPlan::AddMissing(StackCopy& copy, Address missing) {
  const uint32_t frame_size = layout_->frame.size;
  if (layout_->frame_style == FrameStyle::kFrameObjects) {
    uint32_t size = RoundUpToPage(missing - PageOf(missing) + frame_size);
    return copy.Add(PageOf(missing), size);
  }
  Address chunk = copy.ValueOr0<Address>(tstate() + layout_->thread.datastack_chunk);
  Address top = copy.ValueOr0<Address>(tstate() + layout_->thread.datastack_top);
  if (chunk != 0 && missing >= chunk && missing < top && top - chunk <= kLargestChunk) {
    return copy.Add(chunk, static_cast<uint32_t>(top - chunk));
  }
  // The chunk before the last one whose header was copied, if the frame lies in it. A walk asks for
  // one chunk after the other.
  if (reached_ != 0) chunk = reached_;
  for (size_t depth = 0; chunk != 0 && depth < kMostChunks; ++depth) {
    Address previous = copy.ValueOr0<Address>(chunk + layout_->chunk.previous);
    if (previous == 0) break;
    if (copy.Find(previous, kChunkHeader) == nullptr) {
      if (missing >= previous && missing + frame_size <= previous + kUsualChunk) {
        return copy.Add(previous, kUsualChunk);
      }
      if (!copy.Add(previous, kChunkHeader)) return false;
      break;
    }
    uint64_t used = copy.ValueOr0<uint64_t>(previous + layout_->chunk.top) * sizeof(Address) +
                    layout_->chunk.data;
    if (missing >= previous && missing < previous + used && used <= kLargestChunk) {
      return copy.Add(previous, static_cast<uint32_t>(used));
    }
    chunk = reached_ = previous;
  }
  return copy.Add(missing, frame_size);
}

void StackPlan::Learn(const StackCopy& copy, const std::vector<pyabi::RawFrame>& frames,
                      const std::vector<Address>& loop_frames) {
  ++stamp_;
  if (layout_->frame_style == FrameStyle::kFrameObjects) {
    LearnPages(frames);
    return;
  }
  if (layout_->thread.cframe != kAbsent) LearnCframes(copy);
  LearnChunks(copy);
  extras_.clear();
  last_held_ = current_;
  auto learn = [&](Address address) {
    if (!InAnyChunk(address) && extras_.size() < kMostExtras) extras_.push_back(address);
  };
  for (const pyabi::RawFrame& frame : frames) learn(frame.frame);
  for (Address frame : loop_frames) learn(frame);
}

// Asked for one frame after the other, which mostly lie in the same.
bool StackPlan::InAnyChunk(Address address) {
  if (last_held_.Holds(address)) return true;
  if (current_.Holds(address)) {
    last_held_ = current_;
    return true;
  }
  for (const Chunk& chunk : older_) {
    if (!chunk.Holds(address)) continue;
    last_held_ = chunk;
    return true;
  }
  return false;
}

bool StackPlan::IsKnown(Address chunk) const {
  return chunk == current_.address || std::ranges::any_of(older_, [chunk](const Chunk& known) {
           return known.address == chunk;
         });
}

void StackPlan::LearnCframes(const StackCopy& copy) {
  cframes_.clear();
  Address cframe = copy.ValueOr0<Address>(tstate() + layout_->thread.cframe);
  const Address root = tstate() + layout_->thread.root_cframe;
  for (; cframe != 0 && cframe != root && cframes_.size() < 2;
       cframe = copy.ValueOr0<Address>(cframe + layout_->cframe.previous)) {
    cframes_.push_back(cframe);
  }
}

void StackPlan::LearnChunks(const StackCopy& copy) {
  Address chunk = copy.ValueOr0<Address>(tstate() + layout_->thread.datastack_chunk);
  Address top = copy.ValueOr0<Address>(tstate() + layout_->thread.datastack_top);
  older_.clear();
  if (chunk == 0 || top < chunk || top - chunk > kLargestChunk) {
    current_ = {0, 0};
    return;
  }
  uint64_t size = copy.ValueOr0<uint64_t>(chunk + layout_->chunk.size);
  if (size < kUsualChunk || size > kLargestChunk) size = kUsualChunk;
  uint64_t used = top - chunk;
  // A stack that was deeper a moment ago will be again: forget depth slowly.
  if (chunk == current_.address)
    used = std::max<uint64_t>(used, current_.used - current_.used / 16);
  uint32_t want = std::min(RoundUpToPage(used + (used < current_.used ? 0 : kSlack)),
                           static_cast<uint32_t>(size));
  current_ = {chunk, want};
  // A list that is torn or made to mislead may lead back to itself, or claim more than there is.
  size_t predicted = current_.used;
  while (older_.size() < kMostChunks) {
    chunk = copy.ValueOr0<Address>(chunk + layout_->chunk.previous);
    if (chunk == 0 || IsKnown(chunk) || copy.Find(chunk, kChunkHeader) == nullptr) break;
    uint64_t bytes =
        copy.ValueOr0<uint64_t>(chunk + layout_->chunk.top) * sizeof(Address) + layout_->chunk.data;
    if (bytes > kLargestChunk || bytes > kMostPredicted - predicted) break;
    predicted += bytes;
    older_.push_back({chunk, static_cast<uint32_t>(bytes)});
  }
}

void StackPlan::LearnPages(const std::vector<pyabi::RawFrame>& frames) {
  auto use = [&](Address page) {
    auto at = std::lower_bound(pages_.begin(), pages_.end(), page,
                               [](const Page& p, Address a) { return p.address < a; });
    if (at != pages_.end() && at->address == page) {
      at->last_use = stamp_;
    } else {
      pages_.insert(at, {page, stamp_});
    }
  };
  for (const pyabi::RawFrame& frame : frames) {
    use(PageOf(frame.frame));
    Address last = PageOf(frame.frame + layout_->frame.size - 1);
    if (last != PageOf(frame.frame)) use(last);
  }
  if (pages_.size() <= kMostPages) return;
  // Keep what this stack uses; of the rest only the pages seen lately.
  uint64_t oldest = stamp_ > 64 ? stamp_ - 64 : 0;
  std::erase_if(pages_, [&](const Page& p) { return p.last_use < oldest; });
  if (pages_.size() > 4 * kMostPages) {
    std::erase_if(pages_, [&](const Page& p) { return p.last_use < stamp_; });
  }
}

void StackPlan::Reset() {
  cframes_.clear();
  current_ = {0, 0};
  older_.clear();
  extras_.clear();
  pages_.clear();
}

}  // namespace pystrobe::remote
