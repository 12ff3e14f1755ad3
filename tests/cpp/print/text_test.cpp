// SPDX-License-Identifier: Apache-2.0
#include "profiler/print/text.h"

#include <gtest/gtest.h>

namespace pystrobe::print {
namespace {

TEST(Printable, KeepsText) { EXPECT_EQ(Printable("fib größe 関数 🐍"), "fib größe 関数 🐍"); }

TEST(Printable, DisarmsControlCharacters) {
  EXPECT_EQ(Printable("a\x1b[31mb\n\x7f"), "a\\x1b[31mb\\x0a\\x7f");
  EXPECT_EQ(Printable("\xc2\x9b"), "\\x9b");            // C1: another way to say ESC [
  EXPECT_EQ(Printable("x\xe2\x80\xaey"), "x\\u202ey");  // right-to-left override
  EXPECT_EQ(Printable(std::string_view("a\0b", 3)), "a\\x00b");
}

TEST(Printable, ReplacesWhatIsNoUtf8) {
  EXPECT_EQ(Printable("a\xff"), "a\uFFFD");
  EXPECT_EQ(Printable("\xc0\x80"), "\uFFFD\uFFFD");            // overlong
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD");  // a surrogate
  EXPECT_EQ(Printable("\xe2\x82"), "\uFFFD\uFFFD");            // cut off
}

TEST(DisplayWidth, CountsCells) {
  EXPECT_EQ(DisplayWidth("fib"), 3);
  EXPECT_EQ(DisplayWidth("größe"), 5);
  EXPECT_EQ(DisplayWidth("e\u0301"), 1);
  EXPECT_EQ(DisplayWidth("関数"), 4);
  EXPECT_EQ(DisplayWidth("🐍"), 2);
}

TEST(CutEnd, NeverSplitsACharacter) {
  EXPECT_EQ(CutEnd("function", 8, "…"), "function");
  EXPECT_EQ(CutEnd("function", 5, "…"), "func…");
  EXPECT_EQ(CutEnd("function", 5, "..."), "fu...");
  EXPECT_EQ(CutEnd("関数関数", 6, "…"), "関数…");
  EXPECT_EQ(CutEnd("関数関数", 4, "…"), "関…");
  for (int width = 1; width < 12; ++width) {
    EXPECT_LE(DisplayWidth(CutEnd("e\u0301関x🐍größe", width, "…")), width);
  }
}

TEST(CutQualifiedName, DropsLocalsBeforeWhatItIsIn) {
  constexpr std::string_view kName = "Cache.get.<locals>.load.<locals>.<listcomp>";
  EXPECT_EQ(CutQualifiedName(kName, 43, "…"), kName);
  EXPECT_EQ(CutQualifiedName(kName, 34, "…"), "Cache.get.load.<locals>.<listcomp>");
  EXPECT_EQ(CutQualifiedName(kName, 25, "…"), "Cache.get.load.<listcomp>");
  EXPECT_EQ(CutQualifiedName(kName, 24, "…"), "…get.load.<listcomp>");
  EXPECT_EQ(CutQualifiedName(kName, 19, "…"), "…load.<listcomp>");
  EXPECT_EQ(CutQualifiedName(kName, 11, "…"), "…<listcomp>");
  EXPECT_EQ(CutQualifiedName(kName, 6, "…"), "…comp>");
  EXPECT_EQ(CutQualifiedName(kName, 19, "..."), "...load.<listcomp>");
}

TEST(CutNativeName, DropsTemplateArgumentsBeforeItsStart) {
  EXPECT_EQ(CutNativeName("ns::f<int>", 20, "…"), "ns::f<int>");
  EXPECT_EQ(CutNativeName("ns::c<a<int>, b>::f<int>", 20, "…"), "ns::c::f");
  EXPECT_EQ(CutNativeName("ns::c<a<int>, b>::f<int>", 6, "…"), "…:c::f");
  EXPECT_EQ(CutNativeName("ns::c<a->b, d>::operator<", 20, "…"), "ns::c::operator<");
}

TEST(CutNativeName, OfAPlaceInAFileKeepsTheFileAsAPersonKnowsIt) {
  EXPECT_EQ(CutNativeName("_umath.cpython-311-x86_64-linux-gnu.so+0xde740", 24, "…"),
            "_umath+0xde740");
  EXPECT_EQ(CutNativeName("libz.so.1.2.13+0x5d80", 13, "…"), "libz+0x5d80");
  EXPECT_EQ(CutNativeName("libz.so.1.2.13+0x5d80", 8, "…"), "…+0x5d80");
  EXPECT_EQ(CutNativeName("tool+0x5d80", 9, "…"), "…l+0x5d80");
}

TEST(CutStart, KeepsTheEnd) {
  EXPECT_EQ(CutStart("/a/b/c.py", 6, "…"), "…/c.py");
  EXPECT_EQ(CutStart("関数.py", 5, "…"), "….py");
  for (int width = 4; width < 12; ++width) {
    EXPECT_LE(DisplayWidth(CutStart("e\u0301関x🐍größe", width, "...")), width);
  }
}

TEST(CutPath, PrefersWholeDirectories) {
  EXPECT_EQ(CutPath("/srv/app/web/views.py:12", 40, "…"), "/srv/app/web/views.py:12");
  EXPECT_EQ(CutPath("/srv/app/web/views.py:12", 20, "…"), "…/web/views.py:12");
  EXPECT_EQ(CutPath("/srv/app/web/views.py:12", 15, "…"), "…/views.py:12");
  EXPECT_EQ(CutPath("/srv/app/web/views.py:12", 8, "…"), "…s.py:12");
}

TEST(Pad, CountsCells) {
  EXPECT_EQ(PadRight("関", 4), "関  ");
  EXPECT_EQ(PadLeft("関", 4), "  関");
  EXPECT_EQ(PadRight("long", 2), "long");
}

TEST(Wrap, BreaksAtSpaces) {
  EXPECT_EQ(Wrap("one two three", 7, 2), "one two\n  three\n");
  EXPECT_EQ(Wrap("one two three", 80, 2), "one two three\n");
  EXPECT_EQ(Wrap("averyverylongword x", 5, 1), "averyverylongword\n x\n");
  EXPECT_EQ(Wrap("one two", 9, 4, 4), "one\n    two\n");
  EXPECT_EQ(Wrap("", 5, 1), "\n");
  EXPECT_EQ(Wrap("held 3.1 % of it", 9, 2), "held\n  3.1 %\n  of it\n");
}

TEST(CommandText, NamesTheProgramBriefly) {
  EXPECT_EQ(CommandText({"/usr/bin/python3", "/srv/app.py", "-x"}, "/usr/bin/python3.11", "…"),
            "python3 /srv/app.py -x");
  EXPECT_EQ(CommandText({}, "/usr/bin/uwsgi", "…"), "uwsgi");
  EXPECT_EQ(CommandText({"a\nb"}, "", "…"), "a\\x0ab");
  EXPECT_EQ(CommandText({"python3", "-c", "import a\nb()\n", "-v"}, "", "..."),
            "python3 -c import a... -v");
}

TEST(ShortPath, DropsWhatEverybodyKnows) {
  EXPECT_EQ(ShortPath("/v/lib/python3.12/site-packages/flask/app.py", ""), "flask/app.py");
  EXPECT_EQ(ShortPath("/usr/lib/python3/dist-packages/apt/cache.py", ""), "apt/cache.py");
  EXPECT_EQ(ShortPath("/usr/lib/python3.11/json/decoder.py", ""), "json/decoder.py");
  EXPECT_EQ(ShortPath("/srv/app/web/views.py", "/srv/app"), "web/views.py");
  EXPECT_EQ(ShortPath("/srv/application/views.py", "/srv/app"), "/srv/application/views.py");
  EXPECT_EQ(ShortPath("/views.py", "/"), "/views.py");
  EXPECT_EQ(ShortPath("<frozen importlib._bootstrap>", "/srv"), "<frozen importlib._bootstrap>");
}

TEST(IsProgramsOwn, WhatHasNoFileIsNot) {
  EXPECT_TRUE(IsProgramsOwn("/srv/app/main.py"));
  EXPECT_FALSE(IsProgramsOwn("/usr/lib/python3.11/threading.py"));
  EXPECT_FALSE(IsProgramsOwn("<frozen importlib._bootstrap>"));
  EXPECT_FALSE(IsProgramsOwn("")) << "<incomplete stack>, <code object gone>";
}

}  // namespace
}  // namespace pystrobe::print
