// SPDX-License-Identifier: Apache-2.0
//
// From samples to the table: writing a .strobe file, opening and reading it, folding it, and what
// is made of the fold.
#include <benchmark/benchmark.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "bench/micro/simulated_program.h"
#include "profiler/analyze/profile.h"
#include "profiler/store/strobe.h"

namespace pystrobe::bench {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

/// Writes `seconds` of the program, appended second by second as the sampler does.
ScopedFd WriteStrobe(const ProgramOptions& options, uint32_t seconds) {
  store::StrobeWriter writer(ScopedFd(::memfd_create("bench", MFD_CLOEXEC)), "bench.strobe");
  SimulatedProgram program(options);
  const auto per_second = static_cast<size_t>(1e9 / options.period_ns) * options.threads;
  Require(writer.Begin({}).has_value());
  for (uint32_t i = 0; i < seconds; ++i) {
    const std::vector<Sample> samples = program.Take(per_second);
    Require(writer.Append(program.tables(), samples, program.QualitySoFar()).has_value());
  }
  Require(writer.Finish(program.tables(), program.QualitySoFar()).has_value());
  return writer.TakeFd();
}

ProgramOptions OptionsOf(const benchmark::State& state) {
  return {.threads = 1,
          .stacks = 500,
          .depth = 20,
          .period_ns = 1e9 / static_cast<double>(state.range(0))};
}

/// One Append of a second: what the sampler waits for.
void BM_AppendASecond(benchmark::State& state) {
  SimulatedProgram program(OptionsOf(state));
  store::StrobeWriter writer(ScopedFd(::memfd_create("bench", MFD_CLOEXEC)), "bench.strobe");
  Require(writer.Begin({}).has_value());
  const auto per_second = static_cast<size_t>(state.range(0));
  for (auto _ : state) {
    state.PauseTiming();
    const std::vector<Sample> samples = program.Take(per_second);
    const Quality quality = program.QualitySoFar();
    state.ResumeTiming();
    Require(writer.Append(program.tables(), samples, quality).has_value());
  }
  const auto samples = static_cast<int64_t>(state.iterations() * per_second);
  state.SetItemsProcessed(samples);
  const off_t size = ::lseek(writer.TakeFd().get(), 0, SEEK_END);
  state.counters["bytes/sample"] = static_cast<double>(size) / static_cast<double>(samples);
}
BENCHMARK(BM_AppendASecond)->Arg(1000)->Arg(10000)->Unit(benchmark::kMicrosecond);

/// Ten seconds: open, and read every sample.
void BM_OpenAndRead(benchmark::State& state) {
  const ScopedFd fd = WriteStrobe(OptionsOf(state), 10);
  for (auto _ : state) {
    const auto file = store::StrobeFile::Open(ScopedFd(::dup(fd.get())), "bench.strobe");
    Require(file.has_value());
    uint64_t wall_ns = 0;
    const auto read = (*file)->ForEachSample([&](const Sample& s) { wall_ns += s.wall_ns; });
    Require(read.has_value());
    benchmark::DoNotOptimize(wall_ns);
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * state.range(0) * 10);
}
BENCHMARK(BM_OpenAndRead)->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond);

/// Samples in memory, so that folding is measured without reading.
class SamplesInMemory final : public RecordingSource {
 public:
  SamplesInMemory(const ProgramOptions& options, size_t count)
      : program_(options), samples_(program_.Take(count)) {}
  const Metadata& metadata() const override { return metadata_; }
  const Tables& tables() const override { return program_.tables(); }
  const Quality& quality() const override { return quality_; }
  Result<void> ForEachSample(FunctionRef<void(const Sample&)> visit) const override {
    for (const Sample& sample : samples_) visit(sample);
    return {};
  }
  Result<void> ForEachCall(CallVisitor) const override { return {}; }

 private:
  SimulatedProgram program_;
  std::vector<Sample> samples_;
  Metadata metadata_;
  Quality quality_;
};

/// Six million samples, ten minutes at 10 kHz: threads, stacks.
void BM_Fold(benchmark::State& state) {
  const SamplesInMemory recording({.threads = static_cast<uint32_t>(state.range(0)),
                                   .stacks = static_cast<uint32_t>(state.range(1))},
                                  6'000'000);
  for (auto _ : state) {
    const Result<Profile> profile = Fold(recording, {});
    Require(profile.has_value());
    benchmark::DoNotOptimize(profile->total.samples);
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * 6'000'000);
}
BENCHMARK(BM_Fold)
    ->Args({1, 500})
    ->Args({64, 500})
    ->Args({8, 100'000})
    ->Unit(benchmark::kMillisecond);

/// The function table and the call tree of so many stacks.
void BM_TableAndTree(benchmark::State& state) {
  const SamplesInMemory recording(
      {.threads = 1, .stacks = static_cast<uint32_t>(state.range(0)), .depth = 50}, 1'000'000);
  const Result<Profile> profile = Fold(recording, {});
  Require(profile.has_value());
  for (auto _ : state) {
    benchmark::DoNotOptimize(FunctionTable(*profile, Mode::kCpu).size());
    const CallTree tree = BuildCallTree(profile->tables(), profile->threads, Mode::kCpu);
    benchmark::DoNotOptimize(tree.nodes.size());
  }
  state.counters["stack nodes"] = static_cast<double>(profile->tables().stack_count());
}
BENCHMARK(BM_TableAndTree)->Arg(500)->Arg(20'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace pystrobe::bench
