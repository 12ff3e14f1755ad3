// SPDX-License-Identifier: Apache-2.0
#include "pyext/launch/gpu_trace.h"

#include <Python.h>

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

Result<std::unique_ptr<GpuTrace>> GpuTrace::Start(const gpu::CuptiOptions& options) {
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
  return std::unique_ptr<GpuTrace>(new GpuTrace(**paths, *std::move(session)));
}

GpuTrace::GpuTrace(PythonPaths& paths, std::unique_ptr<gpu::CuptiSession> session)
    : paths_(paths), session_(std::move(session)), begin_(MonotonicNow()) {}

GpuTrace::~GpuTrace() {
  if (session_ == nullptr) return;
  {
    const GilReleased released;
    session_.reset();
  }
  paths_.End();
}

void GpuTrace::Restart() {
  const GilReleased released;
  // A device that failed does nothing more, which is as good.
  static_cast<void>(gpu::SynchronizeDevices());
  session_->Restart();
  begin_ = MonotonicNow();
}

GpuWorkOfProcess GpuTrace::Stop() {
  GpuWorkOfProcess work{.begin = begin_};
  Result<void> done;
  {
    const GilReleased released;
    session_->NoMoreWaits();
    done = gpu::SynchronizeDevices();
    work.record.quality.duration_ns = (MonotonicNow() - begin_).count();
    const auto stopped = session_->Stop();
    if (done) done = stopped;
  }
  work.tables = paths_.End();
  AddRecords(*session_, work.tables, work.record);
  if (!done) AddTrouble(done.error(), work.tables, work.record);
  session_.reset();
  return work;
}

}  // namespace pystrobe::launch
