// SPDX-License-Identifier: Apache-2.0
#include "gpu/event_timer.h"

#include <utility>

#include "gpu/driver_api.h"
#include "gpu/event_pool.h"
#include "gpu/scoped_context.h"

namespace pystrobe::gpu {
namespace {

Result<Event> RecordOne(const DriverApi& cuda, const ScopedContext& scope, Stream stream) {
  auto event = EventPool::Shared().Take(cuda, scope);
  if (!event) return event;
  const auto done = cuda.Check(cuda.cuEventRecord(*event, stream), "recording an event");
  if (!done) {
    cuda.cuEventDestroy(*event);
    return std::unexpected(done.error());
  }
  return event;
}

// An event that is recorded into a graph can never be read, and to ask for it spoils the capture.
Result<void> CheckNotCaptured(const DriverApi& cuda, Stream stream) {
  CUstreamCaptureStatus status{};
  const auto done =
      cuda.Check(cuda.cuStreamIsCapturing(stream, &status), "asking whether it is captured");
  if (!done || status == CU_STREAM_CAPTURE_STATUS_NONE) return done;
  return FailWithHint(ErrorCode::kGpu,
                      "Time the graph's launches: what is captured does not run yet.",
                      "the stream is being captured into a graph");
}

}  // namespace

Result<void> EventTimer::Prepare(Stream stream) {
  const auto cuda = DriverApi::Load();
  if (!cuda) return std::unexpected(cuda.error());
  const auto scope = ScopedContext::Of(**cuda, stream);
  if (!scope) return std::unexpected(scope.error());
  return CheckNotCaptured(**cuda, stream);
}

Result<EventTimer> EventTimer::Start(Stream stream) {
  const auto cuda = DriverApi::Load();
  if (!cuda) return std::unexpected(cuda.error());
  const auto scope = ScopedContext::Of(**cuda, stream);
  if (!scope) return std::unexpected(scope.error());
  if (auto done = CheckNotCaptured(**cuda, stream); !done) return std::unexpected(done.error());
  EventTimer timer(stream, scope->context(), scope->id());
  const auto event = RecordOne(**cuda, *scope, stream);
  if (!event) return std::unexpected(event.error());
  timer.begin_ = *event;
  return timer;
}

EventTimer::EventTimer(EventTimer&& other) noexcept
    : stream_(other.stream_),
      context_(other.context_),
      context_id_(other.context_id_),
      begin_(std::exchange(other.begin_, nullptr)),
      end_(std::exchange(other.end_, nullptr)),
      seconds_(other.seconds_),
      failed_(other.failed_) {}

EventTimer::~EventTimer() {
  if (failed_) return;
  for (const Event event : {begin_, end_}) {
    if (event != nullptr) EventPool::Shared().GiveBack(event, context_id_);
  }
}

Result<void> EventTimer::Stop() {
  const auto cuda = DriverApi::Load();
  if (!cuda) return std::unexpected(cuda.error());
  if (end_ != nullptr || failed_) {
    return FailWithHint(ErrorCode::kInvalidArgument, "Time each block with a timer of its own.",
                        "the timer has ended already");
  }
  failed_ = true;
  // The default stream is that of the context of the beginning, whatever is current now.
  const auto scope = ScopedContext::Of(**cuda, context_);
  if (!scope) return std::unexpected(scope.error());
  if (auto done = CheckNotCaptured(**cuda, stream_); !done) return done;
  const auto event = RecordOne(**cuda, *scope, stream_);
  if (!event) return std::unexpected(event.error());
  end_ = *event;
  failed_ = false;
  return {};
}

Result<std::optional<double>> EventTimer::Read() {
  if (seconds_) return seconds_;
  if (end_ == nullptr) return std::nullopt;
  const auto cuda = DriverApi::Load();
  if (!cuda) return std::unexpected(cuda.error());
  const auto scope = ScopedContext::Of(**cuda, context_);
  if (!scope) return std::unexpected(scope.error());
  const CUresult result = (*cuda)->cuEventQuery(end_);
  if (result == CUDA_ERROR_NOT_READY) return std::nullopt;
  if (result != CUDA_SUCCESS) {
    failed_ = true;
    return std::unexpected((*cuda)->ErrorOf(result, "asking for an event"));
  }
  const auto seconds = Elapsed();
  if (!seconds) return std::unexpected(seconds.error());
  return seconds_;
}

Result<double> EventTimer::Wait() {
  if (seconds_) return *seconds_;
  if (end_ == nullptr) {
    return FailWithHint(ErrorCode::kInvalidArgument, "Read it after its end.",
                        "what is timed has not ended");
  }
  const auto cuda = DriverApi::Load();
  if (!cuda) return std::unexpected(cuda.error());
  const auto scope = ScopedContext::Of(**cuda, context_);
  if (!scope) return std::unexpected(scope.error());
  const auto done = (*cuda)->Check((*cuda)->cuEventSynchronize(end_), "waiting for an event");
  if (!done) {
    failed_ = true;
    return std::unexpected(done.error());
  }
  return Elapsed();
}

Result<double> EventTimer::Elapsed() {
  const auto cuda = DriverApi::Load();
  if (!cuda) return std::unexpected(cuda.error());
  float milliseconds = 0;
  const auto done = (*cuda)->Check((*cuda)->cuEventElapsedTime(&milliseconds, begin_, end_),
                                   "reading two events");
  if (!done) {
    failed_ = true;
    return std::unexpected(done.error());
  }
  seconds_ = static_cast<double>(milliseconds) / 1e3;
  return *seconds_;
}

Result<void> EventTimer::Synchronize(Stream stream) {
  const auto cuda = DriverApi::Load();
  if (!cuda) return std::unexpected(cuda.error());
  const auto scope = ScopedContext::Of(**cuda, stream);
  if (!scope) return std::unexpected(scope.error());
  if (auto done = CheckNotCaptured(**cuda, stream); !done) return done;
  return (*cuda)->Check((*cuda)->cuStreamSynchronize(stream), "waiting for the stream");
}

Result<void> EventTimer::SynchronizeAll() {
  const auto cuda = DriverApi::Load();
  if (!cuda) return std::unexpected(cuda.error());
  const auto scope = ScopedContext::Of(**cuda, Stream{});
  if (!scope) return std::unexpected(scope.error());
  return (*cuda)->Check((*cuda)->cuCtxSynchronize(), "waiting for the device");
}

}  // namespace pystrobe::gpu
