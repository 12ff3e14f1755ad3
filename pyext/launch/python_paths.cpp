// SPDX-License-Identifier: Apache-2.0
#include "pyext/launch/python_paths.h"

#include <Python.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "gpu/nvtx_ranges.h"
#include "profiler/base/clock.h"
#include "profiler/base/hash.h"
#include "profiler/model/recording.h"
#include "sampler/remote/code_cache.h"
#include "sampler/remote/region_frames.h"
#include "sampler/remote/target.h"

namespace pystrobe::launch {
namespace {

// 20 bytes each; as many as no program has that is not making code all the time.
constexpr size_t kMostStacks = 1 << 20;

PythonPaths* of_this_process = nullptr;

/// What the calling thread makes from here on is of this session. What it made before may have
/// launched already, unseen: the first launch that is seen is no word on that.
struct MadeSince {
  uint32_t session = 0;
  uint64_t sequence = 0;
};
[[gnu::tls_model("initial-exec")]] constinit thread_local MadeSince made_since;

uint64_t InOneWord(const gpu::LaunchOrigin& origin) {
  return uint64_t{origin.path} << 32 | origin.range;
}

}  // namespace

struct PythonPaths::Session {
  explicit Session(remote::Target opened)
      : target(std::move(opened)), codes(target, tables, quality) {}

  StackId PushName(StackId stack, std::string_view name) {
    const Function function{tables.Intern(name), kEmptyString};
    return tables.Push(stack, tables.Intern(Frame{tables.Intern(function)}));
  }

  remote::Target target;
  Tables tables;
  Quality quality;
  remote::CodeCache codes;
  std::vector<pyabi::RawFrame> frames;
  std::vector<Address> loop_frames;
  std::vector<remote::SeenCode> seen;
};

PythonPaths::PythonPaths(PathMemo memo, ForwardPaths forward)
    : forward_(std::move(forward)), memo_(std::move(memo)) {}

Result<PythonPaths*> PythonPaths::OfThisProcess() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (of_this_process != nullptr) return of_this_process;
  auto memo = PathMemo::Make();
  if (!memo) return std::unexpected(memo.error());
  auto forward = ForwardPaths::Make();
  if (!forward) return std::unexpected(forward.error());
  of_this_process = new PythonPaths(*std::move(memo), *std::move(forward));
  // A child has the lock as it was: held by nobody. It has no use for paths, but frees code.
  pthread_atfork([] { of_this_process->mutex_.lock(); }, [] { of_this_process->mutex_.unlock(); },
                 [] {
                   of_this_process->seed_ = 0;
                   static_cast<void>(of_this_process->session_.release());
                   of_this_process->mutex_.unlock();
                 });
  return of_this_process;
}

Result<void> PythonPaths::Begin() {
  auto target = remote::Target::Open(getpid());
  if (!target) return std::unexpected(target.error());
  if (const std::lock_guard lock(mutex_); session_ != nullptr) {
    return FailWithHint(ErrorCode::kGpu, "Stop the one that runs.",
                        "this process traces its GPU work already");
  }
  const FreedCodes::Told told = FreedCodes::Start(&PythonPaths::OnCodeFreed);
  const std::lock_guard lock(mutex_);
  if (frames_.load() == nullptr) frames_ = new OwnFrames(target->layout());
  session_ = std::make_unique<Session>(*std::move(target));
  codes_.clear();
  in_backward_.clear();
  backward_ = 0;
  forward_.Clear();
  const uint32_t number = ++sessions_;
  if (const TorchNodes* const nodes = this->nodes()) made_since = {number, nodes->Next()};
  told_of_ = ToldOf(told);
  seed_ = MixBits(++seeds_);
  return {};
}

// Of the interpreter that calls this, where it is of one.
Address PythonPaths::ToldOf(FreedCodes::Told told) {
  switch (told) {
    case FreedCodes::Told::kOfNone:
      return kNone;
    case FreedCodes::Told::kOfThisInterpreter:
      return reinterpret_cast<Address>(PyThreadState_GetInterpreter(PyThreadState_Get()));
    case FreedCodes::Told::kOfAll:
      return kAll;
  }
  return kNone;
}

