// SPDX-License-Identifier: Apache-2.0
//
// A real interpreter as a target: fixtures for tests of what looks at one.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sampler/remote/code_cache.h"
#include "sampler/remote/sampled_thread.h"
#include "sampler/remote/target.h"
#include "sampler/remote/thread_table.h"
#include "sampler/remote/tick.h"
#include "tests/cpp/support/python_program.h"

namespace pystrobe::remote {

/// Opened once the program has printed `ready`.
class PythonTarget : public ::testing::Test {
 protected:
  PythonTarget(const char* text, std::string ready) : ready_(std::move(ready)), program_(text) {}

  void SetUp() override {
    ASSERT_EQ(program_.Read(ready_.size()), ready_) << "is there a python3?";
    auto target = Target::Open(program_.pid());
    ASSERT_TRUE(target) << target.error().message;
    target_.emplace(*std::move(target));
  }

  const std::string ready_;
  testing::PythonProgram program_;
  std::optional<Target> target_;
};

/// With all that a sampler has of its threads before its first look.
class SampledPython : public PythonTarget {
 protected:
  using PythonTarget::PythonTarget;

  void SetUp() override {
    PythonTarget::SetUp();
    if (HasFatalFailure()) return;
    codes_.emplace(*target_, tables_, quality_);
    context_.emplace(*target_, tables_, *codes_, MonotonicNow(), samples_);
    tick_ = {.number = 1, .time = context_->start, .previous = context_->start};
    ListThreads();
  }

  /// As if none had been looked at.
  void ListThreads() {
    threads_.emplace(*context_);
    ASSERT_TRUE(threads_->Refresh(tick_));
  }

  /// The tick after this one.
  void Next(Nanoseconds time) {
    tick_ = {.number = tick_.number + 1, .time = time, .previous = tick_.time};
  }

  Tables tables_;
  Quality quality_;
  std::vector<Sample> samples_;
  std::optional<CodeCache> codes_;
  std::optional<RunContext> context_;
  std::optional<ThreadTable> threads_;
  Tick tick_;
};

}  // namespace pystrobe::remote
