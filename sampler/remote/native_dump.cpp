// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/native_dump.h"

#include <thread>
#include <utility>

namespace pystrobe::remote {
namespace {

// A thread that stands within the interpreter's own push or pop is looked at again a moment later.
constexpr int kMostTries = 20;
constexpr Nanoseconds kMoment = std::chrono::microseconds(100);

}  // namespace

Result<std::unique_ptr<NativeDump>> NativeDump::Begin(RunContext& context) {
  auto binaries = native::Binaries::Of(context.target.pid(), context.target.memory());
  if (!binaries) return std::unexpected(binaries.error());
  auto tracer = Tracer::Start();
  if (!tracer) return std::unexpected(tracer.error());
  return std::unique_ptr<NativeDump>(
      new NativeDump(context, *std::move(binaries), *std::move(tracer)));
}

NativeDump::NativeDump(RunContext& context, native::Binaries binaries,
                       std::unique_ptr<Tracer> tracer)
    : context_(context),
      binaries_(std::move(binaries)),
      code_(binaries_, context.target.memory()),
      merger_(context.tables, code_),
      tracer_(std::move(tracer)) {}

NativeDump::Look NativeDump::LookAt(SampledThread& thread, LockDomain& domain, const Tick& tick) {
  Look look;
  for (int tries = 0; tries < kMostTries; ++tries) {
    thread.Prepare(job_, domain.lock(), thread.copy());
    if (!Stop(thread.id().tid, &job_)) return look;
    // A frame that is being made may lead anywhere, where nothing can be read.
    if (job_.read_ok && job_.IsWhole()) break;
    std::this_thread::sleep_for(kMoment);
  }
  if (!job_.read_ok) return look;
  context_.codes.Update(job_.seen_codes, job_.generation, tick.time);
  const bool complete = thread.copy().status == pyabi::WalkStatus::kComplete;
  // TakeCopy takes what is its own of the copy.
  const std::vector<pyabi::RawFrame> frames = thread.copy().frames;
  uint8_t flags = job_.SubjectHoldsLock() ? kSampleGil : 0;
  if (!complete) flags |= kSampleIncomplete;
  thread.TakeCopy(tick, flags, std::nullopt, Names::kAsFound);
  reached_first_ = Unwind(stack_.copy(), rules_, instructions_);
  look = Merge(frames, complete ? kEmptyStack : context_.codes.incomplete_stack(), tick.time);
  if (!complete && !look.frames.empty()) look.frames.pop_back();
  if (job_.gil_state.locked == 1) look.lock_holder = job_.gil_state.last_holder;
  return look;
}

NativeDump::Look NativeDump::LookAt(pid_t tid) {
  if (!Stop(tid, nullptr)) return {};
  reached_first_ = Unwind(stack_.copy(), rules_, instructions_);
  return Merge({}, kEmptyStack, {});
}

bool NativeDump::Stop(pid_t tid, CopyJob* job) {
  bool taken = false;
  const Tracer::Outcome outcome = tracer_->Hold(tid, Tracer::kAnyMoment, [&] {
    if (job != nullptr) {
      job->stopped = true;
      job->Run();
    }
    taken = stack_.Take(tid, context_.target.memory());
  });
  held_ += outcome.held;
  return outcome.stopped && taken;
}

NativeDump::Look NativeDump::Merge(std::span<const pyabi::RawFrame> frames, StackId base,
                                   Nanoseconds now) {
  const std::vector<NamedFrame> named =
      NameFrames(context_.codes, context_.target.layout(), frames, now);
  std::vector<Address> shown;
  for (size_t i = 0; i < frames.size(); ++i) {
    if (named[i].frame) shown.push_back(frames[i].frame);
  }
  native::RunHistory none;
  const auto merged = merger_.Merge(base, named, instructions_, reached_first_, none);
  Look look{.stopped = true, .is_whole = merged.result == native::MergeResult::kWhole};
  const Tables& tables = context_.tables;
  size_t next = 0;
  for (StackId stack = merged.stack; stack != kEmptyStack; stack = tables.stack(stack).parent) {
    const FrameId frame = tables.stack(stack).frame;
    const bool is_native = tables.function(tables.frame(frame).function).is_native;
    look.frames.push_back({frame, is_native || next == shown.size() ? 0 : shown[next++]});
  }
  return look;
}

}  // namespace pystrobe::remote