Tables PythonPaths::End() {
  FreedCodes::Stop();
  const std::lock_guard lock(mutex_);
  seed_ = 0;
  const std::unique_ptr<Session> ended = std::move(session_);
  return ended != nullptr ? std::move(ended->tables) : Tables();
}

// A little at a time: launches may wait for the lock, and who frees code does so with the GIL.
void PythonPaths::CopyTo(Tables& tables) {
  constexpr size_t kAtATime = 1000;
  for (bool is_all = false; !is_all;) {
    const std::lock_guard lock(mutex_);
    is_all = session_ == nullptr || tables.Follow(session_->tables, kAtATime);
  }
}

gpu::LaunchOrigin PythonPaths::Current() noexcept {
  const uint32_t session = sessions_.load(std::memory_order_acquire);
  const gpu::LaunchOrigin origin = Origin();
  if (origin.path != 0) NoteForward(session, origin.path);
  return origin;
}

gpu::LaunchOrigin PythonPaths::Origin() noexcept {
  if (seed_.load(std::memory_order_relaxed) == 0) return {};
  const uint32_t range = gpu::NvtxRanges::Current();
  const auto tstate = reinterpret_cast<Address>(PyGILState_GetThisThreadState());
  if (tstate == 0) return {.range = range};
  return OriginOf(tstate, range);
}

gpu::LaunchOrigin PythonPaths::OriginOf(Address tstate, uint32_t range) noexcept {
  const uint64_t seed = seed_.load(std::memory_order_acquire);
  const OwnFrames* const frames = frames_.load(std::memory_order_relaxed);
  if (seed == 0) return {};
  const auto hash = frames->Hash(tstate, seed, CodesLive(tstate));
  if (!hash) return OriginInBackward(seed, range);
  return {.path = PathOf(tstate, *hash), .range = range};
}

bool PythonPaths::CodesLive(Address tstate) const noexcept {
  const Address told_of = told_of_.load(std::memory_order_relaxed);
  if (told_of == kAll || told_of == kNone) return told_of == kAll;
  return frames_.load(std::memory_order_relaxed)->InterpreterOf(tstate) == told_of;
}

uint32_t PythonPaths::PathOf(Address tstate, uint64_t hash) noexcept {
  if (const auto path = memo_.Find(hash)) return *path;
  return Resolve(hash, [&] { return StackOf(tstate); });
}

void PythonPaths::NoteForward(uint32_t session, uint32_t path) const noexcept {
  const TorchNodes* const nodes = this->nodes();
  if (nodes == nullptr) return;
  if (made_since.session != session) made_since = {session, nodes->Next()};
  const auto made = nodes->LastMade();
  if (made && made->sequence >= made_since.sequence) forward_.Note(*made, session, path);
}

gpu::LaunchOrigin PythonPaths::OriginInBackward(uint64_t seed, uint32_t range) noexcept {
  const uint64_t entered = backward_.load(std::memory_order_acquire);
  const auto backward = static_cast<uint32_t>(entered >> 32);
  const gpu::LaunchOrigin origin{.path = backward,
                                 .range = range != 0 ? range : static_cast<uint32_t>(entered)};
  const TorchNodes* const nodes = this->nodes();
  const auto running = nodes != nullptr ? nodes->Running() : std::nullopt;
  const uint32_t session = sessions_.load(std::memory_order_acquire);
  const auto forward = running ? forward_.Find(*running, session) : std::nullopt;
  if (!forward) return origin;
  const uint64_t hash = MixBits(seed ^ (uint64_t{backward} << 32 | *forward));
  auto path = memo_.Find(hash);
  if (!path) {
    path = Resolve(hash, [&] { return StackInBackward(StackId{backward}, StackId{*forward}); });
  }
  return *path != 0 ? gpu::LaunchOrigin{.path = *path, .range = origin.range} : origin;
}

