// SPDX-License-Identifier: Apache-2.0
#include "profiler/print/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "profiler/print/text.h"
#include "tests/cpp/support/memory_recording.h"
#include "tests/cpp/support/text_lines.h"
#include "tests/cpp/support/units.h"

namespace pystrobe::print {
namespace {

using ::testing::HasSubstr;
using testing::kMs;
using testing::LinesOf;
using testing::LineWith;
using testing::MakeStack;
using testing::MakeThread;
using testing::MemoryRecording;
using ::testing::Not;

class TableTest : public ::testing::Test {
 protected:
  TableTest() {
    Metadata& metadata = recording_.mutable_metadata();
    metadata.pid = 4711;
    metadata.command = {"python3", "app.py"};
    metadata.python_version = "3.13.0";
    thread_ = MakeThread(recording_.mutable_tables(), 4711, "MainThread");
    recording_.mutable_quality().samples = 1000;
    recording_.mutable_quality().taken = 1000;
  }

  void Add(std::initializer_list<testing::FrameSpec> frames, uint64_t wall_ns, uint64_t cpu_ns,
           uint8_t flags = kSampleOnCpu) {
    time_ns_ += static_cast<int64_t>(wall_ns);
    recording_.Add({.time_ns = time_ns_,
                    .wall_ns = wall_ns,
                    .cpu_ns = cpu_ns,
                    .thread = thread_,
                    .stack = MakeStack(recording_.mutable_tables(), frames),
                    .flags = flags});
  }

  void AddIdleThread(uint64_t tid, const char* name) {
    recording_.Add({.time_ns = time_ns_,
                    .wall_ns = static_cast<uint64_t>(time_ns_),
                    .thread = MakeThread(recording_.mutable_tables(), tid, name),
                    .stack = MakeStack(recording_.mutable_tables(), {{"wait", 1, "b.py"}}),
                    .count = 100,
                    .flags = kSampleIdle});
  }

  std::string Table(Mode mode = Mode::kWall, std::optional<uint32_t> top = {},
                    Terminal terminal = {}) {
    const auto profile = Fold(recording_, {});
    EXPECT_TRUE(profile) << profile.error().message;
    return FormatTable(*profile, {mode, top, terminal, "/srv"});
  }

