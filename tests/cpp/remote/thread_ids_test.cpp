// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/thread_ids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <latch>
#include <map>
#include <memory>
#include <thread>

#include "profiler/base/proc.h"

namespace pystrobe::remote {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;

/// Thread structures that we make up, for the real threads of this process.
class MadeUpMemory final : public pyabi::Memory {
 public:
  static constexpr size_t kSize = 2048;

  std::vector<std::byte>& At(Address address) {
    std::vector<std::byte>& bytes = objects_[address];
    bytes.resize(kSize);
    return bytes;
  }
  template <typename T>
  void Put(Address address, size_t offset, T value) {
    std::memcpy(&At(address)[offset], &value, sizeof value);
  }
  bool ReadAll(std::span<const pyabi::ReadRequest> requests) const override {
    for (const pyabi::ReadRequest& request : requests) {
      auto after = objects_.upper_bound(request.address);
      if (after == objects_.begin()) return false;
      const auto& [start, bytes] = *std::prev(after);
      uint64_t offset = request.address - start;
      if (offset > bytes.size() || request.size > bytes.size() - offset) return false;
      std::memcpy(request.into, bytes.data() + offset, request.size);
    }
    return true;
  }

 private:
  std::map<Address, std::vector<std::byte>> objects_;
};

/// Some threads of this process, waiting, so that the kernel knows their ids.
class ThreadIdsTest : public ::testing::Test {
 protected:
  static constexpr size_t kThreads = 3;
  static constexpr Address kPthreads = 0x10000, kStates = 0x100000;

  ThreadIdsTest() {
    for (size_t i = 0; i < kThreads; ++i) {
      workers_.emplace_back([this, i] {
        tids_[i] = static_cast<pid_t>(syscall(SYS_gettid));
        begun_.count_down();
        end_.wait();
      });
    }
    begun_.wait();
  }
  ~ThreadIdsTest() override {
    end_.count_down();
    for (std::thread& worker : workers_) worker.join();
  }

  /// Thread states of those threads, whose C library keeps the tid at `offset`.
  std::vector<PyThread> MakeThreads(size_t offset) {
    std::vector<PyThread> threads;
    for (size_t i = 0; i < kThreads; ++i) {
      PyThread thread;
      thread.interpreter = 1;
      thread.pthread = kPthreads + i * 0x1000;
      thread.tstate = kStates + i * 0x1000;
      memory_.Put(thread.pthread, 0, thread.pthread);
      memory_.Put(thread.pthread, offset, tids_[i]);
      memory_.Put(thread.tstate, layout_.thread.thread_id, thread.pthread);
      threads.push_back(thread);
    }
    return threads;
  }

  std::vector<pid_t> Resolve(std::vector<PyThread> threads) {
    EXPECT_TRUE(ids_.Resolve(memory_, layout_, threads));
    std::vector<pid_t> tids;
    for (const PyThread& thread : threads) tids.push_back(thread.tid);
    return tids;
  }

  pid_t tids_[kThreads] = {};
  MadeUpMemory memory_;
  pyabi::Layout layout_ = [] {
    pyabi::Layout layout;  // as of 3.8: no native_thread_id
    layout.thread.frame = 24;
    layout.thread.thread_id = 176;
    return layout;
  }();
  ThreadIds ids_{getpid()};

