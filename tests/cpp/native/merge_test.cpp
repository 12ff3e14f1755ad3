// SPDX-License-Identifier: Apache-2.0
#include "sampler/native/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace pystrobe::native {
namespace {

constexpr CodeKind KindOf(char letter) {
  switch (letter) {
    case 'E':
      return CodeKind::kEvaluation;
    case 'i':
      return CodeKind::kInterpreter;
    case 's':
      return CodeKind::kStart;
    case 'l':
      return CodeKind::kSystem;
    case 'g':
      return CodeKind::kGreenlet;
    default:
      return CodeKind::kOther;
  }
}

struct Merged {
  std::string frames;
  MergeResult result;
  friend bool operator==(const Merged&, const Merged&) = default;
};

std::ostream& operator<<(std::ostream& out, const Merged& merged) {
  return out << '"' << merged.frames << "\" " << static_cast<int>(merged.result);
}

// Leaf first. Native frames by the kind's letter, others by any; Python frames are letters, a
// capital one begins a run.
Merged Merge(std::string_view native, std::string_view python, bool is_whole = true,
             RunHistory history = {}) {
  std::vector<CodeKind> kinds;
  for (char letter : native) kinds.push_back(KindOf(letter));
  std::vector<uint8_t> begins;
  for (char letter : python) begins.push_back(letter >= 'A' && letter <= 'Z' ? 1 : 0);
  std::vector<MergedFrame> merged;
  const MergeResult result = Merge(kinds, is_whole, begins, history, merged);
  std::string frames;
  for (const MergedFrame& frame : merged) {
    frames += frame.is_native ? native[frame.index] : python[frame.index];
  }
  return {frames, result};
}

TEST(Merge, EachRunHasItsPythonFrames) {
  EXPECT_EQ(Merge("xyEiizEis", "abCdE"), (Merged{"xyabCzdE", MergeResult::kWhole}));
}

TEST(Merge, WhatIsBeyondAGreenletsBeginningIsNotItsOwn) {
  EXPECT_EQ(Merge("xEyEiggEzEs", "AbC"), (Merged{"xAybC", MergeResult::kWhole}));
  // However the rest of the stack was left.
  EXPECT_EQ(Merge("xEyEigg", "AbC", false), (Merged{"xAybC", MergeResult::kWhole}));
  // Begun by a function in C.
  EXPECT_EQ(Merge("xEyggEzEs", "A"), (Merged{"xAy", MergeResult::kWhole}));
}

TEST(Merge, AGreenletAboutToSwitchIsNoNewOne) {
  EXPECT_EQ(Merge("lggEyEiggEzEs", "AbC"), (Merged{"lggAybC", MergeResult::kWhole}));
  EXPECT_EQ(Merge("ggEyEs", "AbC"), (Merged{"ggAybC", MergeResult::kWhole}));
}

TEST(Merge, WhatGreenletsCallBackIsOnTheSameStack) {
  EXPECT_EQ(Merge("xEggEyEs", "AbCD"), (Merged{"xAggbCyD", MergeResult::kWhole}));
  // In a greenlet, too.
  EXPECT_EQ(Merge("xEggEiggEzEs", "AB"), (Merged{"xAggB", MergeResult::kWhole}));
}

TEST(Merge, WithoutCFunctionsThePythonFramesAreLeft) {
  EXPECT_EQ(Merge("iEiEiss", "ABc"), (Merged{"ABc", MergeResult::kUnfit}));
  EXPECT_EQ(Merge("iEiEiss", "AB"), (Merged{"AB", MergeResult::kWhole}));
}

TEST(Merge, AThreadWithoutPythonHasItsCFunctions) {
  EXPECT_EQ(Merge("xyzs", ""), (Merged{"xyz", MergeResult::kWhole}));
}

TEST(Merge, TheCLibraryIsPartOfWhoCallsIt) {
  EXPECT_EQ(Merge("llxEls", "A"), (Merged{"llxA", MergeResult::kWhole}));
  EXPECT_EQ(Merge("lliEis", "A"), (Merged{"A", MergeResult::kWhole}));
  EXPECT_EQ(Merge("llEilxls", "A"), (Merged{"Alx", MergeResult::kWhole}));
  EXPECT_EQ(Merge("lls", ""), (Merged{"ll", MergeResult::kWhole}));
}

TEST(Merge, ThePythonOfAProgramInAnotherLanguageHasItsCallers) {
  EXPECT_EQ(Merge("xEimns", "A"), (Merged{"xAmn", MergeResult::kWhole}));
}

TEST(Merge, ARunThatHasJustBegunHasNoFrames) {
  const RunHistory rare = {.fitting = 10, .excess = 2};
  EXPECT_EQ(Merge("EizEis", "aB", true, rare), (Merged{"zaB", MergeResult::kWhole}));
  EXPECT_EQ(Merge("Eis", "", true), (Merged{"", MergeResult::kWhole}));
}

// The frames of the interpreter in use are the innermost ones: the thread's others are not known.
TEST(Merge, WhichRunHasNoFramesIsNotGuessed) {
  EXPECT_EQ(Merge("EizEis", "aB"), (Merged{"aBz", MergeResult::kUnfit}));
  EXPECT_EQ(Merge("xEizEis", "aB"), (Merged{"xaBz", MergeResult::kUnfit}));
  const RunHistory often = {.fitting = 10, .excess = 8};
  EXPECT_EQ(Merge("xEizEis", "aB", true, often), (Merged{"xaBz", MergeResult::kUnfit}));
  // Where it makes no difference it need not be known.
  EXPECT_EQ(Merge("EiEis", "aB"), (Merged{"aB", MergeResult::kWhole}));
}

TEST(Merge, NativeFramesThatEndTooSoonAreMergedFromTheLeaf) {
  EXPECT_EQ(Merge("xEyE", "aBcDeF", false), (Merged{"xaBycDeF", MergeResult::kCut}));
  EXPECT_EQ(Merge("x", "aB", false), (Merged{"xaB", MergeResult::kCut}));
  EXPECT_EQ(Merge("xEm", "aB", false), (Merged{"xaBm", MergeResult::kCut}));
}

TEST(Merge, PythonFramesThatWereCutAreARunToo) {
  EXPECT_EQ(Merge("xEyEs", "aBc"), (Merged{"xaByc", MergeResult::kWhole}));
}

TEST(Merge, WhatDoesNotFitStandsAroundAllPythonFrames) {
  EXPECT_EQ(Merge("xEyEzEs", "A"), (Merged{"xAyz", MergeResult::kUnfit}));
  EXPECT_EQ(Merge("xyEs", "ABC"), (Merged{"xyABC", MergeResult::kUnfit}));
}

TEST(Merge, NothingComesOfNothing) { EXPECT_EQ(Merge("", ""), (Merged{"", MergeResult::kWhole})); }

}  // namespace
}  // namespace pystrobe::native
