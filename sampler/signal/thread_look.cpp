// SPDX-License-Identifier: Apache-2.0
#include "sampler/signal/thread_look.h"

#include <linux/perf_event.h>
#include <pthread.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "sampler/pyabi/regions.h"
#include "sampler/pyabi/walk_over.h"

namespace pystrobe::signals {
namespace {

using pyabi::kAbsent;
using pyabi::WalkStatus;

// Some hundreds of samples of ordinary depth; they are fetched a hundred times a second.
constexpr size_t kRingBytes = size_t{512} << 10;
// As many of those that take their stack along, as the first ones do.
constexpr size_t kNativeRingBytes = size_t{4} << 20;
// Room that those leave to others.
constexpr size_t kLeftByStacks = size_t{1} << 20;
// Code objects that are new in one look: about a microsecond each.
constexpr size_t kMostCodes = 64;

// No more than a push or a pop takes, and as little as the kernel grants.
constexpr uint64_t kSoonNs = 10'000;
constexpr uint32_t kMostTries = 4;
constexpr uint32_t kSignalsPerPeriod = 8;
constexpr uint64_t kLooksPerPeriod = 2;

// What others do on its CPU meanwhile takes longer, but for interrupts.
constexpr Nanoseconds kUndisturbed = std::chrono::microseconds(50);

// Of CPU time, looks included: where they take most of it a thread hardly gets on, or not at all.
uint64_t LeastPeriod(Nanoseconds look) {
  return static_cast<uint64_t>(look.count()) * kLooksPerPeriod + kSoonNs;
}

void SetPeriod(int perf_event, uint64_t period_ns) {
  ioctl(perf_event, PERF_EVENT_IOC_PERIOD, &period_ns);
}

template <typename T>
void CopyTo(std::byte*& into, const T* from, size_t count) {
  std::memcpy(into, from, count * sizeof(T));
  into += count * sizeof(T);
}

}  // namespace

Result<std::unique_ptr<ThreadLook>> ThreadLook::Make(const Options& options) {
  auto records = RecordRing::Make(options.rules != nullptr ? kNativeRingBytes : kRingBytes);
  if (!records) return std::unexpected(records.error());
  const size_t rest = sizeof(RawSample) + kMostCodes * sizeof(FoundCode) + Captures::kMostBytes +
                      (options.rules != nullptr ? NativeLook::kMostRecord : 0);
  const size_t most_frames = (records->longest() - rest) / sizeof(pyabi::RawFrame);
  auto memory = OwnMemory::Make(options.pid);
  if (!memory) return std::unexpected(memory.error());
  auto frames = Frames::Make(most_frames);
  if (!frames) return std::unexpected(frames.error());
  auto previous = Frames::Make(most_frames);
  if (!previous) return std::unexpected(previous.error());
  auto loop_frames = LazyArray<Address>::Make(most_frames);
  if (!loop_frames) return std::unexpected(loop_frames.error());
  auto codes = LazyArray<FoundCode>::Make(kMostCodes);
  if (!codes) return std::unexpected(codes.error());
  auto captures = Captures::Make();
  if (!captures) return std::unexpected(captures.error());
  std::optional<NativeLook> native;
  if (options.rules != nullptr) {
    auto made = NativeLook::Make(*options.rules, options.stack_end);
    if (!made) return std::unexpected(made.error());
    native = *std::move(made);
  }
  return std::unique_ptr<ThreadLook>(new ThreadLook(options, *std::move(memory), *std::move(frames),
                                                    *std::move(previous), *std::move(loop_frames),
                                                    *std::move(codes), *std::move(captures),
                                                    std::move(native), *std::move(records)));
}

ThreadLook::ThreadLook(const Options& options, OwnMemory memory, Frames frames, Frames previous,
                       LazyArray<Address> loop_frames, LazyArray<FoundCode> codes,
                       Captures captures, std::optional<NativeLook> native, RecordRing records)
    : layout_(options.layout),
      known_(options.known),
      news_(options.news),
      state_key_(options.state_key),
      memory_(std::move(memory)),
      chains_{pyabi::ChainStart(layout_, 0), pyabi::ChainStart(layout_, 0),
              pyabi::ChainStart(layout_, 0), pyabi::ChainStart(layout_, 0)},
      unlisted_(layout_, 0),
      frames_(std::move(frames)),
      previous_(std::move(previous)),
      loop_frames_(std::move(loop_frames)),
      codes_(std::move(codes)),
      captures_(std::move(captures)),
      native_(std::move(native)),
      period_ns_(static_cast<uint64_t>(options.period.count())),
      periods_{.period_ns = options.period.count(),
               .state = static_cast<uint64_t>(MonotonicNow().count()) | 1},
      records_(std::move(records)) {}

void ThreadLook::SetStates(std::span<const Address> states) {
  for (size_t i = 0; i < kMostStates; ++i) states_[i].store(i < states.size() ? states[i] : 0);
}

void ThreadLook::SetEvent(const CpuEvent& event) {
  event_fd_.store(event.fd());
  if (native_ && event.fd() >= 0) log_.Open(event.fd());
}

void ThreadLook::Take(const ucontext_t& context, bool of_timer) {
  const Moment begin{MonotonicNow(), ThreadCpuNow()};
  const bool for_event = of_timer && event_fd_.load() >= 0;
  if (for_event && !IsOverdue(begin.cpu - last_)) return;
  last_ = begin.cpu;
  RawSample head{};
  head.time_ns = begin.time.count();
  head.cpu_ns = static_cast<uint64_t>(begin.cpu.count());
  memory_.Renew();
  head.status = LookAtFrames();
  if (TryAgain(head.status)) {
    const Nanoseconds look = CpuSince(begin);
    tried_ += look;
    // Counted from here, or it would be due before the thread has run on.
    SetPeriod(event_fd_.load(), LeastPeriod(look));
    return;
  }
  head.tries = std::exchange(tries_, 0);
  const bool has_new = LookAtCodes();
  if (native_) {
    native_->Take(memory_, native::FromContext(context));
    head.in_kernel = for_event || WasInKernel(context);
  }
  head.period_ns = period_ns_;
  head.generation = generation_;
  std::byte* const record = Write(head);
  DrawPeriod(head.tries > 0, CpuSince(begin));
  if (record != nullptr) Commit(record, std::exchange(tried_, {}) + CpuSince(begin));
  // What was captured for lack of names need not be again.
  if (has_new || (native_ && native_->end() == native::StepResult::kNotAsked)) news_.Ring();
}

// To ask for CPU time is a system call, and a good part of what a look takes.
Nanoseconds ThreadLook::CpuSince(const Moment& begin) {
  const Nanoseconds elapsed = MonotonicNow() - begin.time;
  return elapsed < kUndisturbed ? elapsed : ThreadCpuNow() - begin.cpu;
}

WalkStatus ThreadLook::LookAtFrames() {
  frames_.clear();
  loop_frames_.clear();
  is_cut_ = false;
  generation_ = 0;
  is_unreadable_ = false;
  pyabi::ChainStart* chain = CurrentChain();
  // There is no Python in this thread, or that cannot be found out.
  if (chain == nullptr) return is_unreadable_ ? WalkStatus::kMissing : WalkStatus::kComplete;
  if (layout_.interpreter.code_object_generation != kAbsent) {
    const auto interpreter = memory_.ValueOr0<Address>(chain->tstate() + layout_.thread.interp);
    generation_ =
        memory_.ValueOr0<uint64_t>(interpreter + layout_.interpreter.code_object_generation);
  }
  chain->Begin();
  const std::optional<Address> first = chain->FindFirst(memory_);
  if (!first) return WalkStatus::kMissing;
  return WalkFrom(*chain, *first);
}

WalkStatus ThreadLook::WalkFrom(pyabi::ChainStart& chain, Address first) {
  const pyabi::WalkResult walk = pyabi::WalkOver(memory_, layout_, first, frames_, loop_frames_);
  // A stack that is too deep is one as far as it goes.
  is_cut_ = frames_.size() == frames_.capacity();
  const bool is_whole = walk.status == WalkStatus::kComplete || is_cut_;
  if (is_whole && chain.IsSettled(memory_, walk, loop_frames_)) {
    chain.Confirm();
    if (const auto* regions = pyabi::Regions::OfThisProcessIfAny()) regions->Note(frames_);
    return walk.status;
  }
  // What was found may be left from long ago.
  frames_.clear();
  is_cut_ = false;
  return WalkStatus::kIncomplete;
}

// An event's signal should have come by now: it is not sent in the kernel.
bool ThreadLook::IsOverdue(Nanoseconds since_last) const {
  return since_last > Nanoseconds(period_ns_ + period_ns_ / 4);
}

// A page fault leaves nothing in the registers.
bool ThreadLook::WasInKernel(const ucontext_t& context) {
  return log_.TakeInKernel().value_or(native::IsInSystemCall(context));
}

// To set a period costs as much as a look.
void ThreadLook::DrawPeriod(bool was_changed, Nanoseconds look) {
  const int event = event_fd_.load();
  const uint64_t least = LeastPeriod(look);
  const bool is_due = ++signals_ % kSignalsPerPeriod == 0;
  if (event < 0 || !(is_due || was_changed || period_ns_ < least)) return;
  const int64_t last = periods_.last_ns;
  period_ns_ = std::max(static_cast<uint64_t>(periods_.Draw() - last), least);
  SetPeriod(event, period_ns_);
}

// What is too deep stays so.
bool ThreadLook::TryAgain(WalkStatus status) {
  if (status == WalkStatus::kComplete || is_cut_) return false;
  if (event_fd_.load() < 0 || tries_ == kMostTries) return false;
  ++tries_;
  return true;
}

// What the thread itself says is newer than the list.
pyabi::ChainStart* ThreadLook::CurrentChain() {
  const std::optional<Address> own = state_key_.Get();
  if (own == 0) return nullptr;
  if (own && !IsListed(*own)) return IsOurs(*own) ? ChainOf(*own, unlisted_) : nullptr;
  pyabi::ChainStart* outermost = nullptr;
  for (size_t i = 0; i < kMostStates; ++i) {
    const Address state = states_[i].load(std::memory_order_relaxed);
    if (state == 0) break;
    if (!IsOurs(state)) continue;
    if (!own && LearnKey()) return CurrentChain();
    outermost = ChainOf(state, chains_[i]);
    if (IsCurrent(state)) break;
  }
  return outermost;
}

bool ThreadLook::LearnKey() {
  return state_key_.Learn([this](Address state) { return IsOurs(state); });
}

bool ThreadLook::IsListed(Address state) const {
  return std::any_of(states_.begin(), states_.end(), [state](const std::atomic<Address>& listed) {
    return listed.load(std::memory_order_relaxed) == state;
  });
}

// It may be gone, and its memory another thread's.
bool ThreadLook::IsOurs(Address state) {
  const Address of_thread = state + layout_.thread.thread_id;
  if (memory_.ValueOr0<uint64_t>(of_thread) != pthread_self()) {
    if (memory_.Find(of_thread, sizeof(uint64_t)) == nullptr) is_unreadable_ = true;
    return false;
  }
  if (layout_.thread.status == kAbsent) return true;
  const auto status = memory_.ValueOr0<uint32_t>(state + layout_.thread.status);
  return (status & (pyabi::kStatusBound | pyabi::kStatusUnbound)) == pyabi::kStatusBound;
}

pyabi::ChainStart* ThreadLook::ChainOf(Address state, pyabi::ChainStart& place) {
  if (place.tstate() != state) place = pyabi::ChainStart(layout_, state);
  return &place;
}

// Of several interpreters that the thread has entered, as sampler/remote/kernel_thread.cpp has it.
bool ThreadLook::IsCurrent(Address state) {
  if (layout_.thread.status != kAbsent) {
    const auto status = memory_.ValueOr0<uint32_t>(state + layout_.thread.status);
    return (status & pyabi::kStatusBoundGilstate) != 0;
  }
  return pyabi::ChainStart(layout_, state).FindFirst(memory_).value_or(0) != 0;
}

bool ThreadLook::LookAtCodes() {
  codes_.clear();
  captures_.clear();
  bool has_new = false;
  const size_t size = layout_.code.size;
  Address last = 0;
  for (const pyabi::RawFrame& frame : frames_) {
    if (std::exchange(last, frame.code) == frame.code) continue;
    const KnownCodes::Known known = known_.Of(frame.code, generation_);
    if (known.knowledge == CodeKnowledge::kLasting || WasFound(frame.code)) continue;
    const std::byte* bytes = memory_.Find(frame.code, size);
    if (bytes == nullptr) continue;
    const FoundCode found{frame.code, pyabi::IdentityOf(layout_, {bytes, size})};
    if (!codes_.Append(found)) break;
    if (known.knowledge == CodeKnowledge::kNamed &&
        known.fingerprint == FingerprintOf(found.identity)) {
      continue;
    }
    has_new = true;
    captures_.AddCode(memory_, layout_, found);
  }
  return has_new;
}

bool ThreadLook::WasFound(Address code) const {
  return std::any_of(codes_.begin(), codes_.end(),
                     [code](const FoundCode& found) { return found.code == code; });
}

uint32_t ThreadLook::CountCommon() const {
  const size_t most = std::min(frames_.size(), previous_.size());
  uint32_t common = 0;
  while (common < most &&
         frames_[frames_.size() - 1 - common] == previous_[previous_.size() - 1 - common]) {
    ++common;
  }
  return common;
}

std::byte* ThreadLook::Write(RawSample head) {
  head.common = CountCommon();
  head.frame_count = static_cast<uint32_t>(frames_.size()) - head.common;
  head.code_count = static_cast<uint32_t>(codes_.size());
  head.captured_bytes = static_cast<uint32_t>(captures_.bytes().size());
  if (native_) {
    head.native_end = native_->end();
    head.native_common = native_->CountCommon();
    head.native_count = static_cast<uint32_t>(native_->instructions().size()) - head.native_common;
    head.stack_bytes = static_cast<uint32_t>(native_->stack_bytes());
  }
  std::byte* into = records_.Reserve(RecordSize(head), head.stack_bytes > 0 ? kLeftByStacks : 0);
  if (into == nullptr && head.stack_bytes > 0) {
    head.stack_bytes = 0;
    into = records_.Reserve(RecordSize(head));
  }
  if (into == nullptr) {
    lost_.fetch_add(1);
    return nullptr;
  }
  std::byte* const record = into;
  head.lost = lost_.exchange(0);
  CopyTo(into, &head, 1);
  CopyTo(into, frames_.data(), head.frame_count);
  CopyTo(into, codes_.data(), head.code_count);
  CopyTo(into, captures_.bytes().data(), head.captured_bytes);
  WriteNative(head, into);
  std::swap(frames_, previous_);
  return record;
}

void ThreadLook::Commit(std::byte* record, Nanoseconds spent) {
  const auto handler_ns = static_cast<uint32_t>(spent.count());
  std::memcpy(record + offsetof(RawSample, handler_ns), &handler_ns, sizeof handler_ns);
  records_.Commit();
}

void ThreadLook::WriteNative(const RawSample& head, std::byte* into) {
  if (!native_) return;
  CopyTo(into, native_->instructions().data(), head.native_count);
  if (HasStack(head)) {
    CopyTo(into, &native_->cursor(), 1);
    if (head.stack_bytes > 0) native_->WriteStack(memory_, into);
  }
  native_->Keep();
}

}  // namespace pystrobe::signals
