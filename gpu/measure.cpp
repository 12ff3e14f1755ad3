// SPDX-License-Identifier: Apache-2.0
#include "gpu/measure.h"

#include <algorithm>
#include <memory>
#include <thread>

#include "gpu/driver_api.h"
#include "gpu/event_timer.h"
#include "gpu/probe_kernels.h"
#include "gpu/scoped_context.h"
#include "gpu/statistics.h"
#include "gpu/stream_gate.h"

namespace pystrobe::gpu {
namespace {

// So many samples without one that was not left out: there will be none.
constexpr size_t kAlwaysLow = 10;
// To cool, after one sample that was left out, and after so many in a row.
constexpr Nanoseconds kPause = std::chrono::milliseconds(50);
constexpr Nanoseconds kLongestPause = std::chrono::milliseconds(500);
constexpr size_t kEmptySamples = 40;

double Seconds(Nanoseconds time) { return std::chrono::duration<double>(time).count(); }

// The device's memory, as much as its cache holds.
class CacheFlush {
 public:
  static Result<std::unique_ptr<CacheFlush>> Make(const DriverApi& cuda, size_t bytes) {
    std::unique_ptr<CacheFlush> flush(new CacheFlush(cuda, bytes / sizeof(uint32_t)));
    const auto done =
        cuda.Check(cuda.cuMemAlloc(&flush->memory_, std::max<size_t>(bytes, sizeof(uint32_t))),
                   "taking memory to flush the cache with");
    if (!done) return std::unexpected(done.error());
    return flush;
  }
  ~CacheFlush() {
    if (memory_ != 0) cuda_.cuMemFree(memory_);
  }
  Result<void> Put(Stream stream) {
    return cuda_.Check(cuda_.cuMemsetD32Async(memory_, 0, words_, stream), "flushing the cache");
  }

 private:
  CacheFlush(const DriverApi& cuda, size_t words) : cuda_(cuda), words_(words) {}

  const DriverApi& cuda_;
  const size_t words_;
  CUdeviceptr memory_ = 0;
};

struct Sample {
  double gpu_seconds = 0, cpu_seconds = 0;
  std::optional<double> clock_hz;
};

class EmptyWork : public Workload {
 public:
  EmptyWork(ProbeKernels& kernels, const DriverApi& cuda, Context context, Stream stream)
      : kernels_(kernels), cuda_(cuda), context_(context), stream_(stream) {}
  Result<void> Run() override {
    const auto scope = ScopedContext::Of(cuda_, context_);
    if (!scope) return std::unexpected(scope.error());
    return kernels_.LaunchEmpty(stream_);
  }

 private:
  ProbeKernels& kernels_;
  const DriverApi& cuda_;
  Context context_;
  Stream stream_;
};

/// Takes single samples. [one thread]
class Meter {
 public:
  static Result<std::unique_ptr<Meter>> Make(const DriverApi& cuda, const MeasureOptions& options);
  ~Meter();

  Result<void> WarmUp(Workload& work);
  Result<Sample> Take(Workload& work);
  /// Nullopt where the stream is not held back: what there is to subtract is not the same then.
  Result<std::optional<double>> TakeEmpty();
  bool IsLow(const Sample& sample) const {
    return sample.clock_hz && *sample.clock_hz < options_.low_clock * top_clock_hz_;
  }
  void Rest(Nanoseconds time) const;

 private:
  Meter(const DriverApi& cuda, const MeasureOptions& options, Context context)
      : cuda_(cuda), options_(options), context_(context) {}
  Result<void> Prepare();
  Result<void> PutBefore();
  Result<void> PutAfter();
  Result<EventTimer> StartTimer();
  Result<void> WaitForStream();
  Result<Sample> TakeHeldBack(Workload& work);