  MemoryRecording recording_;
  ThreadIndex thread_{};
  int64_t time_ns_ = 0;
};

TEST_F(TableTest, ShowsSelfAndTotal) {
  Add({{"main", 3, "/srv/app.py"}, {"work", 12, "/srv/app.py"}}, 750 * kMs, 750 * kMs);
  Add({{"main", 4, "/srv/app.py"}}, 250 * kMs, 250 * kMs);
  const std::string text = Table();
  EXPECT_EQ(LineWith(text, "work "), "   75.0     75.0    750 ms  work      app.py:12");
  EXPECT_EQ(LineWith(text, "main "), "   25.0    100.0    250 ms  main      app.py:4");
  EXPECT_EQ(LineWith(text, "self %"), " self %  total %      self  function  file:line");
  EXPECT_THAT(text, HasSubstr("python3 app.py, pid 4711, Python 3.13.0"));
  EXPECT_THAT(text, HasSubstr("1.00 s of wall time (elapsed, waiting included): 1 thread"));
}

TEST_F(TableTest, CountsTracedCalls) {
  recording_.mutable_metadata().pause_mode = kByTracing;
  Add({{"main", 3, "/srv/app.py"}}, 1 * kMs, 1 * kMs);
  recording_.Add({.time_ns = time_ns_,
                  .wall_ns = 9 * kMs,
                  .cpu_ns = 0,
                  .thread = thread_,
                  .stack = MakeStack(recording_.mutable_tables(),
                                     {{"main", 3, "/srv/app.py"}, {"step", 7, "/srv/app.py"}}),
                  .count = 12345});
  const std::string table = Table();
  EXPECT_THAT(LineWith(table, "self %"), HasSubstr("calls self %"));
  EXPECT_THAT(LineWith(table, "step"), HasSubstr("12,345   90.0     90.0"));
  EXPECT_THAT(LineWith(table, "main"), HasSubstr(" 1   10.0    100.0"));
  EXPECT_THAT(table, HasSubstr("calls: those that began"));
}

TEST_F(TableTest, ModeDecides) {
  Add({{"compute", 1, "a.py"}}, 100 * kMs, 100 * kMs);
  Add({{"sleep", 1, "a.py"}}, 900 * kMs, 0, 0);
  EXPECT_THAT(LineWith(Table(Mode::kWall), "sleep"), HasSubstr("90.0"));
  EXPECT_THAT(LineWith(Table(Mode::kCpu), "compute"), HasSubstr("100.0"));
  EXPECT_THAT(Table(Mode::kCpu), HasSubstr("cpu time"));
}

TEST_F(TableTest, TellsWhatIsLeftOut) {
  for (int i = 0; i < 10; ++i) {
    Add({{"f" + std::to_string(i), 1, "a.py"}}, static_cast<uint64_t>(10 - i) * kMs, kMs);
  }
  const std::string text = Table(Mode::kWall, 4);
  EXPECT_THAT(text, HasSubstr("38.2  in 6 other functions; --top 10 shows all"));
  EXPECT_THAT(text, Not(HasSubstr("f4")));
}

TEST_F(TableTest, ShowsTwentyRowsUnlessAskedForOthers) {
  for (int i = 0; i < 30; ++i) Add({{"f" + std::to_string(i), 1, "a.py"}}, kMs, kMs);
  EXPECT_THAT(Table(), HasSubstr("in 10 other functions; --top 30"));
  EXPECT_THAT(Table(Mode::kWall, 30), Not(HasSubstr("other")));
}

TEST_F(TableTest, LeavesOutWhatHardlyMattersUnlessAskedForIt) {
  Add({{"main", 1, "a.py"}, {"work", 1, "a.py"}}, 96 * kMs, 96 * kMs);
  Add({{"setup", 1, "a.py"}, {"brief", 1, "a.py"}}, 4 * kMs, 4 * kMs);
  const std::string text = Table();
  EXPECT_NE(LineWith(text, "main "), "");
  EXPECT_NE(LineWith(text, "brief "), "") << "it has time of its own";
  EXPECT_EQ(LineWith(text, "setup "), "");
  EXPECT_THAT(text, HasSubstr("0.0  in 1 other function; --top 4 shows all"));
  EXPECT_NE(LineWith(Table(Mode::kWall, 4), "setup "), "");
}

TEST_F(TableTest, OneFunctionIsNotSeveral) {
  for (const char* name : {"f", "g"}) Add({{name, 1, "a.py"}}, kMs, kMs);
  EXPECT_THAT(Table(Mode::kWall, 1), HasSubstr("in 1 other function; --top 2"));
}

TEST_F(TableTest, LeavesOutRowsOfZeros) {
  Add({{"main", 1, "a.py"}, {"work", 1, "a.py"}}, 10'000 * kMs, 10'000 * kMs);
  Add({{"main", 1, "a.py"}, {"hardly", 1, "a.py"}, {"work", 1, "a.py"}}, kMs, 0);
  const std::string text = Table();
  EXPECT_EQ(LineWith(text, "hardly"), "");
  EXPECT_THAT(LineWith(text, "main "), HasSubstr("0.0    100.0"));
  EXPECT_THAT(text, Not(HasSubstr("other")));
}

TEST_F(TableTest, OfFunctionsWithoutSelfTimeTheProgramsOwnComeFirst) {
  Add({{"_find_and_load", 1, "<frozen importlib._bootstrap>"},
       {"get", 1, "/v/lib/python3.13/site-packages/web.py"},
       {"run", 1, "/usr/lib/python3.13/runpy.py"},
       {"main", 1, "/srv/app.py"},
       {"compile", 1, "<frozen importlib._bootstrap>"}},
      100 * kMs, 100 * kMs);
  Add({{"_find_and_load", 1, "<frozen importlib._bootstrap>"},
       {"compile", 1, "<frozen importlib._bootstrap>"}},
      kMs, kMs);
  std::vector<std::string> names;
  for (const char* name : {"compile", "main", "_find_and_load", "get", "run"}) {
    names.push_back(LineWith(Table(), std::string("  ") + name + " "));
  }
  size_t last = 0;
  for (const std::string& line : names) {
    EXPECT_GT(Table().find(line), last) << line;
    last = Table().find(line);
  }
}

TEST_F(TableTest, TellsWhatIsInNoFunction) {
  Add({{"f", 1, "a.py"}}, 100 * kMs, 100 * kMs);
  EXPECT_THAT(Table(), Not(HasSubstr("without a stack")));
  Add({}, 300 * kMs, 3 * kMs, kSampleUnseen);
  Add({}, 100 * kMs, 100 * kMs);
  EXPECT_THAT(
      Table(),
      HasSubstr("\n   20.0  outside any Python function\n"
                "   60.0  without a stack: before the first look at a thread, or while the\n"
                "         sampler had no CPU\n"));
  EXPECT_THAT(Table(Mode::kCpu), HasSubstr("\n    1.5  without a stack"));
  EXPECT_THAT(Table(Mode::kCpu), Not(HasSubstr("too briefly")));
  EXPECT_THAT(Table(Mode::kGil), Not(HasSubstr("without a stack")));
}

TEST_F(TableTest, TellsTimeOfThreadsThatWereNotSampledFromTimeWithoutALook) {
  Add({{"f", 1, "a.py"}}, 100 * kMs, 100 * kMs);
  const ThreadIndex none = MakeThread(recording_.mutable_tables(), 0, "threads not sampled");
  recording_.Add(
      {.time_ns = time_ns_, .cpu_ns = 300 * kMs, .thread = none, .flags = kSampleUnseen});
  const std::string text = Table(Mode::kCpu);
  EXPECT_THAT(text, HasSubstr("\n   75.0  CPU time of threads that lived too briefly to be seen"));
  EXPECT_THAT(text, Not(HasSubstr("without a stack")));
}

TEST_F(TableTest, CountsThreadsAlone) {
  Add({{"f", 1, "a.py"}}, 100 * kMs, 100 * kMs);
  const ThreadIndex none = MakeThread(recording_.mutable_tables(), 0, "threads not sampled");
  recording_.Add({.time_ns = time_ns_, .cpu_ns = 9 * kMs, .thread = none, .flags = kSampleUnseen});
  EXPECT_THAT(Table(Mode::kCpu), HasSubstr(": 1 thread in "));
}

TEST_F(TableTest, FitsEveryWidth) {
  Add({{"一个很长的函数名字一个很长的函数名字一个很长的函数名字", 1,
        "/srv/a/very/long/path/that/goes/on/and/on/and/on/module_with_a_long_name.py"}},
      kMs, kMs);
  Add({{"Class.method_with_a_name_that_is_far_too_long_for_any_terminal.<locals>.<lambda>", 1,
        "/opt/x/y.py"}},
      kMs, kMs);
  for (int width = 60; width <= 200; ++width) {
    for (const std::string& line : LinesOf(Table(Mode::kWall, 20, {.width = width}))) {
      EXPECT_LE(DisplayWidth(line), width) << line;
    }
  }
}

TEST_F(TableTest, LongNamesUseTheRoomOfShortPaths) {
  Add({{"Class.method_with_a_long_name.<locals>.f", 1, "a.py"}}, kMs, kMs);
  EXPECT_THAT(Table(), HasSubstr("Class.method_with_a_long_name.<locals>.f  a.py:1"));
}

TEST_F(TableTest, NamesCannotMoveTheCursor) {
  Add({{"evil\x1b[2J", 1, "a\n.py"}}, kMs, kMs);
  EXPECT_THAT(Table(), HasSubstr("evil\\x1b[2J  a\\x0a.py:1"));
}

TEST_F(TableTest, ColoursOnlyWhenAsked) {
  Add({{"f", 1, "a.py"}}, kMs, kMs);
  EXPECT_THAT(Table(), Not(HasSubstr("\x1b")));
  EXPECT_THAT(Table(Mode::kWall, 20, {.color = true}), HasSubstr("\x1b[1;31m"));
}

TEST_F(TableTest, ExplainsAnEmptyTable) {
  for (int i = 0; i < 10; ++i) Add({{"sleep", 1, "a.py"}}, 90 * kMs, 0, 0);
  EXPECT_THAT(Table(Mode::kGil), HasSubstr("No thread was seen with the interpreter's lock"));
  EXPECT_THAT(Table(Mode::kCpu), HasSubstr("every thread waited"));
}

TEST_F(TableTest, AFunctionWithoutANameIsUnknown) {
  Add({{"", 7, "a.py"}}, kMs, kMs);
  EXPECT_THAT(Table(), HasSubstr("<unknown>  a.py:7"));
}

TEST_F(TableTest, FewSamplesProveNothing) {
  Add({}, 0, 0);
  recording_.mutable_quality().taken = 1;
  for (const Mode mode : {Mode::kWall, Mode::kCpu, Mode::kGil}) {
    EXPECT_THAT(Table(mode), HasSubstr("Too few samples to say anything (1)."));
  }
}

TEST_F(TableTest, SaysThatIdleThreadsAreHidden) {
  Add({{"f", 1, "a.py"}}, 100 * kMs, 100 * kMs);
  AddIdleThread(4712, "pool-1");
  EXPECT_THAT(Table(), HasSubstr("1 idle\n  thread left out (pool-1 [4712]), --idle shows it"));
  AddIdleThread(4713, "pool-2");
  AddIdleThread(4714, "pool\x1b-3");
  EXPECT_THAT(Table(), HasSubstr("3 idle\n  threads left out (pool-1 [4712], pool-2 [4713], "
                                 "pool\\x1b-3 [4714]), --idle\n  shows them"));
  AddIdleThread(4715, "");
  EXPECT_THAT(Table(), HasSubstr("4 idle\n  threads left out, --idle shows them"));
}

TEST_F(TableTest, RegionsAreApart) {
  const testing::FrameSpec load{"load", 0, kRegionFile, 0}, train{"train", 0, kRegionFile, 0};
  Add({train, {"main", 4, "/srv/app.py"}, {"work", 12, "/srv/app.py"}}, 250 * kMs, 250 * kMs);
  Add({load, {"main", 3, "/srv/app.py"}, {"work", 12, "/srv/app.py"}}, 740 * kMs, 740 * kMs);
  Add({{"main", 5, "/srv/app.py"}}, 10 * kMs, 10 * kMs);
  const std::string text = Table();
  const size_t regions = text.find("\n         total %     total  region\n");
  ASSERT_NE(regions, std::string::npos) << text;
  EXPECT_EQ(LineWith(text, "  load"), "            74.0    740 ms  load");
  EXPECT_EQ(LineWith(text, "  train"), "            25.0    250 ms  train");
  EXPECT_LT(regions, text.find("  load"));
  EXPECT_LT(text.find("  load"), text.find("  train"));
  EXPECT_THAT(text, Not(HasSubstr(std::string(kRegionFile))));
}

}  // namespace
}  // namespace pystrobe::print
