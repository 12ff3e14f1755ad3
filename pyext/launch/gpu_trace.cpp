// SPDX-License-Identifier: Apache-2.0
#include "pyext/launch/gpu_trace.h"

#include <Python.h>
#include <fmt/format.h>

#include <chrono>
#include <string>
#include <utility>

#include "gpu/synchronize.h"
#include "pyext/launch/gpu_records.h"

namespace pystrobe::launch {
namespace {

class GilReleased {
 public:
  GilReleased() : state_(PyEval_SaveThread()) {}
  ~GilReleased() { PyEval_RestoreThread(state_); }
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;

 private:
  PyThreadState* state_;
};

}  // namespace

Result<std::unique_ptr<GpuTrace>> GpuTrace::Start(const gpu::CuptiOptions& given) {
  const auto instances = RangeTrace::Instances();
  if (!instances) return std::unexpected(instances.error());
  gpu::CuptiOptions options = given;
  options.ranges = *instances;
  const auto paths = PythonPaths::OfThisProcess();
  if (!paths) return std::unexpected(paths.error());
  if (auto begun = (*paths)->Begin(); !begun) return std::unexpected(begun.error());
  auto session = [&] {
    const GilReleased released;
    return gpu::CuptiSession::Start(options, **paths);
  }();
  if (!session) {
    (*paths)->End();
    return std::unexpected(session.error());
  }
  return std::unique_ptr<GpuTrace>(
      new GpuTrace(**paths, *std::move(session), options.sums.max_spans));
}

// Ranges begin last and end at the same moment as the rest: none is longer than all of it.
GpuTrace::GpuTrace(PythonPaths& paths, std::unique_ptr<gpu::CuptiSession> session, size_t max_spans)
    : paths_(paths), session_(std::move(session)), begin_(MonotonicNow()) {
  if (auto ranges = RangeTrace::Start(max_spans)) ranges_ = *std::move(ranges);
}

GpuTrace::~GpuTrace() {
  Drop();
  // A child has it in the state in which another thread of its parent left it.
  if (gpu::CuptiSession::IsInChild()) static_cast<void>(paths_so_far_.release());
}

void GpuTrace::Drop() {
  // A child of fork() has the lock as it was, held by a thread that it has not, maybe.
  if (session_ == nullptr || gpu::CuptiSession::IsInChild()) return;
  {
    const GilReleased released;
    static_cast<void>(session_->Stop());
  }
  const std::lock_guard lock(mutex_);
  paths_.End();
  session_.reset();
  ranges_.reset();
}

Result<void> GpuTrace::WaitForDevices() const {
  return gpu::SynchronizeDevices([this] { return session_->IsCapturing(); });
}

void GpuTrace::Restart() {
  const GilReleased released;
  auto waited = WaitForDevices();
  const std::lock_guard lock(mutex_);
  waited_ = std::move(waited);
  begin_ = MonotonicNow();
  // Before the session, which forgets what was launched in the ranges of before.
  if (ranges_ != nullptr) ranges_->Restart();
  session_->Restart();
}

// Where the device failed it does nothing more, which is as good as done.
void GpuTrace::RemarkOnBegin(GpuWorkOfProcess& work) const {
  if (waited_) return;
  AddRemark("at the begin: " + waited_.error().message + ": what was launched before may be here",
            work.tables, work.record);
}

GpuWorkOfProcess GpuTrace::Stop() {
  GpuWorkOfProcess work{.begin = begin_};
  Result<void> done;
  Nanoseconds end;
  std::vector<gpu::RangeStreamSum> sums;
  {
    const GilReleased released;
    session_->NoMoreWaits();
    done = WaitForDevices();
    end = MonotonicNow();
    work.record.quality.duration_ns = (end - begin_).count();
    const auto stopped = session_->Stop();
    if (done) done = stopped;
    sums = session_->RangeSums();
  }
  const std::lock_guard lock(mutex_);
  work.tables = paths_.End();
  AddRecords(*session_, work.tables, work.record);
  RemarkOnBegin(work);
  if (!done) AddRemark("at the end: " + done.error().message, work.tables, work.record);
  if (ranges_ != nullptr) {
    work.ranges = RangeTrace::ToRecord(ranges_->Stop(end), sums, work.tables);
  }
  session_.reset();
  return work;
}

// The paths first by themselves: most of them are there then, and what is added meanwhile is
// little.
std::optional<GpuWorkOfProcess> GpuTrace::SoFar() const {
  const std::lock_guard lock(mutex_);
  if (session_ == nullptr) return std::nullopt;
  GpuWorkOfProcess work{.begin = begin_};
  const Nanoseconds duration = MonotonicNow() - begin_;
  work.record.quality.duration_ns = duration.count();
  paths_.CopyTo(*paths_so_far_);
  AddRecordsSoFar(
      *session_,
      [&] {
        paths_.CopyTo(*paths_so_far_);
        work.tables = paths_so_far_->Copy();
      },
      work.tables, work.record);
  RemarkOnBegin(work);
  AddRemark(fmt::format("of the first {:.1f} s alone, as the program was cut short",
                        std::chrono::duration<double>(duration).count()),
            work.tables, work.record);
  return work;
}

GpuWorkOfProcess RangesAlone(RangeTrace& trace) {
  const Nanoseconds end = MonotonicNow();
  GpuWorkOfProcess work{.begin = trace.begin(), .has_gpu = false};
  work.record.quality.duration_ns = (end - trace.begin()).count();
  work.ranges = RangeTrace::ToRecord(trace.Stop(end), {}, work.tables);
  return work;
}

}  // namespace pystrobe::launch
