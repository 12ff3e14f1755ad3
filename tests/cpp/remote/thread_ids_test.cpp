// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/thread_ids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <latch>
#include <map>
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
      memory_.At(thread.tstate);
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
  EXPECT_THAT(Resolve({threads[0]}), testing::ElementsAre(tids_[0]));
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
  memory_.At(newborn.tstate);
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

TEST(ThreadIds, OfAProcessThatIsGone) {
  ThreadIds ids(0x3ffffff);
  std::vector<PyThread> threads;
  auto result = ids.Resolve(MadeUpMemory(), pyabi::Layout(), threads);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kExited);
}

}  // namespace
}  // namespace pystrobe::remote
