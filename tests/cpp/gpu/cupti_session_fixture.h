// SPDX-License-Identifier: Apache-2.0
//
// A session with the mock of CUPTI, and what it has summed.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gpu/cupti_session.h"
#include "gpu/nvtx_ranges.h"
#include "tests/cpp/gpu/mock_cupti.h"
#include "tests/cpp/gpu/mock_driver.h"

namespace pystrobe::gpu {

/// What launches of a thread are told to come from.
inline thread_local LaunchOrigin current;

class ThreadsOwn : public LaunchPath {
 public:
  LaunchOrigin Current() noexcept override {
    LaunchOrigin origin = current;
    if (origin.range == 0) origin.range = NvtxRanges::Current();
    return origin;
  }
};

class CuptiSessionTest : public ::testing::Test {
 protected:
  CuptiSessionTest() {
    driver_.Begin();
    current = {.path = 1};
  }

  void Start() {
    auto session = CuptiSession::Start(options_, path_);
    ASSERT_TRUE(session) << session.error().message;
    session_ = *std::move(session);
  }
  void Stop() {
    const auto stopped = session_->Stop();
    ASSERT_TRUE(stopped) << stopped.error().message;
  }
  uint64_t Kernels() const {
    return session_->Facts().launches.launches[static_cast<size_t>(LaunchKind::kKernel)];
  }

  struct Entry {
    SumKey key;
    std::string name;
    WorkSum sum;
  };
  /// All sums of something.
  std::vector<Entry> Entries() const {
    std::vector<Entry> entries;
    EXPECT_TRUE(session_->Read([&](const KernelSums& sums, const IdleTime&) {
      for (size_t i = 0; i < sums.size(); ++i) {
        if (sums.sum(i).count + sums.sum(i).untimed == 0) continue;
        entries.push_back({sums.key(i), sums.kernels().name(sums.key(i).kernel), sums.sum(i)});
      }
    }));
    return entries;
  }
  std::map<uint32_t, uint64_t> CountByPath() const {
    std::map<uint32_t, uint64_t> counts;
    for (const Entry& entry : Entries()) counts[entry.key.origin.path] += entry.sum.count;
    return counts;
  }

  static inline ThreadsOwn path_;
  MockDriver driver_;
  MockCupti cupti_;
  CuptiOptions options_;
  std::unique_ptr<CuptiSession> session_;
};

}  // namespace pystrobe::gpu
