// SPDX-License-Identifier: Apache-2.0
//
// What a GPU did, in each format; pprof's is in pprof_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/write/writing.h"

namespace pystrobe::write {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::MemoryRecording;
using ::testing::Not;
using testing::WrittenExample;

const FoldOptions kGpuAlone{.work = Work::kGpu};
constexpr Mode kGpu = Mode::kGpu;

TEST(GpuFormats, CollapsedHasTheKernelOnItsLaunch) {
  const std::string text =
      WrittenExample(WriteCollapsed, "gpu", {.mode = kGpu, .unit = Unit::kNanoseconds}, kGpuAlone);
  EXPECT_EQ(text,
            "GPU 0 stream 7;<module> (app.py:30);train (app.py:12);step (app.py:5);gemm<float, "
            "128> (<gpu>) 611100000\n"
            "GPU 0 stream 7;<module> (app.py:30);train (app.py:12);step (app.py:5);relu (<gpu>) "
            "2001000\n"
            "GPU 0 stream 7;set (<gpu>) 4000\n"
            "GPU 0 stream 13;<module> (app.py:30);train (app.py:11);load (app.py:20);copy to the "
            "device (<gpu>) 10500000\n");
  EXPECT_THAT(WrittenExample(WriteCollapsed, "gpu", {.mode = kGpu}, kGpuAlone),
              HasSubstr("gemm<float, 128> (<gpu>) 1100\n"));
  EXPECT_THAT(WrittenExample(WriteCollapsed, "gpu"), Not(HasSubstr("gpu")));
}

TEST(GpuFormats, SpeedscopeHasAProfileForEachStream) {
  const std::string text = WrittenExample(WriteSpeedscope, "gpu", {.mode = kGpu}, kGpuAlone);
  EXPECT_THAT(text, HasSubstr(R"("name":"GPU 0 stream 7","unit":"nanoseconds","startValue":0,)"
                              R"("endValue":613105000,)"
                              "\n"
                              R"("samples":[[0,1,2,4],[0,1,2,5],[7]],)"
                              "\n"
                              R"("weights":[611100000,2001000,4000])"));
  EXPECT_THAT(text, AllOf(HasSubstr(R"("name":"GPU 0 stream 13")"),
                          HasSubstr(R"({"name":"relu","file":"<gpu>"})"),
                          HasSubstr(". GPU: fair (times missing); ")));
  EXPECT_THAT(WrittenExample(WriteSpeedscope, "gpu"), Not(HasSubstr("relu")));
}

TEST(GpuFormats, ThePageHasStreamsBesideThreads) {
  const FoldOptions both{.work = Work::kBoth};
  const std::string text = WrittenExample(WriteHtml, "gpu", {.mode = kGpu}, both);
  EXPECT_THAT(text, HasSubstr(R"("mode":"gpu")"));
  EXPECT_THAT(text, HasSubstr(R"("gpu":true})"));
  EXPECT_THAT(text, HasSubstr(R"("name":"MainThread","idle":false,"stack":[3],"samples":[1000])"));
  EXPECT_THAT(text, HasSubstr(R"("name":"GPU 0 stream 7","idle":false,"stack":[6,1,2],)"
                              R"("stream":true,"gpu":[611100,2001,4],"gpuWorks":[1100,1000,4]})"));
  const std::string without = WrittenExample(WriteHtml, "shop", {}, both);
  EXPECT_THAT(without, AllOf(HasSubstr(R"("gpu":false})"), Not(HasSubstr(R"("stream":true)"))));
}

TEST(GpuFormats, JsonHasASectionInEveryMode) {
  for (const FoldOptions& fold : {FoldOptions{}, kGpuAlone}) {
    const std::string text = WrittenExample(WriteJson, "gpu", {}, fold);
    EXPECT_THAT(text,
                HasSubstr(R"("gpu":{)"
                          "\n"
                          R"("quality":{"line":"fair (times missing); 2,114 works recorded)"));
    EXPECT_THAT(
        text, HasSubstr(R"("devices":[{"number":0,"name":"NVIDIA H100","multiprocessors":132}])"));
    EXPECT_THAT(
        text,
        HasSubstr(R"({"kind":"copy","name":"copy to the device","short_name":)"
                  R"("copy to the device","label":"copy to the device","count":10,"untimed":0,)"
                  R"("total_ns":10500000,"min_ns":1000000,"max_ns":1500000,)"
                  R"("mean_ns":1050000,"median_at_least_ns":1000000,)"
                  R"("median_at_most_ns":1048575,"bytes":671088640,)"));
    EXPECT_THAT(text, HasSubstr(R"("occupancy":{"blocks_per_multiprocessor":4,"theoretical":0.5,)"
                                R"("waves":0.5,"tail_efficiency":0.5},"advice":"the grid)"));
    EXPECT_THAT(text, HasSubstr(R"({"frames":[],"kernel":4,"device":0,"stream":7,"count":3,)"));
    EXPECT_EQ(text.find(R"("gpu_ns":)") != text.npos, fold.work == Work::kGpu);
  }
  EXPECT_THAT(WrittenExample(WriteJson, "shop"), Not(HasSubstr("gpu")));
  EXPECT_THAT(WrittenExample(WriteJson, "gpu alone", {.mode = kGpu}, kGpuAlone),
              HasSubstr(R"(told by CUPTI 13.0, driver for CUDA 13.0","complete":true)"));
}

TEST(GpuFormats, ThoseOfCallsHaveNoneOfIt) {
  MemoryRecording recording;
  ASSERT_TRUE(FillExample("gpu", recording));
  recording.mutable_metadata().pause_mode = kByTracing;
  recording.mutable_metadata().timeline = true;
  const auto profile = Fold(recording, kGpuAlone);
  ASSERT_TRUE(profile);
  for (const Format format :
       {Format::kPstats, Format::kCallgrind, Format::kTraceEvents, Format::kPerfetto}) {
    testing::StringOutput output;
    const auto refused = Write(format, *profile, {.mode = kGpu}, output);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("no work of a GPU"));
    EXPECT_EQ(output.text, "");
  }
}

TEST(GpuFormats, AreFoldedWithAllThatTheyShow) {
  MemoryRecording gpu, shop;
  ASSERT_TRUE(FillExample("gpu", gpu) && FillExample("shop", shop));
  EXPECT_EQ(FoldOptionsFor(Format::kPprof, gpu, {}).work, Work::kBoth);
  EXPECT_EQ(FoldOptionsFor(Format::kHtml, gpu, kGpuAlone).work, Work::kBoth);
  EXPECT_EQ(FoldOptionsFor(Format::kPprof, shop, {}), FoldOptions{});
  EXPECT_EQ(FoldOptionsFor(Format::kJson, gpu, kGpuAlone), kGpuAlone);
  EXPECT_EQ(FoldOptionsFor(Format::kHtml, gpu, {.thread = "stream", .work = Work::kGpu}).work,
            Work::kGpu);
  EXPECT_TRUE(FoldOptionsFor(Format::kHtml, shop, {}).include_idle);
}

}  // namespace
}  // namespace pystrobe::write
