// SPDX-License-Identifier: Apache-2.0
#include "cli/dump_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "profiler/print/text.h"

namespace pystrobe::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

remote::Dump MakeDump() {
  remote::Dump dump;
  dump.target.pid = 4711;
  dump.target.command = {"/usr/bin/python3", "app.py"};
  dump.target.layout.version = {.major = 3, .minor = 13, .micro = 0};
  remote::DumpThread thread;
  thread.tid = 4711;
  thread.name = "MainThread";
  thread.holds_gil = true;
  thread.state = 'R';
  thread.proved = thread.complete = true;
  thread.frames = {
      {.function = "work", .file = "/srv/app.py", .line = 12, .is_native = false, .locals = {}},
      {.function = "main", .file = "/srv/app.py", .line = 3, .is_native = false, .locals = {}}};
  dump.threads = {thread};
  return dump;
}

TEST(DumpText, MostRecentCallFirst) {
  EXPECT_EQ(DumpText(MakeDump(), {}),
            "python3 app.py, pid 4711, Python 3.13.0; most recent call first\n"
            "\n"
            "Thread 4711 \"MainThread\" running, holds the GIL\n"
            "    work  /srv/app.py:12\n"
            "    main  /srv/app.py:3\n");
}

TEST(DumpText, TellsWhatIsDoubtful) {
  auto dump = MakeDump();
  dump.threads[0].proved = dump.threads[0].complete = dump.threads[0].holds_gil = false;
  dump.threads[0].state = 'S';
  dump.threads[0].interpreter = 2;
  EXPECT_THAT(DumpText(dump, {}),
              HasSubstr("waiting, interpreter 2, stack incomplete, not proved exact\n"));
}

TEST(DumpText, FoldsRecursion) {
  auto dump = MakeDump();
  const remote::DumpFrame fib{
      .function = "fib", .file = "f.py", .line = 2, .is_native = false, .locals = {}};
  dump.threads[0].frames.assign(1500, fib);
  EXPECT_THAT(DumpText(dump, {}),
              HasSubstr("    fib  f.py:2\n    (the same line 1,499 more times)"));
  dump.threads[0].frames.assign(3, fib);
  EXPECT_THAT(DumpText(dump, {}), Not(HasSubstr("more times")));
}

TEST(DumpText, FitsTheTerminal) {
  auto dump = MakeDump();
  dump.threads[0].frames[0].function = "Outer.method.<locals>.inner.<locals>.the_function";
  dump.threads[0].frames[1].file = "/srv/a/long/way/down/to/the/directory/of/the/module/app.py";
  const std::string text = DumpText(dump, {.is_terminal = true, .width = 80});
  EXPECT_THAT(text, HasSubstr("    Outer.method.inner.the_function        /srv/app.py:12\n"
                              "    main                                   "));
  EXPECT_THAT(text, HasSubstr("…/directory/of/the/module/app.py:3\n"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    EXPECT_LE(print::DisplayWidth(line), 80) << line;
  const std::string whole = DumpText(dump, {.width = 80});
  EXPECT_THAT(whole, HasSubstr("    Outer.method.<locals>.inner.<locals>.the_function  /srv/app"));
  EXPECT_THAT(whole, HasSubstr("  /srv/a/long/way/down/to/the/directory/of/the/module/app.py:3\n"));
}

TEST(DumpText, LocalsStandBelowTheirFrame) {
  auto dump = MakeDump();
  dump.threads[0].frames[0].locals = {{"key", "'a\x1b[2Jb'", true}, {"n", "3", false}};
  EXPECT_THAT(DumpText(dump, {}),
              HasSubstr("app.py:12\n        key = 'a\\x1b[2Jb'\n        n = 3\n"));
}

TEST(DumpText, NoFrames) {
  auto dump = MakeDump();
  dump.threads[0].frames.clear();
  EXPECT_THAT(DumpText(dump, {}), HasSubstr("(no Python frames)"));
}

TEST(DumpText, OfAThreadWithoutPython) {
  auto dump = MakeDump();
  dump.threads[0].has_python = dump.threads[0].native_whole = dump.threads[0].holds_gil = false;
  dump.threads[0].frames = {
      {.function = "work", .file = "/l/libw.so", .line = 0, .is_native = true, .locals = {}}};
  EXPECT_THAT(DumpText(dump, {}),
              HasSubstr("\"MainThread\" running, native frames cut\n    work  /l/libw.so\n"));
  dump.threads[0].frames.clear();
  EXPECT_THAT(DumpText(dump, {}), HasSubstr("    (no frames)\n"));
}

TEST(DumpJson, IsOneObject) {
  auto dump = MakeDump();
  dump.threads[0].frames[0].locals = {{"q\"", "'\\n\xff'", true}};
  EXPECT_EQ(DumpJson(dump, false),
            R"({"pid":4711,"python":"3.13.0","free_threaded":false,)"
            R"("command":["/usr/bin/python3","app.py"],"held_ns":0,"threads":[{"tid":4711,)"
            R"("name":"MainThread","interpreter":0,"state":"R","holds_gil":true,"proved":true,)"
            R"("complete":true,"native_whole":true,"frames":[)"
            R"({"function":"work","file":"/srv/app.py","line":12,"native":false},)"
            R"({"function":"main","file":"/srv/app.py","line":3,"native":false}]}]})"
            "\n");
  EXPECT_THAT(DumpJson(dump, true),
              HasSubstr("\"locals\":{\"q\\\"\":{\"value\":\"'\\\\n\uFFFD'\",\"argument\":true}}"));
}

}  // namespace
}  // namespace pystrobe::cli
