// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvtx_ranges.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace pystrobe::gpu {

constinit thread_local ThreadRanges* ranges_of_thread = nullptr;

namespace {

constexpr int kNotKept = -2;  // NVTX_NO_PUSH_POP_TRACKING
constexpr int kNoRange = -1;
// Of the id of a range that was started: above it the number of its thread.
constexpr int kIdBits = 40;
constexpr uint64_t kIdMask = (uint64_t{1} << kIdBits) - 1;

NvtxRanges* of_this_process = nullptr;
// What other thread_locals do as they are destroyed comes too late to be kept.
[[gnu::tls_model("initial-exec")]] constinit thread_local bool has_ended = false;

std::string_view Cut(std::string_view name) {
  if (name.size() <= RangeNodes::kMaxName) return name;
  size_t size = RangeNodes::kMaxName;
  const auto goes_on = [&] { return (static_cast<unsigned char>(name[size]) & 0xC0) == 0x80; };
  while (size > RangeNodes::kMaxName - 4 && goes_on()) --size;
  return name.substr(0, size);
}

}  // namespace

// Of each thread that ever had a range: its destructor runs as the thread ends.
struct RangesOfEndedThread {
  ~RangesOfEndedThread() {
    of_this_process->LeaveThread();
    has_ended = true;
  }
};

// False where there is no room or no memory.
bool ThreadRanges::Add(uint32_t domain, uint64_t id, std::string_view name) noexcept {
  if (size_ >= kMaxOpen) return false;
  try {
    if (size_ == open_.size()) open_.emplace_back();
    Open& range = open_[size_];
    range.name = name;
    range.domain = domain;
    range.id = id;
    if (recorder_ != nullptr) {
      const auto* const within = size_ == 0 ? nullptr : &open_[size_ - 1].recorded;
      range.recorded = recorder_->Begin(within, domain, name);
    }
  } catch (const std::bad_alloc&) {
    return false;
  }
  ++size_;
  Publish();
  return true;
}

void ThreadRanges::CloseAt(size_t i, Nanoseconds now) {
  if (recorder_ != nullptr) recorder_->End(open_[i].recorded, now, tid_);
  const auto at = open_.begin() + static_cast<std::ptrdiff_t>(i);
  std::rotate(at, at + 1, open_.begin() + static_cast<std::ptrdiff_t>(size_));
  --size_;
  for (size_t inner = i; recorder_ != nullptr && inner < size_; ++inner) {
    const auto* const within = inner == 0 ? nullptr : &open_[inner - 1].recorded;
    recorder_->Continue(open_[inner].recorded, within, open_[inner].domain, open_[inner].name);
  }
  Publish();
}

bool ThreadRanges::ClosePushed(uint32_t domain, Nanoseconds now) {
  for (size_t i = size_; i-- > 0;) {
    if (open_[i].id != 0 || open_[i].domain != domain) continue;
    CloseAt(i, now);
    return true;
  }
  return false;
}

bool ThreadRanges::CloseStarted(uint64_t id, Nanoseconds now) {
  for (size_t i = size_; i-- > 0;) {
    if (open_[i].id != id) continue;
    CloseAt(i, now);
    return true;
  }
  return false;
}

void ThreadRanges::CountOther() {
  if (recorder_ != nullptr) recorder_->CountOther();
}

void ThreadRanges::Publish() {
  const bool has_any = recorder_ != nullptr && size_ > 0;
  const uint32_t instance = has_any ? open_[size_ - 1].recorded.innermost : 0;
  current_.store(RangeInstances::LabelOf(instance), std::memory_order_relaxed);
}

void ThreadRanges::Record(RangeRecorder& recorder) {
  recorder_ = &recorder;
  for (size_t i = 0; i < size_; ++i) {
    const auto* const within = i == 0 ? nullptr : &open_[i - 1].recorded;
    try {
      open_[i].recorded = recorder.Begin(within, open_[i].domain, open_[i].name);
    } catch (const std::bad_alloc&) {
      open_[i].recorded = {.is_timed = false};
    }
  }
  Publish();
}

