// SPDX-License-Identifier: Apache-2.0
#include "sampler/signal/event_log.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace pystrobe::signals {
namespace {

// Of what the kernel writes; a power of two pages. A record has 8 bytes, and is fetched at once.
constexpr size_t kDataPages = 1;

size_t MappedBytes() { return (1 + kDataPages) * static_cast<size_t>(getpagesize()); }

}  // namespace

EventLog::~EventLog() {
  if (perf_event_mmap_page* page = page_.load()) munmap(page, MappedBytes());
}

void EventLog::Open(int event_fd) {
  void* memory = mmap(nullptr, MappedBytes(), PROT_READ | PROT_WRITE, MAP_SHARED, event_fd, 0);
  if (memory != MAP_FAILED) page_.store(static_cast<perf_event_mmap_page*>(memory));
}

std::optional<bool> EventLog::TakeInKernel() {
  perf_event_mmap_page* page = page_.load();
  if (page == nullptr) return std::nullopt;
  const auto* data = reinterpret_cast<const std::byte*>(page) + page->data_offset;
  const uint64_t head = std::atomic_ref(page->data_head).load(std::memory_order_acquire);
  const std::atomic_ref tail(page->data_tail);
  std::optional<bool> in_kernel;
  for (uint64_t at = tail.load(std::memory_order_relaxed); at < head;) {
    perf_event_header record;  // records are multiples of 8 bytes, so this one never wraps around
    std::memcpy(&record, data + at % page->data_size, sizeof record);
    if (record.type == PERF_RECORD_SAMPLE) {
      in_kernel = (record.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
    }
    if (record.size == 0) break;
    at += record.size;
  }
  tail.store(head, std::memory_order_release);
  return in_kernel;
}

}  // namespace pystrobe::signals
