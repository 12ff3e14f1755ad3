// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/unwinder.h"

#include <pthread.h>

#include "profiler/base/thread.h"
#include "sampler/native/evaluation_loop.h"

namespace pystrobe::remote {
namespace {

// Nobody wakes it for an order: that would cost the pacer more than to leave one.
constexpr auto kNap = std::chrono::milliseconds(10);
// How long code may have been loaded, or another's place been taken, before that is known. To ask
// takes some hundred microseconds of ours.
constexpr Nanoseconds kRefreshInterval = std::chrono::milliseconds(10);
constexpr size_t kMostFrames = 100'000;
// Some hundred bytes each.
constexpr size_t kMostTold = 100'000;

}  // namespace

Result<std::unique_ptr<Unwinder>> Unwinder::Start(const Target& target) {
  auto binaries = native::Binaries::Of(target.pid(), target.memory());
  if (!binaries) return std::unexpected(binaries.error());
  std::unique_ptr<Unwinder> unwinder(new Unwinder(target, *std::move(binaries)));
  auto thread = StartThread("unwinding the target's stacks", [u = unwinder.get()] { u->Main(); });
  if (!thread) return std::unexpected(thread.error());
  unwinder->thread_ = *std::move(thread);
  return unwinder;
}

Unwinder::Unwinder(const Target& target, native::Binaries binaries)
    : target_(target), binaries_(std::move(binaries)), code_(binaries_, target.memory()) {}

Unwinder::~Unwinder() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    end_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool Unwinder::Submit(UnwindOrder order) {
  std::lock_guard lock(mutex_);
  const size_t bytes = order.stack.byte_count();
  if (waiting_bytes_ + bytes > kMostBytes) return false;
  waiting_bytes_ += bytes;
  orders_.push_back(std::move(order));
  return true;
}

std::vector<UnwoundStack> Unwinder::TakeDone(bool all) {
  std::unique_lock lock(mutex_);
  if (all) {
    hurry_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return orders_.empty() && !busy_; });
    hurry_ = false;
  }
  return std::exchange(done_, {});
}

void Unwinder::Main() {
  pthread_setname_np(pthread_self(), "unwinder");
  FindInterpreter();
  std::unique_lock lock(mutex_);
  while (!end_) {
    if (orders_.empty()) {
      changed_.notify_all();
      changed_.wait_for(lock, kNap, [this] { return end_ || (hurry_ && !orders_.empty()); });
      continue;
    }
    const UnwindOrder order = std::move(orders_.front());
    orders_.pop_front();
    busy_ = true;
    lock.unlock();
    Refresh();
    UnwoundStack done = Unwind(order);
    lock.lock();
    busy_ = false;
    waiting_bytes_ -= order.stack.byte_count();
    done_.push_back(std::move(done));
  }
}

// Its file is the largest as a rule, and needed for every stack.
void Unwinder::FindInterpreter() {
  const native::Module* interpreter = binaries_.ModuleAt(target_.info().code_type);
  if (interpreter == nullptr) return;
  const auto loop = interpreter->image.FindSymbol(target_.memory(), native::kEvaluationLoop);
  if (!loop) return;
  rules_.Find(loop->address);
  code_.Of(loop->address);
}

void Unwinder::Refresh() {
  const Nanoseconds now = MonotonicNow();
  if (now < next_refresh_) return;
  next_refresh_ = now + kRefreshInterval;
  // What another program has in their place is not what the stacks are of.
  if (!target_.StillThere()) return;
  const auto change = binaries_.Refresh();
  if (!change || *change == native::Binaries::Change::kNone) return;
  if (*change == native::Binaries::Change::kCame) {
    rules_.ForgetUnknown();
    code_.ForgetUnknown();
  } else {
    rules_.Forget();
    code_.Forget();
  }
  ++epoch_;
}

UnwoundStack Unwinder::Unwind(const UnwindOrder& order) {
  UnwoundStack done;
  native::UnwindCursor cursor{order.stack.registers()};
  const native::StackBytes bytes = order.stack.bytes();
  native::InstructionList list{done.instructions, kMostFrames};
  const native::StepResult end = native::UnwindOver(bytes, rules_, cursor, list);
  const bool is_whole = end == native::StepResult::kOutermost;
  done.result = merger_.Merge(done.instructions, is_whole, order.begins_run, done.frames);
  AddPlaces(done);
  return done;
}

void Unwinder::AddPlaces(UnwoundStack& into) {
  if (told_.size() >= kMostTold) {
    told_.clear();
    ++epoch_;
  }
  into.epoch = epoch_;
  for (const native::MergedFrame& frame : into.frames) {
    if (!frame.is_native) continue;
    const Address instruction = into.instructions[frame.index];
    const auto [told, is_new] = told_.try_emplace(instruction, epoch_);
    if (!is_new && told->second == epoch_) continue;
    told_[instruction] = epoch_;
    into.places.emplace_back(instruction, code_.Of(instruction).place);
  }
}

}  // namespace pystrobe::remote