  const DriverApi& cuda_;
  const MeasureOptions options_;
  const Context context_;  // of the stream; current in calls of ours alone
  double top_clock_hz_ = 0;
  std::unique_ptr<ProbeKernels> kernels_;
  std::unique_ptr<CacheFlush> flush_;
  std::unique_ptr<StreamGate> gate_;
};

Result<std::unique_ptr<Meter>> Meter::Make(const DriverApi& cuda, const MeasureOptions& options) {
  if (auto done = EventTimer::Prepare(options.stream); !done) return std::unexpected(done.error());
  const auto scope = ScopedContext::Of(cuda, options.stream);
  if (!scope) return std::unexpected(scope.error());
  std::unique_ptr<Meter> meter(new Meter(cuda, options, scope->context()));
  if (auto done = meter->Prepare(); !done) return std::unexpected(done.error());
  return meter;
}

Meter::~Meter() {
  // The gate waits for the stream.
  (void)options_.wait([this]() -> Result<void> {
    const auto scope = ScopedContext::Of(cuda_, context_);
    gate_.reset();
    return {};
  });
  const auto scope = ScopedContext::Of(cuda_, context_);
  flush_.reset();
  kernels_.reset();
}

Result<void> Meter::Prepare() {
  CUdevice device = 0;
  int clock_khz = 0, multiprocessors = 0, l2_bytes = 0;
  auto done = cuda_.Check(cuda_.cuCtxGetDevice(&device), "asking for the device");
  const auto read = [&](int& value, CUdevice_attribute which) {
    if (!done) return;
    done = cuda_.Check(cuda_.cuDeviceGetAttribute(&value, which, device), "asking for the device");
  };
  read(clock_khz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  read(multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  read(l2_bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  if (!done) return done;
  top_clock_hz_ = 1e3 * clock_khz;
  auto kernels = ProbeKernels::Make(cuda_, multiprocessors);
  if (!kernels) return std::unexpected(kernels.error());
  kernels_ = *std::move(kernels);
  // For the first time not while the stream is held back: a kernel's code may be loaded then.
  for (const auto note : {ProbeKernels::kFirst, ProbeKernels::kSecond}) {
    if (done = kernels_->LaunchNote(options_.stream, note); !done) return done;
  }
  if (done = kernels_->LaunchEmpty(options_.stream); !done) return done;
  if (options_.flush_l2 && l2_bytes > 0) {
    auto flush = CacheFlush::Make(cuda_, static_cast<size_t>(l2_bytes));
    if (!flush) return std::unexpected(flush.error());
    flush_ = *std::move(flush);
  }
  if (options_.hold_back) {
    auto gate = StreamGate::Make(options_.patience);
    if (!gate) return std::unexpected(gate.error());
    gate_ = *std::move(gate);
  }
  return {};
}

void Meter::Rest(Nanoseconds time) const {
  (void)options_.wait([time]() -> Result<void> {
    std::this_thread::sleep_for(time);
    return {};
  });
}

Result<void> Meter::WarmUp(Workload& work) {
  for (size_t i = 0; i < options_.num_warmups; ++i) {
    if (auto done = work.Run(); !done) return done;
  }
  return WaitForStream();
}

Result<void> Meter::WaitForStream() {
  return options_.wait([this]() -> Result<void> {
    const auto scope = ScopedContext::Of(cuda_, context_);
    if (!scope) return std::unexpected(scope.error());
    return EventTimer::Synchronize(options_.stream);
  });
}

Result<EventTimer> Meter::StartTimer() {
  const auto scope = ScopedContext::Of(cuda_, context_);
  if (!scope) return std::unexpected(scope.error());
  return EventTimer::Start(options_.stream);
}

Result<void> Meter::PutBefore() {
  const auto scope = ScopedContext::Of(cuda_, context_);
  if (!scope) return std::unexpected(scope.error());
  Result<void> done;
  if (flush_ != nullptr) done = flush_->Put(options_.stream);
  if (done && gate_ != nullptr) done = gate_->Close(options_.stream);
  // Behind the gate, so that the clock is that of the work alone.
  if (done) done = kernels_->LaunchNote(options_.stream, ProbeKernels::kFirst);
  if (!done && gate_ != nullptr) gate_->Open();
  return done;
}

Result<void> Meter::PutAfter() {
  const auto scope = ScopedContext::Of(cuda_, context_);
  if (!scope) return std::unexpected(scope.error());
  return kernels_->LaunchNote(options_.stream, ProbeKernels::kSecond);
}

Result<Sample> Meter::Take(Workload& work) {
  if (auto done = PutBefore(); !done) return std::unexpected(done.error());
  auto sample = TakeHeldBack(work);
  const bool was_closed = gate_ == nullptr || gate_->Open();
  if (!sample) return sample;
  if (!was_closed) {
    return FailWithHint(
        ErrorCode::kGpu,
        "Measure work that waits for the device, or that has more than about 500 launches, with "
        "hold_back=False; work that is slow to launch with a longer patience=.",
        "the work took more than {} ms while its stream was held back: it waits for the device, "
        "puts more on it than the driver has room for, or is slow",
        options_.patience / std::chrono::milliseconds(1));
  }
  return sample;
}

Result<Sample> Meter::TakeHeldBack(Workload& work) {
  auto timer = StartTimer();
  if (!timer) return std::unexpected(timer.error());
  const Nanoseconds begin = MonotonicNow();
  auto done = work.Run();
  const Nanoseconds took = MonotonicNow() - begin;
  if (done) done = timer->Stop();
  if (done) done = PutAfter();
  if (!done) return std::unexpected(done.error());
  if (gate_ != nullptr) gate_->Open();
  if (done = WaitForStream(); !done) return std::unexpected(done.error());
  const auto seconds = timer->Wait();
  if (!seconds) return std::unexpected(seconds.error());
  return Sample{*seconds, Seconds(took), kernels_->ClockBetweenNotes()};
}

Result<std::optional<double>> Meter::TakeEmpty() {
  if (gate_ == nullptr) return std::nullopt;
  EmptyWork work(*kernels_, cuda_, context_, options_.stream);
  std::vector<double> seconds;
  while (seconds.size() < kEmptySamples) {
    const auto sample = Take(work);
    if (!sample) return std::unexpected(sample.error());
    seconds.push_back(sample->gpu_seconds);
  }
  return Summarize(seconds).median;
}

/// One workload's samples so far.
struct Progress {
  Workload* work;
  StopRule rule;
  Measurement measured{};
  std::vector<double> clocks{};
  size_t low_in_a_row = 0;

  void Add(const Sample& sample) {
    rule.Add(sample.gpu_seconds);
    measured.gpu_seconds.push_back(sample.gpu_seconds);
    measured.cpu_seconds.push_back(sample.cpu_seconds);
    if (sample.clock_hz) clocks.push_back(*sample.clock_hz);
    low_in_a_row = 0;
  }
  /// For how long to rest then.
  Nanoseconds LeaveOut() {
    ++measured.throttled;
    const auto in_a_row = static_cast<Nanoseconds::rep>(++low_in_a_row);
    return std::min(kPause * in_a_row, kLongestPause);
  }
  bool IsAlwaysLow() const { return clocks.empty() && low_in_a_row >= kAlwaysLow; }
};

Result<void> TakeOne(Meter& meter, Progress& progress) {
  const auto sample = meter.Take(*progress.work);
  if (!sample) return std::unexpected(sample.error());
  if (meter.IsLow(*sample)) {
    meter.Rest(progress.LeaveOut());
  } else {
    progress.Add(*sample);
  }
  return {};
}

bool HaveEnough(const std::vector<Progress>& all) {
  return std::ranges::all_of(
      all, [](const Progress& one) { return one.rule.IsMet() || one.IsAlwaysLow(); });
}

}  // namespace

Result<std::vector<Measurement>> MeasureInTurn(std::span<Workload* const> workloads,
                                               const MeasureOptions& options) {
  const auto cuda = DriverApi::Load();
  if (!cuda) return std::unexpected(cuda.error());
  const auto made = Meter::Make(**cuda, options);
  if (!made) return std::unexpected(made.error());
  Meter& meter = **made;
  std::vector<Progress> all;
  for (Workload* work : workloads) {
    if (auto done = meter.WarmUp(*work); !done) return std::unexpected(done.error());
    all.push_back({work, StopRule(options.min_samples, options.min_seconds, options.max_noise)});
  }
  const auto empty = meter.TakeEmpty();
  if (!empty) return std::unexpected(empty.error());
  const Nanoseconds begin = MonotonicNow();
  // The cap is for each of them.
  const double most = options.time_cap_seconds * static_cast<double>(all.size());
  do {
    for (Progress& progress : all) {
      if (auto done = TakeOne(meter, progress); !done) return std::unexpected(done.error());
    }
  } while (!HaveEnough(all) && Seconds(MonotonicNow() - begin) < most);
  std::vector<Measurement> measured;
  for (Progress& progress : all) {
    if (progress.measured.gpu_seconds.empty()) {
      return FailWithHint(ErrorCode::kGpu,
                          "Is it hot, short of power, or has somebody set its clock? low_clock=0 "
                          "keeps such samples.",
                          "the device ran below {:.0f} % of its highest clock in all {} samples",
                          100 * options.low_clock, progress.measured.throttled);
    }
    progress.measured.stop =
        progress.rule.IsMet() ? Measurement::Stop::kQuiet : Measurement::Stop::kTimeCap;
    progress.measured.empty_seconds = *empty;
    if (!progress.clocks.empty()) {
      progress.measured.clock_hz = Summarize(progress.clocks).median;
    }
    measured.push_back(std::move(progress.measured));
  }
  return measured;
}

}  // namespace pystrobe::gpu
