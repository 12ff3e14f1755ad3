// SPDX-License-Identifier: Apache-2.0
#include "profiler/model/gpu_translation.h"

#include <gtest/gtest.h>

#include "tests/cpp/support/gpu_example.h"
#include "tests/cpp/support/range_example.h"

namespace pystrobe {
namespace {

using testing::MakeGpuExample;
using testing::MakeStack;

TEST(TranslateGpu, FindsWhatIsThereAndAddsWhatIsNot) {
  Tables from;
  MakeStack(from, {{"unused", 3, "unused.py"}});
  const GpuRecord record = MakeGpuExample(from);
  Tables to;
  to.Intern("something else");
  const StackId train = MakeStack(to, {{"<module>", 30}, {"train", 12}});
  const GpuRecord there = TranslateGpu(record, from, to);
  EXPECT_EQ(to.stack(there.sums[0].stack).parent, train);
  EXPECT_EQ(there.sums[4].stack, kEmptyStack);
  EXPECT_EQ(to.text(there.quality.source), "CUPTI 13.0, driver for CUDA 13.0");
  EXPECT_EQ(to.text(there.sums[0].advice), from.text(record.sums[0].advice));
  EXPECT_EQ(to.text(there.kernels[0].short_name), "gemm<float, 128>");
  EXPECT_NE(there, record) << "ids are others";
  EXPECT_EQ(TranslateGpu(there, to, from), record) << "and back";
  EXPECT_EQ(to.stack_count(), from.stack_count() - 1) << "without what is not used";
}

TEST(TranslateRanges, ChangesNamesAlone) {
  Tables from;
  MakeStack(from, {{"unused", 3, "unused.py"}});
  const RangeRecord record = testing::MakeRangeExample(from, 1'000, 4242);
  Tables to;
  const RangeRecord there = TranslateRanges(record, from, to);
  EXPECT_EQ(to.text(there.ranges[1].name), "forward");
  EXPECT_EQ(to.text(there.ranges[3].domain), "NCCL");
  EXPECT_NE(there, record) << "ids are others";
  EXPECT_EQ(TranslateRanges(there, to, from), record) << "and back";
  EXPECT_EQ(to.stack_count(), 1) << "without what is not used";
}

TEST(TablesFollow, TakesWhatIsNewALittleAtATime) {
  Tables tables, copy;
  const auto push = [&](StackId stack, const char* name, uint32_t line) {
    const Function function{tables.Intern(name), tables.Intern("app.py"), line};
    return tables.Push(stack, tables.Intern(Frame{tables.Intern(function), line}));
  };
  StackId top = push(push(kEmptyStack, "main", 1), "work", 2);
  int turns = 0;
  while (!copy.Follow(tables, 3)) ++turns;
  EXPECT_GE(turns, 2);
  top = push(push(top, "more", 3), "main", 1);
  ASSERT_TRUE(copy.Follow(tables, 100));
  EXPECT_EQ(copy.stack_count(), tables.stack_count());
  EXPECT_EQ(copy.FramesOf(top), tables.FramesOf(top));
  for (const FrameId frame : tables.FramesOf(top)) {
    const auto name_in = [&](const Tables& in) {
      return in.text(in.function(in.frame(frame).function).name);
    };
    EXPECT_EQ(name_in(copy), name_in(tables));
  }
  EXPECT_TRUE(copy.Follow(tables, 1)) << "there is no more";
}

TEST(TablesCopy, HasTheSameIdsAndGrowsByItself) {
  Tables tables;
  MakeGpuExample(tables);
  testing::MakeThread(tables, 5, "MainThread");
  Tables copy = tables.Copy();
  EXPECT_EQ(copy.stack_count(), tables.stack_count());
  EXPECT_EQ(copy.string_count(), tables.string_count());
  EXPECT_EQ(MakeGpuExample(copy), MakeGpuExample(tables));
  EXPECT_EQ(copy.thread(ThreadIndex{0}), tables.thread(ThreadIndex{0}));
  MakeStack(copy, {{"new"}});
  EXPECT_EQ(copy.stack_count(), tables.stack_count() + 1);
}

}  // namespace
}  // namespace pystrobe
