// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/unwinder.h"

#include <pthread.h>

#include <algorithm>

#include "profiler/base/thread.h"
#include "sampler/native/evaluation_loop.h"
#include "sampler/remote/promptness.h"

namespace pystrobe::remote {
namespace {

// Nobody wakes it for an order: that would cost the pacer more than to leave one.
constexpr auto kNap = std::chrono::milliseconds(10);
// How long code may have been loaded, or have taken another's place, before that is known. To ask
// takes some hundred microseconds of ours, or milliseconds of a program with thousands of mappings,
// for which it waits when it makes new ones: one part in so many of the time goes into that.
constexpr Nanoseconds kRefreshInterval = std::chrono::milliseconds(10);
constexpr int kRefreshShare = 20;
// What a program that runs for ever comes to, with code that is made while it runs, is more than is
// of use at a time.
constexpr size_t kMostTold = 100'000, kMostRules = 1'000'000;

}  // namespace

Result<std::unique_ptr<Unwinder>> Unwinder::Start(const Target& target) {
  auto binaries = native::Binaries::Of(target.pid(), target.address_space());
  if (!binaries) return std::unexpected(binaries.error());
  std::unique_ptr<Unwinder> unwinder(new Unwinder(target, *std::move(binaries)));
  auto thread = StartThread("unwinding the target's stacks", [u = unwinder.get()] { u->Main(); });
  if (!thread) return std::unexpected(thread.error());
  unwinder->thread_ = *std::move(thread);
  return unwinder;
}

Unwinder::Unwinder(const Target& target, native::Binaries binaries)
    : target_(target), binaries_(std::move(binaries)), code_(binaries_, target.address_space()) {}

Unwinder::~Unwinder() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    end_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Unwinder::Submit(UnwindOrder order) {
  std::lock_guard lock(mutex_);
  orders_.push_back(std::move(order));
}

std::vector<UnwoundStack> Unwinder::TakeDone() {
  std::lock_guard lock(mutex_);
  return std::exchange(done_, {});
}

size_t Unwinder::Wait(Nanoseconds most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, most, [this] { return orders_.empty() && !busy_; });
  return orders_.size() + (busy_ ? 1 : 0);
}

void Unwinder::Drop() {
  std::lock_guard lock(mutex_);
  orders_.clear();
  drop_ = busy_;
}

void Unwinder::Main() {
  pthread_setname_np(pthread_self(), "unwinder");
  BeOrdinary();
  FindInterpreter();
  std::unique_lock lock(mutex_);
  while (!end_) {
    if (orders_.empty()) {
      changed_.notify_all();
      changed_.wait_for(lock, kNap, [this] { return end_; });
      continue;
    }
    busy_ = true;
    UnwoundStack done;
    {
      const UnwindOrder order = std::move(orders_.front());
      orders_.pop_front();
      lock.unlock();
      Refresh();
      done = Fill(order);
    }
    lock.lock();
    busy_ = false;
    if (std::exchange(drop_, false)) {
      // Nobody was told the places that it has.
      told_.clear();
      ++epoch_;
    } else {
      done_.push_back(std::move(done));
    }
  }
}

// Its file is the largest as a rule, and needed for every stack.
void Unwinder::FindInterpreter() {
  const native::Module* interpreter = binaries_.ModuleAt(target_.info().code_type);
  if (interpreter == nullptr) return;
  const auto loop = interpreter->image.FindSymbol(target_.address_space(), native::kEvaluationLoop);
  if (!loop) return;
  rules_.Find(loop->address);
  code_.Of(loop->address);
}

void Unwinder::Refresh() {
  if (MonotonicNow() < next_refresh_) return;
  // What another program has in their place is not what the stacks are of.
  if (!target_.StillThere()) return;
  const Nanoseconds cpu = ThreadCpuNow();
  const auto change = binaries_.Refresh();
  const Nanoseconds took = ThreadCpuNow() - cpu;
  next_refresh_ = MonotonicNow() + std::max(kRefreshInterval, kRefreshShare * took);
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

UnwoundStack Unwinder::Fill(const UnwindOrder& order) {
  if (rules_.ranges().size() >= kMostRules) rules_.Forget();
  UnwoundStack done;
  const bool is_whole = Unwind(order.copy, rules_, done.instructions);
  done.result = merger_.Merge(done.instructions, is_whole, order.begins_run,
                              histories_[ToIndex(order.thread)], done.frames);
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
    auto [told, is_new] = told_.try_emplace(instruction, epoch_);
    if (!is_new && told->second == epoch_) continue;
    told.value() = epoch_;
    into.places.emplace_back(instruction, code_.Of(instruction).place);
  }
}

}  // namespace pystrobe::remote
