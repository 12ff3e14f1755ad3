// SPDX-License-Identifier: Apache-2.0
//
// The profile inside the page, as text, and that the page around it stays a page. What a browser
// makes of it is tested in tests/python/test_html.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/write/writing.h"

namespace pystrobe::write {
namespace {

using ::testing::HasSubstr;
using testing::MakeStack;
using testing::MakeThread;
using testing::MemoryRecording;
using ::testing::Not;
using testing::Written;
using testing::WrittenExample;

constexpr std::string_view kProfileBegins = R"(<script type="application/json" id="profile">)";

size_t Count(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// The JSON in the page, as a browser would cut it out.
std::string ProfileIn(std::string_view page) {
  const size_t begin = page.find(kProfileBegins);
  if (begin == page.npos) return "no profile in the page";
  page.remove_prefix(begin + kProfileBegins.size());
  return std::string(page.substr(0, page.find("</script")));
}

TEST(HtmlTest, WritesStacksOnceAndEachThreadsWeightsOnThem) {
  MemoryRecording recording;
  Tables& tables = recording.mutable_tables();
  const ThreadIndex first = MakeThread(tables, 42, "main");
  const ThreadIndex second = MakeThread(tables, 43, "other");
  MakeStack(tables, {{"unused", 1, "unused.py"}});
  const StackId outer = MakeStack(tables, {{"outer", 3, "a.py", 1}});
  const StackId inner = MakeStack(tables, {{"outer", 3, "a.py", 1}, {"inner", 8, "b.py", 7}});
  recording.Add({.time_ns = 2'000'000,
                 .wall_ns = 2'000'000,
                 .cpu_ns = 700'000,
                 .thread = first,
                 .stack = inner,
                 .count = 2,
                 .flags = kSampleGil | kSampleOnCpu});
  recording.Add({.time_ns = 3'000'000, .wall_ns = 1'000'000, .thread = first, .stack = outer});
  recording.Add({.time_ns = 3'000'000, .wall_ns = 3'000'000, .thread = second, .stack = inner});
  const std::string profile = ProfileIn(Written(WriteHtml, recording, {.title = "T"}));
  EXPECT_THAT(profile,
              HasSubstr(R"("strings":["outer","a.py","inner","b.py"],)"
                        "\n"
                        R"("functions":{"name":[0,2],"file":[1,3],"line":[1,7],"native":[]},)"
                        "\n"
                        R"("frames":{"function":[0,1],"line":[3,8]},)"
                        "\n"
                        R"("stacks":{"up":[1,1],"frame":[0,1]},)"
                        "\n"
                        R"("threads":[)"
                        "\n"
                        R"({"tid":42,"interpreter":0,"name":"main","idle":false,)"
                        R"("stack":[1,1],"samples":[1,2],"cpuSamples":[0,2],)"
                        R"("gilSamples":[0,2],"wall":[1000,2000],"cpu":[0,700],)"
                        R"("gil":[0,2000]},)"
                        "\n"
                        R"({"tid":43,"interpreter":0,"name":"other","idle":true,)"
                        R"("stack":[2],"samples":[1],"wall":[3000]}])"));
}

TEST(HtmlTest, RoundingTakesNothingFromTheSum) {
  MemoryRecording recording;
  Tables& tables = recording.mutable_tables();
  const ThreadIndex thread = MakeThread(tables, 1, "main");
  for (const char* name : {"a", "b", "c", "d"}) {
    recording.Add(
        {.time_ns = 1, .wall_ns = 400, .thread = thread, .stack = MakeStack(tables, {{name}})});
  }
  // 0.4, 0.8, 1.2 and 1.6 us so far.
  EXPECT_THAT(ProfileIn(Written(WriteHtml, recording)), HasSubstr(R"("wall":[0,1,0,1])"));
}

TEST(HtmlTest, NoNameEndsTheScriptOrTheTitle) {
  const std::string empty = WrittenExample(WriteHtml, "empty");
  const std::string odd =
      WrittenExample(WriteHtml, "odd", {.title = "</title><script>alert(1)</script><!--&amp;"});
  // A <script> in the JSON opens nothing as long as no <!-- is before it.
  for (const char* part : {"</script", "<!--", "</title", "</style"}) {
    EXPECT_EQ(Count(odd, part), Count(empty, part)) << part;
  }
  EXPECT_THAT(odd,
              HasSubstr("<title>&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;&lt;!--&amp;amp;"
                        "</title>"));
}

TEST(HtmlTest, AnEmptyProfileIsAPageToo) {
  const std::string page = WrittenExample(WriteHtml, "empty");
  EXPECT_THAT(page, ::testing::StartsWith("<!doctype html>"));
  EXPECT_THAT(page, ::testing::EndsWith("</html>\n"));
  EXPECT_THAT(ProfileIn(page), HasSubstr(R"("strings":[],)"));
  EXPECT_THAT(ProfileIn(page), HasSubstr("\"threads\":[],\n\"lists\":[]\n}"));
}

TEST(HtmlTest, ThePageIsWholeAndNeedsNothingElse) {
  const std::string page = WrittenExample(WriteHtml, "shop");
  for (const char* mark : {"{{title}}", "{{profile}}", "{{style}}", "{{script}}"}) {
    EXPECT_THAT(page, Not(HasSubstr(mark)));
  }
  for (const char* reference : {"http://", "https://", "src=", "@import", "url("}) {
    EXPECT_THAT(page, Not(HasSubstr(reference)));
  }
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
}

TEST(HtmlTest, ModeAndMetadataAreInThePage) {
  const std::string profile = ProfileIn(WrittenExample(WriteHtml, "shop", {.mode = Mode::kGil}));
  EXPECT_THAT(profile, HasSubstr(R"("title":"python3 shop.py --port 8000",)"));
  EXPECT_THAT(profile, HasSubstr(R"("mode":"gil")"));
  EXPECT_THAT(profile, HasSubstr(R"("pid":4242,)"));
  EXPECT_THAT(profile, HasSubstr(R"("range":{"since":0,"until":1000000})"));
}

}  // namespace
}  // namespace pystrobe::write
