// SPDX-License-Identifier: Apache-2.0
#include "profiler/trace/call_filter.h"

#include <fnmatch.h>

#include <algorithm>
#include <string_view>

namespace pystrobe::trace {
namespace {

bool IsBelow(const std::string& file, std::string_view directory) {
  while (directory.ends_with('/')) directory.remove_suffix(1);
  return !directory.empty() && file.size() > directory.size() && file.starts_with(directory) &&
         file[directory.size()] == '/';
}

bool Fits(const std::string& pattern, const std::string& name, const std::string& file) {
  return fnmatch(pattern.c_str(), file.c_str(), FNM_NOESCAPE) == 0 ||
         fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0 || IsBelow(file, pattern);
}

// Of modules that the interpreter carries with it.
bool IsFrozen(const std::string& file) { return file.starts_with("<frozen "); }

bool IsInstalled(const std::string& file) {
  return file.find("/site-packages/") != std::string::npos ||
         file.find("/dist-packages/") != std::string::npos;
}

}  // namespace

bool CallFilter::Admits(const std::string& name, const std::string& file) const {
  const auto fits = [&](const std::string& pattern) { return Fits(pattern, name, file); };
  if (!include.empty() && std::ranges::none_of(include, fits)) return false;
  if (std::ranges::any_of(exclude, fits)) return false;
  if (library.empty()) return true;
  return !IsFrozen(file) &&
         (IsInstalled(file) || std::ranges::none_of(library, [&](const std::string& directory) {
            return IsBelow(file, directory);
          }));
}

}  // namespace pystrobe::trace