 private:
  std::latch begun_{kThreads}, end_{1};
  std::vector<std::thread> workers_;
};

TEST_F(ThreadIdsTest, AreFoundWhereGlibcKeepsThem) {
  EXPECT_THAT(Resolve(MakeThreads(720)), UnorderedElementsAreArray(tids_));
}

TEST_F(ThreadIdsTest, AreFoundWhereMuslKeepsThem) {
  EXPECT_THAT(Resolve(MakeThreads(48)), UnorderedElementsAreArray(tids_));
}

TEST_F(ThreadIdsTest, AFieldThatIsTheSameInAllIsNotTheTid) {
  std::vector<PyThread> threads = MakeThreads(720);
  for (const PyThread& thread : threads) memory_.Put(thread.pthread, 64, getpid());
  EXPECT_THAT(Resolve(threads), UnorderedElementsAreArray(tids_));
}

TEST_F(ThreadIdsTest, AWrongGuessFromOneThreadIsMended) {
  std::vector<PyThread> threads = MakeThreads(720);
  for (const PyThread& thread : threads) memory_.Put(thread.pthread, 64, tids_[0]);
  EXPECT_THAT(Resolve({threads[0]}), ::testing::ElementsAre(tids_[0]));
  EXPECT_THAT(Resolve(threads), UnorderedElementsAreArray(tids_));
}

TEST_F(ThreadIdsTest, StatesOfThreadsThatAreGoneAreLeftOut) {
  std::vector<PyThread> threads = MakeThreads(720);
  memory_.Put(threads[1].pthread, 720, pid_t{1});  // no thread of ours
  EXPECT_THAT(Resolve(threads), UnorderedElementsAreArray({tids_[0], tids_[2]}));
}

TEST_F(ThreadIdsTest, OfTwoStatesOfOneThreadTheRunningOneStays) {
  std::vector<PyThread> threads = MakeThreads(720);
  PyThread newborn = threads[0];  // carries its parent's ids until it runs
  newborn.tstate = kStates + 0x9000;
  memory_.Put(newborn.tstate, layout_.thread.thread_id, newborn.pthread);
  memory_.Put(threads[0].tstate, layout_.thread.frame, Address{0x1234});
  threads.insert(threads.begin(), newborn);
  ASSERT_TRUE(ids_.Resolve(memory_, layout_, threads));
  ASSERT_EQ(threads.size(), kThreads);
  for (const PyThread& thread : threads) EXPECT_NE(thread.tstate, newborn.tstate);
}

TEST_F(ThreadIdsTest, AStateThatBeganToRunSinceItWasListedIsNotItsParents) {
  std::vector<PyThread> threads = MakeThreads(720);
  PyThread newborn = threads[0];
  newborn.tstate = kStates + 0x9000;
  const Address own = kPthreads + 0x9000;
  memory_.Put(newborn.tstate, layout_.thread.thread_id, own);
  memory_.Put(newborn.tstate, layout_.thread.frame, Address{0x5678});
  memory_.Put(threads[0].tstate, layout_.thread.frame, Address{0x1234});
  threads.insert(threads.begin(), newborn);
  ASSERT_TRUE(ids_.Resolve(memory_, layout_, threads));
  ASSERT_EQ(threads.size(), kThreads);
  for (const PyThread& thread : threads) EXPECT_NE(thread.tstate, newborn.tstate);
}

TEST_F(ThreadIdsTest, WithoutAnyIdTheyStayUnknown) {
  MadeUpMemory nothing;
  std::vector<PyThread> threads = MakeThreads(720);
  ASSERT_TRUE(ids_.Resolve(nothing, layout_, threads));
  EXPECT_EQ(threads.size(), kThreads);
  for (const PyThread& thread : threads) EXPECT_EQ(thread.tid, 0);
}

TEST_F(ThreadIdsTest, NativeIdsAreTakenAsTheyAre) {
  layout_.thread.native_thread_id = 160;
  std::vector<PyThread> threads = MakeThreads(720);
  for (size_t i = 0; i < kThreads; ++i) threads[i].tid = tids_[i];
  threads.push_back(threads[0]);
  threads.back().tid = 1;  // not ours
  EXPECT_THAT(Resolve(threads), UnorderedElementsAreArray(tids_));
}

TEST(IdsGivenOut, StartAgainAfterTheHighest) {
  EXPECT_FALSE((IdsGivenOut{100, 100}.Contain(100)));
  EXPECT_FALSE((IdsGivenOut{100, 105}.Contain(100)));
  EXPECT_TRUE((IdsGivenOut{100, 105}.Contain(101)));
  EXPECT_TRUE((IdsGivenOut{100, 105}.Contain(105)));
  EXPECT_FALSE((IdsGivenOut{100, 105}.Contain(106)));
  const IdsGivenOut wrapped{32'000, 400};
  EXPECT_TRUE(wrapped.Contain(32'001));
  EXPECT_TRUE(wrapped.Contain(400));
  EXPECT_FALSE(wrapped.Contain(401));
  EXPECT_FALSE(wrapped.Contain(32'000));
}

/// The first process of a pid namespace of its own, with one thread besides its first that can be
/// exchanged for another.
class OtherNamespace {
 public:
  OtherNamespace() {
    if (pipe(orders_) != 0 || pipe(answers_) != 0) return;
    // The namespace is that of the next child: a process between keeps ours as it is.
    between_ = fork();
    if (between_ == 0) {
      close(orders_[1]);  // its end is what tells the thread's process to end
      close(answers_[0]);
      if (unshare(CLONE_NEWPID) != 0) _exit(1);
      const pid_t child = fork();
      if (child == 0) Serve();
      if (write(answers_[1], &child, sizeof child) < 0) _exit(1);
      waitpid(child, nullptr, 0);
      _exit(0);
    }
    close(orders_[0]);
    close(answers_[1]);
    pid_ = Answer();
  }
  ~OtherNamespace() {
    close(orders_[1]);
    close(answers_[0]);
    waitpid(between_, nullptr, 0);
  }
  OtherNamespace(const OtherNamespace&) = delete;
  OtherNamespace& operator=(const OtherNamespace&) = delete;

  pid_t pid() const { return pid_; }

  /// Ends the thread there is and waits until the kernel has forgotten it.
  void EndThread() {
    Order('e');
    Answer();
    while (OuterTid() != 0) std::this_thread::yield();
  }
  /// Begins one; its id as it sees it itself.
  pid_t BeginThread() {
    Order('b');
    return Answer();
  }
  /// The thread's id as we see it.
  pid_t OuterTid() const {
    const auto tasks = ListTasks(pid_);
    for (const pid_t tid : tasks.value_or(std::vector<pid_t>{})) {
      if (tid != pid_) return tid;
    }
    return 0;
  }

 private:
  void Order(char what) const { EXPECT_EQ(write(orders_[1], &what, 1), 1); }
  pid_t Answer() const {
    pid_t answer = 0;
    return read(answers_[0], &answer, sizeof answer) == sizeof answer ? answer : 0;
  }

  [[noreturn]] void Serve() {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::unique_ptr<std::latch> end;
    std::thread thread;
    for (char order = 0; read(orders_[0], &order, 1) == 1;) {
      pid_t answer = 0;
      if (order == 'e') {
        end->count_down();
        thread.join();
      } else {
        end = std::make_unique<std::latch>(1);
        std::latch begun(1);
        thread = std::thread([&, done = end.get()] {
          answer = static_cast<pid_t>(syscall(SYS_gettid));
          begun.count_down();
          done->wait();
        });
        begun.wait();
      }
      if (write(answers_[1], &answer, sizeof answer) < 0) break;
    }
    _exit(0);
  }

  int orders_[2] = {-1, -1}, answers_[2] = {-1, -1};
  pid_t between_ = -1;
  pid_t pid_ = 0;
};

/// The id that the kernel gave out last.
pid_t LastId() {
  const std::string loads = ReadSmallFile("/proc/loadavg").value_or("0");
  return std::atoi(loads.c_str() + loads.find_last_of(' ') + 1);
}

/// Makes the kernel give out `id` next, if nobody else takes it first.
bool NextIdWillBe(pid_t id) {
  std::ofstream last("/proc/sys/kernel/ns_last_pid");
  last << id - 1 << std::flush;
  return last.good();
}

TEST(ThreadIds, ATidThatTheKernelGaveToAnotherThreadIsTranslatedAnew) {
  OtherNamespace other;
  if (other.pid() == 0) GTEST_SKIP() << "no pid namespace can be made (not root?)";
  pyabi::Layout layout;
  layout.thread.native_thread_id = 160;
  ThreadIds ids(other.pid());
  const auto resolve = [&](pid_t inner) {
    std::vector<PyThread> threads(1);
    threads[0].tid = inner;
    EXPECT_TRUE(ids.Resolve(MadeUpMemory(), layout, threads));
    return threads.empty() ? 0 : threads[0].tid;
  };
  for (int tries = 0; tries < 100; ++tries) {
    pid_t inner = other.BeginThread();
    if (ListTasks(other.pid())->size() > 2) GTEST_SKIP() << "a sanitizer has a thread there, too";
    const pid_t outer = other.OuterTid();
    std::thread([] {}).join();  // takes an id: that of the thread is not the last any more
    const pid_t last = LastId();
    ASSERT_EQ(resolve(inner), outer);
    other.EndThread();
    if (!NextIdWillBe(outer)) GTEST_SKIP() << "ns_last_pid cannot be written";
    inner = other.BeginThread();
    const bool same = other.OuterTid() == outer;
    const pid_t seen = resolve(inner);
    other.EndThread();
    // Ids that others took meanwhile may have filled the gap that the kernel seems to have gone
    // round by.
    if (!same || LastId() >= last) continue;
    EXPECT_EQ(seen, outer);
    EXPECT_EQ(resolve(inner), 0);
    return;
  }
  GTEST_SKIP() << "others were always faster";
}

TEST(ThreadIds, OfAProcessThatIsGone) {
  ThreadIds ids(0x3ffffff);
  std::vector<PyThread> threads;
  auto result = ids.Resolve(MadeUpMemory(), pyabi::Layout(), threads);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kExited);
}

}  // namespace
}  // namespace pystrobe::remote
