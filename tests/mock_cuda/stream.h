// SPDX-License-Identifier: Apache-2.0
//
// Each stream has a queue. What is on it takes device time that is computed, not slept: an
// operation begins when the one before it has ended and it has been put there, by CLOCK_MONOTONIC;
// who waits for it waits until then.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <deque>
#include <functional>

#include "tests/mock_cuda/driver.h"
#include "tests/mock_cuda/hook.h"

namespace mock_cuda {

struct Operation {
  int64_t put = 0;  // host time
  int64_t duration = 0;
  bool waits = false;  // for something else than the operation before it
  std::function<bool()> is_due = [] { return true; };
  std::function<void(int64_t begin)> run = [](int64_t) {};
};

}  // namespace mock_cuda

struct CUstream_st {
  CUctx_st* context;
  uint32_t id;
  std::deque<mock_cuda::Operation> queue{};
  int64_t free_at = 0;
  bool is_captured = false, is_spoilt = false;  // the capture was, by who waited for the device
};

namespace mock_cuda {

/// CLOCK_MONOTONIC, in nanoseconds.
int64_t Now();
/// Null where there is no such stream. [with the mutex]
CUstream_st* Resolve(CUstream stream);
/// Does what can be done by now, on one or all of them. [with the mutex]
void Advance(CUstream_st& stream);
void AdvanceAll();
/// Puts it on the stream's queue. [with the mutex]
CUresult Put(CUstream handle, Operation operation);
/// Returns once it is so; it is asked with the mutex. [without the mutex]
void WaitUntil(const std::function<bool()>& condition);

/// What is told to who looks at one call, from before it until its end. [one thread]
class Seen {
 public:
  explicit Seen(MockCudaCall call);
  Seen(const Seen&) = delete;
  Seen& operator=(const Seen&) = delete;
  ~Seen();
  /// As Put() does. [with the mutex]
  CUresult Put(CUstream stream, Operation operation);
  CUresult Exit(CUresult result) { return result_ = result; }

 private:
  const MockCudaHook* hook_;
  MockCudaCall call_;
  CUresult result_ = CUDA_ERROR_UNKNOWN;
};

}  // namespace mock_cuda
