// SPDX-License-Identifier: Apache-2.0
#include "sampler/signal/record_ring.h"

#include <cstring>
#include <utility>

namespace pystrobe::signals {
namespace {

size_t RoundUp(size_t size) { return (size + 7) & ~size_t{7}; }

}  // namespace

Result<RecordRing> RecordRing::Make(size_t bytes) {
  auto memory = LazyArray<std::byte>::Make(bytes);
  if (!memory) return std::unexpected(memory.error());
  return RecordRing(*std::move(memory));
}

RecordRing::RecordRing(RecordRing&& other) noexcept
    : bytes_(std::move(other.bytes_)),
      written_(other.written_.load()),
      read_(other.read_.load()),
      restart_(other.restart_.load()),
      reserved_end_(other.reserved_end_),
      front_end_(other.front_end_) {}

std::byte* RecordRing::Reserve(size_t size, size_t leave) {
  uint64_t begin = written_.load(std::memory_order_relaxed);
  uint64_t read = read_.load(std::memory_order_acquire);
  const uint64_t restarted = restart_.load(std::memory_order_relaxed);
  if (read == begin && OffsetOf(begin) >= kFewBytes) {
    restart_.store(begin, std::memory_order_relaxed);
    begin = read = NextTurn(begin);
  } else if (read == restarted) {
    read = NextTurn(read);
  }
  const size_t need = kHead + RoundUp(size);
  const bool skips = need > bytes_.capacity() - OffsetOf(begin);
  const uint64_t from = skips ? NextTurn(begin) : begin;
  if (from + need + leave - read > bytes_.capacity()) return nullptr;
  if (skips) WriteHead(begin, kSkip);
  WriteHead(from, size);
  reserved_end_ = from + need;
  return bytes_.data() + OffsetOf(from) + kHead;
}

void RecordRing::Commit() { written_.store(reserved_end_, std::memory_order_release); }

std::span<const std::byte> RecordRing::Front() {
  uint64_t begin = read_.load(std::memory_order_relaxed);
  if (begin == written_.load(std::memory_order_acquire)) return {};
  if (begin == restart_.load(std::memory_order_relaxed)) begin = NextTurn(begin);
  if (ReadHead(begin) == kSkip) begin = NextTurn(begin);
  const size_t size = ReadHead(begin);
  front_end_ = begin + kHead + RoundUp(size);
  return {bytes_.data() + OffsetOf(begin) + kHead, size};
}

void RecordRing::Pop() { read_.store(front_end_, std::memory_order_release); }

void RecordRing::WriteHead(uint64_t position, Head head) {
  std::memcpy(bytes_.data() + OffsetOf(position), &head, kHead);
}

RecordRing::Head RecordRing::ReadHead(uint64_t position) const {
  Head head;
  std::memcpy(&head, bytes_.data() + OffsetOf(position), kHead);
  return head;
}

}  // namespace pystrobe::signals