template <typename MakeStack>
uint32_t PythonPaths::Resolve(uint64_t hash, MakeStack make) noexcept {
  const std::lock_guard lock(mutex_);
  if (session_ == nullptr) return 0;
  try {
    const uint32_t path = ToIndex(make());
    memo_.Put(hash, path);
    return path;
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

StackId PythonPaths::StackInBackward(StackId backward, StackId forward) {
  Tables& tables = session_->tables;
  const size_t count = tables.stack_count();
  // Of another session, whose end this thread did not see.
  if (ToIndex(backward) >= count || ToIndex(forward) >= count) return kEmptyStack;
  if (count >= kMostStacks && backward != kEmptyStack) return backward;
  if (count >= kMostStacks) return session_->PushName(kEmptyStack, kOtherPaths);
  if (backward == kEmptyStack) backward = session_->PushName(backward, kAutograd);
  return tables.PushAll(backward, forward);
}

StackId PythonPaths::StackOf(Address tstate) {
  Session& session = *session_;
  frames_.load()->Walk(tstate, session.frames, session.loop_frames);
  LookAtCodes(session, tstate);
  if (session.tables.stack_count() >= kMostStacks) {
    return session.PushName(kEmptyStack, kOtherPaths);
  }
  StackId stack = kEmptyStack;
  for (auto frame = session.frames.rbegin(); frame != session.frames.rend(); ++frame) {
    const auto named = session.codes.Resolve(*frame, MonotonicNow());
    if (!named) continue;
    stack = session.tables.Push(remote::PushRegions(session.tables, stack, frame->region), *named);
  }
  return stack;
}

// What stands on this thread's stack is alive, so its names are its own.
void PythonPaths::LookAtCodes(Session& session, Address tstate) {
  const pyabi::Layout& layout = session.target.layout();
  const bool codes_live = CodesLive(tstate);
  session.seen.clear();
  for (const pyabi::RawFrame& frame : session.frames) {
    const bool is_seen =
        std::ranges::find(session.seen, frame.code, &remote::SeenCode::code) != session.seen.end();
    if (is_seen) continue;
    codes_.insert(frame.code);
    // Nobody tells that one was freed, and the next one may have all of its addresses.
    if (!codes_live) session.codes.Doubt(frame.code);
    const size_t size = layout.code.size;
    session.seen.push_back(
        {.code = frame.code,
         .identity = pyabi::IdentityOf(layout, {OwnMemory::Find(frame.code, size), size}),
         .info = std::nullopt});
  }
  uint64_t generation = 0;
  if (const uint32_t at = layout.interpreter.code_object_generation; at != pyabi::kAbsent) {
    generation = OwnMemory::ValueOr0<uint64_t>(frames_.load()->InterpreterOf(tstate) + at);
  }
  session.codes.Update(session.seen, generation, MonotonicNow());
}

// Once for each code object of the program that is freed, while it is traced.
void PythonPaths::OnCodeFreed(Address code) {
  PythonPaths& self = *of_this_process;
  const std::lock_guard lock(self.mutex_);
  if (self.seed_ == 0) return;
  // The next one there may have all of its addresses.
  self.session_->codes.Doubt(code);
  if (self.codes_.erase(code) == 0) return;
  self.codes_.clear();
  self.seed_ = MixBits(++self.seeds_);
}

uint64_t PythonPaths::EnterBackward() noexcept {
  gpu::LaunchOrigin origin = Origin();
  const std::lock_guard lock(mutex_);
  if (session_ == nullptr || origin.path == 0) return 0;
  try {
    const StackId caller = session_->tables.stack(StackId{origin.path}).parent;
    origin.path = ToIndex(session_->PushName(caller, kAutograd));
    in_backward_.push_back(origin);
  } catch (const std::bad_alloc&) {
    return 0;
  }
  PublishBackward();
  return InOneWord(origin);
}

void PythonPaths::LeaveBackward(uint64_t entered) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(in_backward_, entered, InOneWord);
  if (found != in_backward_.end()) in_backward_.erase(found);
  PublishBackward();
}

bool PythonPaths::FollowNodes(const std::vector<std::string>& views) {
  if (nodes() != nullptr) return true;
  auto found = TorchNodes::Find(views);
  if (found == nullptr) return false;
  const TorchNodes* none = nullptr;
  made_since = {sessions_, found->Next()};
  if (nodes_.compare_exchange_strong(none, found.get())) static_cast<void>(found.release());
  return true;
}

void PythonPaths::PublishBackward() {
  const auto origin = in_backward_.size() == 1 ? in_backward_.front() : gpu::LaunchOrigin{};
  backward_.store(InOneWord(origin), std::memory_order_release);
}

}  // namespace pystrobe::launch
