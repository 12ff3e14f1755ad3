// SPDX-License-Identifier: Apache-2.0
//
// One stack out of two: the C functions between the Python functions that called them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace pystrobe::native {

/// What an instruction belongs to, as far as merging asks.
enum class CodeKind : uint8_t {
  kEvaluation,   ///< the interpreter's evaluation loop: what it does is told by Python frames
  kInterpreter,  ///< the rest of the interpreter's own file: how Python calls Python
  kStart,        ///< what begins a process or a thread, before any function of its own
  kSystem,       ///< the C library: what it does is its caller's
  kGreenlet,     ///< the extension module by which a thread has several stacks, of C and of Python
  kOther,
};

/// A frame of the merged stack.
struct MergedFrame {
  bool is_native = false;
  uint32_t index = 0;  ///< into the native frames, or into the Python frames

  friend bool operator==(const MergedFrame&, const MergedFrame&) = default;
};

enum class MergeResult : uint8_t {
  kWhole,
  kCut,  ///< the native frames end before the outermost Python frame: from there on, Python's only
  kUnfit,  ///< they tell of different runs of the evaluation loop: all C functions that are below
           ///< the innermost run stand under the Python frames, the others above them
};

/// What stacks of one thread were like until now.
struct RunHistory {
  uint32_t fitting = 0;  ///< as many runs of the loop as Python's frames tell
  uint32_t excess = 0;   ///< one more
};

/// Merges frames, leaf first, of a thread that stood still. `begins_run`: for each Python frame 1
/// if a run of the evaluation loop began with it, else 0 (pyabi::RawFrame::is_entry; before 3.11
/// each does). `is_whole`: the native frames reach the thread's first function.
///
/// Each run of the loop is one native frame and the Python frames up to the one it began with. The
/// innermost may have none: it has just begun, or is about to end. So may the outermost, where the
/// thread has left one interpreter for another. What lies on the stack beyond the functions that
/// began a greenlet is not its own, and left out. Where a run without Python frames makes a
/// difference it is told by `history`: it is the innermost if one run too many is rare in this
/// thread, else they do not fit. Of the other native frames those of kinds kOther and kGreenlet are
/// kept, and what they call of kind kSystem; what the interpreter calls of that is part of it, and
/// what comes before either begins the thread. `merged` is cleared before.
MergeResult Merge(std::span<const CodeKind> native, bool is_whole,
                  std::span<const uint8_t> begins_run, RunHistory& history,
                  std::vector<MergedFrame>& merged);

}  // namespace pystrobe::native
