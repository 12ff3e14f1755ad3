// SPDX-License-Identifier: Apache-2.0
#include "cli/suggest.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace pystrobe::cli {
namespace {

constexpr size_t kLongest = 40;     // no word of ours has so many letters
constexpr size_t kShortWord = 5;    // up to here one change makes another word
constexpr size_t kMostChanges = 2;  // of a longer one that begins alike

// The optimal string alignment distance: dynamic programming over prefixes, of which the last
// three rows are kept.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last, last, row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before_last = std::move(last);
    last = std::move(row);
    row.assign(b.size() + 1, i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t exchanged = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({exchanged, last[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row.back();
}

size_t MostChanges(std::string_view word, std::string_view meant) {
  if (word.size() < 3) return 0;
  return word.size() > kShortWord && word.front() == meant.front() ? kMostChanges : 1;
}

}  // namespace

std::optional<std::string_view> Nearest(std::string_view word,
                                        std::span<const std::string_view> known) {
  if (word.size() > kLongest) return std::nullopt;
  std::optional<std::string_view> nearest;
  size_t least = kMostChanges + 1;
  for (const std::string_view candidate : known) {
    const size_t distance = Distance(word, candidate);
    if (distance >= least || distance > MostChanges(word, candidate)) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

}  // namespace pystrobe::cli
