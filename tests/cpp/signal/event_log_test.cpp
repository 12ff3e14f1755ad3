// SPDX-License-Identifier: Apache-2.0
#include "sampler/signal/event_log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <vector>

#include "profiler/base/scoped_fd.h"
#include "sampler/native/registers.h"
#include "sampler/signal/cpu_event.h"

namespace pystrobe::signals {
namespace {

using std::chrono::milliseconds;

EventLog* log = nullptr;
int by_log[2], by_registers[2], unknown;

void Look(int, siginfo_t*, void* context) {
  const auto in_kernel = log->TakeInKernel();
  if (in_kernel) ++by_log[*in_kernel];
  if (!in_kernel) ++unknown;
  ++by_registers[native::IsInSystemCall(*static_cast<const ucontext_t*>(context))];
}

void Compute() {
  volatile uint64_t x = 1;
  for (int i = 0; i < 20'000; ++i) x = x * 3 + 1;
}

void ReadZeros() {
  static const ScopedFd zeros(open("/dev/zero", O_RDONLY | O_CLOEXEC));
  static std::vector<char> into(size_t{1} << 20);
  // A signal ends it early.
  // Not by read, which a sanitizer makes its own.
  const long got = syscall(SYS_read, zeros.get(), into.data(), into.size());
  if (got <= 0) FAIL() << strerror(errno);
}

// A write to each page, and nothing else.
void FaultPages() {
  constexpr size_t kPages = 1024, kPage = 4096;
  auto* memory = static_cast<volatile char*>(
      mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  for (size_t i = 0; i < kPages; ++i) memory[i * kPage] = 1;
  munmap(const_cast<char*>(memory), kPages * kPage);
}

// Of 500; under a sanitizer signals wait for each other.
constexpr int kEnough = 50;

class EventLogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    struct sigaction action{};
    action.sa_sigaction = Look;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(kSignal, &action, &before_);
    by_log[0] = by_log[1] = by_registers[0] = by_registers[1] = unknown = 0;
    log = &log_;
  }
  void TearDown() override { sigaction(kSignal, &before_, nullptr); }

  /// Does it for half a second of CPU time, a signal each millisecond.
  void Sample(const std::function<void()>& work, CpuSource source = CpuSource::kPerf) {
    const auto event = CpuEvent::Start(source, gettid(), milliseconds(1));
    if (!event) GTEST_SKIP() << event.error().message;
    if (event->fd() >= 0) log_.Open(event->fd());
    const Nanoseconds end = ThreadCpuNow() + milliseconds(500);
    while (ThreadCpuNow() < end) work();
  }

 private:
  EventLog log_;
  struct sigaction before_{};
};

TEST_F(EventLogTest, TellsUserModeFromTheKernel) {
  Sample(Compute);
  EXPECT_GT(by_log[false], kEnough);
  EXPECT_LT(by_log[true], by_log[false] / 10);
  EXPECT_LE(unknown, 1) << "a signal may come before it is open";
  EXPECT_LT(by_registers[true], by_registers[false] / 10);
}

TEST_F(EventLogTest, TellsSystemCalls) {
  Sample(ReadZeros);
  EXPECT_GT(by_log[true], kEnough);
  EXPECT_LT(by_log[false], by_log[true] / 10);
  EXPECT_LT(by_registers[false], by_registers[true] / 10);
}

TEST_F(EventLogTest, TellsPageFaults) {
  Sample(FaultPages);
  EXPECT_GT(by_log[true], kEnough);
  EXPECT_LT(by_log[false], by_log[true] / 2);
}

TEST_F(EventLogTest, WithoutItSystemCallsAreTold) {
  Sample(ReadZeros, CpuSource::kTimer);
  EXPECT_EQ(by_log[false] + by_log[true], 0);
  EXPECT_GT(by_registers[true], 20);
  EXPECT_LT(by_registers[false], by_registers[true] / 4);
}

}  // namespace
}  // namespace pystrobe::signals
