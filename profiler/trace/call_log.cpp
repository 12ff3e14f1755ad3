// SPDX-License-Identifier: Apache-2.0
#include "profiler/trace/call_log.h"

#include <unistd.h>

#include <new>

namespace pystrobe::trace {

CallLog::CallLog(ChunkTaker* taker, pid_t tid, const CallTree& tree, Ticks begin)
    : last_(begin), taker_(taker), tree_(tree), pid_(getpid()), tid_(tid) {
  if (taker != nullptr) Begin(taker->Open(*this));
}

void CallLog::Append(uint32_t what, Ticks now) {
  const Ticks far = (now - last_) >> 32;
  if (far != 0) *next_++ = far << 32 | CallChunk::kFar;
  AppendWord(what, now);
  if (next_ >= end_.load(std::memory_order_relaxed)) HandOver();
}

void CallLog::Begin(CallChunk* chunk) {
  chunk_ = chunk;
  chunk->log = this;
  chunk->tid = tid_;
  chunk->begin = last_;
  next_ = chunk->words.data();
  end_.store(next_ + CallChunk::kMostWords - 2, std::memory_order_relaxed);
}

// False where there is no memory; then nothing was done.
bool CallLog::Seal() {
  const auto& nodes = tree_.nodes();
  chunk_->new_nodes.clear();
  try {
    chunk_->new_nodes.reserve(nodes.size() - told_nodes_);
  } catch (const std::bad_alloc&) {
    return false;
  }
  chunk_->size = static_cast<size_t>(next_ - chunk_->words.data());
  for (; told_nodes_ < nodes.size(); ++told_nodes_) {
    const CallNode& node = nodes[told_nodes_];
    chunk_->new_nodes.push_back({node.parent->number, node.key, node.running > 0});
  }
  return true;
}

// What is in the chunk could not be read without them.
void CallLog::GiveUp() {
  gave_up_ = true;
  next_ = nullptr;
  chunk_->size = 0;
  chunk_->new_nodes.clear();
  taker_->Close(*this, chunk_);
}

void CallLog::HandOver() {
  // A child made by fork has nobody to take them.
  if (getpid() != pid_) {
    Begin(chunk_);
    return;
  }
  if (!Seal()) return GiveUp();
  Begin(taker_->Exchange(chunk_));
}

void CallLog::Close() {
  if (!IsOn()) return;
  if (!Seal()) return GiveUp();
  next_ = nullptr;
  taker_->Close(*this, chunk_);
}

}  // namespace pystrobe::trace
