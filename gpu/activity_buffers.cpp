// SPDX-License-Identifier: Apache-2.0
#include "gpu/activity_buffers.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace pystrobe::gpu {
namespace {

// Four did for the fastest launches that were measured.
constexpr size_t kAtOnce = 4;

}  // namespace

Result<std::unique_ptr<ActivityBuffers>> ActivityBuffers::Make(size_t count, size_t bytes,
                                                               bool spare) {
  if (count == 0 || count > kMaxBuffers || bytes % sizeof(uint64_t) != 0) {
    return Fail(ErrorCode::kInvalidArgument, "{} buffers of {} bytes: 1 to {}, of whole words",
                count, bytes, kMaxBuffers);
  }
  auto memory = LazyArray<uint8_t>::Make((count + (spare ? 1 : 0)) * bytes);
  if (!memory) return Wrap(memory.error(), "buffers for CUPTI");
  std::memset(memory->data(), 0, std::min(count, kAtOnce) * bytes);
  return std::unique_ptr<ActivityBuffers>(
      new ActivityBuffers(count, bytes, spare, *std::move(memory)));
}

ActivityBuffers::ActivityBuffers(size_t count, size_t bytes, bool spare, LazyArray<uint8_t> memory)
    : count_(count),
      bytes_(bytes),
      has_spare_(spare),
      memory_(std::move(memory)),
      free_(AllFree()) {
  sem_init(&changed_, 0, 0);
}

ActivityBuffers::~ActivityBuffers() { sem_destroy(&changed_); }

uint64_t ActivityBuffers::AllFree() const { return ~uint64_t{0} >> (kMaxBuffers - count_); }

uint8_t* ActivityBuffers::Lend() {
  uint64_t free = free_.load(std::memory_order_relaxed);
  while (free != 0) {
    // The lowest, so that few of them are ever touched.
    if (free_.compare_exchange_weak(free, free & (free - 1), std::memory_order_acquire)) {
      return DataOf(static_cast<size_t>(std::countr_zero(free)));
    }
  }
  declined_.fetch_add(1, std::memory_order_relaxed);
  return has_spare_ ? DataOf(count_) : nullptr;
}

void ActivityBuffers::Fill(uint8_t* data, size_t bytes) {
  const auto number = static_cast<size_t>(data - memory_.data()) / bytes_;
  if (has_spare_ && number == count_) {
    spare_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    return;
  }
  if (data < memory_.data() || number >= count_) return;
  used_[number].store(std::min(bytes, bytes_), std::memory_order_relaxed);
  filled_.fetch_or(uint64_t{1} << number, std::memory_order_release);
  sem_post(&changed_);
}

std::optional<ActivityBuffers::Filled> ActivityBuffers::Take(Nanoseconds deadline) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(deadline);
  const timespec until{seconds.count(), (deadline - seconds).count()};
  // One count for each that was filled, whether it is waited for or not: else they would pile up.
  if (taken_ == 0 && filled_.load(std::memory_order_relaxed) == 0) {
    sem_clockwait(&changed_, CLOCK_MONOTONIC, &until);
  } else {
    sem_trywait(&changed_);
  }
  // All of them before those that are filled meanwhile: none waits for ever.
  if (taken_ == 0) taken_ = filled_.exchange(0, std::memory_order_acquire);
  if (taken_ == 0) return std::nullopt;
  const auto number = static_cast<size_t>(std::countr_zero(taken_));
  taken_ &= taken_ - 1;
  return Filled{number, DataOf(number), used_[number].load(std::memory_order_relaxed)};
}

void ActivityBuffers::Wake() { sem_post(&changed_); }

void ActivityBuffers::GiveBack(const Filled& filled) {
  std::memset(filled.data, 0, filled.bytes);
  free_.fetch_or(uint64_t{1} << filled.number, std::memory_order_release);
}

void ActivityBuffers::Reclaim() {
  memory_.Zero();
  filled_.store(0, std::memory_order_relaxed);
  declined_.store(0, std::memory_order_relaxed);
  spare_bytes_.store(0, std::memory_order_relaxed);
  taken_ = 0;
  free_.store(AllFree(), std::memory_order_release);
}

}  // namespace pystrobe::gpu
