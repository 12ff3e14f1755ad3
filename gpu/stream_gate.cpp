// SPDX-License-Identifier: Apache-2.0
#include "gpu/stream_gate.h"

#include "gpu/driver_api.h"
#include "profiler/base/thread.h"

namespace pystrobe::gpu {

Result<std::unique_ptr<StreamGate>> StreamGate::Make(Nanoseconds patience) {
  const auto cuda = DriverApi::Load();
  if (!cuda) return std::unexpected(cuda.error());
  std::unique_ptr<StreamGate> gate(new StreamGate(patience));
  void* word = nullptr;
  CUdeviceptr address = 0;
  auto done =
      (*cuda)->Check((*cuda)->cuMemHostAlloc(&word, sizeof(uint32_t),
                                             CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE),
                     "taking memory that the device reads");
  if (!done) return std::unexpected(done.error());
  gate->word_ = static_cast<uint32_t*>(word);
  done = (*cuda)->Check((*cuda)->cuMemHostGetDevicePointer(&address, word, 0),
                        "asking where the device sees it");
  if (!done) return std::unexpected(done.error());
  gate->address_ = address;
  gate->Release(0);
  auto guard = StartThread("holding a stream back", [p = gate.get()] { p->Guard(); });
  if (!guard) return std::unexpected(guard.error());
  gate->guard_ = *std::move(guard);
  return gate;
}

StreamGate::~StreamGate() {
  if (guard_.joinable()) {
    Open();
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    guard_.join();
  }
  const auto cuda = DriverApi::Load();
  if (!cuda || word_ == nullptr) return;
  // The device may not have read it yet.
  if (closed_ > 0) (*cuda)->cuStreamSynchronize(stream_);
  (*cuda)->cuMemFreeHost(word_);
}

Result<void> StreamGate::Close(Stream stream) {
  const auto cuda = DriverApi::Load();
  if (!cuda) return std::unexpected(cuda.error());
  {
    const std::lock_guard lock(mutex_);
    ++closed_;
    expired_ = false;
    deadline_ = MonotonicNow() + patience_;
  }
  changed_.notify_all();
  stream_ = stream;
  auto done = (*cuda)->Check(
      (*cuda)->cuStreamWaitValue32(stream, address_, closed_, CU_STREAM_WAIT_VALUE_GEQ),
      "holding the stream back (cuStreamWaitValue32)");
  if (!done) Open();
  return done;
}

bool StreamGate::Open() {
  const std::lock_guard lock(mutex_);
  if (opened_ == closed_) return !expired_;
  opened_ = closed_;
  Release(opened_);
  return true;
}

void StreamGate::Release(uint32_t number) {
  std::atomic_ref<uint32_t>(*word_).store(number, std::memory_order_release);
}

void StreamGate::Guard() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (opened_ == closed_) {
      changed_.wait(lock);
      continue;
    }
    const Nanoseconds left = deadline_ - MonotonicNow();
    if (left > Nanoseconds::zero()) {
      changed_.wait_for(lock, left);
      continue;
    }
    expired_ = true;
    opened_ = closed_;
    Release(opened_);
  }
}

}  // namespace pystrobe::gpu
