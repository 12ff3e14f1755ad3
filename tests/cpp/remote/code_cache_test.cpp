// SPDX-License-Identifier: Apache-2.0
//
// With a real interpreter: code objects of a program that does nothing but hold them.
#include "sampler/remote/code_cache.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/cpp/support/python_program.h"

namespace pystrobe::remote {
namespace {

constexpr size_t kFunctions = 100;

/// Prints where the code objects of f0, f1 ... and of a generator lie, then waits to be killed.
constexpr const char* kProgram =
    "import sys, time\n"
    "for k in range(100): exec(f'def f{k}(): pass')\n"
    "for k in range(100): print(id(globals()[f'f{k}'].__code__))\n"
    "def generator(): yield\n"
    "print(id(generator.__code__))\n"
    "sys.stdout.flush()\n"
    "time.sleep(600)\n";

class HeldCodes {
 public:
  HeldCodes() {
    while (codes_.size() <= kFunctions) {
      const auto code = program_.ReadNumber();
      if (!code) return;
      codes_.push_back(*code);
    }
  }

  pid_t pid() const { return program_.pid(); }
  /// The generator's last.
  const std::vector<Address>& codes() const { return codes_; }

 private:
  testing::PythonProgram program_{kProgram};
  std::vector<Address> codes_;
};

class CodeCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(program_.codes().size(), kFunctions + 1) << "is there a python3?";
    auto target = Target::Open(program_.pid());
    ASSERT_TRUE(target) << target.error().message;
    target_.emplace(*std::move(target));
  }

  /// As a copy brings it and a sample uses it.
  FrameId Use(CodeCache& cache, size_t index) {
    now_ += std::chrono::milliseconds(1);
    const Address code = program_.codes()[index];
    const pyabi::Layout& layout = target_->layout();
    std::vector<std::byte> bytes(layout.code.size);
    EXPECT_TRUE(target_->memory().Read(code, bytes.data(), bytes.size()));
    const SeenCode found{code, pyabi::IdentityOf(layout, bytes), {}};
    cache.Update({&found, 1}, 0, now_);
    const auto frame = cache.Resolve({.code = code}, now_);
    cache.CheckSome(now_);
    return frame.value();
  }

  std::string NameOf(FrameId frame) const {
    return tables_.text(tables_.function(tables_.frame(frame).function).name);
  }

  HeldCodes program_;
  std::optional<Target> target_;
  Tables tables_;
  Quality quality_;
  Nanoseconds now_ = MonotonicNow();
};

TEST_F(CodeCacheTest, RemembersNoMoreThanItHasRoomFor) {
  constexpr size_t kCapacity = 16;
  CodeCache cache(*target_, tables_, quality_, kCapacity);
  for (size_t round = 0; round < 3; ++round) {
    for (size_t i = 0; i < kFunctions; ++i) {
      EXPECT_EQ(NameOf(Use(cache, i)), "f" + std::to_string(i));
      EXPECT_LE(cache.size(), kCapacity);
    }
  }
  EXPECT_EQ(tables_.function_count(), kFunctions + 1) << "and the one for code that is gone";
  EXPECT_EQ(quality_.reused_code, 0U);
}

TEST_F(CodeCacheTest, WhatWasReadInThePauseHasItsNameThoughItIsGoneByNow) {
  CodeCache cache(*target_, tables_, quality_);
  const Address gone = 16;  // nothing is there
  SeenCode seen{gone, {}, cache.Read(program_.codes()[7])};
  ASSERT_TRUE(seen.info);
  seen.identity = seen.info->identity;
  using Knowledge = CodeWatch::Knowledge;
  EXPECT_EQ(cache.KnowledgeOf(seen), Knowledge::kNone);
  cache.Update({&seen, 1}, 0, now_);
  EXPECT_EQ(cache.KnowledgeOf(seen), Knowledge::kLasting);
  EXPECT_EQ(NameOf(cache.Resolve({.code = gone}, now_).value()), "f7");
  seen.info = cache.Read(program_.codes()[8]);
  ASSERT_TRUE(seen.info);
  seen.identity = seen.info->identity;
  EXPECT_EQ(cache.KnowledgeOf(seen), Knowledge::kNone);
  cache.Update({&seen, 1}, 0, now_);
  EXPECT_EQ(cache.KnowledgeOf(seen), Knowledge::kPassing);
  EXPECT_EQ(NameOf(cache.Resolve({.code = gone}, now_).value()), "f8");
  EXPECT_EQ(quality_.unresolved, 0U);
}

TEST_F(CodeCacheTest, KnowsGenerators) {
  CodeCache cache(*target_, tables_, quality_);
  const pyabi::RawFrame function{.code = program_.codes()[0]};
  const pyabi::RawFrame generator{.code = program_.codes()[kFunctions]};
  const std::vector<pyabi::RawFrame> piece{function, generator}, whole{generator, function};
  EXPECT_TRUE(cache.EndsInGenerator(piece, now_));
  EXPECT_FALSE(cache.EndsInGenerator(whole, now_));
  EXPECT_FALSE(cache.EndsInGenerator({}, now_));
}

TEST_F(CodeCacheTest, WhatIsInUseIsNotForgotten) {
  constexpr size_t kCapacity = 16;
  CodeCache cache(*target_, tables_, quality_, kCapacity);
  // Beyond its youth it is settled, and nothing but IsSettled asks for it.
  for (int look = 0; look < 1000; ++look) Use(cache, 0);
  const Address settled = program_.codes()[0];
  ASSERT_TRUE(cache.IsSettled(settled));
  const uint64_t epoch = cache.epoch();
  for (size_t i = 1; i < kFunctions; ++i) {
    Use(cache, i);
    EXPECT_TRUE(cache.IsSettled(settled)) << i;
  }
  EXPECT_GT(cache.epoch(), epoch) << "others were forgotten";
  EXPECT_FALSE(cache.IsSettled(program_.codes()[1]));
}

}  // namespace
}  // namespace pystrobe::remote
