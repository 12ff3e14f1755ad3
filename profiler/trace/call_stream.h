// SPDX-License-Identifier: Apache-2.0
//
// The timeline of a traced program: takes what its threads call and writes it while they go on.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "profiler/base/error.h"
#include "profiler/base/hash_map.h"
#include "profiler/model/recording.h"
#include "profiler/trace/call_log.h"
#include "profiler/trace/function_tables.h"
#include "profiler/trace/tick_clock.h"

namespace pystrobe::trace {

/// Threads hand over chunks of 64 KiB; a thread of ours makes events of them and appends these to a
/// recording. There are only so many chunks: where the file takes them more slowly than the program
/// fills them, the program waits. [any thread]
class CallStream final : public ChunkTaker {
 public:
  /// Is asked by our thread. [any thread]
  class Functions {
   public:
    virtual ~Functions() = default;
    virtual FunctionFacts FactsOf(Key key) = 0;
    /// Whether a node, with all below it, is no part of the program.
    virtual bool Hides(const NewNode& node, pid_t tid) = 0;
  };

  /// `sink` has begun, and is the stream's alone until Stop. `begin`: when the recording did. All
  /// outlive the stream.
  static Result<std::unique_ptr<CallStream>> Start(TimelineSink& sink, Functions& functions,
                                                   const TickRate& rate, Ticks begin);
  ~CallStream() override;

  CallChunk* Exchange(CallChunk* full) override;
  CallChunk* Open(CallLog& log) override;
  void Close(CallLog& log, CallChunk* last) override;

  /// Writes what was handed over, and ends. Fails where the sink did; what came after that is not
  /// in it.
  Result<void> Stop();

  // After Stop.
  FunctionTables& tables() { return tables_; }
  /// In tables(). Nothing where none of its chunks came.
  std::optional<ThreadIndex> IndexOf(const CallLog& log) const;
  /// CPU time of our thread.
  Nanoseconds cpu() const { return cpu_; }
  /// How long threads of the program waited for it, all together.
  Nanoseconds waited() const { return waited_; }

 private:
  class ThreadEvents;

  CallStream(TimelineSink& sink, Functions& functions, const TickRate& rate, Ticks begin);
  void Main();
  bool AwaitChunks(std::vector<CallChunk*>& chunks);
  void WriteAll(std::span<CallChunk* const> chunks, bool progress);
  void Write(const CallChunk& chunk);
  void TellProgress();
  void MakeChunks();
  CallChunk* TakeEmpty(std::unique_lock<std::mutex>& lock);
  int64_t TimeOf(Ticks ticks) const;

  TimelineSink& sink_;
  Functions& functions_;
  TickRate rate_;
  const Ticks begin_;

  std::mutex mutex_;
  std::condition_variable has_work_;
  std::condition_variable has_room_;
  std::vector<std::unique_ptr<CallChunk>> chunks_;  // all there are
  std::vector<CallChunk*> empty_;
  std::vector<CallChunk*> full_;  // in the order in which they came
  std::vector<CallLog*> open_;
  Nanoseconds waited_{};
  bool stopping_ = false;

  // Of our thread.
  FunctionTables tables_;
  HashMap<const CallLog*, std::unique_ptr<ThreadEvents>> threads_;
  Result<void> written_;
  Nanoseconds cpu_{};
  std::thread thread_;
};

}  // namespace pystrobe::trace
