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
  EmptyWork(ProbeKernels& kernels, Stream stream) : kernels_(kernels), stream_(stream) {}
  bool Run() override { return kernels_.LaunchEmpty(stream_).has_value(); }

 private:
  ProbeKernels& kernels_;
  Stream stream_;
};

/// Takes single samples. [one thread]
class Meter {
 public:
  static Result<std::unique_ptr<Meter>> Make(const DriverApi& cuda, const MeasureOptions& options);

  Result<void> WarmUp(Workload& work);
  Result<Sample> Take(Workload& work);
  /// Nullopt where the stream is not held back: what there is to subtract is not the same then.
  Result<std::optional<double>> TakeEmpty();
  bool IsLow(const Sample& sample) const {
    return sample.clock_hz && *sample.clock_hz < options_.low_clock * top_clock_hz_;
  }

 private:
  Meter(const DriverApi& cuda, const MeasureOptions& options, ScopedContext scope)
      : cuda_(cuda), options_(options), scope_(std::move(scope)) {}
  Result<void> Prepare();
  Result<void> Run(Workload& work) const;
  Result<Sample> TakeHeldBack(Workload& work);

  const DriverApi& cuda_;
  const MeasureOptions options_;
  ScopedContext scope_;
  double top_clock_hz_ = 0;
  std::unique_ptr<ProbeKernels> kernels_;
  std::unique_ptr<CacheFlush> flush_;
  std::unique_ptr<StreamGate> gate_;
};

Result<std::unique_ptr<Meter>> Meter::Make(const DriverApi& cuda, const MeasureOptions& options) {
  auto scope = ScopedContext::Of(cuda, options.stream);
  if (!scope) return std::unexpected(scope.error());
  std::unique_ptr<Meter> meter(new Meter(cuda, options, *std::move(scope)));
  if (auto done = meter->Prepare(); !done) return std::unexpected(done.error());
  return meter;
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

Result<void> Meter::Run(Workload& work) const {
  if (work.Run()) return {};
  return Fail(ErrorCode::kGpu, "the work that was to be measured failed");
}

Result<void> Meter::WarmUp(Workload& work) {
  for (size_t i = 0; i < options_.num_warmups; ++i) {
    if (auto done = Run(work); !done) return done;
  }
  return EventTimer::Synchronize(options_.stream);
}

Result<Sample> Meter::Take(Workload& work) {
  auto done = kernels_->LaunchNote(options_.stream, ProbeKernels::kFirst);
  if (done && flush_ != nullptr) done = flush_->Put(options_.stream);
  if (done && gate_ != nullptr) done = gate_->Close(options_.stream);
  if (!done) return std::unexpected(done.error());
  auto sample = TakeHeldBack(work);
  const bool was_closed = gate_ == nullptr || gate_->Open();
  if (!sample) return sample;
  if (!was_closed) {
    return FailWithHint(
        ErrorCode::kGpu,
        "Measure work that waits for the device, or that has more than about 500 launches, with "
        "hold_back=False.",
        "the work took more than {} ms while its stream was held back: it waits for the device, "
        "or puts more on it than the driver has room for",
        options_.patience / std::chrono::milliseconds(1));
  }
  return sample;
}

Result<Sample> Meter::TakeHeldBack(Workload& work) {
  auto timer = EventTimer::Start(options_.stream);
  if (!timer) return std::unexpected(timer.error());
  const Nanoseconds begin = MonotonicNow();
  auto done = Run(work);
  const Nanoseconds took = MonotonicNow() - begin;
  if (done) done = timer->Stop();
  if (done) done = kernels_->LaunchNote(options_.stream, ProbeKernels::kSecond);
  if (!done) return std::unexpected(done.error());
  if (gate_ != nullptr) gate_->Open();
  const auto seconds = timer->Wait();
  if (!seconds) return std::unexpected(seconds.error());
  if (done = EventTimer::Synchronize(options_.stream); !done) return std::unexpected(done.error());
  return Sample{*seconds, Seconds(took), kernels_->ClockBetweenNotes()};
}

Result<std::optional<double>> Meter::TakeEmpty() {
  if (gate_ == nullptr) return std::nullopt;
  EmptyWork work(*kernels_, options_.stream);
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
  void LeaveOut() {
    ++measured.throttled;
    ++low_in_a_row;
    const auto in_a_row = static_cast<Nanoseconds::rep>(low_in_a_row);
    std::this_thread::sleep_for(std::min(kPause * in_a_row, kLongestPause));
  }
};

// A round more for those that have not enough. True while there are any.
Result<bool> TakeRound(Meter& meter, std::vector<Progress>& all) {
  bool goes_on = false;
  for (Progress& progress : all) {
    if (progress.rule.IsMet()) continue;
    goes_on = true;
    const auto sample = meter.Take(*progress.work);
    if (!sample) return std::unexpected(sample.error());
    if (meter.IsLow(*sample)) {
      progress.LeaveOut();
    } else {
      progress.Add(*sample);
    }
  }
  return goes_on;
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
  bool goes_on = true, in_time = true;
  while (goes_on && in_time) {
    const auto more = TakeRound(meter, all);
    if (!more) return std::unexpected(more.error());
    goes_on = *more;
    in_time = Seconds(MonotonicNow() - begin) < options.time_cap_seconds;
  }
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
