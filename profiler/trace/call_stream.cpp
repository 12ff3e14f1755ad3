// SPDX-License-Identifier: Apache-2.0
#include "profiler/trace/call_stream.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "profiler/base/clock.h"
#include "profiler/base/thread.h"

namespace pystrobe::trace {
namespace {

// Besides those that threads are filling.
constexpr size_t kSpareChunks = 64;
// To wake a thread costs who wakes it microseconds, so that it is done for some chunks at a time.
constexpr size_t kWorthWaking = 8;
constexpr std::chrono::milliseconds kLongestSleep{200};
// How old what a thread has not handed over may become, where it calls at all.
constexpr Nanoseconds kOld = std::chrono::seconds(1);

constexpr StackId kHiddenStack{std::numeric_limits<uint32_t>::max()};

}  // namespace

/// A thread's chunks as events of the recording.
class CallStream::ThreadEvents {
 public:
  ThreadEvents(CallStream& stream, ThreadIndex index) : stream_(stream), index_(index) {}

  ThreadIndex index() const { return index_; }

  /// Valid until the next call.
  std::span<const CallEvent> Take(const CallChunk& chunk) {
    for (const NewNode& node : chunk.new_nodes) Define(node, chunk.tid);
    events_.clear();
    Ticks now = chunk.begin;
    Ticks far = 0;
    for (const uint64_t word : std::span(chunk.words).first(chunk.size)) {
      const auto what = static_cast<uint32_t>(word);
      if (what == CallChunk::kFar) {
        far = word >> 32 << 32;
        continue;
      }
      now += std::exchange(far, 0) + (word >> 32);
      if (what == CallChunk::kLeave) {
        Leave(now);
      } else {
        Enter(what, now);
      }
    }
    return events_;
  }

 private:
  struct Node {
    StackId stack = kEmptyStack;
    uint32_t parent = 0;
  };

  void Define(const NewNode& node, pid_t tid) {
    const StackId parent = nodes_[node.parent].stack;
    const bool is_hidden = parent == kHiddenStack || stream_.functions_.Hides(node, tid);
    const auto facts = [this](Key key) { return stream_.functions_.FactsOf(key); };
    nodes_.push_back(
        {is_hidden ? kHiddenStack : stream_.tables_.Push(parent, node.key, facts), node.parent});
  }

  void Enter(uint32_t node, Ticks now) {
    in_ = node;
    if (nodes_[in_].stack != kHiddenStack) Add(nodes_[in_].stack, now);
  }
  void Leave(Ticks now) {
    const Node& left = nodes_[in_];
    in_ = left.parent;
    if (left.stack != kHiddenStack) Add(nodes_[in_].stack, now);
  }
  // The clock's rate becomes known better meanwhile, and what is later must not be earlier.
  void Add(StackId stack, Ticks now) {
    time_ns_ = std::max(time_ns_, stream_.TimeOf(now));
    events_.push_back({time_ns_, stack});
  }

  CallStream& stream_;
  const ThreadIndex index_;
  std::vector<Node> nodes_{Node{}};
  uint32_t in_ = 0;
  int64_t time_ns_ = 0;
  std::vector<CallEvent> events_;
};

Result<std::unique_ptr<CallStream>> CallStream::Start(TimelineSink& sink, Functions& functions,
                                                      const TickRate& rate, Ticks begin) {
  std::unique_ptr<CallStream> stream(new CallStream(sink, functions, rate, begin));
  auto thread = StartThread("the timeline", [s = stream.get()] { s->Main(); });
  if (!thread) return std::unexpected(thread.error());
  stream->thread_ = *std::move(thread);
  return stream;
}

CallStream::CallStream(TimelineSink& sink, Functions& functions, const TickRate& rate, Ticks begin)
    : sink_(sink), functions_(functions), rate_(rate), begin_(begin) {}

CallStream::~CallStream() { static_cast<void>(Stop()); }

CallChunk* CallStream::Open(CallLog& log) {
  std::unique_lock lock(mutex_);
  open_.push_back(&log);
  try {
    MakeChunks();
  } catch (const std::bad_alloc&) {
    open_.pop_back();
    throw;
  }
  return TakeEmpty(lock);
}

// Takes no memory: where there is none the program is in the middle of something.
CallChunk* CallStream::Exchange(CallChunk* full) {
  std::unique_lock lock(mutex_);
  full_.push_back(full);
  return TakeEmpty(lock);
}

void CallStream::Close(CallLog& log, CallChunk* last) {
  const std::scoped_lock lock(mutex_);
  std::erase(open_, &log);
  full_.push_back(last);
}

void CallStream::MakeChunks() {
  const size_t wanted = open_.size() + kSpareChunks;
  if (chunks_.size() >= wanted) return;
  chunks_.reserve(wanted);
  full_.reserve(wanted);
  empty_.reserve(wanted);
  while (chunks_.size() < wanted) {
    // Not std::make_unique, which would write zeros into all of it.
    empty_.push_back(chunks_.emplace_back(new CallChunk).get());
  }
}

CallChunk* CallStream::TakeEmpty(std::unique_lock<std::mutex>& lock) {
  const bool must_wait = empty_.empty();
  if (must_wait || full_.size() == kWorthWaking) has_work_.notify_one();
  if (must_wait) {
    const Nanoseconds begin = MonotonicNow();
    has_room_.wait(lock, [this] { return !empty_.empty(); });
    waited_ += MonotonicNow() - begin;
  }
  CallChunk* const chunk = empty_.back();
  empty_.pop_back();
  return chunk;
}

Result<void> CallStream::Stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  has_work_.notify_one();
  if (thread_.joinable()) thread_.join();
  return written_;
}

