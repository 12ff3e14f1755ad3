// SPDX-License-Identifier: Apache-2.0
#include "gpu/cupti_session.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "gpu/activity_decoder.h"
#include "gpu/cupti_api.h"
#include "gpu/cupti_collector.h"
#include "gpu/device.h"
#include "profiler/base/thread.h"

namespace pystrobe::gpu {
namespace {

// Never the kinds RUNTIME and DRIVER, a record more for each call of either: 2 us a launch. Copies
// between devices are a kind of their own.
constexpr std::array kActivities{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                 CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET};

constexpr std::array kGraphEvents{CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,
                                  CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED,
                                  CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING};

// Without records waits are told, and are of no use beside that.
IdleOptions IdleOptionsOf(const CuptiOptions& options) {
  IdleOptions idle = options.idle;
  if (!options.records) idle.max_waits = 0;
  return idle;
}

// Until it (CUDA 12.9) CUPTI crashes where it is given no buffer.
constexpr uint32_t kTakesNoBuffer = 27;
// Until it (CUDA 12.6) a program that has CUDA graphs crashes some time after CUPTI was finalised
// and is used again (https://github.com/pytorch/pytorch/pull/112507, and 146604).
constexpr uint32_t kEndsBesideGraphs = 24;

}  // namespace

class CuptiSession::Impl {
 public:
  Impl(const CuptiApi& cupti, int driver_version, CuptiCollector& collector,
       const CuptiOptions& options)
      : cupti_(cupti),
        driver_version_(driver_version),
        collector_(collector),
        records_(options.records),
        flush_every_(std::max<Nanoseconds>(options.flush_every, std::chrono::milliseconds(1))),
        sum_options_(options.sums),
        sums_(options.sums),
        idle_(IdleOptionsOf(options)),
        ranges_(options.ranges),
        decoder_(cupti, {collector.ring(), collector.graph_nodes(), collector.moments()},
                 {sums_, idle_, ranges_}) {}

  Result<void> Start();
  Result<void> Stop();
  void Restart();
  void NoMoreWaits() { collector_.NoMoreWaits(); }
  bool IsCapturing() const { return collector_.IsCapturing(); }
  CuptiFacts Facts() const;
  void Read(FunctionRef<void(const KernelSums&, const IdleTime&)> reader) const {
    const std::lock_guard lock(decode_mutex_);
    if (is_whole_) return reader(sums_, idle_);
    IdleTime idle = idle_;
    idle.Finish();
    if (records_) return reader(sums_, idle);
    KernelSums sums(sum_options_);
    AddTally(sums);
    reader(sums, idle);
  }
  std::vector<RangeStreamSum> RangeSums() const {
    const std::lock_guard lock(decode_mutex_);
    return ranges_.Sums();
  }

 private:
  Result<void> Enable();
  Result<void> EnableCalls(std::span<const uint32_t> calls);
  Result<void> LendBuffers();
  Result<void> EnableRecords();
  Result<void> End();
  Result<void> Leave();
  void Run();
  void Decode(const ActivityBuffers::Filled& filled);
  void NoteCpuTime();
  void TakeWaits();
  void Close();
  void AddTally(KernelSums& to) const;
  CuptiFacts Counted() const;

  const CuptiApi& cupti_;
  const int driver_version_;
  CuptiCollector& collector_;
  const bool records_;
  const Nanoseconds flush_every_;
  CUpti_SubscriberHandle subscriber_ = nullptr;

  const KernelSumsOptions sum_options_;
  mutable std::mutex decode_mutex_;  // of what follows, to the decoder
  bool is_whole_ = false;            // nothing is added any more
  KernelSums sums_;
  IdleTime idle_;
  RangeProjection ranges_;
  std::vector<HostWait> taken_;  // one look's
  ActivityDecoder decoder_;

  std::thread thread_;
  std::mutex flush_mutex_;  // CUPTI is flushed by one at a time
  std::atomic<bool> ends_{false};
  std::atomic<int64_t> cpu_ns_{0};

