// SPDX-License-Identifier: Apache-2.0
//
// Texts by small numbers that are good for as long as the process lives: what a handle of NVTX
// stands for.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "profiler/base/error.h"
#include "profiler/base/hash_map.h"
#include "profiler/base/lazy_array.h"

namespace pystrobe::gpu {

/// Equal texts have one number. Nothing is ever removed.
class NameTable {
 public:
  static constexpr uint32_t kEmpty = 0;  ///< of the empty text
  static constexpr uint32_t kOther = 1;  ///< of all that there is no room for

  /// Of `max` texts, those of kEmpty and kOther among them; the text of the latter is `other`.
  /// Fails where there is no address space.
  static Result<NameTable> Make(uint32_t max, std::string_view other);

  /// Throws std::bad_alloc. [any thread]
  uint32_t Intern(std::string_view text);
  /// Of a number that was never given it is the empty one. [any thread]
  std::string_view text(uint32_t number) const;

  /// Held over a fork(), so that the child can go on with it.
  std::mutex& mutex() { return *mutex_; }

 private:
  struct Entry {
    const std::string* text;  // null: not given yet
  };

  explicit NameTable(LazyArray<Entry> by_number)
      : by_number_(std::move(by_number)), mutex_(std::make_unique<std::mutex>()) {}

  LazyArray<Entry> by_number_;         // read without the lock
  std::unique_ptr<std::mutex> mutex_;  // of what follows
  std::deque<std::string> texts_;      // they stay where they are
  HashMap<std::string_view, uint32_t> numbers_;
};

}  // namespace pystrobe::gpu
