// SPDX-License-Identifier: Apache-2.0
//
// From the frames of a thread, look after look, to stacks of the recording.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "profiler/base/clock.h"
#include "profiler/model/tables.h"
#include "sampler/pyabi/walk.h"
#include "sampler/remote/code_cache.h"

namespace pystrobe::remote {

/// The last stack of one thread. Equal frames from the root on have equal stacks, so only what
/// changed is looked up. [one thread at a time]
class StackPath {
 public:
  /// Both outlive it.
  StackPath(Tables& tables, CodeCache& codes) : tables_(tables), codes_(codes) {}

  /// How many of `fresh` (leaf first), from the root on, are those of the last stack still.
  size_t CountCommon(const std::vector<pyabi::RawFrame>& fresh, Nanoseconds now);
  /// Makes `fresh` the last stack. `common`: what CountCommon has just said of it. `complete`: its
  /// last frame is the thread's first; else it stands on "<incomplete stack>". False when a frame
  /// could not be named.
  bool Take(const std::vector<pyabi::RawFrame>& fresh, size_t common, bool complete,
            Nanoseconds now);

  StackId stack() const { return path_.empty() ? base_ : path_.back(); }
  /// Of the last stack, leaf first, without those that the interpreter pushes for itself.
  std::vector<pyabi::RawFrame> ShownFrames() const;

 private:
  Tables& tables_;
  CodeCache& codes_;
  std::vector<pyabi::RawFrame> frames_;  // leaf first
  StackId base_ = kEmptyStack;           // what its frames stand on
  std::vector<StackId> path_;            // root first: the stack up to each frame, shown or not
  size_t settled_ = 0;                   // frames from the root on whose codes were settled ...
  uint64_t settled_epoch_ = 0;           // ... in this epoch of the code cache, ...
  Nanoseconds settled_until_{};          // ... but they are to be seen in use now and then
};

}  // namespace pystrobe::remote
