// SPDX-License-Identifier: Apache-2.0
//
// What holds of a ledger's samples, whatever happens to its thread: over histories made at random.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <utility>

#include "sampler/remote/thread_ledger.h"
#include "tests/cpp/support/thread_ledger_fixture.h"

namespace pystrobe::remote {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Nanoseconds kLongest = milliseconds(100);
constexpr uint64_t kClockTick = 10'000'000;

/// What the kernel does with a thread, and what samples of it should account for.
struct InKernel {
  SchedStat stat, at_tick;  ///< now, and when the tick began
  bool exact = true;
  bool awake = false;
  bool ran = false;  ///< since the tick before
  bool lives = true;
  uint64_t first_cpu_ns = 0, first_run_delay_ns = 0;  ///< accounted for from there on ...
  uint64_t last_cpu_ns = 0, last_run_delay_ns = 0;    ///< ... to what was looked at

  SchedStat Says(const SchedStat& of) const {
    if (exact) return of;
    return {of.cpu_ns / kClockTick * kClockTick, 0, 0};
  }
};

struct Watched {
  InKernel* kernel = nullptr;
  std::vector<Sample> samples;
  std::unique_ptr<ThreadLedger> ledger;
  Moment begin, seen, end;
  bool done = false;
};

class History {
 public:
  explicit History(uint64_t seed) : random_(seed) {
    tick_ = {.number = 1, .time = kStart, .previous = kStart};
    for (uint64_t count = 1 + Below(3); count > 0; --count) AddKernelThread();
    for (auto& thread : threads_) {
      thread->ledger->BeginAt(kStart, thread->kernel->Says(thread->kernel->stat));
      thread->begin = thread->seen = {0, kStart};
      InKernel& kernel = *thread->kernel;
      kernel.first_cpu_ns = kernel.last_cpu_ns = kernel.Says(kernel.stat).cpu_ns;
      kernel.first_run_delay_ns = kernel.last_run_delay_ns = kernel.Says(kernel.stat).run_delay_ns;
    }
    holder_ = threads_.front().get();
  }

  void Run(int ticks) {
    LookAtAll();
    for (int i = 0; i < ticks; ++i) {
      NextTick();
      if (Chance(30)) AddKernelThread();
      if (Chance(40)) Flush();
    }
    for (auto& thread : threads_) Finish(*thread);
  }

  void Check() const {
    for (const auto& thread : threads_) CheckThread(*thread);
    for (const auto& kernel : kernels_) CheckKernelThread(*kernel);
    CheckLock();
  }

 private:
  uint64_t Below(uint64_t limit) { return limit == 0 ? 0 : random_() % limit; }
  /// True once in so many times.
  bool Chance(uint64_t in) { return Below(in) == 0; }

  void AddKernelThread() {
    auto& kernel = kernels_.emplace_back(std::make_unique<InKernel>());
    kernel->exact = !Chance(4);
    kernel->stat = {Below(100'000'000), Below(1'000'000), 1};
    const SchedStat stat = kernel->Says(kernel->stat);
    const Nanoseconds unwatched = tick_.time - tick_.previous + microseconds(10);
    const bool all = stat.cpu_ns <= static_cast<uint64_t>(unwatched.count());
    kernel->first_cpu_ns = all ? 0 : stat.cpu_ns;
    kernel->last_cpu_ns = kernel->first_cpu_ns;
    kernel->first_run_delay_ns = kernel->last_run_delay_ns = stat.run_delay_ns;
    kernel->at_tick = kernel->stat;
    AddThread(*kernel, KernelAccount::OfNewThread(stat, unwatched));
  }

  void AddThread(InKernel& kernel, const KernelAccount& account) {
    auto& thread = threads_.emplace_back(std::make_unique<Watched>());
    thread->kernel = &kernel;
    const ThreadIndex index{static_cast<uint32_t>(threads_.size())};
    thread->ledger = std::make_unique<ThreadLedger>(Timeline(index, kStart, thread->samples), tick_,
                                                    kernel.Says(kernel.stat), account);
    thread->begin = {tick_.number - 1, tick_.previous + (tick_.time - tick_.previous) / 2};
    thread->seen = Moment::At(tick_);
  }

  Nanoseconds Interval() {
    if (Chance(40)) return milliseconds(50 + Below(400));
    return microseconds(500 + Below(1000));
  }

  void NextTick() {
    const Tick before = tick_;
    Advance(before, true);
    // A look that comes to nothing: the tick is that of the next.
    for (; Chance(10); Advance(before, false)) {
      for (auto& thread : threads_) {
        if (Chance(2)) See(*thread);
      }
    }
    if (Chance(20)) tick_.due_by = tick_.previous;
    if (Chance(10)) return;
    LookAtAll();
  }

  /// The lock changes hands only where it may.
  void Advance(const Tick& before, bool hand_over) {
    const Nanoseconds now = tick_.time + Interval();
    const auto elapsed = static_cast<uint64_t>((now - tick_.time).count());
    tick_ = {before.number + 1, now, before.time, kLongest};
    for (auto& kernel : kernels_) LetRun(*kernel, elapsed);
    if (!hand_over || (holder_ != nullptr && !holder_->kernel->ran)) return;
    Watched* next = threads_[Below(threads_.size())].get();
    if (!next->kernel->ran || !next->kernel->lives) return;
    if (holder_ == nullptr || !holder_->kernel->lives || Chance(3)) holder_ = next;
  }

