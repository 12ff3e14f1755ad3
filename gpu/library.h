// SPDX-License-Identifier: Apache-2.0
//
// Shared libraries that are found at run time, so that nothing of a GPU's is needed where there is
// none.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "profiler/base/error.h"

namespace pystrobe::gpu {

/// Of the library that the process has already whose file name begins with `stem` ("libcuda.so"),
/// as the dynamic linker has it; empty where there is none. [any thread]
std::string PathOfLoaded(std::string_view stem);

/// A shared library, which stays loaded. [any thread]
class Library {
 public:
  /// The one of PathOfLoaded(stem), else the first of `names` that the dynamic linker finds: two
  /// copies of one library, each with its own state, are no good. Fails with what the linker says
  /// of the last name.
  static Result<Library> Open(std::string_view stem, std::span<const char* const> names);

  /// Null where it has no such symbol.
  void* Symbol(const char* name) const;
  /// Of its file, as the dynamic linker has it.
  const std::string& path() const { return path_; }

 private:
  Library(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}

  void* handle_;
  std::string path_;
};

}  // namespace pystrobe::gpu
