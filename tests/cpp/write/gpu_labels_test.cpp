// SPDX-License-Identifier: Apache-2.0
#include "profiler/write/gpu_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/support/gpu_example.h"

namespace pystrobe::write {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::MemoryRecording;
using ::testing::Not;
using ::testing::StartsWith;

class GpuLabelsTest : public ::testing::Test {
 protected:
  GpuLabelsTest() {
    record_ = testing::MakeGpuExample(recording_.mutable_tables());
    record_.sums[4].untimed = 0;
  }

  std::string Line() {
    recording_.SetGpu(record_);
    return GpuQualityLine(record_, recording_.tables());
  }

  MemoryRecording recording_;
  GpuRecord record_;
};

TEST_F(GpuLabelsTest, SummaryNamesKindsThatThereAre) {
  recording_.SetGpu(record_);
  EXPECT_EQ(GpuSummary(MakeGpuTable(recording_)),
            "613 ms in 2,100 kernels, 10.5 ms in 10 copies, 4.00 us in 3 sets");
  record_.sums.resize(1);
  record_.sums[0].count = 1;
  recording_.SetGpu(record_);
  EXPECT_EQ(GpuSummary(MakeGpuTable(recording_)), "601 ms in 1 kernel");
  record_.sums.clear();
  recording_.SetGpu(record_);
  EXPECT_EQ(GpuSummary(MakeGpuTable(recording_)), "nothing");
}

TEST_F(GpuLabelsTest, AllIsWellWhereRecordsAreAsManyAsLaunches) {
  EXPECT_EQ(Line(),
            "good; 2,114 works recorded, of 2,114 launches; nothing is missing; own CPU 0.6 %; "
            "told by CUPTI 13.0, driver for CUDA 13.0");
  EXPECT_EQ(JudgeGpu(record_), Verdict::kGood);
}

TEST_F(GpuLabelsTest, WhatIsMissingIsTold) {
  record_.quality.records = 2'110;
  EXPECT_THAT(Line(), AllOf(StartsWith("fair (work missing); "), Not(HasSubstr("nothing is")),
                            HasSubstr("; 4 works were not recorded, and in no figure")));
  record_.quality.graph_launches = 3;
  EXPECT_THAT(Line(), HasSubstr("; at least 4 works"));
  record_.quality.records = 2'000;
  EXPECT_THAT(Line(), StartsWith("doubtful (work missing); "));
  EXPECT_EQ(JudgeGpu(record_), Verdict::kDoubtful);
  record_.quality.failed = 114;
  EXPECT_THAT(Line(), AllOf(StartsWith("good; "), HasSubstr("; 114 launches failed")));
}

TEST_F(GpuLabelsTest, LaunchesAreEnoughWhereNobodyAskedForMore) {
  GpuQuality& quality = record_.quality;
  quality.launches_only = true;
  quality.records = 0;
  for (GpuSum& sum : record_.sums) {
    sum = {.stack = sum.stack, .kernel = sum.kernel, .stream = GpuSum::kNoStream};
    sum.untimed = 1;
  }
  record_.sums[0].untimed = 2'114 + 3 - (record_.sums.size() - 1);
  quality.graph_launches = 3;
  EXPECT_THAT(Line(), StartsWith("good; 2,117 launches counted, and nobody asked what the device "
                                 "did; nothing is missing; own CPU"));
  EXPECT_THAT(GpuSummary(MakeGpuTable(recording_)),
              AllOf(HasSubstr(" kernels, "), EndsWith(" launched"), Not(HasSubstr(" in "))));
  ++quality.kernel_launches;
  EXPECT_THAT(Line(), AllOf(StartsWith("fair (launches missing)"),
                            HasSubstr("; 1 launch is in no figure")));
  record_.sums.clear();
  quality = {.launches_only = true};
  EXPECT_THAT(Line(), StartsWith("fair (nothing launched); 0 launches counted"));
}

TEST_F(GpuLabelsTest, WhatGraphsDidIsNoneOfTheLaunches) {
  record_.quality.graph_launches = 3;
  record_.quality.of_graphs = 120;
  record_.quality.records += 120;
  EXPECT_THAT(Line(), StartsWith("good; 2,234 works recorded, 2,114 of 2,114 launches and 120 of 3 "
                                 "graph launches; nothing is missing"));
  record_.quality.captured = 40;
  EXPECT_THAT(Line(), HasSubstr("2,114 of 2,074 launches"));
  record_.quality.kernel_launches += 41;
  EXPECT_THAT(Line(), AllOf(StartsWith("fair (work missing)"), HasSubstr("at least 1 work was")));
}

TEST_F(GpuLabelsTest, EachShortcomingIsTold) {
  record_.quality.dropped = 3;
  EXPECT_THAT(Line(), AllOf(StartsWith("fair"), HasSubstr("3 of them dropped")));
  record_.quality.dropped = 0;
  record_.quality.unmatched = 30;
  EXPECT_THAT(Line(), AllOf(StartsWith("doubtful (launches not seen)"),
                            HasSubstr("30 whose launch was not seen")));
  record_.quality.unmatched = 0;
  record_.quality.overflowed = 1'000;
  EXPECT_THAT(Line(), AllOf(StartsWith("fair (too much to tell apart)"),
                            HasSubstr("1,000 summed up together")));
  record_.quality.overflowed = 0;
  record_.sums[0].untimed = 2;
  EXPECT_THAT(Line(), AllOf(StartsWith("fair (times missing)"), HasSubstr("2 without times")));
  record_ = {};
  EXPECT_THAT(Line(), StartsWith("fair (nothing recorded); 0 works recorded, of 0 launches"));
}

TEST_F(GpuLabelsTest, StandBehindThoseOfSamples) {
  recording_.mutable_quality().complete = true;
  const std::string samples = QualityLine(recording_.metadata(), recording_.quality());
  EXPECT_EQ(WholeQualityLine(recording_), samples);
  EXPECT_EQ(JudgeWhole(recording_), Verdict::kFair);
  recording_.SetGpu(record_);
  EXPECT_EQ(WholeQualityLine(recording_), samples + ". GPU: " + Line());
  recording_.mutable_metadata().pause_mode = kOfGpu;
  EXPECT_EQ(WholeQualityLine(recording_), Line());
  EXPECT_EQ(JudgeWhole(recording_), Verdict::kGood);
  recording_.mutable_quality().complete = false;
  EXPECT_EQ(JudgeWhole(recording_), Verdict::kDoubtful) << "cut off";
}

}  // namespace
}  // namespace pystrobe::write
