// SPDX-License-Identifier: Apache-2.0
#include "profiler/trace/call_filter.h"

#include <fnmatch.h>

#include <algorithm>

namespace pystrobe::trace {
namespace {

constexpr std::string_view kFrozen = "<frozen ";

bool IsBelow(std::string_view file, std::string_view directory) {
  while (directory.ends_with('/')) directory.remove_suffix(1);
  return !directory.empty() && file.size() > directory.size() && file.starts_with(directory) &&
         file[directory.size()] == '/';
}

bool Matches(const std::string& pattern, const std::string& text) {
  return fnmatch(pattern.c_str(), text.c_str(), FNM_NOESCAPE) == 0;
}

bool FitsText(const std::string& pattern, const NamedFunction& function) {
  const auto fits_module = [&](const std::string& module) {
    return Matches(pattern, module) || module.starts_with(pattern + ".") ||
           Matches(pattern, module + "." + function.name);
  };
  return Matches(pattern, function.file) || Matches(pattern, function.name) ||
         IsBelow(function.file, pattern) || std::ranges::any_of(function.modules, fits_module);
}

// "json/decoder.py" -> "json.decoder", "json/__init__.py" -> "json"
std::string ModuleOf(std::string_view below_path) {
  std::string module(below_path.substr(0, below_path.rfind(".py")));
  std::ranges::replace(module, '/', '.');
  constexpr std::string_view kPackage = ".__init__";
  if (module.ends_with(kPackage)) module.resize(module.size() - kPackage.size());
  return module;
}

// Of modules that the interpreter carries with it.
bool IsFrozen(std::string_view file) { return file.starts_with(kFrozen); }

bool IsInstalled(const std::string& file) {
  return file.find("/site-packages/") != std::string::npos ||
         file.find("/dist-packages/") != std::string::npos;
}

}  // namespace

std::vector<std::string> ModulesOf(std::string_view file, std::span<const std::string> path) {
  if (IsFrozen(file) && file.ends_with('>')) {
    return {std::string(file.substr(kFrozen.size(), file.size() - kFrozen.size() - 1))};
  }
  std::vector<std::string> modules;
  for (std::string_view directory : path) {
    while (directory.ends_with('/')) directory.remove_suffix(1);
    if (!IsBelow(file, directory)) continue;
    modules.push_back(ModuleOf(file.substr(directory.size() + 1)));
  }
  return modules;
}

bool Pattern::Fits(const NamedFunction& function) const {
  return FitsText(text, function) || function.file == path || IsBelow(function.file, path);
}

bool CallFilter::Admits(const NamedFunction& function) const {
  const std::string& file = function.file;
  const auto fits = [&](const Pattern& pattern) { return pattern.Fits(function); };
  if (!include.empty() && std::ranges::none_of(include, fits)) return false;
  if (std::ranges::any_of(exclude, fits)) return false;
  if (library.empty()) return true;
  return !IsFrozen(file) &&
         (IsInstalled(file) || std::ranges::none_of(library, [&](const std::string& directory) {
            return IsBelow(file, directory);
          }));
}

UnusedPatterns::UnusedPatterns(const CallFilter& filter) {
  for (const auto* patterns : {&filter.include, &filter.exclude}) {
    for (const Pattern& pattern : *patterns) left_.push_back(&pattern);
  }
}

void UnusedPatterns::Look(const NamedFunction& function) {
  std::erase_if(left_, [&](const Pattern* pattern) { return pattern->Fits(function); });
}

std::vector<std::string> UnusedPatterns::texts() const {
  std::vector<std::string> texts;
  for (const Pattern* pattern : left_) texts.push_back(pattern->text);
  return texts;
}

}  // namespace pystrobe::trace
