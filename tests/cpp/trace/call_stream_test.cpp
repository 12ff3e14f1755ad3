// SPDX-License-Identifier: Apache-2.0
#include "profiler/trace/call_stream.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "profiler/base/proc.h"
#include "profiler/trace/trace_session.h"
#include "tests/cpp/support/memory_recording.h"
#include "tests/cpp/trace/all_keys.h"
#include "tests/cpp/trace/kept_chunk.h"
#include "tests/cpp/trace/keys.h"

namespace pystrobe::trace {
namespace {

using std::chrono::milliseconds;
using testing::MemoryRecording;

/// Functions are called by one letter.
class Letters : public CallStream::Functions {
 public:
  FunctionFacts FactsOf(Key key) override {
    return {std::string(1, *static_cast<const char*>(key)), "letters.py", 1};
  }
  bool Hides(const NewNode& node, pid_t) override {
    return hidden.contains(*static_cast<const char*>(node.key)) ||
           (hides_running && node.was_running);
  }
  std::set<char> hidden;
  bool hides_running = false;
};

/// From the start of a session to its timeline.
class Streamed {
 public:
  explicit Streamed(TimelineSink& sink, Letters letters = {}) : letters_(std::move(letters)) {
    auto stream = CallStream::Start(sink, letters_, session_.rate(), session_.begin());
    EXPECT_TRUE(stream);
    stream_ = *std::move(stream);
    session_.TellEachCall(*stream_);
  }
  ThreadTrace& Begin(std::span<const RunningCall> running = {}) {
    return *session_.BeginThread(running);
  }
  Result<void> Stop() {
    session_.Stop();
    return stream_->Stop();
  }
  CallStream& stream() { return *stream_; }
  TraceSession& session() { return session_; }
  ThreadIndex IndexOf(const ThreadTrace& trace) {
    return stream_->IndexOf(trace.log()).value_or(ThreadIndex{99});
  }

