// SPDX-License-Identifier: Apache-2.0
//
// The device's part in a test of what CUPTI tells.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>

namespace pystrobe::gpu {

/// libcupti.so.13 of tests/mock_cupti, which the dynamic linker finds first in these tests.
class MockCupti {
 public:
  MockCupti() : library_(dlopen("libcupti.so.13", RTLD_NOW)) {
    EXPECT_NE(library_, nullptr) << dlerror();
  }

  void FailNext(const char* function, int result, uint64_t times = 1) const {
    Find<void(const char*, int, uint64_t)>("mock_cupti_fail_next")(function, result, times);
  }
  void SetVersion(uint32_t version) const {
    Find<void(uint32_t)>("mock_cupti_set_version")(version);
  }
  void Hold(bool held) const { Find<void(int)>("mock_cupti_hold")(held ? 1 : 0); }
  uint64_t Calls() const { return Find<uint64_t()>("mock_cupti_calls")(); }
  uint64_t Records() const { return Find<uint64_t()>("mock_cupti_records")(); }
  uint64_t Finalized() const { return Find<uint64_t()>("mock_cupti_finalized")(); }
  bool IsSubscribed() const { return Find<int()>("mock_cupti_is_subscribed")() != 0; }
  void Launch(const char* name, uint64_t count) const {
    Find<void(const char*, uint64_t)>("mock_cupti_launch")(name, count);
  }
  uint32_t Capture(const char* name, uint64_t kernels) const {
    return Find<uint32_t(const char*, uint64_t)>("mock_cupti_capture")(name, kernels);
  }
  uint32_t Instantiate(uint32_t graph, uint64_t kernels) const {
    return Find<uint32_t(uint32_t, uint64_t)>("mock_cupti_instantiate")(graph, kernels);
  }
  void DestroyGraph(uint32_t graph) const {
    Find<void(uint32_t)>("mock_cupti_destroy_graph")(graph);
  }
  void LaunchGraph(const char* name, uint32_t graph, uint64_t kernels) const {
    Find<void(const char*, uint32_t, uint64_t)>("mock_cupti_launch_graph")(name, graph, kernels);
  }
  void Record(const char* name, uint32_t correlation, uint64_t begin = 1000,
              uint64_t end = 2000) const {
    Find<void(const char*, uint32_t, uint64_t, uint64_t)>("mock_cupti_record")(name, correlation,
                                                                               begin, end);
  }

 private:
  template <typename Function>
  Function* Find(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }

  void* library_;
};

}  // namespace pystrobe::gpu
