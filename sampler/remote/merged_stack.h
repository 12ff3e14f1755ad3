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

/// Names of frames, leaf first. [as CodeCache::Resolve]
std::vector<NamedFrame> NameFrames(CodeCache& codes, const pyabi::Layout& layout,
                                   std::span<const pyabi::RawFrame> frames, Nanoseconds now);
/// By frame, as native::Merge has them.
std::vector<uint8_t> RunBeginnings(std::span<const NamedFrame> frames);

/// Puts machine code between Python frames, for any number of threads. It needs no names, so this
/// may be done elsewhere than the stacks are made. [one thread at a time]
class CodeMerger {
 public:
  /// `native` outlives it.
  explicit CodeMerger(native::NativeCode& native) : native_(native) {}

  /// `instructions`: as native::UnwindOver gives them, up to the thread's first function where that
  /// `is_whole`. `begins_run`: RunBeginnings. May take long, as NativeCode::Of.
  native::MergeResult Merge(std::span<const native::Address> instructions, bool is_whole,
                            std::span<const uint8_t> begins_run, native::RunHistory& history,
                            std::vector<native::MergedFrame>& merged);

 private:
  native::NativeCode& native_;
  std::vector<native::CodeKind> kinds_;
};

/// Frames of the recording for machine code. [one thread at a time]
class NativeFrameIds {
 public:
  /// `tables` outlives it.
  explicit NativeFrameIds(Tables& tables) : tables_(tables) {}

  bool Has(native::Address instruction) const { return frames_of_.contains(instruction); }
  /// What lies at an instruction, from now on.
  void Set(native::Address instruction, const native::NativePlace& place);
  /// `stack` with the functions at `instruction` on it, those that were inlined the innermost.
  StackId Push(StackId stack, native::Address instruction) const;
  size_t size() const { return frames_of_.size(); }
  void Clear() { frames_of_.clear(); }

 private:
  Tables& tables_;
  HashMap<native::Address, std::vector<FrameId>> frames_of_;  // innermost first
};

/// The stack of `merged` (leaf first) on `base`. `ids` has all instructions of it.
StackId PushMerged(Tables& tables, const NativeFrameIds& ids, StackId base,
                   std::span<const NamedFrame> frames,
                   std::span<const native::Address> instructions,
                   std::span<const native::MergedFrame> merged);

/// Does all of it at once. [one thread at a time]
class StackMerger {
 public:
  /// All outlive it.
  StackMerger(Tables& tables, native::NativeCode& native)
      : tables_(tables), native_(native), merger_(native), ids_(tables) {}

  struct Merged {
    StackId stack = kEmptyStack;
    native::MergeResult result = native::MergeResult::kWhole;
  };

  /// `frames`, leaf first, stand on `base`. The rest as CodeMerger::Merge.
  Merged Merge(StackId base, std::span<const NamedFrame> frames,
               std::span<const native::Address> instructions, bool is_whole,
               native::RunHistory& history);

  /// What was known of machine code is no longer true.
  void Forget() { ids_.Clear(); }

 private:
  Tables& tables_;
  native::NativeCode& native_;
  CodeMerger merger_;
  NativeFrameIds ids_;
  std::vector<native::MergedFrame> merged_;
};

}  // namespace pystrobe::remote