void ThreadRanges::StopRecording(Nanoseconds now) {
  if (recorder_ == nullptr) return;
  for (size_t i = size_; i-- > 0;) recorder_->End(open_[i].recorded, now, tid_);
  recorder_ = nullptr;
  Publish();
}

uint32_t NvtxRanges::Domain(std::string_view name) { return domains_.Intern(Cut(name)); }

Result<NvtxRanges*> NvtxRanges::OfThisProcess() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (of_this_process != nullptr) return of_this_process;
  auto domains = NameTable::Make(ThreadRanges::kMaxDomains, "(other domains)");
  if (!domains) return std::unexpected(domains.error());
  auto recorder = RangeRecorder::Make();
  if (!recorder) return std::unexpected(recorder.error());
  of_this_process = new NvtxRanges(*std::move(domains), *std::move(recorder));
  pthread_atfork(&HoldForFork, &LetGo, &GoOnInChild);
  return of_this_process;
}

void NvtxRanges::HoldForFork() {
  of_this_process->mutex_.lock();
  of_this_process->domains_.mutex().lock();
  of_this_process->recorder_->LockAll();
}

void NvtxRanges::LetGo() {
  of_this_process->recorder_->UnlockAll();
  of_this_process->domains_.mutex().unlock();
  of_this_process->mutex_.unlock();
}

// What other threads had open, and the locks of that, are in no known state.
void NvtxRanges::GoOnInChild() {
  NvtxRanges& self = *of_this_process;
  for (auto& thread : self.threads_) static_cast<void>(thread.release());
  self.threads_.clear();
  self.free_.clear();
  self.running_ = 0;
  ranges_of_thread = nullptr;
  LetGo();
}

ThreadRanges* NvtxRanges::OfThread() {
  ThreadRanges* const ranges = ranges_of_thread;
  return ranges != nullptr ? ranges : Enter();
}