std::optional<ThreadIndex> CallStream::IndexOf(const CallLog& log) const {
  const auto found = threads_.find(&log);
  if (found == threads_.end()) return std::nullopt;
  return found->second->index();
}

void CallStream::Main() {
  pthread_setname_np(pthread_self(), "timeline");
  std::vector<CallChunk*> chunks;
  Nanoseconds refreshed = MonotonicNow();
  while (AwaitChunks(chunks)) {
    const Nanoseconds now = MonotonicNow();
    const bool is_time = now - refreshed >= kOld;
    WriteAll(chunks, is_time);
    if (!is_time) continue;
    refreshed = now;
    const std::scoped_lock lock(mutex_);
    for (CallLog* log : open_) log->Hurry();
  }
  cpu_ = ThreadCpuNow();
}

bool CallStream::AwaitChunks(std::vector<CallChunk*>& chunks) {
  std::unique_lock lock(mutex_);
  empty_.insert(empty_.end(), chunks.begin(), chunks.end());
  if (!chunks.empty()) has_room_.notify_all();
  chunks.clear();
  has_work_.wait_for(lock, kLongestSleep,
                     [this] { return stopping_ || full_.size() >= kWorthWaking; });
  chunks.reserve(chunks_.size());  // full_ is to have room for all of them, always
  chunks.swap(full_);
  return !stopping_ || !chunks.empty();
}

// Beside a program that has no memory left it is the timeline that ends.
void CallStream::WriteAll(std::span<CallChunk* const> chunks, bool progress) {
  try {
    for (const CallChunk* chunk : chunks) Write(*chunk);
    if (!progress) return;
    rate_.Refine();
    TellProgress();
  } catch (const std::bad_alloc&) {
    written_ = Fail(ErrorCode::kIo, "there was no memory to write more of it");
  }
}

void CallStream::Write(const CallChunk& chunk) {
  auto& thread = threads_[chunk.log];
  if (thread == nullptr) {
    const ThreadIndex index =
        tables_.tables().AddThread({.tid = static_cast<uint64_t>(chunk.tid), .name = kEmptyString});
    thread = std::make_unique<ThreadEvents>(*this, index);
  }
  if (written_) {
    written_ = sink_.AppendCalls(tables_.tables(), thread->index(), thread->Take(chunk));
  } else {
    const CallEvent first{TimeOf(chunk.begin), kEmptyStack};
    static_cast<void>(sink_.AppendCalls(tables_.tables(), thread->index(), {&first, 1}));
  }
}

// For who reads a file that was cut off.
void CallStream::TellProgress() {
  if (!written_) return;
  Quality so_far;
  so_far.duration_ns = TimeOf(TickClock::Now());
  so_far.pause_mode = kByTracing;
  written_ = sink_.Append(tables_.tables(), {}, so_far);
}

int64_t CallStream::TimeOf(Ticks ticks) const { return rate_.ToTime(ticks - begin_).count(); }

}  // namespace pystrobe::trace
