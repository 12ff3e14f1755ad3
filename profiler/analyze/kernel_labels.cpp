// SPDX-License-Identifier: Apache-2.0
#include "profiler/analyze/kernel_labels.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

namespace pystrobe {
namespace {

using Arguments = std::vector<std::string_view>;

constexpr std::string_view kCall = "::operator()() const";

/// How deep in brackets one is, character by character. What is in round, square or curly ones has
/// angles that come in no pairs, but ends as a whole.
class Nesting {
 public:
  void Pass(std::string_view text, size_t at) {
    const char c = text[at];
    if (c == '(' || c == '[' || c == '{') ++others_;
    if (c == ')' || c == ']' || c == '}') --others_;
    if (others_ != 0) return;
    if (c == '<') ++angles_;
    if (c == '>' && !(at > 0 && text[at - 1] == '-')) --angles_;
  }
  /// In so many lists of template arguments, and no other brackets.
  bool IsIn(int angles) const { return others_ == 0 && angles_ == angles; }

 private:
  int angles_ = 0, others_ = 0;
};

std::string_view Trim(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

/// Of the last template in a demangled name, outside of the function's parameters: of the function
/// itself, as what it returns comes before it.
Arguments TemplateArguments(std::string_view name) {
  Arguments found;
  Nesting nesting;
  size_t begin = 0;
  for (size_t at = 0; at < name.size(); ++at) {
    const bool was_outside = nesting.IsIn(0);
    const bool was_inside = nesting.IsIn(1);
    nesting.Pass(name, at);
    if (was_outside && nesting.IsIn(1)) {
      found.clear();
      begin = at + 1;
    } else if (was_inside && (nesting.IsIn(0) || name[at] == ',')) {
      found.push_back(Trim(name.substr(begin, at - begin)));
      begin = at + 1;
    }
  }
  return found;
}

/// Of each round bracket that opens, behind its counterpart; in one pass, whatever a file says.
std::vector<size_t> EndsOfBrackets(std::string_view text) {
  std::vector<size_t> ends(text.size(), text.size());
  std::vector<size_t> open;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '(') open.push_back(at);
    if (text[at] != ')' || open.empty()) continue;
    ends[open.back()] = at + 1;
    open.pop_back();
  }
  return ends;
}

/// Without namespaces, and of what is inside of functions without their parameters:
/// "ns::kernel(ns::Iterator&)::{lambda()#1}" is "kernel::{lambda()#1}".
std::string Shorten(std::string_view argument) {
  const std::vector<size_t> ends = EndsOfBrackets(argument);
  std::string out;
  std::vector<size_t> begins = {0};  // of the qualified name, by how deep it is in brackets
  for (size_t at = 0; at < argument.size(); ++at) {
    const std::string_view rest = argument.substr(at);
    const char c = argument[at];
    if (rest.starts_with("::{")) {
      out += "::";
      ++at;
    } else if (rest.starts_with(kCall)) {
      at += kCall.size() - 1;
    } else if (rest.starts_with("::")) {
      out.resize(begins.back());
      ++at;
    } else if (c == '(' && argument.substr(ends[at]).starts_with("::")) {
      at = ends[at] - 1;
    } else {
      if (c == '>' && out.ends_with("> ")) out.pop_back();
      out += c;
      if (std::string_view("<({[").contains(c)) begins.push_back(out.size());
      if (std::string_view(">)}]").contains(c) && begins.size() > 1) begins.pop_back();
      if (c == ' ' || c == ',') begins.back() = out.size();
    }
  }
  return out;
}

std::string_view AsItIs(std::string_view argument) { return argument; }

bool DifferAt(const std::vector<Arguments>& all, size_t place) {
  return std::ranges::any_of(all, [&](const Arguments& arguments) {
    if (place >= arguments.size()) return true;
    return place >= all.front().size() || arguments[place] != all.front()[place];
  });
}

/// Places at which not all have the same.
std::vector<size_t> Differences(const std::vector<Arguments>& all) {
  const size_t most = std::ranges::max(all, {}, &Arguments::size).size();
  std::vector<size_t> places;
  for (size_t place = 0; place < most; ++place) {
    if (DifferAt(all, place)) places.push_back(place);
  }
  return places;
}

/// With the arguments at these places, in order.
template <typename Text>
std::vector<std::string> LabelsWith(std::string_view short_name, const std::vector<Arguments>& all,
                                    const std::vector<size_t>& places, Text text) {
  std::vector<std::string> labels;
  for (const Arguments& arguments : all) {
    std::vector<std::string> told;
    for (const size_t place : places) {
      if (place >= arguments.size()) break;
      told.emplace_back(text(arguments[place]));
    }
    labels.push_back(told.empty() ? std::string(short_name)
                                  : fmt::format("{}<{}>", short_name, fmt::join(told, ", ")));
  }
  return labels;
}

bool AreDistinct(const std::vector<std::string>& labels) {
  return std::set<std::string_view>(labels.begin(), labels.end()).size() == labels.size();
}

/// Empty where two would be called the same.
template <typename Text>
std::vector<std::string> LabelsOf(std::string_view short_name, const std::vector<Arguments>& all,
                                  Text text) {
  // With more than that it takes too long to find out which of them do.
  constexpr size_t kFew = 8;
  std::vector<size_t> places = Differences(all);
  std::vector<std::string> labels = LabelsWith(short_name, all, places, text);
  if (!AreDistinct(labels)) return {};
  for (size_t i = places.size() <= kFew ? places.size() : 0; i-- > 0;) {
    std::vector<size_t> fewer = places;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    std::vector<std::string> shorter = LabelsWith(short_name, all, fewer, text);
    if (fewer.empty() || !AreDistinct(shorter)) continue;
    places = std::move(fewer);
    labels = std::move(shorter);
  }
  return labels;
}

std::vector<std::string> LabelsOf(std::string_view short_name,
                                  const std::vector<std::string_view>& names) {
  std::vector<Arguments> all;
  for (const std::string_view name : names) all.push_back(TemplateArguments(name));
  std::vector<std::string> labels = LabelsOf(short_name, all, Shorten);
  if (labels.empty()) labels = LabelsOf(short_name, all, AsItIs);
  if (labels.empty()) labels.assign(names.begin(), names.end());
  return labels;
}

}  // namespace

KernelLabels::KernelLabels(const GpuRecord& record, const Tables& tables) : tables_(&tables) {
  // A name has one short name; where a file says otherwise, the first.
  std::set<StringId> seen;
  std::map<StringId, std::vector<StringId>> alike;
  for (const GpuKernel& kernel : record.kernels) {
    if (seen.insert(kernel.name).second) alike[kernel.short_name].push_back(kernel.name);
  }
  for (const auto& [short_name, ids] : alike) {
    if (ids.size() == 1) continue;
    std::vector<std::string_view> names;
    for (const StringId id : ids) names.push_back(tables.text(id));
    std::vector<std::string> labels = LabelsOf(tables.text(short_name), names);
    for (size_t i = 0; const StringId id : ids) {
      std::string& label = labels[i++];
      if (label != tables.text(short_name)) labels_[id] = std::move(label);
    }
  }
}

std::string_view KernelLabels::Of(StringId name, StringId short_name) const {
  const auto label = labels_.find(name);
  return label == labels_.end() ? std::string_view(tables_->text(short_name)) : label->second;
}

}  // namespace pystrobe
