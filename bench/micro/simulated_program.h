// SPDX-License-Identifier: Apache-2.0
//
// Samples as a busy program gives them, made from a seed: some hundred stacks, few of them hot
// (Zipf), each for a run of samples; deadlines jittered from 0.5 to 1.5 periods; CPU time a little
// below wall time. [one thread at a time]
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "profiler/model/recording.h"

namespace pystrobe::bench {

struct ProgramOptions {
  uint32_t threads = 1;
  uint32_t stacks = 500;
  uint32_t depth = 20;
  double period_ns = 1e6;
};

class SimulatedProgram {
 public:
  explicit SimulatedProgram(const ProgramOptions& options);

  const Tables& tables() const { return tables_; }
  /// The next `count` samples.
  std::vector<Sample> Take(size_t count);
  /// Figures that fit the samples so far.
  Quality QualitySoFar() const;

 private:
  struct ThreadState {
    double time_ns = 0;
    StackId stack = kEmptyStack;
    uint32_t run = 0;
  };
  void MakeStacks();

  ProgramOptions options_;
  std::mt19937 random_{1};
  std::discrete_distribution<size_t> zipf_;
  Tables tables_;
  std::vector<StackId> stacks_;
  std::vector<ThreadState> threads_;
  uint64_t taken_ = 0;
};

}  // namespace pystrobe::bench