 private:
  AllKeys watch_;
  Letters letters_;
  TraceSession session_{{}, watch_};
  std::unique_ptr<CallStream> stream_;
};

/// Each event as the stack that it leads to, in letters, outermost first.
std::vector<std::string> Stacks(const MemoryRecording& recording, ThreadIndex thread) {
  std::vector<std::string> stacks;
  const Tables& tables = recording.tables();
  for (const CallEvent& call : recording.CallsOf(thread)) {
    std::string& stack = stacks.emplace_back();
    for (const FrameId frame : tables.FramesOf(call.stack)) {
      stack += tables.text(tables.function(tables.frame(frame).function).name);
    }
  }
  return stacks;
}

using Strings = std::vector<std::string>;

TEST(CallStream, EachCallAndItsEndIsAnEvent) {
  MemoryRecording recording;
  Streamed streamed(recording);
  ThreadTrace& trace = streamed.Begin();
  trace.Enter(KeyNamed('a'));
  for (int i = 0; i < 2; ++i) {
    trace.Enter(KeyNamed('b'));
    trace.Leave(KeyNamed('b'));
  }
  trace.Resume(KeyNamed('c'));
  trace.Leave(KeyNamed('c'));
  trace.Leave(KeyNamed('a'));
  ASSERT_TRUE(streamed.Stop());
  EXPECT_EQ(Stacks(recording, streamed.IndexOf(trace)),
            (Strings{"a", "ab", "a", "ab", "a", "ac", "a", ""}));
}

TEST(CallStream, TimesAreThoseOfTheProgram) {
  MemoryRecording recording;
  Streamed streamed(recording);
  ThreadTrace& trace = streamed.Begin();
  const Nanoseconds begin = MonotonicNow();
  trace.Enter(KeyNamed('a'));
  usleep(20'000);
  trace.Enter(KeyNamed('b'));
  usleep(5'000);
  trace.Leave(KeyNamed('b'));
  trace.Leave(KeyNamed('a'));
  const Nanoseconds passed = MonotonicNow() - begin;
  ASSERT_TRUE(streamed.Stop());
  const auto calls = recording.CallsOf(streamed.IndexOf(trace));
  ASSERT_EQ(calls.size(), 4U);
  EXPECT_GE(calls[1].time_ns - calls[0].time_ns, 20'000'000);
  EXPECT_GE(calls[2].time_ns - calls[1].time_ns, 5'000'000);
  EXPECT_LE(calls[3].time_ns - calls[0].time_ns, passed.count());
  EXPECT_GE(calls[0].time_ns, 0);
}

TEST(CallStream, WhatIsOpenAtTheEndEndsThere) {
  MemoryRecording recording;
  Streamed streamed(recording);
  ThreadTrace& trace = streamed.Begin();
  trace.Enter(KeyNamed('a'));
  trace.Enter(KeyNamed('b'));
  ASSERT_TRUE(streamed.Stop());
  EXPECT_EQ(Stacks(recording, streamed.IndexOf(trace)), (Strings{"a", "ab", "a", ""}));
}

TEST(CallStream, CallsThatEndUnnoticedEndWithTheirCaller) {
  MemoryRecording recording;
  Streamed streamed(recording);
  ThreadTrace& trace = streamed.Begin();
  trace.Enter(KeyNamed('a'));
  trace.Enter(KeyNamed('b'));
  trace.Enter(KeyNamed('c'));
  trace.Leave(KeyNamed('a'));
  ASSERT_TRUE(streamed.Stop());
  EXPECT_EQ(Stacks(recording, streamed.IndexOf(trace)), (Strings{"a", "ab", "abc", "ab", "a", ""}));
}

TEST(CallStream, WhatRanBeforeBeginsWithTheRecording) {
  MemoryRecording recording;
  Streamed streamed(recording);
  const RunningCall running[] = {{KeyNamed('a'), nullptr}, {KeyNamed('b'), nullptr}};
  ThreadTrace& trace = streamed.Begin(running);
  trace.Enter(KeyNamed('c'));
  ASSERT_TRUE(streamed.Stop());
  EXPECT_EQ(Stacks(recording, streamed.IndexOf(trace)), (Strings{"a", "ab", "abc", "ab", "a", ""}));
}

TEST(CallStream, WhatIsHiddenIsNotThereNorWhatItCalls) {
  MemoryRecording recording;
  Letters letters;
  letters.hidden = {'b'};
  letters.hides_running = true;
  Streamed streamed(recording, letters);
  const RunningCall running[] = {{KeyNamed('h'), nullptr}};
  ThreadTrace& trace = streamed.Begin(running);
  trace.Leave(KeyNamed('h'));
  trace.Enter(KeyNamed('a'));
  trace.Enter(KeyNamed('b'));
  trace.Enter(KeyNamed('c'));
  trace.Leave(KeyNamed('c'));
  trace.Leave(KeyNamed('b'));
  trace.Enter(KeyNamed('c'));
  ASSERT_TRUE(streamed.Stop());
  EXPECT_EQ(Stacks(recording, streamed.IndexOf(trace)), (Strings{"a", "ac", "a", ""}));
}

/// Random calls, more than many chunks take, and what they are as events.
Strings CallAtRandom(ThreadTrace& trace, unsigned seed, int events) {
  std::mt19937 random(seed);
  Strings expected;
  std::string open;
  for (int i = 0; i < events; ++i) {
    const bool leaves = open.size() > 6 || (!open.empty() && random() % 2 == 0);
    if (leaves) {
      trace.Leave(KeyNamed(open.back()));
      open.pop_back();
    } else {
      open += static_cast<char>('a' + random() % 8);
      trace.Enter(KeyNamed(open.back()));
    }
    expected.push_back(open);
  }
  while (!open.empty()) {
    trace.Leave(KeyNamed(open.back()));
    open.pop_back();
    expected.push_back(open);
  }
  return expected;
}

TEST(CallStream, NoneIsLostOfThreadsThatCallWithoutRest) {
  constexpr int kThreads = 3;
  MemoryRecording recording;
  Streamed streamed(recording);
  std::vector<Strings> expected(kThreads);
  std::vector<ThreadTrace*> traces(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      traces[i] = &streamed.Begin();
      expected[i] = CallAtRandom(*traces[i], static_cast<unsigned>(i), 200'000);
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(streamed.Stop());
  std::set<ThreadIndex> indexes;
  for (int i = 0; i < kThreads; ++i) {
    const ThreadIndex index = streamed.IndexOf(*traces[i]);
    indexes.insert(index);
    ASSERT_TRUE(Stacks(recording, index) == expected[i]) << i;
    const auto calls = recording.CallsOf(index);
    EXPECT_TRUE(std::ranges::is_sorted(calls, {}, &CallEvent::time_ns));
  }
  EXPECT_EQ(indexes.size(), size_t{kThreads});
}

bool Sleeps(pid_t thread) {
  const auto stat = ReadTaskStat(getpid(), thread);
  return stat && stat->state == 'S';
}

/// Takes its time, for the first until a thread has waited for it for a while.
class Slow final : public TimelineSink {
 public:
  Result<void> Begin(const Metadata&) override { return {}; }
  Result<void> Append(const Tables&, std::span<const Sample>, const Quality&) override {
    return {};
  }
  Result<void> AppendCalls(const Tables&, ThreadIndex, std::span<const CallEvent> calls) override {
    taken += calls.size();
    if (const pid_t thread = std::exchange(waits, 0); thread != 0) {
      while (!Sleeps(thread)) usleep(1000);
      usleep(30'000);
    }
    usleep(2000);
    if (fails_after != 0 && taken > fails_after) return Fail(ErrorCode::kIo, "the disk is full");
    return {};
  }
  Result<void> Finish(const Tables&, const Quality&) override { return {}; }
  std::atomic<size_t> taken = 0;
  size_t fails_after = 0;
  pid_t waits = 0;
};

TEST(CallStream, ASlowFileIsWaitedFor) {
  Slow slow;
  slow.waits = gettid();
  Streamed streamed(slow);
  ThreadTrace& trace = streamed.Begin();
  // Of more than there may be chunks.
  constexpr size_t kCalls = 100 * CallChunk::kMostWords / 2;
  for (size_t i = 0; i < kCalls; ++i) {
    trace.Enter(KeyNamed('a'));
    trace.Leave(KeyNamed('a'));
  }
  ASSERT_TRUE(streamed.Stop());
  EXPECT_EQ(slow.taken, 2 * kCalls);
  EXPECT_GT(streamed.stream().waited(), milliseconds(20));
}

TEST(CallStream, AFileThatFailsEndsTheTimelineAndNotTheProgram) {
  Slow full;
  full.fails_after = 1;
  Streamed streamed(full);
  ThreadTrace& trace = streamed.Begin();
  for (size_t i = 0; i < 200 * CallChunk::kMostWords / 2; ++i) {
    trace.Enter(KeyNamed('a'));
    trace.Leave(KeyNamed('a'));
  }
  const auto stopped = streamed.Stop();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().message, "the disk is full");
  // Of each chunk that comes later it is told when that begins.
  EXPECT_LE(full.taken, CallChunk::kMostWords + 200);
  EXPECT_EQ(trace.tree().root().first_child->calls, 100 * CallChunk::kMostWords);
}

TEST(CallStream, WhatAThreadDidLongAgoIsWrittenWithItsNextCall) {
  Slow slow;
  Streamed streamed(slow);
  ThreadTrace& trace = streamed.Begin();
  trace.Enter(KeyNamed('a'));
  usleep(1'500'000);
  trace.Enter(KeyNamed('b'));
  // Nothing is stopped yet, and the chunk is nowhere near full.
  for (int i = 0; i < 10'000 && slow.taken < 2; ++i) usleep(1000);
  EXPECT_EQ(slow.taken, 2U);
  ASSERT_TRUE(streamed.Stop());
}

TEST(CallLog, HasRoomUntilTheChunkIsAlmostFull) {
  KeptChunk kept;
  CallTree tree;
  CallLog log(&kept, gettid(), tree, 0);
  Ticks now = 0;
  size_t events = 0;
  for (; log.HasRoomAt(++now); ++events) log.LeaveWithRoom(now);
  EXPECT_EQ(events, CallChunk::kMostWords - 3);
  log.Leave(now);
  EXPECT_EQ(kept.chunk.size, CallChunk::kMostWords - 2) << "handed over with it";
  EXPECT_TRUE(log.HasRoomAt(++now));
  EXPECT_FALSE(log.HasRoomAt(now + (Ticks{1} << 32))) << "that takes two words";
  log.Hurry();
  EXPECT_FALSE(log.HasRoomAt(now)) << "the next event is to hand over";
  log.Close();
  EXPECT_TRUE(log.HasRoomAt(now)) << "it keeps nothing";
}

TEST(CallStream, AChildMadeByForkCallsOn) {
  MemoryRecording recording;
  Streamed streamed(recording);
  ThreadTrace& trace = streamed.Begin();
  trace.Enter(KeyNamed('a'));
  const pid_t child = fork();
  if (child == 0) {
    for (size_t i = 0; i < 3 * CallChunk::kMostWords; ++i) {
      trace.Enter(KeyNamed('b'));
      trace.Leave(KeyNamed('b'));
    }
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(streamed.Stop());
  EXPECT_EQ(Stacks(recording, streamed.IndexOf(trace)), (Strings{"a", ""}));
}

TEST(CallLog, ALongTimeBetweenTwoCallsTakesAWordMore) {
  KeptChunk kept;
  CallTree tree;
  CallLog log(&kept, 1, tree, 0);
  log.Enter(tree.root(), 5);
  log.Leave((Ticks{7} << 32) + 11);
  log.Close();
  ASSERT_EQ(kept.chunk.size, 3U);
  EXPECT_EQ(kept.chunk.words[1], Ticks{7} << 32 | CallChunk::kFar);
  EXPECT_EQ(kept.chunk.words[2], Ticks{6} << 32 | CallChunk::kLeave);
}

}  // namespace
}  // namespace pystrobe::trace
