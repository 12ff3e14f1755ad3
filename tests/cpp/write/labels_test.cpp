// SPDX-License-Identifier: Apache-2.0
#include "profiler/write/labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "profiler/write/number_text.h"

namespace pystrobe::write {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(LabelsTest, ThreadsAreToldApart) {
  Tables tables;
  const StringId name = tables.Intern("worker");
  EXPECT_EQ(ThreadLabel({.tid = 7, .name = name}, tables), "worker [7]");
  EXPECT_EQ(ThreadLabel({.tid = 8}, tables), "thread [8]");
  EXPECT_EQ(ThreadLabel({.tid = 7, .interpreter = 2, .name = name}, tables),
            "worker [7, interpreter 2]");
  EXPECT_EQ(ThreadLabel({.tid = 0, .name = name}, tables), "worker") << "no thread";
}

TEST(LabelsTest, AnInlineScriptIsNamedByItsFirstLine) {
  EXPECT_EQ(FirstLine("import a", "…"), "import a");
  EXPECT_EQ(FirstLine("  x", "…"), "  x");
  EXPECT_EQ(FirstLine("\n  import a\r\nb()\n", "…"), "import a…");
  EXPECT_EQ(FirstLine("\nimport a\n\n", "…"), "import a");
  EXPECT_EQ(FirstLine("\n\n", "…"), "");
  EXPECT_EQ(FirstLine("", "…"), "");
  EXPECT_EQ(Title({.command = {"python3", "-c", "import a\nb()"}}, {}), "python3 -c import a…");
}

TEST(LabelsTest, TheTitleIsTheBestThereIs) {
  EXPECT_EQ(Title({.command = {"python3", "a.py"}}, {.title = "mine"}), "mine");
  EXPECT_EQ(Title({.command = {"python3", "a.py"}}, {}), "python3 a.py");
  EXPECT_EQ(Title({.executable = "/usr/bin/python3"}, {}), "/usr/bin/python3");
  EXPECT_EQ(Title({}, {}), "pystrobe");
}

Quality GoodRun() {
  return {.deadlines = 9874,
          .samples = 9874,
          .taken = 9874,
          .proved = 9874,
          .duration_ns = 10'000'000'000,
          .held_ns = 38'000'000,
          .run_delay_ns = 41'000'000,
          .own_cpu_ns = 210'000'000,
          .achieved_rate_hz = 987.4,
          .final_rate_hz = 1000,
          .complete = true,
          .cpu_source = "schedstat"};
}

TEST(QualityLineTest, AGoodRun) {
  EXPECT_EQ(
      QualityLine({.wanted_rate_hz = 1000}, GoodRun()),
      "good; 9,874 samples, 987 a second (1,000 wanted); all proved exact; 0 late, 0 lost; target "
      "held 38.0 ms (0.38 % of the time); it waited 41.0 ms for a CPU in all, for us and for "
      "others; own CPU 2.1 %");
}

TEST(QualityLineTest, TellsWhatFewSamplesAreGoodFor) {
  Quality quality = GoodRun();
  const auto samples = [&](uint64_t count) {
    quality.taken = quality.proved = count;
    return QualityLine({}, quality);
  };
  EXPECT_THAT(samples(9), StartsWith("too few to judge; 9 samples, "));
  EXPECT_THAT(samples(25), StartsWith("fair (few samples); 25 samples (shares are known to about "
                                      "20 points), "));
  EXPECT_THAT(samples(99), StartsWith("fair (few samples); "));
  EXPECT_THAT(samples(100),
              StartsWith("good; 100 samples (shares are known to about 10 points), "));
  EXPECT_THAT(samples(399), HasSubstr("399 samples (shares are known to about 5 points), "));
  EXPECT_THAT(samples(400), StartsWith("good; 400 samples, "));
}

TEST(QualityLineTest, BeginsWithAVerdict) {
  const auto line = [](const Quality& quality) { return QualityLine({}, quality); };
  Quality quality = GoodRun();
  quality.lost = 98;
  EXPECT_THAT(line(quality), StartsWith("good; "));
  quality.lost = 987;
  EXPECT_THAT(line(quality), StartsWith("fair (samples lost); "));
  EXPECT_EQ(Judge(quality), Verdict::kFair);
  quality.lost = 98;
  quality.late = quality.taken / 10;
  EXPECT_THAT(line(quality), StartsWith("good; "));
  quality.late += 1;
  EXPECT_THAT(line(quality), StartsWith("fair (samples late); "));
  quality.late = 0;
  quality.proved -= 98;
  EXPECT_THAT(line(quality), StartsWith("fair (some stacks not proved); "));
  EXPECT_EQ(Judge(quality), Verdict::kFair);
  quality.proved -= 1;
  EXPECT_THAT(line(quality), StartsWith("doubtful (stacks not proved); "));
  EXPECT_EQ(Judge(quality), Verdict::kDoubtful);
  quality.incomplete = 99;
  EXPECT_THAT(line(quality), StartsWith("doubtful (stacks incomplete); "));
  quality.lost = 988;
  EXPECT_THAT(line(quality), StartsWith("doubtful (samples lost); "));
  quality.complete = false;
  EXPECT_THAT(line(quality), StartsWith("doubtful (cut off); "));
  EXPECT_THAT(line({.taken = 9, .proved = 9, .complete = true}), StartsWith("too few to judge; "));
  const Quality brief{.deadlines = 102, .taken = 100, .proved = 100, .lost = 2, .complete = true};
  EXPECT_THAT(line(brief), StartsWith("good; "));
}

TEST(QualityLineTest, AnIdleProgramLacksNothing) {
  Quality quality = GoodRun();
  quality.cpu_ns = quality.unseen_cpu_ns = 50'000;
  EXPECT_THAT(QualityLine({}, quality), Not(HasSubstr("without a stack")));
  EXPECT_EQ(Judge(quality), Verdict::kGood);
  quality.cpu_ns = quality.unseen_cpu_ns = 50'000'000;
  EXPECT_THAT(QualityLine({}, quality), HasSubstr("of the CPU time without a stack"));
}

TEST(HowToGetMore, TellsWhereALimitKeptTheRateLow) {
  Quality quality = GoodRun();
  quality.final_rate_hz = 500;
  quality.limited_ns = 1;
  EXPECT_EQ(HowToGetMore({.wanted_rate_hz = 1000, .max_overhead = 0.01}, quality),
            "For more samples: record with -r 1000, which lifts the default limit; the cost is "
            "told after the run");
  for (const Metadata& asked : {Metadata{.wanted_rate_hz = 1000, .max_overhead = 0.02},
                                Metadata{.wanted_rate_hz = 1500, .max_overhead = 0.01}}) {
    EXPECT_THAT(HowToGetMore(asked, quality),
                HasSubstr(" and without --max-overhead, which lifts"));
  }
  EXPECT_EQ(HowToGetMore({.wanted_rate_hz = 1000}, GoodRun()), "") << "nothing was limited";
}

TEST(QualityLineTest, DoubtIsNeverRoundedAway) {
  Quality quality = GoodRun();
  quality.proved = 9873;
  quality.marked = 1;
  EXPECT_THAT(QualityLine({}, quality), HasSubstr("99.9 % proved exact, 1 marked as unproved"));
  quality.proved = 0;
  quality.marked = 9874;
  EXPECT_THAT(QualityLine({}, quality), HasSubstr("none proved exact"));
}

TEST(QualityLineTest, SaysThatTheRateWasLowered) {
  const Metadata metadata{.wanted_rate_hz = 1000, .max_overhead = 0.01};
  Quality quality = GoodRun();
  EXPECT_THAT(QualityLine(metadata, quality), HasSubstr("(1,000 wanted);"));
  quality.final_rate_hz = 412;
  quality.limited_ns = 9'000'000'000;
  EXPECT_THAT(
      QualityLine(metadata, quality),
      HasSubstr(
          " a second (1,000 wanted, lowered to hold the target about 1.0 % of its time); all"));
}

TEST(QualityLineTest, SaysThatTheRateWasLoweredForAWhile) {
  Quality quality = GoodRun();
  quality.limited_ns = 250'000'000;
  EXPECT_THAT(QualityLine({.wanted_rate_hz = 1000, .max_overhead = 0.01}, quality),
              HasSubstr("(1,000 wanted);"))
      << "for too short a while to matter";
  quality.deadlines = 5000;  // of 10,000
  EXPECT_THAT(QualityLine({.wanted_rate_hz = 1000, .max_overhead = 0.01}, quality),
              HasSubstr(", lowered for 250 ms to hold"));
  EXPECT_THAT(QualityLine({.wanted_rate_hz = 1000}, quality), Not(HasSubstr("lowered")));
  quality.deadlines = 3;
  quality.duration_ns = 5'000'000;  // chance, in so short a time
  EXPECT_THAT(QualityLine({.wanted_rate_hz = 1000, .max_overhead = 0.01}, quality),
              Not(HasSubstr("lowered")));
}

TEST(QualityLineTest, ASlowStartIsNoLowering) {
  const Metadata metadata{.wanted_rate_hz = 1000, .max_overhead = 0.01};
  // What the sampler of an idle program comes to: 225 Hz, and half as much more each 250 ms.
  Quality quality{.deadlines = 267, .taken = 267, .duration_ns = 750'000'000, .final_rate_hz = 506};
  EXPECT_THAT(QualityLine(metadata, quality), HasSubstr(" (1,000 wanted);"))
      << "an older file does not tell why";
  quality.limited_ns = 0;
  EXPECT_THAT(QualityLine(metadata, quality),
              HasSubstr(" (1,000 wanted; begun slowly, to learn the cost);"));
  quality.deadlines = 2457;
  quality.duration_ns = 3'000'000'000;
  quality.final_rate_hz = 1000;
  EXPECT_THAT(QualityLine(metadata, quality), HasSubstr("begun slowly"));
  quality.deadlines = 9500;
  quality.duration_ns = 10'000'000'000;
  EXPECT_THAT(QualityLine(metadata, quality), HasSubstr("(1,000 wanted);"));
}

TEST(QualityLineTest, ManyLostHaveACure) {
  Quality quality = GoodRun();
  quality.lost = 900;
  EXPECT_THAT(QualityLine({}, quality), HasSubstr("900 lost; target held"));
  quality.lost = 1000;
  EXPECT_THAT(QualityLine({}, quality),
              HasSubstr("1,000 lost (more deadlines than the machine could meet: ask for a lower "
                        "rate, or free a CPU); target held"));
  EXPECT_THAT(QualityLine({.max_overhead = 0.01}, quality),
              HasSubstr("1,000 lost (the machine was too busy for more); target held"));
}

TEST(QualityLineTest, TellsTheUnusual) {
  Quality quality = GoodRun();
  quality.proved -= 3;
  quality.incomplete = 3;
  quality.unresolved = 2;
  quality.complete = false;
  quality.cpu_source = "stat";
  const std::string line = QualityLine({}, quality);
  EXPECT_THAT(line, HasSubstr("; 99.9 % proved exact; 0 late"));
  EXPECT_THAT(line, HasSubstr("3 incomplete, 2 frames without a name"));
  quality.unresolved = 1;
  EXPECT_THAT(QualityLine({}, quality), HasSubstr(", 1 frame without a name;"));
  EXPECT_THAT(line, HasSubstr("10 ms ticks"));
  EXPECT_THAT(line, HasSubstr("cut off"));
}

TEST(QualityLineTest, TellsOfTimeWithoutAStack) {
  Quality quality = GoodRun();
  quality.thread_ns = 20'000'000'000'000;
  quality.unseen_ns = 199'000'000'000;
  EXPECT_THAT(QualityLine({}, quality), Not(HasSubstr("without a stack")));
  EXPECT_EQ(Judge(quality), Verdict::kGood);
  quality.unseen_ns = 16'000'000'000'000;
  EXPECT_THAT(
      QualityLine({}, quality),
      HasSubstr("0 lost; 80.0 % of the threads' wall time without a stack: before the "
                "first look at a thread, in threads that no look found running or without Python, "
                "or while the sampler had no CPU; target"));
  EXPECT_EQ(Judge(quality), Verdict::kFair);
  EXPECT_THAT(QualityLine({}, quality), StartsWith("fair (much time without a stack); "));
  quality.cpu_ns = 1'000'000'000;
  quality.unseen_cpu_ns = 830'000'000;
  EXPECT_THAT(QualityLine({}, quality),
              HasSubstr("; 80.0 % of the threads' wall time and 83.0 % of the CPU time without a "
                        "stack: before"));
  EXPECT_EQ(Judge(quality), Verdict::kFair);
  quality.unseen_ns = 0;
  EXPECT_THAT(QualityLine({}, quality), HasSubstr("0 lost; 83.0 % of the CPU time without a "));
}

TEST(QualityLineTest, TellsThatThePauseChanged) {
  Quality quality = GoodRun();
  const Metadata metadata{.pause_mode = "preempt"};
  EXPECT_THAT(QualityLine(metadata, quality), Not(HasSubstr("pausing"))) << "an older file";
  quality.pause_mode = "preempt";
  EXPECT_THAT(QualityLine(metadata, quality), Not(HasSubstr("pausing")));
  quality.pause_mode = "ptrace";
  EXPECT_THAT(QualityLine(metadata, quality),
              HasSubstr("; pausing by preempt at first, by ptrace at the end; target held"));
}

TEST(QualityLineTest, NothingWasSampled) {
  EXPECT_EQ(QualityLine({.wanted_rate_hz = 1000}, {.complete = true}),
            "too few to judge; 0 samples, 0 a second (1,000 wanted); 0 late, 0 lost; target held 0 "
            "s (0 % of the "
            "time); own CPU 0 %");
}

TEST(NumberTextTest, ShowsTheDigitsThatMatter) {
  EXPECT_EQ(GroupDigits(0), "0");
  EXPECT_EQ(GroupDigits(999), "999");
  EXPECT_EQ(GroupDigits(1'234'567), "1,234,567");
  EXPECT_EQ(RateText(0), "0");
  EXPECT_EQ(RateText(0.4), "0.4");
  EXPECT_EQ(RateText(99.96), "100");
  EXPECT_EQ(RateText(12'345.4), "12,345");
  EXPECT_EQ(TimeText(0), "0 s");
  EXPECT_EQ(TimeText(999), "999 ns");
  EXPECT_EQ(TimeText(999'499), "999 us");
  EXPECT_EQ(TimeText(999'500), "1.00 ms");
  EXPECT_EQ(TimeText(12'345'678), "12.3 ms");
  EXPECT_EQ(TimeText(4'520'000'000), "4.52 s");
  EXPECT_EQ(TimeText(36'000'000'000'000), "36,000 s");
  EXPECT_EQ(PercentText(0), "0");
  EXPECT_EQ(PercentText(0.0000001), "<0.001");
  EXPECT_EQ(PercentText(0.0038), "0.38");
  EXPECT_EQ(PercentText(0.452), "45.2");
}

TEST(LabelsTest, OriginLineLeavesOutWhatIsNotKnown) {
  EXPECT_EQ(OriginLine({}), "pystrobe");
  EXPECT_EQ(OriginLine({.pid = 12,
                        .python_version = "3.13.0",
                        .host = "h",
                        .pystrobe_version = "0.1.0",
                        .pause_mode = "preempt"}),
            "pystrobe 0.1.0, Python 3.13.0, process 12 on h, pause preempt");
}

TEST(QualityLineTest, TellsOfSignals) {
  const Metadata metadata{.pause_mode = std::string(kBySignals), .wanted_rate_hz = 1000};
  Quality quality;
  quality.deadlines = quality.taken = quality.proved = 500;
  quality.cpu_ns = 2'000'000'000;
  quality.duration_ns = 4'000'000'000;
  quality.held_ns = 20'000'000;
  quality.own_cpu_ns = 40'000'000;
  quality.achieved_rate_hz = quality.final_rate_hz = 250;
  quality.cpu_source = "CPU timer";
  quality.pause_mode = kBySignals;
  quality.complete = true;
  EXPECT_EQ(
      QualityLine(metadata, quality),
      "good; 500 samples, 250 a second of CPU time (1,000 wanted; no more can be had) by CPU "
      "timer; all proved exact; 0 lost; its handlers took 20.0 ms (1.0 % of the CPU time); own "
      "CPU 1.0 %");
}

TEST(QualityLine, OfTracedCallsHasNoRateAndNoDoubt) {
  Metadata metadata;
  metadata.pause_mode = kByTracing;
  Quality quality;
  quality.taken = quality.proved = 12345;
  quality.cpu_source = "sys.monitoring";
  quality.complete = true;
  EXPECT_EQ(QualityLine(metadata, quality),
            "every call of Python traced, 12,345 calls, by sys.monitoring");
}

TEST(QualityLine, OfTracedCallsTellsWhatWasTooDeep) {
  Metadata metadata;
  metadata.pause_mode = kByTracing;
  metadata.max_depth = 3;
  Quality quality;
  quality.taken = quality.proved = 100;
  quality.cpu_source = "sys.monitoring";
  quality.complete = true;
  quality.thread_ns = 1'000'000;
  EXPECT_EQ(QualityLine(metadata, quality),
            "every call of Python down to a depth of 3 traced, 100 calls, by sys.monitoring; none "
            "was deeper");
  quality.left_out = 300;
  quality.held_ns = 40'000;
  EXPECT_EQ(QualityLine(metadata, quality),
            "every call of Python down to a depth of 3 traced, 100 calls, by sys.monitoring; 300 "
            "deeper calls left out, their time is that of the caller at this depth; that took "
            "at most about 100 ns a call, 40.0 us or 4.0 % of the threads' time");
  quality.complete = false;
  EXPECT_EQ(QualityLine(metadata, quality),
            "cut off: the calls of Python down to a depth of 3 until then, without CPU time; a "
            "generator's as often as it went on");
}

Quality OfCallsThatTook(std::chrono::nanoseconds held, std::chrono::nanoseconds wall,
                        std::chrono::nanoseconds cpu) {
  Quality quality;
  quality.taken = quality.proved = 1000;
  quality.cpu_source = "sys.monitoring";
  quality.complete = true;
  quality.held_ns = held.count();
  quality.thread_ns = static_cast<uint64_t>(wall.count());
  quality.cpu_ns = static_cast<uint64_t>(cpu.count());
  return quality;
}

TEST(QualityLine, OfTracedCallsHasTheirCostByEitherTime) {
  using namespace std::chrono_literals;
  Metadata metadata;
  metadata.pause_mode = kByTracing;
  EXPECT_THAT(QualityLine(metadata, OfCallsThatTook(1ms, 8ms, 2ms)),
              EndsWith("1.00 us a call, 1.00 ms or 12.5 % of the threads' elapsed time and 50.0 % "
                       "of their CPU time"));
  EXPECT_THAT(QualityLine(metadata, OfCallsThatTook(1ms, 8ms, 8ms)),
              EndsWith("1.00 ms or 12.5 % of the threads' time"));
  Quality of_more = OfCallsThatTook(3ms, 8ms, 8ms);
  of_more.uncounted = 2000;
  EXPECT_THAT(QualityLine(metadata, of_more),
              EndsWith("; that took about 1.00 us a call, with 2,000 that are not counted (of "
                       "functions left out or of C, or a generator's steps) 3.00 ms or 37.5 % of "
                       "the threads' time"));
  // An estimate may come to more than there is.
  EXPECT_THAT(QualityLine(metadata, OfCallsThatTook(4ms, 8ms, 2ms)),
              EndsWith("4.00 ms or 50.0 % of the threads' time"));
}

TEST(QualityLine, OfATimelineThatEndsTellsWhen) {
  Metadata metadata;
  metadata.pause_mode = kByTracing;
  Quality quality = OfCallsThatTook({}, {}, {});
  quality.timeline_failure = "writing a.strobe: No space left on device";
  quality.timeline_end_ns = 12'300'000;
  EXPECT_EQ(QualityLine(metadata, quality),
            "every call of Python traced, 1,000 calls, by sys.monitoring; the timeline is whole "
            "up to 12.3 ms and ends then: writing a.strobe: No space left on device");
  quality.timeline_end_ns = 0;
  EXPECT_THAT(QualityLine(metadata, quality),
              EndsWith("; there is no timeline: writing a.strobe: No space left on device"));
}

}  // namespace
}  // namespace pystrobe::write
