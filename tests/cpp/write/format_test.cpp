// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "profiler/write/writer.h"

namespace pystrobe::write {
namespace {

TEST(FormatTest, NamesGoBothWays) {
  for (const Format format :
       {Format::kStrobe, Format::kHtml, Format::kSpeedscope, Format::kPprof, Format::kCollapsed,
        Format::kJson, Format::kCallgrind, Format::kPstats}) {
    EXPECT_EQ(FormatByName(FormatName(format)), format);
  }
  EXPECT_EQ(FormatByName("HTML"), std::nullopt);
  EXPECT_EQ(FormatByName(""), std::nullopt);
}

// The others are of no use on a terminal.
TEST(FormatTest, WhichAreText) {
  for (const Format text : {Format::kHtml, Format::kSpeedscope, Format::kCollapsed, Format::kJson,
                            Format::kCallgrind, Format::kTraceEvents}) {
    EXPECT_FALSE(IsBinary(text)) << FormatName(text);
  }
  for (const Format binary :
       {Format::kStrobe, Format::kPprof, Format::kPstats, Format::kPerfetto}) {
    EXPECT_TRUE(IsBinary(binary)) << FormatName(binary);
  }
}

TEST(FormatTest, FileNamesDecide) {
  EXPECT_EQ(FormatByFileName("a.strobe"), Format::kStrobe);
  EXPECT_EQ(FormatByFileName("a.html"), Format::kHtml);
  EXPECT_EQ(FormatByFileName("a.speedscope.json"), Format::kSpeedscope);
  EXPECT_EQ(FormatByFileName("a.json"), Format::kJson);
  EXPECT_EQ(FormatByFileName("a.speedscope.x.json"), Format::kJson);
  EXPECT_EQ(FormatByFileName("/tmp/a.pb.gz"), Format::kPprof);
  EXPECT_EQ(FormatByFileName("a.pprof"), Format::kPprof);
  EXPECT_EQ(FormatByFileName("a.collapsed"), Format::kCollapsed);
  EXPECT_EQ(FormatByFileName("a.folded"), Format::kCollapsed);
  EXPECT_EQ(FormatByFileName("a.txt"), Format::kCollapsed);
  EXPECT_EQ(FormatByFileName("A.HTML"), Format::kHtml);
  EXPECT_EQ(FormatByFileName("a.callgrind"), Format::kCallgrind);
  EXPECT_EQ(FormatByFileName("a.pstats"), Format::kPstats);
  EXPECT_EQ(FormatByFileName("a.prof"), Format::kPstats);
}

TEST(FormatTest, ASuffixIsWhatTellsTheFormat) {
  using Parts = std::pair<std::string_view, std::string_view>;
  EXPECT_EQ(SplitSuffix("a.b/out.strobe"), Parts("a.b/out", ".strobe"));
  EXPECT_EQ(SplitSuffix("my.run.speedscope.json"), Parts("my.run", ".speedscope.json"));
  EXPECT_EQ(SplitSuffix("out.pb.gz"), Parts("out", ".pb.gz"));
  EXPECT_EQ(SplitSuffix("OUT.HTML"), Parts("OUT", ".HTML"));
  EXPECT_EQ(SplitSuffix("out.data"), Parts("out", ".data"));
  EXPECT_EQ(SplitSuffix("a.b/out"), Parts("a.b/out", ""));
  EXPECT_EQ(SplitSuffix("a.b/.hidden"), Parts("a.b/.hidden", ""));
}

TEST(FormatTest, OtherFileNamesDoNot) {
  for (const char* name : {"", "a", "a.gz", "a.pb", "html", "a.html.bak", "a.strobe/", "json"}) {
    EXPECT_EQ(FormatByFileName(name), std::nullopt) << name;
  }
}

TEST(FormatTest, HowToOpenIsOneLineThatAShellTakes) {
  EXPECT_EQ(HowToOpen(Format::kPprof, "a.pb.gz"), "go tool pprof -http=: a.pb.gz");
  EXPECT_EQ(HowToOpen(Format::kPprof, "it's; mine"), R"(go tool pprof -http=: 'it'\''s; mine')");
  EXPECT_EQ(HowToOpen(Format::kStrobe, ""), "pystrobe report '' -o report.html");
  for (const Format format :
       {Format::kStrobe, Format::kHtml, Format::kSpeedscope, Format::kPprof, Format::kCollapsed,
        Format::kJson, Format::kCallgrind, Format::kPstats}) {
    const std::string line = HowToOpen(format, "out/file");
    EXPECT_NE(line.find("out/file"), std::string::npos) << line;
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  }
}

TEST(FormatTest, SizeIsToldOfLargeFiles) {
  EXPECT_EQ(SizeNote(Format::kTraceEvents, 99'999'999), "");
  EXPECT_EQ(SizeNote(Format::kPerfetto, 123'456'789), " (123 MB)");
  EXPECT_EQ(SizeNote(Format::kTraceEvents, 1'391'000'000),
            " (1.39 GB; as .perfetto-trace it is a third of that)");
}

}  // namespace
}  // namespace pystrobe::write
