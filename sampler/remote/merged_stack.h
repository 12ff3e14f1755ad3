// SPDX-License-Identifier: Apache-2.0
//
// From the Python frames and the machine code of one thread to a stack of the recording.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "profiler/base/clock.h"
#include "profiler/base/hash_map.h"
#include "profiler/model/tables.h"
#include "sampler/native/merge.h"
#include "sampler/native/native_code.h"
#include "sampler/pyabi/layout.h"
#include "sampler/pyabi/walk.h"
#include "sampler/remote/code_cache.h"

namespace pystrobe::remote {

/// A Python frame that has its name.
struct NamedFrame {
  std::optional<FrameId> frame;  ///< nullopt: it is not shown
  bool begins_run = false;       ///< a run of the evaluation loop did with it
  uint16_t region = 0;           ///< as of pyabi::RawFrame
};

/// Names of frames, for Merge. [as CodeCache::Resolve]
std::vector<NamedFrame> NameFrames(CodeCache& codes, const pyabi::Layout& layout,
                                   std::span<const pyabi::RawFrame> frames, Nanoseconds now);

/// Makes stacks of all threads. [one thread at a time]
class StackMerger {
 public:
  /// All outlive it.
  StackMerger(Tables& tables, native::NativeCode& native) : tables_(tables), native_(native) {}

  struct Merged {
    StackId stack = kEmptyStack;
    native::MergeResult result = native::MergeResult::kWhole;
  };

  /// `frames`, leaf first, stand on `base`. `instructions`: as native::UnwindOver gives them, up to
  /// the thread's first function where that `is_whole`. May take long, as NativeCode::Of.
  Merged Merge(StackId base, std::span<const NamedFrame> frames,
               std::span<const native::Address> instructions, bool is_whole);

  /// What was known of machine code is no longer true.
  void Forget() { frames_of_.clear(); }

 private:
  StackId PushNative(StackId stack, native::Address instruction);
  std::vector<FrameId> FramesOf(native::Address instruction);

  Tables& tables_;
  native::NativeCode& native_;
  HashMap<native::Address, std::vector<FrameId>> frames_of_;  // an instruction's, innermost first
  std::vector<native::CodeKind> kinds_;
  std::vector<uint8_t> begins_run_;
  std::vector<native::MergedFrame> merged_;
};

}  // namespace pystrobe::remote
