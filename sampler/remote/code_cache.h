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
/// read of it in the pause is what it is. New code objects are therefore looked at in the pause
/// (their identity: see pyabi::CodeIdentity), and again in every sample while they are young or
/// once an address was seen reused. Older ones are checked at growing intervals, after the pause;
/// but all are looked at for some seconds after any address was seen reused: such a program goes on
/// with it. On 3.14+ they are looked at whenever the interpreter's count of dead code objects has
/// moved. [Select: the thread that runs the copy; all else: the pacer; never at once]
class CodeCache final : public CodeWatch {
 public:
  CodeCache(const Target& target, Tables& tables, Quality& quality);

  void Select(const std::vector<pyabi::RawFrame>& frames, uint64_t generation,
              std::vector<Address>& codes) override;

  /// Takes in the identities a copy brought: drops entries that turned out to be others, reads new
  /// ones. Call before Resolve with every copy. `generation`: what the copy brought.
  void Update(std::span<const std::pair<Address, pyabi::CodeIdentity>> identities,
              uint64_t generation, Nanoseconds now);

  /// The frame of the recording for a raw one. Reads names on a miss. A code object that is gone
  /// before its names were read becomes "<code object gone>" and is counted. Nullopt for frames
  /// that the interpreter pushes for itself.
  std::optional<FrameId> Resolve(const pyabi::RawFrame& frame, Nanoseconds now);

  /// True when every frame has a name. Reads names on a miss.
  bool CanName(std::span<const pyabi::RawFrame> frames, Nanoseconds now);

  /// Frames so far that became "<code object gone>".
  uint64_t unnamed() const { return quality_.unresolved; }

  /// True when a stack with this frame may be reused for an equal raw frame without looking again:
  /// false for young and reused addresses. Once true it stays so while epoch() is the same.
  bool IsSettled(Address code) const;
  uint64_t epoch() const { return epoch_; }

  /// Re-reads the identities of a few entries that are due. Outside of pauses.
  void CheckSome(Nanoseconds now);

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
    HashMap<uint64_t, FrameId> frames;  ///< by instruction and tlbc index
  };

  Entry& Load(Address code, Nanoseconds now);
  /// Load, reading names on a miss.
  Entry& LoadNamed(Address code, Nanoseconds now);
  void Replace(Entry& entry, Nanoseconds now);
  void NoteReuse(Entry& entry, Nanoseconds now);
  bool NeedsLook(const Entry& entry, uint64_t generation) const;

  const Target& target_;
  Tables& tables_;
  Quality& quality_;
  bool has_generation_;
  uint64_t generation_ = 0;  // of the last copy
  Nanoseconds now_{};
  Nanoseconds churning_until_{};
  uint64_t epoch_ = 0;
  FunctionId gone_function_;
  HashMap<Address, std::unique_ptr<Entry>> entries_;
  std::vector<Entry*> order_;  ///< for CheckSome, round robin
  size_t next_check_ = 0;
};

}  // namespace pystrobe::remote
