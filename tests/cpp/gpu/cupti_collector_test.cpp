// SPDX-License-Identifier: Apache-2.0
#include "gpu/cupti_collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <new>
#include <vector>

#include "profiler/base/clock.h"

namespace {
thread_local uint64_t allocations = 0;
}

// Counted, for the test that there are none. Not inlined: the compiler would see free() of what
// came from new, and warn.
[[gnu::noinline]] void* operator new(size_t size) {
  ++allocations;
  if (void* const memory = std::malloc(size)) return memory;
  std::abort();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace pystrobe::gpu {
namespace {

using ::testing::ElementsAre;

class Counted : public LaunchPath {
 public:
  LaunchOrigin Current() noexcept override { return {.path = ++calls}; }
  uint32_t calls = 0;
};
Counted counted;

class CuptiCollectorTest : public ::testing::Test {
 protected:
  CuptiCollectorTest() { counted.calls = 0; }
  ~CuptiCollectorTest() override { collector_->GiveBack(); }

  void Call(uint32_t id, CUpti_ApiCallbackSite site, CUresult result = CUDA_SUCCESS,
            uint32_t correlation = 5) {
    CUpti_CallbackData data{};
    data.callbackSite = site;
    data.functionReturnValue = &result;
    data.correlationId = correlation;
    data.correlationData = &between_sites_;
    CuptiCollector::OnEvent(collector_, CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
  }
  void Launch(CUresult result = CUDA_SUCCESS) {
    Call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_API_ENTER);
    Call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_API_EXIT, result);
  }

  uint64_t between_sites_ = 99;
  CuptiCollector* collector_ =
      CuptiCollector::Take({.count = 1, .bytes = 4096, .spare = true}, counted).value();
};

TEST_F(CuptiCollectorTest, RemembersWhatLaunched) {
  Launch();
  Launch(CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(collector_->ring().Find(5), LaunchOrigin{.path = 2});
  EXPECT_THAT(collector_->launches().launches, ElementsAre(2, 0, 0, 0));
  EXPECT_EQ(collector_->launches().failed, 1U);
}

TEST_F(CuptiCollectorTest, OtherCallsAreNoLaunches) {
  Call(CUPTI_DRIVER_TRACE_CBID_cuEventRecord, CUPTI_API_ENTER);
  EXPECT_EQ(counted.calls, 0U);
  EXPECT_EQ(collector_->ring().Find(5), std::nullopt);
}

TEST_F(CuptiCollectorTest, WaitsAreNotedWithTheirPaths) {
  std::vector<HostWait> waits;
  const int64_t before = MonotonicNow().count();
  Call(CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize, CUPTI_API_ENTER);
  EXPECT_EQ(counted.calls, 0U);
  Call(CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize, CUPTI_API_EXIT);
  const int64_t after = MonotonicNow().count();
  collector_->waits().Take(waits);
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0].path, 1U);
  EXPECT_EQ(waits[0].tid, static_cast<uint32_t>(gettid()));
  EXPECT_LE(before, waits[0].begin_ns);
  EXPECT_LE(waits[0].begin_ns, waits[0].end_ns);
  EXPECT_LE(waits[0].end_ns, after);
  EXPECT_THAT(collector_->launches().launches, ElementsAre(0, 0, 0, 0));
}

TEST_F(CuptiCollectorTest, ACopyThatIsWaitedForIsBoth) {
  std::vector<HostWait> waits;
  Call(CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2, CUPTI_API_ENTER);
  Call(CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2, CUPTI_API_EXIT);
  collector_->waits().Take(waits);
  EXPECT_EQ(waits.size(), 1U);
  EXPECT_THAT(collector_->launches().launches, ElementsAre(0, 0, 1, 0));
  EXPECT_EQ(collector_->launches().captured, 0U);
  EXPECT_NE(collector_->ring().Find(5), std::nullopt);
}

// Of CUPTI before CUDA 12.9, which crashes where it is given no buffer.
TEST_F(CuptiCollectorTest, WhereCuptiNeedsABufferItAlwaysHasOne) {
  uint8_t *first = nullptr, *second = nullptr;
  size_t size = 0, most = 1;
  CuptiCollector::OnBufferRequested(&first, &size, &most);
  CuptiCollector::OnBufferRequested(&second, &size, &most);
  EXPECT_NE(first, second);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(size, 4096U);
  EXPECT_EQ(most, 0U);
  CuptiCollector::OnBufferCompleted(nullptr, 0, second, size, 100);
  EXPECT_EQ(collector_->buffers().spare_bytes(), 100U);
  EXPECT_EQ(collector_->buffers().declined(), 1U);
}

TEST_F(CuptiCollectorTest, CallbacksAllocateNothing) {
  const uint64_t before = allocations;
  for (int i = 0; i < 1'000; ++i) {
    Launch();
    uint8_t* buffer = nullptr;
    size_t size = 0, most = 0;
    CuptiCollector::OnBufferRequested(&buffer, &size, &most);
    CuptiCollector::OnBufferCompleted(nullptr, 0, buffer, size, 8);
  }
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(counted.calls, 1'000U);
  delete new int;
  EXPECT_GT(allocations, before) << "they are counted";
}

TEST_F(CuptiCollectorTest, ForgetsWhatWasBefore) {
  Launch();
  EXPECT_NE(collector_->buffers().Lend(), nullptr);  // CUPTI ends with it
  collector_->GiveBack();
  ASSERT_TRUE(CuptiCollector::Take({.count = 1, .bytes = 4096, .spare = true}, counted));
  EXPECT_EQ(collector_->ring().Find(5), std::nullopt);
  EXPECT_THAT(collector_->launches().launches, ElementsAre(0, 0, 0, 0));
  EXPECT_NE(collector_->buffers().Lend(), nullptr);
  EXPECT_EQ(collector_->buffers().declined(), 0U);
}

TEST_F(CuptiCollectorTest, AChildOfForkIsNotAsked) {
  const pid_t child = fork();
  if (child == 0) {
    Launch();
    uint8_t* buffer = nullptr;
    size_t size = 1, most = 0;
    CuptiCollector::OnBufferRequested(&buffer, &size, &most);
    _exit(counted.calls == 0 && buffer == nullptr && size == 0 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace pystrobe::gpu
