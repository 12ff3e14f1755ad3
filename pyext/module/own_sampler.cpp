// SPDX-License-Identifier: Apache-2.0
#include "pyext/module/own_sampler.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <span>
#include <utility>

#include "profiler/base/clock.h"
#include "profiler/base/thread.h"
#include "pyext/module/gpu_work.h"

namespace pystrobe::pyext {

namespace {

// What is kept of a GPU is all of it each time: ever more seldom, so that all of that together is
// about three times the last, and never more often than this share of the time goes to it.
constexpr Nanoseconds kShortestTurn = std::chrono::seconds(2);
constexpr int kMostOfTime = 100;  // one part in so many

}  // namespace

/// Hands all on, and now and then and at the end what a GPU did.
class OwnSampler::Sink final : public RecordingSink {
 public:
  explicit Sink(OwnSampler& owner) : owner_(owner), to_(*owner.recorder_) {}

  Result<void> Begin(const Metadata& metadata) override {
    Metadata whole = metadata;
    whole.gpu_failure = owner_.options_.gpu_failure;
    return to_.Begin(whole);
  }
  Result<void> Append(const Tables& tables, std::span<const pystrobe::Sample> samples,
                      const Quality& so_far) override {
    if (auto done = to_.Append(tables, samples, so_far); !done) return done;
    return owner_.KeepGpu();
  }
  Result<void> Finish(const Tables& tables, const Quality& quality) override {
    if (const auto gpu = owner_.TakeGpu()) {
      if (auto done = AppendWork(*gpu, to_); !done) return done;
    }
    return to_.Finish(tables, quality);
  }
  void Expect(const DeadlineSeries& series) override { to_.Expect(series); }

 private:
  OwnSampler& owner_;
  store::Recorder& to_;
};

OwnSampler::~OwnSampler() { Join(); }

Result<void> OwnSampler::Start() {
  if (auto opened = Open(); !opened) return opened;
  auto file = OpenRecording();
  if (!file) return std::unexpected(file.error());
  recorder_ =
      std::make_unique<store::Recorder>(*std::move(file), "the recording", stop_, [this](int) {
        const std::scoped_lock lock(mutex_);
        begun_ = true;
        changed_.notify_all();
      });
  auto thread = StartThread("sampling this process", [this] { Main(); });
  if (!thread) return std::unexpected(thread.error());
  thread_ = std::move(*thread);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return begun_ || ended_; });
  if (!begun_ && failure_) return std::unexpected(*failure_);
  return {};
}

Result<ScopedFd> OwnSampler::OpenRecording() const {
  if (!options_.fd) return store::CreateMemoryFile();
  ScopedFd own(fcntl(*options_.fd, F_DUPFD_CLOEXEC, 3));
  if (!own.valid()) return FailErrno(errno, ErrorCode::kIo, "descriptor {}", *options_.fd);
  return own;
}

Result<void> OwnSampler::Open() {
  if (options_.by_cpu_time) {
    const auto only = options_.only_caller ? std::optional(gettid()) : std::nullopt;
    auto sampler = signals::SignalSampler::Open({.rate_hz = options_.rate_hz,
                                                 .native = options_.native,
                                                 .only_thread = only,
                                                 .pystrobe_version = options_.version});
    if (!sampler) return std::unexpected(sampler.error());
    by_cpu_ = *std::move(sampler);
    return {};
  }
  auto sampler = remote::Sampler::Attach(getpid(), {.rate_hz = options_.rate_hz,
                                                    .max_overhead = options_.max_overhead,
                                                    .pystrobe_version = options_.version});
  if (!sampler) return std::unexpected(sampler.error());
  by_wall_ = *std::move(sampler);
  return {};
}

void OwnSampler::Main() {
  pthread_setname_np(pthread_self(), "pystrobe");
  Result<void> done;
  try {
    done = Sample();
  } catch (const std::bad_alloc&) {
    done = Fail(ErrorCode::kIo,
                "no memory for the sampling: a limit (ulimit -v) may be too low for it");
  }
  const std::scoped_lock lock(mutex_);
  if (!done) failure_ = done.error();
  ended_ = true;
  changed_.notify_all();
}

Result<void> OwnSampler::Sample() {
  watched_since_ = MonotonicNow();
  keep_at_ = watched_since_ + kShortestTurn;
  Sink sink(*this);
  if (by_cpu_ != nullptr) return by_cpu_->Run(sink, stop_);
  const auto ended = by_wall_->Run(sink, stop_, [](const remote::Progress&) { return true; });
  if (!ended) return std::unexpected(ended.error());
  return {};
}

// Without it there is all the same what there was to be, at the end.
Result<void> OwnSampler::KeepGpu() {
  const Nanoseconds begin = MonotonicNow();
  if (watched_ == nullptr || stop_ || begin < keep_at_) return {};
  Result<void> done;
  try {
    const auto work = watched_->SoFar();
    if (work) done = AppendWork(*work, *recorder_);
  } catch (const std::bad_alloc&) {
    watched_ = nullptr;
  }
  if (!done && done.error().code == ErrorCode::kInvalidArgument) {
    watched_ = nullptr;
    done = {};
  }
  const Nanoseconds end = MonotonicNow();
  keep_at_ =
      end + std::max({kShortestTurn, (end - watched_since_) / 2, kMostOfTime * (end - begin)});
  return done;
}

void OwnSampler::End() {
  if (!thread_.joinable()) return;
  std::unique_lock lock(mutex_);
  awaits_gpu_ = true;
  stop_ = true;
  changed_.wait(lock, [this] { return sampled_ || ended_; });
}

void OwnSampler::SetGpu(launch::GpuWorkOfProcess work) {
  const std::scoped_lock lock(mutex_);
  gpu_ = std::move(work);
}

// The sampling has ended.
std::optional<launch::GpuWorkOfProcess> OwnSampler::TakeGpu() {
  std::unique_lock lock(mutex_);
  sampled_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return !awaits_gpu_; });
  return std::exchange(gpu_, std::nullopt);
}

Result<std::unique_ptr<Recording>> OwnSampler::Stop() {
  Join();
  // What was recorded until then is worth more than the reason.
  if (recorder_ == nullptr || !recorder_->begun()) {
    return failure_ ? std::unexpected(*failure_)
                    : Result<std::unique_ptr<Recording>>(
                          Fail(ErrorCode::kInvalidArgument, "nothing was recorded"));
  }
  return Recording::Open(recorder_->TakeFd(), "the recording");
}

std::optional<Error> OwnSampler::MovedBecause() const {
  if (recorder_ == nullptr) return std::nullopt;
  const auto moved = recorder_->failure();
  return moved || !recorder_->begun() ? moved : failure_;
}

void OwnSampler::Join() {
  // There is none after Abandon either, whose locks may be held for ever.
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock(mutex_);
    awaits_gpu_ = false;
    stop_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void OwnSampler::Abandon() {
  // Neither joined nor freed: the copies of their stacks and locks are in no known state.
  if (thread_.joinable()) thread_.detach();
  static_cast<void>(by_cpu_.release());
  static_cast<void>(by_wall_.release());
  static_cast<void>(recorder_.release());
}

}  // namespace pystrobe::pyext
