// SPDX-License-Identifier: Apache-2.0
//
// A Python thread in memory of our own, laid out as simply as 3.10 does it, and copies of it.
#pragma once

#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "sampler/remote/copy_job.h"

namespace pystrobe::remote {

/// Stands still, has the lock, and runs one function, as far as a sampler can see. Its words may be
/// changed to make it otherwise.
class OwnThread {
 public:
  OwnThread() {
    layout.version = {3, 10};
    layout.frame_style = pyabi::FrameStyle::kFrameObjects;
    layout.thread = {.size = sizeof state, .frame = 0};
    layout.frame = {.size = sizeof frame, .previous = 0, .code = 8, .instruction = 16};
    layout.gil = {.last_holder = 0, .locked = 8, .switch_number = 16};
    state[0] = AddressOf(frame);
    gil[0] = AddressOf(state);
  }
  OwnThread(const OwnThread&) = delete;
  OwnThread& operator=(const OwnThread&) = delete;

  template <typename T>
  static Address AddressOf(const T& object) {
    return reinterpret_cast<Address>(&object);
  }

  pyabi::Layout layout;
  alignas(4096) std::array<std::byte, 4096> before{};  // frames are read page by page
  std::array<uint64_t, 4> frame{0, 0xc0de, 0, 0};
  std::array<uint64_t, 4> state{};
  std::array<uint64_t, 6> gil{0, 1, 7, 0, 0, 0};
  uint32_t rseq_cpu = 0;
  std::array<std::byte, 4096> after{};
};

/// Everything that a job of a sampler has around it.
class OwnCopy {
 public:
  OwnCopy(OwnThread& thread, int cpu)
      : plan_(thread.layout, OwnThread::AddressOf(thread.state)),
        gil_(thread.layout, OwnThread::AddressOf(thread.gil)) {
    thread.rseq_cpu = static_cast<uint32_t>(cpu);
    copy_.plan = &plan_;
    job.memory = &memory_;
    job.layout = &thread.layout;
    job.gil = &gil_;
    job.witness.rseq_cpu_id = OwnThread::AddressOf(thread.rseq_cpu);
    job.threads = {&copy_};
    job.tid = gettid();
  }
  OwnCopy(const OwnCopy&) = delete;
  OwnCopy& operator=(const OwnCopy&) = delete;

  CopyJob job;

 private:
  ProcessMemory memory_{getpid()};
  StackPlan plan_;
  GilReader gil_;
  ThreadCopy copy_;
};

}  // namespace pystrobe::remote