  void LetRun(InKernel& kernel, uint64_t elapsed) {
    kernel.ran = kernel.lives && !Chance(3);
    if (!kernel.ran) {
      kernel.awake = false;
      kernel.at_tick = kernel.stat;
      return;
    }
    kernel.stat.cpu_ns += Chance(3) ? elapsed : 1 + Below(elapsed);
    if (!kernel.awake || Chance(2)) ++kernel.stat.switches;
    kernel.stat.run_delay_ns += Chance(2) ? Below(elapsed) : 0;
    kernel.awake = !Chance(3);
    kernel.at_tick = kernel.stat;
    if (Chance(2)) kernel.stat.run_delay_ns += Below(5000);
    if (Chance(2)) kernel.stat.cpu_ns += Below(5000);
    if (Chance(200)) kernel.lives = false;
  }

  /// False when the thread did not run.
  bool See(Watched& thread) {
    if (thread.done) return false;
    if (!thread.kernel->lives) {
      Finish(thread);
      return false;
    }
    thread.seen = Moment::At(tick_);
    if (thread.kernel->exact) return !thread.ledger->SeeStill(tick_, thread.kernel->at_tick);
    thread.ledger->SeeAlive(tick_);
    return true;
  }

  void LookAtAll() {
    if (holder_ != nullptr && See(*holder_)) LookAt(*holder_);
    for (auto& thread : threads_) {
      if (thread.get() != holder_ && !Chance(4) && See(*thread) && !Chance(4)) LookAt(*thread);
    }
  }

  void LookAt(Watched& thread) {
    InKernel& kernel = *thread.kernel;
    const bool in_pause = kernel.exact && Chance(2);
    const SchedStat stat = kernel.Says(in_pause ? kernel.stat : kernel.at_tick);
    Finding found{.tick = tick_, .task = {stat, kernel.awake, in_pause, Chance(4)}};
    found.stack = StackId{static_cast<uint32_t>(1 + Below(5))};
    if (&thread == holder_) found.flags |= kSampleGil;
    if (Chance(20)) found.flags |= kSampleMarked;
    if (Chance(20)) found.flags |= kSampleIncomplete;
    thread.ledger->Take(found);
    kernel.last_cpu_ns = std::max(kernel.last_cpu_ns, stat.cpu_ns);
    kernel.last_run_delay_ns = std::max(kernel.last_run_delay_ns, stat.run_delay_ns);
  }

  void Flush() {
    for (auto& thread : threads_) {
      if (!thread->done) thread->ledger->Flush();
    }
  }

  void Finish(Watched& thread) {
    if (std::exchange(thread.done, true)) return;
    const bool lives = thread.kernel->lives;
    if (!lives) thread.ledger->Miss(tick_);
    thread.ledger->Finish(tick_, lives);
    thread.end = Moment::At(tick_);
    if (lives) return;
    thread.end = {thread.seen.tick + (tick_.number - thread.seen.tick) / 2,
                  thread.seen.time + (tick_.time - thread.seen.time) / 2};
  }

  void CheckThread(const Watched& thread) const {
    int64_t until = (thread.begin.time - kStart).count();
    uint64_t counts = 0;
    for (const Sample& sample : thread.samples) {
      ASSERT_GT(sample.wall_ns, 0U);
      ASSERT_EQ(sample.time_ns - static_cast<int64_t>(sample.wall_ns), until);
      ASSERT_LE(sample.count, tick_.number);
      ASSERT_EQ((sample.flags & kSampleOnCpu) != 0, sample.cpu_ns > 0) << int{sample.flags};
      ASSERT_TRUE((sample.flags & kSampleIdle) == 0 || sample.cpu_ns == 0);
      ASSERT_EQ((sample.flags & kSampleUnseen) != 0, sample.stack == kEmptyStack);
      until = sample.time_ns;
      counts += sample.count;
    }
    // An entry that would have no length has a nanosecond; at the end there are up to 32.
    const int64_t end = (std::max(thread.end.time, thread.begin.time) - kStart).count();
    EXPECT_GE(until, end);
    EXPECT_LE(until, end + 2 + 32);
    EXPECT_EQ(counts, thread.end.tick - thread.begin.tick);
  }

  void CheckKernelThread(const InKernel& kernel) const {
    uint64_t cpu_ns = 0, run_delay_ns = 0;
    for (const auto& thread : threads_) {
      if (thread->kernel != &kernel) continue;
      for (const Sample& sample : thread->samples) cpu_ns += sample.cpu_ns;
      run_delay_ns += thread->ledger->total_run_delay();
    }
    EXPECT_EQ(cpu_ns, kernel.last_cpu_ns - kernel.first_cpu_ns);
    EXPECT_EQ(run_delay_ns, kernel.last_run_delay_ns - kernel.first_run_delay_ns);
  }

  /// Nobody had the lock while another one did.
  void CheckLock() const {
    std::vector<std::pair<int64_t, int64_t>> held;
    for (const auto& thread : threads_) {
      for (const Sample& sample : thread->samples) {
        if ((sample.flags & kSampleGil) == 0) continue;
        held.emplace_back(sample.time_ns - static_cast<int64_t>(sample.wall_ns), sample.time_ns);
      }
    }
    std::sort(held.begin(), held.end());
    for (size_t i = 1; i < held.size(); ++i) {
      ASSERT_GE(held[i].first + 1, held[i - 1].second);
    }
  }

  std::mt19937_64 random_;
  Tick tick_;
  std::vector<std::unique_ptr<InKernel>> kernels_;
  std::vector<std::unique_ptr<Watched>> threads_;
  Watched* holder_ = nullptr;
};

TEST(ThreadLedgerProperties, HoldOfAllHistories) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    History history(seed);
    history.Run(static_cast<int>(1 + seed % 200));
    history.Check();
    if (::testing::Test::HasFailure()) FAIL() << "of the history with seed " << seed;
  }
}

}  // namespace
}  // namespace pystrobe::remote
