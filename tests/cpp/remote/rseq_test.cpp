// SPDX-License-Identifier: Apache-2.0
//
// In this process, and in memory of ours that stands for an rseq area.
#include "sampler/remote/rseq.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/rseq.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <latch>
#include <thread>

#include "profiler/base/clock.h"
#include "profiler/base/proc.h"
#include "sampler/remote/promptness.h"
#include "tests/cpp/support/python_program.h"

namespace pystrobe::remote {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

static_assert(kRseqCpuId == offsetof(rseq, cpu_id));

/// Says on which CPU a thread is, whatever the kernel knows of it.
struct MadeUpArea {
  uint32_t cpu_id_start = 0;
  std::atomic<uint32_t> cpu_id = 0;
};

class RseqTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* size = static_cast<const unsigned*>(dlsym(RTLD_DEFAULT, "__rseq_size"));
    const auto* offset = static_cast<const ptrdiff_t*>(dlsym(RTLD_DEFAULT, "__rseq_offset"));
    if (size == nullptr || *size == 0) GTEST_SKIP() << "this C library registers no rseq";
    offset_ = *offset;
    ASSERT_TRUE(PinTo(0, cpu_));
  }

  static std::vector<native::Module> ModulesOf(pid_t pid) {
    const auto mappings = ReadMaps(pid);
    EXPECT_TRUE(mappings);
    return native::FindModules(ProcessMemory(pid), *mappings);
  }

  /// As the C library has it.
  PyThread ThisThread() const { return {.pthread = pthread_self(), .tid = gettid()}; }
  /// A thread whose area, as far as can be seen, is `area`.
  PyThread With(const MadeUpArea& area, pid_t tid) const {
    return {.pthread = reinterpret_cast<Address>(&area) - static_cast<uint64_t>(offset_),
            .tid = tid};
  }
  uint32_t ACpuThatItIsNotOn() const { return static_cast<uint32_t>(cpu_) + 1; }

  RseqFinding Find(const std::vector<PyThread>& threads) const {
    return FindRseq(getpid(), ProcessMemory(getpid()), ModulesOf(getpid()), threads);
  }

  ScopedPromptness restores_affinity_;
  const int cpu_ = sched_getcpu();
  ptrdiff_t offset_ = 0;
};

TEST_F(RseqTest, IsWhereTheCLibrarySays) {
  const RseqFinding found = Find({ThisThread()});
  ASSERT_TRUE(found.offset) << found.reason;
  EXPECT_EQ(*found.offset, offset_);
  EXPECT_THAT(found.reason, IsEmpty());
}

TEST_F(RseqTest, IsNowhereWithoutItsSymbols) {
  const std::vector<PyThread> threads{ThisThread()};
  const RseqFinding found = FindRseq(getpid(), ProcessMemory(getpid()), {}, threads);
  EXPECT_FALSE(found.offset);
  EXPECT_THAT(found.reason, HasSubstr("no rseq"));
}

TEST_F(RseqTest, IsNowhereWhereItWasSwitchedOff) {
  ASSERT_EQ(setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1), 0);
  const pystrobe::testing::PythonProgram program(
      "import time\n"
      "print('up', flush=True)\n"
      "time.sleep(1000)\n");
  unsetenv("GLIBC_TUNABLES");
  ASSERT_EQ(program.Read(2), "up") << "is there a python3?";
  const ProcessMemory memory(program.pid());
  const RseqFinding found = FindRseq(program.pid(), memory, ModulesOf(program.pid()), {});
  EXPECT_FALSE(found.offset);
  EXPECT_THAT(found.reason, HasSubstr("GLIBC_TUNABLES"));
}

TEST_F(RseqTest, IsNowhereWhereAThreadHasNoSuchArea) {
  MadeUpArea area;
  area.cpu_id = CPU_SETSIZE;
  const std::string reason = fmt::format("thread {} has no rseq area", gettid());
  EXPECT_THAT(Find({ThisThread(), With(area, gettid())}).reason, HasSubstr(reason));
  const PyThread unreadable{.pthread = 4096, .tid = gettid()};
  EXPECT_THAT(Find({ThisThread(), unreadable}).reason, HasSubstr(reason));
}

TEST_F(RseqTest, DoesNotLieAboutAThreadThatRuns) {
  MadeUpArea area;
  area.cpu_id = ACpuThatItIsNotOn();
  const PyThread lies = With(area, gettid());
  EXPECT_THAT(Find({lies}).reason, HasSubstr("disagree on the CPU of 1 of 1"));
  const RseqFinding undecided = Find({ThisThread(), lies});
  EXPECT_FALSE(undecided.offset);
  EXPECT_THAT(undecided.reason, HasSubstr("disagree on the CPU of 1 of 2"));
  EXPECT_TRUE(Find({ThisThread(), lies, ThisThread()}).offset) << "most agree";
}

// Its thread may be moved between the two.
TEST_F(RseqTest, IsBelievedWhereItAgreesALittleLater) {
  MadeUpArea area;
  area.cpu_id = ACpuThatItIsNotOn();
  std::jthread mends([&] {
    usleep(2000);
    area.cpu_id = static_cast<uint32_t>(cpu_);
  });
  EXPECT_TRUE(Find({With(area, gettid())}).offset);
}

// One that was moved in its sleep has not written it yet.
TEST_F(RseqTest, IsBelievedOfAThreadThatSleeps) {
  MadeUpArea area;
  area.cpu_id = ACpuThatItIsNotOn();
  std::latch end(1);
  std::atomic<pid_t> tid = 0;
  std::jthread sleeper([&] {
    tid = gettid();
    end.wait();
  });
  const auto sleeps = [&] {
    const auto stat = ReadTaskStat(getpid(), tid);
    return tid != 0 && stat && stat->state == 'S';
  };
  const Nanoseconds deadline = MonotonicNow() + std::chrono::seconds(10);
  while (!sleeps() && MonotonicNow() < deadline) usleep(100);
  const RseqFinding found = Find({With(area, tid)});
  end.count_down();
  EXPECT_EQ(found.offset, offset_) << found.reason;
}

// They do not count among those that are asked, which are a few.
TEST_F(RseqTest, IsAskedOfNoThreadWithoutAnId) {
  MadeUpArea area;
  area.cpu_id = ACpuThatItIsNotOn();
  std::vector<PyThread> threads(100, PyThread{.pthread = 4096, .tid = 0});
  EXPECT_TRUE(Find(threads).offset);
  threads.push_back(With(area, gettid()));
  EXPECT_FALSE(Find(threads).offset);
}

}  // namespace
}  // namespace pystrobe::remote