  mutable std::mutex stop_mutex_;
  std::optional<Result<void>> stopped_;
  CuptiFacts facts_;  // once it is stopped
};

Result<void> CuptiSession::Impl::Start() {
  auto done = cupti_.Check(
      cupti_.cuptiSubscribe(&subscriber_, CuptiCollector::OnEvent, &collector_), "using CUPTI");
  if (!done) {
    // Somebody else may have it: nothing of it is ours to end.
    collector_.GiveBack();
    return done;
  }
  done = Enable();
  if (!done) Stop();
  return done;
}

// The records last: who was launched before is not seen, and leaves none.
Result<void> CuptiSession::Impl::Enable() {
  if (records_) {
    if (auto done = LendBuffers(); !done) return done;
  }
  auto thread = StartThread("reading CUPTI's records", [this] { Run(); });
  if (!thread) return std::unexpected(thread.error());
  thread_ = *std::move(thread);
  for (const auto calls : {LaunchCallIds(), WaitCallIds(), CaptureCallIds()}) {
    if (auto done = EnableCalls(calls); !done) return done;
  }
  for (const CUpti_CallbackIdResource id : kGraphEvents) {
    auto done =
        cupti_.Check(cupti_.cuptiEnableCallback(1, subscriber_, CUPTI_CB_DOMAIN_RESOURCE, id),
                     "asking for what becomes of graphs");
    if (!done) return done;
  }
  return records_ ? EnableRecords() : Result<void>{};
}

Result<void> CuptiSession::Impl::LendBuffers() {
  uint8_t yes = 1;
  size_t size = sizeof yes;
  // It is no more than a promise which makes it faster.
  cupti_.cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &yes);
  return cupti_.Check(cupti_.cuptiActivityRegisterCallbacks(CuptiCollector::OnBufferRequested,
                                                            CuptiCollector::OnBufferCompleted),
                      "lending buffers to CUPTI");
}

Result<void> CuptiSession::Impl::EnableRecords() {
  for (const CUpti_ActivityKind kind : kActivities) {
    auto done = cupti_.Check(cupti_.cuptiActivityEnable(kind), "asking for records");
    if (!done) return done;
  }
  return {};
}

Result<void> CuptiSession::Impl::EnableCalls(std::span<const uint32_t> calls) {
  for (const uint32_t id : calls) {
    const CUptiResult result =
        cupti_.cuptiEnableCallback(1, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API, id);
    // Of a function that is later than this CUPTI.
    if (result == CUPTI_ERROR_INVALID_PARAMETER) continue;
    if (auto done = cupti_.Check(result, "asking for callbacks"); !done) return done;
  }
  return {};
}

void CuptiSession::Impl::Restart() {
  const std::lock_guard lock(decode_mutex_);
  sums_.Clear();
  idle_.Clear();
  ranges_.Clear();
  decoder_.Restart(MonotonicNow());
  collector_.waits().Clear();
  collector_.ForgetLaunches();
}

Result<void> CuptiSession::Impl::Stop() {
  const std::lock_guard lock(stop_mutex_);
  if (!stopped_) stopped_ = End();
  return *stopped_;
}

// The first failure is told, but all of it is tried. Callbacks end after the records, so that none
// is left without its launch.
Result<void> CuptiSession::Impl::End() {
  Result<void> done;
  const auto note = [&](CUptiResult result, std::string_view what) {
    if (done) done = cupti_.Check(result, what);
  };
  if (records_) {
    for (const CUpti_ActivityKind kind : kActivities) {
      note(cupti_.cuptiActivityDisable(kind), "ending the records");
    }
  }
  note(cupti_.cuptiUnsubscribe(subscriber_), "ending the callbacks");
  if (thread_.joinable()) {
    if (records_) {
      const std::lock_guard lock(flush_mutex_);
      note(cupti_.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED),
           "reading the last records");
    }
    ends_ = true;
    collector_.buffers().Wake();
    thread_.join();
  }
  size_t dropped = 0;
  if (records_) {
    note(cupti_.cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped), "counting lost records");
  }
  Close();
  facts_ = Counted();
  facts_.dropped = dropped;
  const auto left = Leave();
  return done ? left : done;
}

// Without it each launch stays slower than it was.
Result<void> CuptiSession::Impl::Leave() {
  Result<void> left;
  if (collector_.saw_graphs() && cupti_.version < kEndsBesideGraphs) {
    left = Fail(ErrorCode::kGpu,
                "CUPTI was not left, which before CUDA 12.6 breaks programs with CUDA graphs: "
                "launches stay somewhat slower");
  } else {
    left = cupti_.Check(cupti_.cuptiFinalize(), "leaving CUPTI");
  }
  if (left) {
    collector_.GiveBack();
  } else {
    collector_.Keep(left.error().message);
  }
  return left;
}

void CuptiSession::Impl::Run() {
  ActivityBuffers& buffers = collector_.buffers();
  Nanoseconds flush_at = MonotonicNow() + flush_every_;
  while (!ends_) {
    if (const auto filled = buffers.Take(flush_at)) Decode(*filled);
    if (MonotonicNow() < flush_at) continue;
    if (records_) {
      const std::lock_guard lock(flush_mutex_);
      if (!ends_) cupti_.cuptiActivityFlushAll(0);
    } else {
      const std::lock_guard lock(decode_mutex_);
      TakeWaits();
    }
    flush_at = MonotonicNow() + flush_every_;
    NoteCpuTime();
  }
  while (const auto filled = buffers.Take(Nanoseconds::zero())) Decode(*filled);
  const std::lock_guard lock(decode_mutex_);
  TakeWaits();
  idle_.Finish();
}

