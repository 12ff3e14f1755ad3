// SPDX-License-Identifier: Apache-2.0
//
// From code objects and instructions of the target to frames of the recording, noticing when a code
// object died and another one took its address.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "profiler/base/clock.h"
#include "profiler/base/hash_map.h"
#include "profiler/model/recording.h"
#include "sampler/pyabi/code.h"
#include "sampler/remote/copy_job.h"
#include "sampler/remote/target.h"

namespace pystrobe::remote {

/// How a name stays true. A code object that is on a paused thread's stack is alive, so what is
/// read of it in the pause is what it is. New code objects are therefore read in the pause, and
/// looked at (their identity: see pyabi::CodeIdentity) again in every sample while they are young
/// or once an address was seen reused. Older ones are checked at growing intervals, after the
/// pause; but all are looked at for some seconds after any address was seen reused: such a program
/// goes on with it. On 3.14+ they are looked at whenever the interpreter's count of dead code
/// objects has moved.
///
/// Nobody tells us that a code object died. A program that makes and drops them for days would fill
/// the memory with dead ones, so at most `capacity` are remembered: above that the half not used
/// for longest is forgotten. One that was alive after all is new at its next use and comes to the
/// same frames. [the pacer; the methods of CodeWatch, which change nothing: any number of threads
/// at once, those that run copies, but not while another method runs]
class CodeCache final : public CodeWatch {
 public:
  /// More than any program runs within minutes; about 1 KiB each.
  static constexpr size_t kCapacity = 32768;

  CodeCache(const Target& target, Tables& tables, Quality& quality, size_t capacity = kCapacity);

  void Select(const std::vector<pyabi::RawFrame>& frames, uint64_t generation,
              std::vector<Address>& codes) const override;
  Knowledge KnowledgeOf(const SeenCode& seen) const override;
  std::optional<pyabi::CodeInfo> Read(Address code) const override;

  /// Takes in what a copy brought: drops entries that turned out to be others, reads those that
  /// are new and were not read in the pause. Call before Resolve with every copy. `generation`:
  /// what the copy brought.
  void Update(std::span<const SeenCode> codes, uint64_t generation, Nanoseconds now);

  /// The next Update with this one reads its names again, whatever its identity: that is of
  /// addresses, and all of them may have been another's.
  void Doubt(Address code);

  /// The frame of the recording for a raw one. Reads names on a miss. A code object that is gone
  /// before its names were read becomes "<code object gone>" and is counted. Nullopt for frames
  /// that the interpreter pushes for itself.
  std::optional<FrameId> Resolve(const pyabi::RawFrame& frame, Nanoseconds now);

  /// What frames stand on where the thread's first one was not reached: a stack of one frame,
  /// "<incomplete stack>".
  StackId incomplete_stack();

  /// True when every frame has a name. Reads names on a miss.
  bool CanName(std::span<const pyabi::RawFrame> frames, Nanoseconds now);

  /// True where these frames end with a generator's, or a coroutine's: who resumed it is missing,
  /// but where C code does without any Python frame.
  bool EndsInGenerator(std::span<const pyabi::RawFrame> frames, Nanoseconds now);

  /// Frames so far that became "<code object gone>".
  uint64_t unnamed() const { return quality_.unresolved; }

  /// True when a stack with this frame may be reused for an equal raw frame without looking again:
  /// false for young and reused addresses. Once true it stays so while epoch() is the same.
  bool IsSettled(Address code);
  uint64_t epoch() const { return epoch_; }

  /// Of a code object whose names are known and whose address was never another's; else null. Good
  /// until the next call of any method but this.
  const pyabi::CodeIdentity* Lasting(Address code) const;

  /// Re-reads the identities of a few entries that are due, and forgets where there are too many.
  /// Outside of pauses.
  void CheckSome(Nanoseconds now);

  /// Code objects remembered.
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Address code = 0;
    pyabi::CodeInfo info;
    FunctionId function{};
    bool known = false;       ///< names were read
    bool trampoline = false;  ///< the interpreter's own code
    bool reused = false;      ///< this address held another code object before
    uint32_t looks = 0;       ///< times its identity was read again
    uint64_t generation = 0;
    Nanoseconds first_seen{};
    Nanoseconds checked{};
    uint64_t used = 0;                  ///< as `uses_` counts
    HashMap<uint64_t, FrameId> frames;  ///< by instruction and tlbc index
  };

  Entry& Load(Address code, Nanoseconds now);
  /// Load, reading names on a miss.
  Entry& LoadNamed(Address code, Nanoseconds now);
  void Replace(Entry& entry, std::optional<pyabi::CodeInfo> info, Nanoseconds now);
  void NoteReuse(Entry& entry, Nanoseconds now);
  bool NeedsLook(const Entry& entry, uint64_t generation) const;
  void ForgetOldHalf();

  const Target& target_;
  Tables& tables_;
  Quality& quality_;
  bool has_generation_;
  uint64_t generation_ = 0;  // of the last copy
  Nanoseconds now_{};
  Nanoseconds churning_until_{};
  uint64_t epoch_ = 0;
  const size_t capacity_;
  uint64_t uses_ = 0;
  FunctionId gone_function_;
  StackId incomplete_stack_ = kEmptyStack;  // made when it is first needed
  HashMap<Address, std::unique_ptr<Entry>> entries_;
  std::vector<Entry*> order_;  ///< for CheckSome, round robin
  size_t next_check_ = 0;
};

}  // namespace pystrobe::remote
