// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/thread_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace pystrobe::remote {
namespace {

using ::testing::HasSubstr;

/// A runtime at word 0, interpreters and thread states at chosen places of one small memory.
class Lists final : public pyabi::Memory {
 public:
  static constexpr Address kBase = 0x10000;
  static constexpr size_t kWords = 512;

  Lists() : words_(kWords) {
    layout.runtime.interpreters_head = 8;
    layout.interpreter.next = 0;
    layout.interpreter.id = 8;
    layout.interpreter.threads_head = 16;
    layout.thread.size = 64;
    layout.thread.next = 8;  // and `prev` at 0
    layout.thread.interp = 16;
    layout.thread.thread_id = 24;
    layout.thread.native_thread_id = 32;
    layout.thread.frame = 40;
  }

  static Address Place(size_t index) { return kBase + 512 + index * 64; }
  uint64_t& Word(Address address) { return words_[(address - kBase) / 8]; }

  void PutInterpreter(size_t place, Address next, uint64_t id, Address threads) {
    Word(Place(place)) = next;
    Word(Place(place) + 8) = id;
    Word(Place(place) + 16) = threads;
  }
  void PutThread(size_t place, Address prev, Address next, Address interpreter, uint64_t tid) {
    Word(Place(place)) = prev;
    Word(Place(place) + 8) = next;
    Word(Place(place) + 16) = interpreter;
    Word(Place(place) + 24) = 0x7000 + tid;
    Word(Place(place) + 32) = tid;
  }

  bool ReadAll(std::span<const pyabi::ReadRequest> requests) const override {
    for (const pyabi::ReadRequest& request : requests) {
      uint64_t offset = request.address - kBase, size = words_.size() * 8;
      if (request.address < kBase || offset > size || request.size > size - offset) return false;
      std::memcpy(request.into, reinterpret_cast<const char*>(words_.data()) + offset,
                  request.size);
    }
    return true;
  }

  Result<ThreadStates> Read() const { return ReadThreadStates(*this, layout, kBase); }

  pyabi::Layout layout;

 private:
  std::vector<uint64_t> words_;
};

/// Two interpreters, the first with two threads.
Lists Two() {
  Lists lists;
  lists.Word(Lists::kBase + 8) = Lists::Place(0);
  lists.PutInterpreter(0, Lists::Place(1), 1, Lists::Place(2));
  lists.PutInterpreter(1, 0, 0, Lists::Place(4));
  lists.PutThread(2, 0, Lists::Place(3), Lists::Place(0), 101);
  lists.PutThread(3, Lists::Place(2), 0, Lists::Place(0), 102);
  lists.PutThread(4, 0, 0, Lists::Place(1), 103);
  return lists;
}

TEST(ThreadList, AllThreadsOfAllInterpreters) {
  auto states = Two().Read();
  ASSERT_TRUE(states);
  EXPECT_EQ(states->interpreters.size(), 2U);
  ASSERT_EQ(states->threads.size(), 3U);
  EXPECT_EQ(states->threads[0].tid, 101);
  EXPECT_EQ(states->threads[0].interpreter_id, 1U);
  EXPECT_EQ(states->threads[1].tstate, Lists::Place(3));
  EXPECT_EQ(states->threads[2].interpreter_id, 0U);
  EXPECT_EQ(states->threads[2].pthread, 0x7000U + 103);
}

TEST(ThreadList, BeforeThePythonStartsThereIsNone) {
  Lists lists;
  auto states = lists.Read();
  ASSERT_TRUE(states);
  EXPECT_EQ(states->interpreters.size(), 0U);
}

TEST(ThreadList, AStateOfAnotherInterpreterIsNoticed) {
  Lists lists = Two();
  lists.Word(Lists::Place(3) + 16) = Lists::Place(1);
  auto states = lists.Read();
  ASSERT_FALSE(states);
  EXPECT_EQ(states.error().code, ErrorCode::kUnreadable);
  EXPECT_THAT(states.error().message, HasSubstr("points to interpreter"));
}

TEST(ThreadList, AStateTakenOutMeanwhileIsNoticed) {
  Lists lists = Two();
  lists.Word(Lists::Place(3)) = 0;
  EXPECT_THAT(lists.Read().error().message, HasSubstr("does not point back"));
}

TEST(ThreadList, CyclesAndWildPointersEnd) {
  Lists threads = Two();
  threads.Word(Lists::Place(3) + 8) = Lists::Place(2);
  EXPECT_FALSE(threads.Read());
  Lists interpreters = Two();
  interpreters.Word(Lists::Place(1)) = Lists::Place(0);
  EXPECT_FALSE(interpreters.Read());
  Lists wild = Two();
  wild.Word(Lists::Place(2) + 8) = 0xdeadbeef;
  EXPECT_FALSE(wild.Read());
}

TEST(ThreadList, NoiseNeverHangsOrCrashes) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 2000; ++round) {
    Lists lists = Two();
    for (int change = 0; change < 4; ++change) {
      Address where = Lists::kBase + random() % Lists::kWords * 8;
      lists.Word(where) = Lists::kBase + random() % (Lists::kWords * 9);
    }
    auto states = lists.Read();
    if (states) {
      EXPECT_LE(states->threads.size(), Lists::kWords);
    }
  }
}

TEST(ThreadList, TheFrameByWhicheverWayTheVersionHasIt) {
  Lists lists = Two();
  lists.Word(Lists::Place(2) + 40) = 0x4444;
  EXPECT_EQ(ReadCurrentFrame(lists, lists.layout, Lists::Place(2)), 0x4444U);
  lists.layout.thread.cframe = 48;
  lists.layout.cframe.current_frame = 8;
  lists.Word(Lists::Place(2) + 48) = Lists::Place(5);
  lists.Word(Lists::Place(5) + 8) = 0x5555;
  EXPECT_EQ(ReadCurrentFrame(lists, lists.layout, Lists::Place(2)), 0x5555U);
  lists.Word(Lists::Place(2) + 48) = 0;
  EXPECT_EQ(ReadCurrentFrame(lists, lists.layout, Lists::Place(2)), 0U);
}

}  // namespace
}  // namespace pystrobe::remote
