// SPDX-License-Identifier: Apache-2.0
//
// A long run, and a child of fork().
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <fstream>
#include <memory>
#include <string>

#include "gpu/cupti_session.h"
#include "tests/cpp/gpu/mock_cupti.h"

namespace pystrobe::gpu {
namespace {

class Numbered : public LaunchPath {
 public:
  LaunchOrigin Current() noexcept override {
    return {.path = 1 + next_.fetch_add(1, std::memory_order_relaxed) % 100'000};
  }

 private:
  std::atomic<uint32_t> next_{0};
};
Numbered path;

// Sanitizers take time and memory of their own for what is touched.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kRounds = 2;
constexpr bool kIsMemoryOurs = false;
#else
constexpr uint64_t kRounds = 10;
constexpr bool kIsMemoryOurs = true;
#endif

size_t ResidentBytes() {
  size_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// More paths and kernels than there is room for, and a timeline, so that all that could grow does.
TEST(CuptiBounds, TenMillionLaunchesTakeNoMoreMemoryThanOneMillion) {
  const MockCupti cupti;
  const CuptiOptions options{.sums = {.max_sums = 8'192, .max_kernels = 256, .max_spans = 100'000},
                             .buffers = 8};
  const auto session = CuptiSession::Start(options, path).value();
  std::deque<std::string> names;
  for (int i = 0; i < 1'000; ++i) names.push_back("kernel " + std::to_string(i));
  constexpr uint64_t kMillion = 1'000'000, kAll = kMillion * kRounds;
  size_t after_one = 0;
  for (uint64_t round = 0; round < kRounds; ++round) {
    for (const std::string& name : names) {
      cupti.Launch(name.c_str(), kMillion / names.size());
      // It is not the question here how many are dropped, but that none is where they are read.
      while (session->Facts().records + 100'000 < session->Facts().launches.launches[0]) {
        usleep(200);
      }
    }
    if (round == 0) after_one = ResidentBytes();
  }
  const size_t after_all = ResidentBytes();
  ASSERT_TRUE(session->Stop());
  const CuptiFacts facts = session->Facts();
  EXPECT_EQ(facts.launches.launches[0], kAll);
  EXPECT_EQ(facts.records, kAll);
  EXPECT_EQ(facts.unmatched, 0U);
  EXPECT_EQ(facts.dropped, 0U);
  session->Read([&](const KernelSums& sums, const IdleTime&) {
    EXPECT_EQ(sums.count(), kAll);
    EXPECT_EQ(sums.total_ns(), kAll * 1'000);
    EXPECT_GT(sums.overflowed(), 0U);
    uint64_t count = 0;
    for (size_t i = 0; i < sums.size(); ++i) count += sums.sum(i).count;
    EXPECT_EQ(count, kAll);
  });
  const size_t growth = after_all > after_one ? after_all - after_one : 0;
  RecordProperty("growth_bytes", std::to_string(growth));
  RecordProperty("resident_bytes", std::to_string(after_all));
  RecordProperty("decoder_ns_each",
                 std::to_string(facts.decoder_cpu.count() / static_cast<int64_t>(facts.records)));
  if (!kIsMemoryOurs) return;
  EXPECT_LT(growth, size_t{40} << 20) << "at most the buffers that were not needed before";
}

TEST(CuptiBounds, AChildOfForkLeavesCuptiAlone) {
  const MockCupti cupti;
  auto session = CuptiSession::Start({}, path).value();
  cupti.Launch("kernel", 10);
  const pid_t child = fork();
  if (child == 0) {
    const uint64_t calls = cupti.Calls();
    bool good = session->Stop().has_value();
    good &= !session->Read([](const KernelSums&, const IdleTime&) {});
    good &= session->Facts().records == 0;
    const auto started = CuptiSession::Start({}, path);
    good &= !started && started.error().message.find("fork") != std::string::npos;
    // What the driver would call, had it been launched to.
    cupti.Launch("kernel", 5);
    session.reset();
    _exit(good && cupti.Calls() == calls ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  cupti.Launch("kernel", 10);
  ASSERT_TRUE(session->Stop());
  EXPECT_EQ(session->Facts().records, 20U);
}

}  // namespace
}  // namespace pystrobe::gpu
