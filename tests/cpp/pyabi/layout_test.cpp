// SPDX-License-Identifier: Apache-2.0
#include "sampler/pyabi/layout.h"

#include <gtest/gtest.h>

namespace pystrobe::pyabi {
namespace {

PyVersion Release(uint8_t minor, uint8_t micro) {
  return {.major = 3, .minor = minor, .micro = micro};
}

TEST(PyVersion, ReadsHex) {
  EXPECT_EQ(PyVersion::FromHex(0x030d00f0), Release(13, 0));
  EXPECT_EQ(PyVersion::FromHex(0x030d00f0).ToString(), "3.13.0");
  EXPECT_EQ(PyVersion::FromHex(0x030f00c1).ToString(), "3.15.0rc1");
  EXPECT_EQ(PyVersion::FromHex(0x030f00b4).ToString(), "3.15.0b4");
  EXPECT_EQ(PyVersion::FromHex(0x030f00a7).ToString(), "3.15.0a7");
}

TEST(PyVersion, OrdersPreReleasesBeforeTheRelease) {
  EXPECT_LT(PyVersion::FromHex(0x030f00c1), PyVersion::FromHex(0x030f00f0));
  EXPECT_LT(PyVersion::FromHex(0x030f00b4), PyVersion::FromHex(0x030f00c1));
  EXPECT_LT(PyVersion::FromHex(0x030800f0), PyVersion::FromHex(0x030a00f0));
}

TEST(LayoutFromTable, KnowsEveryReleaseWithoutDebugOffsets) {
  for (uint8_t minor = 8; minor <= 12; ++minor) {
    auto layout = LayoutFromTable(Release(minor, 1));
    ASSERT_TRUE(layout) << layout.error().message;
    EXPECT_EQ(layout->version, Release(minor, 1));
    EXPECT_EQ(layout->runtime.interpreters_head, minor < 11 ? 32U : 40U);
    EXPECT_EQ(layout->gil.locked, 16U);
    EXPECT_EQ(layout->runtime.gil == kAbsent, minor >= 12);
    EXPECT_EQ(layout->interpreter.ceval_gil == kAbsent, minor < 12);
    EXPECT_EQ(layout->thread.frame == kAbsent, minor >= 11);
    EXPECT_EQ(layout->thread.cframe == kAbsent, minor < 11);
    EXPECT_EQ(layout->frame.owner == kAbsent, minor < 11);
    EXPECT_EQ(layout->frame.code_tag_mask, 0U);
    EXPECT_FALSE(layout->free_threaded);
  }
}

TEST(LayoutFromTable, TellsTheStylesApart) {
  EXPECT_EQ(LayoutFromTable(Release(9, 18))->line_table_style, LineTableStyle::kLnotab);
  EXPECT_EQ(LayoutFromTable(Release(10, 13))->line_table_style, LineTableStyle::kLinetable);
  EXPECT_EQ(LayoutFromTable(Release(11, 7))->line_table_style, LineTableStyle::kLocations);
  EXPECT_EQ(LayoutFromTable(Release(10, 13))->frame_style, FrameStyle::kFrameObjects);
  EXPECT_EQ(LayoutFromTable(Release(11, 7))->frame_style, FrameStyle::kInterpreterFrames);
}

TEST(LayoutFromTable, RefusesWhatItDoesNotKnow) {
  for (PyVersion version : {Release(7, 9), Release(13, 0), PyVersion{.major = 2, .minor = 8},
                            PyVersion::FromHex(0x030c00b1)}) {
    auto layout = LayoutFromTable(version);
    ASSERT_FALSE(layout);
    EXPECT_EQ(layout.error().code, ErrorCode::kUnsupported);
    EXPECT_NE(layout.error().message.find(version.ToString()), std::string::npos);
  }
}

TEST(IsPythonFrame, TurnsAwayTheFramesOfTheInterpreterItself) {
  Layout v12 = *LayoutFromTable(Release(12, 1));
  for (uint8_t owner = 0; owner <= 2; ++owner) EXPECT_TRUE(IsPythonFrame(v12, owner));
  for (uint8_t owner = 3; owner < 255; ++owner) EXPECT_FALSE(IsPythonFrame(v12, owner));
  EXPECT_TRUE(IsPythonFrame(*LayoutFromTable(Release(8, 18)), 0));
}

}  // namespace
}  // namespace pystrobe::pyabi
