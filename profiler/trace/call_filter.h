// SPDX-License-Identifier: Apache-2.0
//
// Which functions are traced. [any thread, const]
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pystrobe::trace {

/// What a function is told by.
struct NamedFunction {
  std::string name;                  ///< qualified where the interpreter knows it
  std::string file;                  ///< without `.` and `..` on its way
  std::vector<std::string> modules;  ///< what its file may be imported as: ModulesOf
};

/// What `file` is called as a module where one of `path`, as sys.path has them, is the directory
/// that it was imported from: one name for each that it lies below.
std::vector<std::string> ModulesOf(std::string_view file, std::span<const std::string> path);

/// A shell's, in which `*` matches any text, slashes and dots too. It fits a function whose file,
/// qualified name or module it fits as a whole, or module and name with a dot between; or whose
/// file lies below the directory that it names, its module in the package.
struct Pattern {
  std::string text;  ///< as people wrote it
  /// Of the file or the directory that it may be meant for, as files have theirs and letter by
  /// letter; empty: there is none.
  std::string path;

  bool Fits(const NamedFunction& function) const;
};

struct CallFilter {
  std::vector<Pattern> include;  ///< only what one of these fits; none: everything
  std::vector<Pattern> exclude;  ///< nothing that one of these fits
  /// Nothing of the files below these directories, but for what was installed there.
  std::vector<std::string> library;

  bool IsEmpty() const { return include.empty() && exclude.empty() && library.empty(); }
  bool Admits(const NamedFunction& function) const;
};

/// Which patterns of a filter have fitted nothing, as one that is misspelt does. [one thread at a
/// time]
class UnusedPatterns {
 public:
  /// `filter` outlives it.
  explicit UnusedPatterns(const CallFilter& filter);
  explicit UnusedPatterns(const CallFilter&&) = delete;
  /// Told of each function that there is.
  void Look(const NamedFunction& function);
  /// As people wrote them.
  std::vector<std::string> texts() const;

 private:
  std::vector<const Pattern*> left_;
};

}  // namespace pystrobe::trace
