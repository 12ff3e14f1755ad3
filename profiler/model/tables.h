// SPDX-License-Identifier: Apache-2.0
//
// The definitions that samples refer to: strings, functions, frames, stacks, threads. Append-only,
// so a writer needs to remember only how many of each it has written.
//
// [one thread at a time]
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/base/hash.h"
#include "profiler/base/hash_map.h"
#include "profiler/base/id_index.h"
#include "profiler/model/ids.h"

namespace pystrobe {

/// A Python code object, or a function of machine code, as a person knows it.
struct Function {
  StringId name;  ///< of Python: qualified where the interpreter has that (3.11+); else demangled
  StringId file;  ///< co_filename, as the program has it; of machine code the source file where
                  ///< that is known, else the ELF file
  uint32_t first_line = 0;  ///< line of its `def`; 0 when unknown
  bool is_native = false;   ///< machine code

  friend bool operator==(const Function&, const Function&) = default;
};

/// Function::file of what is no function but a region: a part of the program that it has named.
inline constexpr std::string_view kRegionFile = "<region>";

/// A function at the line it was executing.
struct Frame {
  FunctionId function;
  uint32_t line = 0;  ///< 0 when the interpreter has no line there

  friend bool operator==(const Frame&, const Frame&) = default;
};

/// A node of the stack tree: the stack of `parent` with `frame` called from it.
struct StackNode {
  StackId parent;
  FrameId frame;

  friend bool operator==(const StackNode&, const StackNode&) = default;
};

struct Thread {
  uint64_t tid = 0;          ///< the kernel's thread id, as seen from the sampler's pid namespace;
                             ///< 0: no thread, but what threads that were not sampled used
  uint64_t interpreter = 0;  ///< the interpreter's id; 0 is the main one
  StringId name = kEmptyString;

  bool is_real() const { return tid != 0; }
  friend bool operator==(const Thread&, const Thread&) = default;
};

/// Append-only interning tables. Equal definitions get the same id.
class Tables {
 public:
  static constexpr size_t kMostOfText = size_t{8} << 20;

  Tables();
  Tables(Tables&&) noexcept = default;
  Tables& operator=(Tables&&) noexcept = default;

  /// Of a text longer than kMostOfText, which a program can give to code that it makes, the start,
  /// with "..." after it: it goes into one block of a file, and nobody reads it.
  StringId Intern(std::string_view text);
  FunctionId Intern(const Function& function);
  FrameId Intern(const Frame& frame);
  /// The stack that is `parent` with `frame` on top of it.
  StackId Push(StackId parent, FrameId frame);
  /// The stack that is `base` with all frames of `top` on it.
  StackId PushAll(StackId base, StackId top);
  ThreadIndex AddThread(const Thread& thread);
  /// Gives a thread a (better) name.
  void RenameThread(ThreadIndex index, StringId name);

  const std::string& text(StringId id) const { return strings_[ToIndex(id)]; }
  const Function& function(FunctionId id) const { return functions_[ToIndex(id)]; }
  const Frame& frame(FrameId id) const { return frames_[ToIndex(id)]; }
  const StackNode& stack(StackId id) const { return stacks_[ToIndex(id)]; }
  const Thread& thread(ThreadIndex id) const { return threads_[ToIndex(id)]; }

  size_t string_count() const { return strings_.size(); }
  size_t function_count() const { return functions_.size(); }
  size_t frame_count() const { return frames_.size(); }
  size_t stack_count() const { return stacks_.size(); }
  size_t thread_count() const { return threads_.size(); }
  /// The threads added or renamed, in the order of these changes: a writer that remembers how many
  /// it has seen finds those that are new to it behind them.
  std::span<const ThreadIndex> thread_changes() const { return thread_changes_; }

  /// Frames of a stack, root first. Allocates: not for hot paths.
  std::vector<FrameId> FramesOf(StackId id) const;

  /// The same definitions by the same ids, to be added to.
  Tables Copy() const;
  /// Takes over what `from` has and this has not, but for threads: of this, which has nothing else,
  /// the ids stay those of `from`. At most so many definitions; false: there are more.
  bool Follow(const Tables& from, size_t most);

 private:
  struct FunctionHash {
    size_t operator()(const Function& f) const;
  };

  std::deque<std::string> strings_;  // deque: string_view keys below stay valid
  std::vector<Function> functions_;
  std::vector<Frame> frames_;
  std::vector<StackNode> stacks_;
  std::vector<Thread> threads_;
  std::vector<ThreadIndex> thread_changes_;
  HashMap<std::string_view, StringId> string_ids_;
  HashMap<Function, FunctionId, FunctionHash> function_ids_;
  HashMap<uint64_t, FrameId, PairHash> frame_ids_;  // function << 32 | line
  IdIndex stack_ids_;                               // by parent and frame
};

}  // namespace pystrobe
