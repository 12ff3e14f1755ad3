// SPDX-License-Identifier: Apache-2.0
#include "profiler/model/tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pystrobe {
namespace {

FrameId MakeFrame(Tables& tables, std::string_view name, uint32_t line) {
  FunctionId function = tables.Intern(Function{tables.Intern(name), tables.Intern("f.py"), 1});
  return tables.Intern(Frame{function, line});
}

TEST(Tables, EmptyStringIsIdZero) {
  Tables tables;
  EXPECT_EQ(tables.Intern(""), kEmptyString);
  EXPECT_EQ(tables.string_count(), 1U);
}

TEST(Tables, EqualDefinitionsShareAnId) {
  Tables tables;
  FrameId a = MakeFrame(tables, "a", 1);
  EXPECT_EQ(MakeFrame(tables, "a", 1), a);
  EXPECT_NE(MakeFrame(tables, "a", 2), a);
  EXPECT_EQ(tables.function_count(), 1U);
  EXPECT_EQ(tables.frame_count(), 2U);
}

TEST(Tables, StringsStayValidWhileTheTableGrows) {
  Tables tables;
  StringId first = tables.Intern("first");
  for (int i = 0; i < 10000; ++i) tables.Intern("s" + std::to_string(i));
  EXPECT_EQ(tables.Intern("first"), first);
  EXPECT_EQ(tables.text(first), "first");
}

TEST(Tables, AMonstrousTextIsCutBetweenCharacters) {
  Tables tables;
  std::string text = "x";
  while (text.size() <= Tables::kMostOfText) text += "δ";
  const StringId id = tables.Intern(text);
  const std::string cut = tables.text(id);
  EXPECT_LE(cut.size(), Tables::kMostOfText);
  EXPECT_EQ(cut.substr(cut.size() - 5), "δ...");
  EXPECT_EQ(tables.Intern(text), id);
  EXPECT_EQ(tables.Intern(cut), id);
}

TEST(Tables, StacksFormATreeFromTheRoot) {
  Tables tables;
  FrameId a = MakeFrame(tables, "a", 1);
  FrameId b = MakeFrame(tables, "b", 2);
  StackId a_b = tables.Push(tables.Push(kEmptyStack, a), b);
  EXPECT_EQ(tables.Push(tables.Push(kEmptyStack, a), b), a_b);
  EXPECT_NE(tables.Push(tables.Push(kEmptyStack, b), a), a_b);
  EXPECT_EQ(tables.FramesOf(a_b), (std::vector{a, b}));
  EXPECT_TRUE(tables.FramesOf(kEmptyStack).empty());
}

TEST(Tables, ThreadsThatChangeAreTold) {
  Tables tables;
  const ThreadIndex first = tables.AddThread({.tid = 7});
  const ThreadIndex second = tables.AddThread({.tid = 8});
  tables.RenameThread(first, tables.Intern("worker"));
  EXPECT_THAT(tables.thread_changes(), ::testing::ElementsAre(first, second, first));
  EXPECT_EQ(tables.text(tables.thread(first).name), "worker");
}

}  // namespace
}  // namespace pystrobe