ThreadRanges* NvtxRanges::Enter() {
  if (has_ended) return nullptr;
  // Before any lock: the C library takes the one that dlopen has.
  static thread_local const RangesOfEndedThread ended;
  static_cast<void>(ended);
  const std::lock_guard lock(mutex_);
  ThreadRanges* ranges = nullptr;
  if (!free_.empty()) {
    ranges = free_.back();
    free_.pop_back();
  } else {
    try {
      // So that a thread that ends needs no memory.
      free_.reserve(threads_.size() + 1);
      ranges = threads_.emplace_back(std::make_unique<ThreadRanges>()).get();
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    ranges->number_ = threads_.size();
  }
  const std::lock_guard own_lock(ranges->mutex_);
  ranges->tid_ = static_cast<uint32_t>(gettid());
  ranges->has_ended_ = false;
  ranges->recorder_ = running_ != 0 ? recorder_.get() : nullptr;
  ranges_of_thread = ranges;
  return ranges;
}

void NvtxRanges::LeaveThread() {
  ThreadRanges* const ranges = std::exchange(ranges_of_thread, nullptr);
  if (ranges == nullptr) return;
  const std::lock_guard lock(mutex_);
  const std::lock_guard own_lock(ranges->mutex_);
  const Nanoseconds now = ranges->Now();
  for (size_t i = ranges->size_; i-- > 0;) {
    if (ranges->open_[i].id == 0) ranges->CloseAt(i, now);
  }
  ranges->depths_ = {};
  ranges->has_ended_ = true;
  FreeIfDone(*ranges);
}

// With both locks.
void NvtxRanges::FreeIfDone(ThreadRanges& ranges) {
  if (ranges.has_ended_ && ranges.size_ == 0) free_.push_back(&ranges);
}

int NvtxRanges::Push(uint32_t domain, std::string_view name) noexcept {
  ThreadRanges* const ranges = OfThread();
  if (ranges == nullptr || domain >= ThreadRanges::kMaxDomains) return kNotKept;
  const std::lock_guard lock(ranges->mutex_);
  if (domain == NameTable::kOther) {
    // Whose a pop would be is not known.
    ranges->CountOther();
    return kNotKept;
  }
  ThreadRanges::Depth& depth = ranges->depths_[domain];
  const auto level = static_cast<int>(depth.open + depth.deeper);
  if (depth.deeper == 0 && ranges->Add(domain, 0, Cut(name))) {
    ++depth.open;
  } else {
    ++depth.deeper;
    ranges->CountOther();
  }
  return level;
}

int NvtxRanges::Pop(uint32_t domain) noexcept {
  ThreadRanges* const ranges = ranges_of_thread;
  if (ranges == nullptr || domain >= ThreadRanges::kMaxDomains || domain == NameTable::kOther) {
    return kNoRange;
  }
  const std::lock_guard lock(ranges->mutex_);
  ThreadRanges::Depth& depth = ranges->depths_[domain];
  if (depth.deeper > 0) {
    --depth.deeper;
  } else if (ranges->ClosePushed(domain, ranges->Now())) {
    --depth.open;
  } else {
    return kNoRange;
  }
  return static_cast<int>(depth.open + depth.deeper);
}

uint64_t NvtxRanges::Start(uint32_t domain, std::string_view name) noexcept {
  ThreadRanges* const ranges = OfThread();
  if (ranges == nullptr) return 0;
  const std::lock_guard lock(ranges->mutex_);
  const uint64_t id =
      ranges->number_ << kIdBits | (next_id_.fetch_add(1, std::memory_order_relaxed) & kIdMask);
  if (ranges->Add(domain, id, Cut(name))) return id;
  ranges->CountOther();
  return 0;
}

void NvtxRanges::End(uint64_t id) noexcept {
  const uint64_t number = id >> kIdBits;
  ThreadRanges* ranges = ranges_of_thread;
  if (ranges != nullptr && ranges->number_ == number) {
    const std::lock_guard lock(ranges->mutex_);
    ranges->CloseStarted(id, ranges->Now());
    return;
  }
  const std::lock_guard lock(mutex_);
  if (number == 0 || number > threads_.size()) return;
  ranges = threads_[number - 1].get();
  const std::lock_guard own_lock(ranges->mutex_);
  if (ranges->CloseStarted(id, ranges->Now())) FreeIfDone(*ranges);
}

Result<uint64_t> NvtxRanges::BeginRecording(const RangeOptions& options) {
  const std::lock_guard lock(mutex_);
  if (running_ != 0) {
    return FailWithHint(ErrorCode::kGpu, "Stop the one that runs.",
                        "the ranges of this process are recorded already");
  }
  running_ = ++recordings_;
  StartAll(options);
  return running_;
}

void NvtxRanges::RestartRecording(uint64_t recording) {
  const std::lock_guard lock(mutex_);
  if (running_ != recording) return;
  StopAll(MonotonicNow());
  StartAll(options_);
}

FoundRanges NvtxRanges::EndRecording(uint64_t recording, Nanoseconds end) {
  const std::lock_guard lock(mutex_);
  if (running_ != recording) return {};
  running_ = 0;
  StopAll(end);
  FoundRanges found = recorder_->Take();
  recorder_->Clear({});
  return found;
}

void NvtxRanges::DropRecording(uint64_t recording) {
  const std::lock_guard lock(mutex_);
  if (running_ != recording) return;
  running_ = 0;
  StopAll(MonotonicNow());
  recorder_->Clear({});
}

void NvtxRanges::StartAll(const RangeOptions& options) {
  options_ = options;
  recorder_->Clear(options);
  for (const auto& thread : threads_) {
    const std::lock_guard lock(thread->mutex_);
    thread->Record(*recorder_);
  }
}

void NvtxRanges::StopAll(Nanoseconds end) {
  for (const auto& thread : threads_) {
    const std::lock_guard lock(thread->mutex_);
    thread->StopRecording(end);
  }
}

}  // namespace pystrobe::gpu
