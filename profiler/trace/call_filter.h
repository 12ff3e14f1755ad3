// SPDX-License-Identifier: Apache-2.0
//
// Which functions are traced. [any thread, const]
#pragma once

#include <string>
#include <vector>

namespace pystrobe::trace {

/// A pattern is a shell's, in which `*` matches any text, slashes too. It fits a function whose
/// file or qualified name it fits as a whole, or whose file lies below the directory that it names.
struct CallFilter {
  std::vector<std::string> include;  ///< only what one of these fits; none: everything
  std::vector<std::string> exclude;  ///< nothing that one of these fits
  /// Nothing of the files below these directories, but for what was installed there.
  std::vector<std::string> library;

  bool IsEmpty() const { return include.empty() && exclude.empty() && library.empty(); }
  bool Admits(const std::string& name, const std::string& file) const;
};

}  // namespace pystrobe::trace
