// SPDX-License-Identifier: Apache-2.0
//
// The frame walker: bytes in, frames out. Pure: no I/O, no allocation in the steady state, safe on
// any input. One walker for every version and every engine. [any thread]
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sampler/pyabi/layout.h"
#include "sampler/pyabi/stack_copy.h"

namespace pystrobe::pyabi {

/// One Python frame as it stood.
struct RawFrame {
  Address frame = 0;         ///< where it lies in the target
  Address code = 0;          ///< its code object, tags cleared
  uint64_t instruction = 0;  ///< f_lasti as the version has it, or the instruction pointer
  uint32_t tlbc_index = 0;   ///< which copy of the bytecode `instruction` points into (3.14t+)
  uint8_t owner = 0;
  bool is_entry = false;  ///< a run of the evaluation loop began with it (kInterpreterFrames)
  uint16_t region = 0;    ///< those that it is in, of this process: a Regions::Id

  friend bool operator==(const RawFrame&, const RawFrame&) = default;
};

enum class WalkStatus {
  kComplete,    ///< the chain reached the thread's base
  kIncomplete,  ///< it ended early: the thread stands inside the interpreter's own push or pop
  kMissing,     ///< a frame lies outside the copy: WalkResult::missing
  kBroken,      ///< a cycle, an owner that does not exist, or no code where there must be some
};

struct WalkResult {
  WalkStatus status = WalkStatus::kBroken;
  Address missing = 0;  ///< kMissing: the frame to copy next
  /// 3.11, 3.12: the frame that entered the innermost run of the evaluation loop, 0 for none;
  /// nullopt where the chain has no frame such a run begins with.
  std::optional<Address> loop_caller;
  uint8_t last_owner = 0;  ///< of the last frame looked at
  /// 3.8-3.10: a frame of the chain that has called another, or is its first, says that it does not
  /// execute, or the first is a generator's, which is linked to its caller while it runs. A chain
  /// that is whole is like that only where a trace function written in Python is told of a call, or
  /// where C code runs a generator; else the chain is of several moments.
  bool has_left_frame = false;
  /// 3.11-3.13: which frame is the rootmost of the innermost run of the evaluation loop that says
  /// it executes (`stacktop` == -1), as an index into `frames`; else 0.
  size_t executing = 0;
  bool left_innermost_run = false;  ///< what follows belongs to runs further out
};

/// Follows the chain from `first`, appending Python frames leaf first to `frames` (cleared before),
/// and the addresses of the evaluation loop's own to `loop_frames` (cleared too).
///
/// When a chain is complete, by version (Python/ceval.c, Python/pystate.c of each):
/// 3.8-3.10  f_back is null; a generator is linked to its caller before it becomes current, so the
///           chain is never half done.
/// 3.11      `previous` is null, and the frame is not owned by a generator: a lone generator is one
///           that was unlinked and is still current.
/// 3.12+     the last frame is the one the evaluation loop keeps on the C stack (3.12, 3.13) or the
///           thread's base frame (3.14+), not a Python frame.
WalkResult Walk(const StackCopy& copy, const Layout& layout, Address first,
                std::vector<RawFrame>& frames, std::vector<Address>& loop_frames);

/// Goes on with a walk that ended in kMissing, once the frame has been copied.
void ResumeWalk(const StackCopy& copy, const Layout& layout, std::vector<RawFrame>& frames,
                std::vector<Address>& loop_frames, WalkResult& walk);

/// Unpaused copies on 3.11-3.13: in the innermost run of the evaluation loop one frame at most is
/// executing and is the real leaf of that instant; drops frames above the rootmost such. Frames
/// that called out through C say so too, but belong to runs further out. No-op elsewhere. `walk`
/// found `frames`.
void TrimToExecuting(WalkResult& walk, std::vector<RawFrame>& frames);

}  // namespace pystrobe::pyabi