void CuptiSession::Impl::Decode(const ActivityBuffers::Filled& filled) {
  {
    const std::lock_guard lock(decode_mutex_);
    TakeWaits();
    decoder_.Decode(filled.data, filled.bytes);
  }
  collector_.buffers().GiveBack(filled);
  NoteCpuTime();
}

// On the decoder's thread.
void CuptiSession::Impl::NoteCpuTime() {
  cpu_ns_.store(ThreadCpuNow().count(), std::memory_order_relaxed);
}

// With the decoder's lock.
void CuptiSession::Impl::TakeWaits() {
  collector_.waits().Take(taken_);
  for (const HostWait& wait : taken_) idle_.Add(wait);
}

void CuptiSession::Impl::Close() {
  const std::lock_guard lock(decode_mutex_);
  if (!records_) AddTally(sums_);
  is_whole_ = true;
}

void CuptiSession::Impl::AddTally(KernelSums& to) const {
  for (const TallyRow& row : collector_.tally()) {
    to.AddUntimed({.kind = row.kind,
                   .name = row.name,
                   .device = row.device,
                   .stream = kNoStream,
                   .origin = {.path = row.path}},
                  row.count, row.is_of_several);
  }
}

// With the decoder's lock, or once its thread has ended.
CuptiFacts CuptiSession::Impl::Counted() const {
  return {.launches_only = !records_,
          .launches = collector_.launches(),
          .records = decoder_.counts().records,
          .of_graphs = decoder_.counts().of_graphs,
          .unmatched = decoder_.counts().unmatched,
          .other_records = decoder_.counts().other,
          .declined_buffers = collector_.buffers().declined(),
          .lost_waits = collector_.waits().lost(),
          .discarded_bytes = collector_.buffers().spare_bytes()};
}

CuptiFacts CuptiSession::Impl::Facts() const {
  const std::lock_guard lock(stop_mutex_);
  CuptiFacts facts = facts_;
  if (!stopped_) {
    const std::lock_guard decode_lock(decode_mutex_);
    facts = Counted();
  }
  facts.cupti_version = cupti_.version;
  facts.cupti_path = cupti_.path;
  facts.driver_version = driver_version_;
  facts.decoder_cpu = Nanoseconds(cpu_ns_.load(std::memory_order_relaxed));
  return facts;
}

CuptiSession::CuptiSession(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<CuptiSession>> CuptiSession::Start(const CuptiOptions& options,
                                                          LaunchPath& path) {
  const auto driver_version = DriverVersion();
  if (!driver_version) return std::unexpected(driver_version.error());
  const auto cupti = CuptiApi::Load(options.library_paths);
  if (!cupti) return std::unexpected(cupti.error());
  constexpr size_t kNoRecords = 4096;  // one buffer that nobody asks for
  const auto collector =
      CuptiCollector::Take({.count = options.records ? options.buffers : 1,
                            .bytes = options.records ? options.buffer_bytes : kNoRecords,
                            .spare = (*cupti)->version < kTakesNoBuffer,
                            .tallies = !options.records,
                            .cupti = *cupti},
                           path);
  if (!collector) return std::unexpected(collector.error());
  auto impl = std::make_unique<Impl>(**cupti, *driver_version, **collector, options);
  if (auto done = impl->Start(); !done) return std::unexpected(done.error());
  return std::unique_ptr<CuptiSession>(new CuptiSession(std::move(impl)));
}

bool CuptiSession::IsInChild() { return CuptiCollector::IsInChild(); }

CuptiSession::~CuptiSession() {
  if (CuptiCollector::IsInChild()) {
    // Its thread is not there, and its locks may be held for ever.
    impl_.release();
    return;
  }
  impl_->Stop();
}

void CuptiSession::Restart() {
  if (!CuptiCollector::IsInChild()) impl_->Restart();
}

bool CuptiSession::IsCapturing() const {
  return !CuptiCollector::IsInChild() && impl_->IsCapturing();
}

void CuptiSession::NoMoreWaits() {
  if (!CuptiCollector::IsInChild()) impl_->NoMoreWaits();
}

Result<void> CuptiSession::Stop() {
  if (CuptiCollector::IsInChild()) return {};
  return impl_->Stop();
}

CuptiFacts CuptiSession::Facts() const {
  if (CuptiCollector::IsInChild()) return {};
  return impl_->Facts();
}

bool CuptiSession::Read(FunctionRef<void(const KernelSums&, const IdleTime&)> reader) const {
  if (CuptiCollector::IsInChild()) return false;
  impl_->Read(reader);
  return true;
}

std::vector<RangeStreamSum> CuptiSession::RangeSums() const {
  if (CuptiCollector::IsInChild()) return {};
  return impl_->RangeSums();
}

}  // namespace pystrobe::gpu
