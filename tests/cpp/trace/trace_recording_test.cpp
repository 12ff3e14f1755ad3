// SPDX-License-Identifier: Apache-2.0
#include "profiler/trace/trace_recording.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "tests/cpp/trace/all_keys.h"
#include "tests/cpp/trace/keys.h"

namespace pystrobe::trace {
namespace {

/// By the names of its functions, outermost first.
class Kept : public RecordingSink {
 public:
  Result<void> Begin(const Metadata& metadata) override {
    begun = metadata;
    return {};
  }
  Result<void> Append(const Tables& tables, std::span<const Sample> samples,
                      const Quality&) override {
    for (const Sample& sample : samples) {
      std::string path;
      for (const FrameId frame : tables.FramesOf(sample.stack)) {
        path += tables.text(tables.function(tables.frame(frame).function).name);
      }
      by_path[path] = sample;
    }
    EXPECT_EQ(tables.text(tables.thread(ThreadIndex{}).name), "the thread");
    return {};
  }
  Result<void> Finish(const Tables&, const Quality& quality) override {
    ended = quality;
    return {};
  }

  Metadata begun;
  std::map<std::string, Sample> by_path;
  Quality ended;
};

/// What a session recorded, but for calls of `c`. It has one thread, and `c` no name.
Result<void> RecordAllButC(TraceSession& session, const SeenBy& seen_by, RecordingSink& sink) {
  const std::map<Key, FunctionFacts> facts = {{KeyNamed('a'), {"a", "x.py", 1}},
                                              {KeyNamed('b'), {"b", "x.py", 5}}};
  session.threads().front()->tree().Drop(
      [](const CallNode& node) { return node.key == KeyNamed('c'); });
  return RecordTrace(
      session, seen_by, [&](Key key) -> const FunctionFacts& { return facts.at(key); },
      [](pid_t) { return std::string("the thread"); }, sink);
}

TEST(TraceRecording, EachWayToAFunctionIsASampleOfItsCallsAndTimes) {
  AllKeys watch;
  TraceSession session({}, watch);
  ThreadTrace& trace = *session.BeginThread({});
  trace.Enter(KeyNamed('a'));
  for (int i = 0; i < 3; ++i) {
    trace.Enter(KeyNamed('b'));
    usleep(2000);
    trace.Leave(KeyNamed('b'));
  }
  trace.Enter(KeyNamed('c'));
  trace.Enter(KeyNamed('b'));
  trace.Leave(KeyNamed('b'));
  trace.Leave(KeyNamed('c'));
  trace.Leave(KeyNamed('a'));
  session.Stop();
  Kept kept;
  Metadata metadata;
  metadata.pid = 42;
  ASSERT_TRUE(kept.Begin(MetadataOf(session, metadata)));
  ASSERT_TRUE(RecordAllButC(session, {"a test", 30.0, "a hook was lost"}, kept));
  EXPECT_EQ(kept.begun.pid, 42);
  EXPECT_EQ(kept.begun.pause_mode, kByTracing);
  ASSERT_EQ(kept.by_path.size(), 2U);
  EXPECT_EQ(kept.by_path.at("a").count, 1U);
  EXPECT_EQ(kept.by_path.at("ab").count, 3U);
  EXPECT_GE(kept.by_path.at("ab").wall_ns, 6'000'000U);
  EXPECT_LT(kept.by_path.at("ab").cpu_ns, 3'000'000U) << "it slept";
  EXPECT_LT(kept.by_path.at("a").wall_ns, 6'000'000U) << "its own time";
  EXPECT_EQ(kept.ended.taken, 4U);
  EXPECT_EQ(kept.ended.cpu_source, "a test; a hook was lost");
  EXPECT_EQ(kept.ended.held_ns, 4 * 30);
  EXPECT_EQ(kept.ended.lost, 1U);
  EXPECT_TRUE(kept.ended.complete);
  EXPECT_EQ(kept.ended.thread_ns, kept.by_path.at("a").wall_ns + kept.by_path.at("ab").wall_ns);
  EXPECT_GE(kept.ended.duration_ns, static_cast<int64_t>(kept.ended.thread_ns));
}

TEST(TraceRecording, HasNoCpuTimeThatWasNotRead) {
  AllKeys watch;
  TraceSession session({}, watch);
  session.LeaveCpuTimeOut();
  ThreadTrace& trace = *session.BeginThread({});
  trace.Enter(KeyNamed('a'));
  usleep(2000);
  trace.Leave(KeyNamed('a'));
  session.Stop();
  Kept kept;
  ASSERT_TRUE(RecordAllButC(session, {"a test", 0, ""}, kept));
  EXPECT_EQ(kept.by_path.at("a").cpu_ns, 0U);
  EXPECT_GE(kept.by_path.at("a").wall_ns, 2'000'000U);
  EXPECT_EQ(kept.ended.cpu_ns, 0U);
  EXPECT_EQ(kept.ended.cpu_source, "a test, by elapsed time alone");
}

TEST(TraceRecording, TellsWhatWasTooDeepOfWhatIsInIt) {
  AllKeys watch;
  TraceSession session({}, watch);
  session.LimitDepth(2);
  ThreadTrace& trace = *session.BeginThread({});
  for (const char first : {'a', 'c'}) {
    trace.Enter(KeyNamed(first));
    for (int i = 0; i < 5; ++i) trace.Enter(KeyNamed('b'));
    for (int i = 0; i < 5; ++i) trace.Leave(KeyNamed('b'));
    trace.Leave(KeyNamed(first));
  }
  session.Stop();
  Kept kept;
  ASSERT_TRUE(kept.Begin(MetadataOf(session, {})));
  ASSERT_TRUE(RecordAllButC(session, {"a test", 10.0, ""}, kept));
  EXPECT_EQ(kept.begun.max_depth, 2U);
  EXPECT_EQ(kept.ended.taken, 2U);
  EXPECT_EQ(kept.ended.left_out, 4U);
  EXPECT_EQ(kept.ended.held_ns, 6 * 10);
  EXPECT_EQ(kept.ended.lost, 0U) << "it was asked for";
}

class QualityAlone : public RecordingSink {
 public:
  Result<void> Begin(const Metadata&) override { return {}; }
  Result<void> Append(const Tables&, std::span<const Sample>, const Quality&) override {
    return {};
  }
  Result<void> Finish(const Tables&, const Quality& quality) override {
    ended = quality;
    return {};
  }
  Quality ended;
};

// Every way of so many turns, and all that they begin with.
void GoEveryWay(ThreadTrace& trace, int turns) {
  if (turns == 0) return;
  for (const char turn : {'a', 'b'}) {
    trace.Enter(KeyNamed(turn));
    GoEveryWay(trace, turns - 1);
    trace.Leave(KeyNamed(turn));
  }
}

TEST(TraceRecording, TellsWhatCameByMoreWaysThanAreKept) {
  AllKeys watch;
  TraceSession session({}, watch);
  GoEveryWay(*session.BeginThread({}), 21);
  session.Stop();
  QualityAlone kept;
  ASSERT_TRUE(RecordAllButC(session, {"a test", 10.0, ""}, kept));
  constexpr size_t kWays = (size_t{2} << 21) - 2;
  EXPECT_EQ(kept.ended.taken, TraceSession::kMostNodes);
  EXPECT_EQ(kept.ended.lost, 1U);
  EXPECT_NE(kept.ended.cpu_source.find(std::to_string(kWays - TraceSession::kMostNodes) +
                                       " calls came by other ways than the first 1048576"),
            std::string::npos)
      << kept.ended.cpu_source;
}

}  // namespace
}  // namespace pystrobe::trace
