// SPDX-License-Identifier: Apache-2.0
//
// Strong identifiers into the tables of a recording. Each is an index, dense from 0; they never
// refer across recordings.
#pragma once

#include <cstdint>
#include <functional>

namespace pystrobe {

enum class StringId : uint32_t {};  ///< 0 is the empty string
enum class FunctionId : uint32_t {};
enum class FrameId : uint32_t {};      ///< a function at one line
enum class StackId : uint32_t {};      ///< 0 is the empty stack, the root of the stack tree
enum class ThreadIndex : uint32_t {};  ///< order of appearance, not the kernel's thread id

inline constexpr StringId kEmptyString{0};
inline constexpr StackId kEmptyStack{0};

template <typename Id>
constexpr uint32_t ToIndex(Id id) {
  return static_cast<uint32_t>(id);
}

}  // namespace pystrobe
