// SPDX-License-Identifier: Apache-2.0
#include "bench/micro/simulated_program.h"

#include <algorithm>

namespace pystrobe::bench {

SimulatedProgram::SimulatedProgram(const ProgramOptions& options)
    : options_(options), threads_(options.threads) {
  std::vector<double> weights(options.stacks);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = 1.0 / static_cast<double>(i + 1);
  zipf_ = std::discrete_distribution<size_t>(weights.begin(), weights.end());
  MakeStacks();
  for (uint32_t i = 0; i < options.threads; ++i) {
    const StringId name = tables_.Intern(fmt::format("worker-{}", i));
    tables_.AddThread({.tid = 1000 + i, .interpreter = 0, .name = name});
  }
}

void SimulatedProgram::MakeStacks() {
  // Functions call a few others each; a stack is a walk over that graph.
  constexpr uint32_t kFunctions = 200;
  std::vector<FunctionId> functions;
  for (uint32_t i = 0; i < kFunctions; ++i) {
    const StringId name = tables_.Intern(fmt::format("Class{}.method_{}", i / 9, i));
    const StringId file = tables_.Intern(fmt::format("/usr/lib/python3/module_{}.py", i / 14));
    functions.push_back(tables_.Intern(Function{name, file, i % 14 * 30 + 1}));
  }
  for (uint32_t i = 0; i < options_.stacks; ++i) {
    StackId stack = kEmptyStack;
    size_t function = 0;
    const uint32_t depth = 1 + static_cast<uint32_t>(random_() % (2 * options_.depth));
    for (uint32_t level = 0; level < depth; ++level) {
      const uint32_t first = tables_.function(functions[function]).first_line;
      const auto line = static_cast<uint32_t>(first + 1 + random_() % 4);
      stack = tables_.Push(stack, tables_.Intern(Frame{functions[function], line}));
      function = (function * 3 + 1 + random_() % 3) % functions.size();
    }
    stacks_.push_back(stack);
  }
  std::shuffle(stacks_.begin(), stacks_.end(), random_);
}

std::vector<Sample> SimulatedProgram::Take(size_t count) {
  std::uniform_real_distribution<double> jitter(0.5, 1.5);
  std::normal_distribution<double> held(10e3, 3e3);
  std::vector<Sample> samples;
  samples.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const auto index = static_cast<uint32_t>(taken_++ % threads_.size());
    ThreadState& thread = threads_[index];
    if (thread.run == 0) {
      thread.stack = stacks_[zipf_(random_)];
      thread.run = 1 + static_cast<uint32_t>(random_() % 4);
    }
    --thread.run;
    const auto before = static_cast<int64_t>(thread.time_ns);
    thread.time_ns += options_.period_ns * jitter(random_);
    const auto now = static_cast<int64_t>(thread.time_ns);
    const auto wall = static_cast<uint64_t>(now - before);
    const auto waited = static_cast<uint64_t>(std::max(held(random_), 0.0));
    samples.push_back({.time_ns = now,
                       .wall_ns = wall,
                       .cpu_ns = wall - std::min(wall, waited),
                       .thread = ThreadIndex{index},
                       .stack = thread.stack,
                       .count = 1,
                       .flags = kSampleGil | kSampleOnCpu});
  }
  return samples;
}

Quality SimulatedProgram::QualitySoFar() const {
  Quality quality;
  quality.deadlines = quality.samples = quality.taken = quality.proved = taken_;
  quality.duration_ns = static_cast<int64_t>(threads_.front().time_ns);
  quality.held_ns = static_cast<int64_t>(taken_) * 6'789;
  quality.run_delay_ns = static_cast<int64_t>(taken_) * 9'876;
  quality.own_cpu_ns = static_cast<int64_t>(taken_) * 23'456;
  quality.final_rate_hz = 1e9 / options_.period_ns;
  quality.achieved_rate_hz = quality.final_rate_hz * 0.999;
  quality.cpu_source = "schedstat";
  return quality;
}

}  // namespace pystrobe::bench
