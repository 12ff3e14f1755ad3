// SPDX-License-Identifier: Apache-2.0
#include "sampler/signal/known_codes.h"

#include <gtest/gtest.h>

namespace pystrobe::signals {
namespace {

KnownCodes MakeCodes(size_t capacity) {
  auto codes = KnownCodes::Make(capacity);
  EXPECT_TRUE(codes);
  return *std::move(codes);
}

TEST(KnownCodesTest, HasWhatWasAdded) {
  KnownCodes codes = MakeCodes(1024);
  EXPECT_EQ(codes.Of(0x1000, 0).knowledge, CodeKnowledge::kNone);
  for (Address code = 0x1000; code < 0x1000 + 200 * 16; code += 16)
    codes.Set(code, {CodeKnowledge::kLasting, 7});
  for (Address code = 0x1000; code < 0x1000 + 200 * 16; code += 16) {
    EXPECT_EQ(codes.Of(code, 0).knowledge, CodeKnowledge::kLasting) << code;
  }
  EXPECT_EQ(codes.Of(0x1008, 0).knowledge, CodeKnowledge::kNone);
  EXPECT_EQ(codes.Of(0xfff0, 0).knowledge, CodeKnowledge::kNone);
}

TEST(KnownCodesTest, IsOfOneGeneration) {
  KnownCodes codes = MakeCodes(64);
  codes.Set(0x40, {CodeKnowledge::kLasting, 7});
  EXPECT_EQ(codes.Of(0x40, 1).knowledge, CodeKnowledge::kNone);
  codes.Clear(1);
  EXPECT_EQ(codes.Of(0x40, 1).knowledge, CodeKnowledge::kNone);
  codes.Set(0x40, {CodeKnowledge::kLasting, 7});
  EXPECT_EQ(codes.Of(0x40, 1).knowledge, CodeKnowledge::kLasting);
  EXPECT_EQ(codes.Of(0x40, 0).knowledge, CodeKnowledge::kNone);
}

TEST(KnownCodesTest, LearnsMoreOfOne) {
  KnownCodes codes = MakeCodes(64);
  codes.Set(0x48, {CodeKnowledge::kNamed, 7});
  EXPECT_EQ(codes.Of(0x48, 0).knowledge, CodeKnowledge::kNamed);
  EXPECT_EQ(codes.Of(0x48, 0).fingerprint, 7U);
  codes.Set(0x48, {CodeKnowledge::kLasting, 8});
  EXPECT_EQ(codes.Of(0x48, 0).knowledge, CodeKnowledge::kLasting);
  EXPECT_EQ(codes.Of(0x48, 0).fingerprint, 8U);
}

TEST(KnownCodesTest, LeavesOutWhatFindsNoPlace) {
  KnownCodes codes = MakeCodes(8);
  for (Address code = 16; code <= 16 * 100; code += 16)
    codes.Set(code, {CodeKnowledge::kLasting, 7});
  int has = 0;
  for (Address code = 16; code <= 16 * 100; code += 16)
    has += codes.Of(code, 0).knowledge != CodeKnowledge::kNone;
  EXPECT_EQ(has, 8);
  codes.Clear(0);
  EXPECT_EQ(codes.Of(16, 0).knowledge, CodeKnowledge::kNone);
}

}  // namespace
}  // namespace pystrobe::signals
