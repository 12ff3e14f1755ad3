// SPDX-License-Identifier: Apache-2.0
#include "profiler/print/gpu_idle.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <vector>

#include "profiler/analyze/gpu_idle.h"
#include "profiler/analyze/gpu_meanwhile.h"
#include "profiler/print/text.h"
#include "profiler/write/gpu_labels.h"
#include "profiler/write/labels.h"
#include "profiler/write/number_text.h"

namespace pystrobe::print {
namespace {

constexpr int kShareWidth = 7;
constexpr int kCountWidth = 11;
constexpr int kTimeWidth = 9;
constexpr int kGap = 2;
constexpr int kNumbersWidth = kShareWidth + kCountWidth + 3 * kTimeWidth + kGap;
/// Cells of a path at least, and what a line has beside it: a gap, brackets, numbers of lines.
constexpr int kLeastPath = 12;
constexpr int kPathsOwn = 20;
constexpr int kLeastName = 20;
constexpr uint32_t kMostRows = 10;
constexpr size_t kMostWaits = 5;
constexpr size_t kMostMeanwhile = 8;
/// In per cent of the idle time: what is less is not worth a line.
constexpr double kLeastShown = 1;

double PercentOf(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

class Places {
 public:
  Places(const Tables& tables, const TableOptions& options) : tables_(tables), options_(options) {}

  /// "step (app.py:12)"
  std::string Text(const std::optional<FrameId>& frame) const {
    return frame ? WithLines(*frame, LineOf(*frame)) : "no Python";
  }

  /// "in train (app.py:12 to 34)". One line may be of two calls of its function: then it was the
  /// caller who did something else.
  std::string Between(const GpuIdleRow& row) const {
    if (!row.from || !row.to) return "no common Python caller";
    const std::string from = LineOf(*row.from), to = LineOf(*row.to);
    if (from == to) return "from one launch to the next by " + WithLines(*row.from, from);
    return "in " + WithLines(*row.from, fmt::format("{} to {}", from, to));
  }

 private:
  std::string LineOf(FrameId frame) const {
    const uint32_t line = tables_.frame(frame).line;
    return line == 0 ? "" : fmt::format("{}", line);
  }

  std::string WithLines(FrameId frame, const std::string& lines) const {
    const Function& function = tables_.function(tables_.frame(frame).function);
    const std::string path =
        CutPath(Printable(ShortPath(tables_.text(function.file), options_.directory)),
                std::max(kLeastPath, options_.terminal.width - kNumbersWidth - kPathsOwn),
                options_.terminal.ellipsis);
    const std::string name =
        CutQualifiedName(Printable(write::FunctionName(function, tables_)),
                         std::max(kLeastName, options_.terminal.width - kNumbersWidth - kGap),
                         options_.terminal.ellipsis);
    if (path.empty()) return name;
    return fmt::format("{} ({}{}{})", name, path, lines.empty() ? "" : ":", lines);
  }

  const Tables& tables_;
  const TableOptions& options_;
};

std::string WhyText(const GpuIdleRow& row, const Places& places) {
  const std::string_view why = write::GpuIdleCauseText(row.cause);
  switch (row.cause) {
    case GpuIdleCause::kQueue:
    case GpuIdleCause::kLaunch:
    case GpuIdleCause::kLaunches:
      return fmt::format("{}: by {}", why, places.Text(row.to));
    case GpuIdleCause::kWait:
      return fmt::format("{}: in {}", why, places.Text(row.from));
    case GpuIdleCause::kHost:
      return fmt::format("{}: {}", why, places.Between(row));
    case GpuIdleCause::kUnknown:
      return std::string(why);
  }
  return "";
}

std::string RowText(const GpuIdleRow& row, const GpuIdleTable& table, const Places& places,
                    const TableOptions& options) {
  std::string text = fmt::format("{:>{}.1f}", PercentOf(row.total_ns, table.idle_ns), kShareWidth);
  text += PadLeft(write::GroupDigits(row.count), kCountWidth);
  // A file may say anything.
  const uint64_t mean_ns = row.count == 0 ? 0 : row.total_ns / row.count;
  for (const uint64_t ns : {row.total_ns, mean_ns, row.max_ns}) {
    text += PadLeft(write::TimeText(ns), kTimeWidth);
  }
  text += std::string(kGap, ' ');
  return text +
         Wrap(WhyText(row, places), options.terminal.width, kNumbersWidth + kGap, kNumbersWidth);
}

std::string HeadingRow(const Palette& palette) {
  std::string text =
      fmt::format("{}{:>{}}{:>{}}", palette.strong, "idle %", kShareWidth, "count", kCountWidth);
  for (const std::string_view heading : {"time", "mean", "max"}) {
    text += fmt::format("{:>{}}", heading, kTimeWidth);
  }
  return text + fmt::format("{}why{}\n", std::string(kGap, ' '), palette.reset);
}

size_t CountShown(const GpuIdleTable& table) {
  const auto minor = std::ranges::find_if(table.rows, [&table](const GpuIdleRow& row) {
    return PercentOf(row.total_ns, table.idle_ns) < kLeastShown;
  });
  return std::min<size_t>(kMostRows, static_cast<size_t>(minor - table.rows.begin()));
}

std::string Rest(const GpuIdleTable& table, size_t shown) {
  if (shown >= table.rows.size()) return "";
  uint64_t rest = 0;
  for (const GpuIdleRow& row : std::span(table.rows).subspan(shown)) rest += row.total_ns;
  const size_t others = table.rows.size() - shown;
  return fmt::format("{:>{}.1f}  in {} other{}\n", PercentOf(rest, table.idle_ns), kShareWidth,
                     write::GroupDigits(others), others == 1 ? "" : "s");
}

std::string WaitsText(const GpuIdleTable& table, const Places& places, int width) {
  if (table.waits.empty()) return "";
  uint64_t count = 0, total_ns = 0;
  for (const GpuWaitRow& row : table.waits) {
    count += row.count;
    total_ns += row.total_ns;
  }
  std::vector<std::string> parts;
  for (const GpuWaitRow& row :
       std::span(table.waits).first(std::min(kMostWaits, table.waits.size()))) {
    const double percent = PercentOf(row.total_ns, total_ns);
    if (percent >= kLeastShown) {
      parts.push_back(fmt::format("{:.0f} % in {}", percent, places.Text(row.line)));
    }
  }
  return Wrap(
      fmt::format("Threads waited for the GPU for {} in {} call{}: {}.", write::TimeText(total_ns),
                  write::GroupDigits(count), count == 1 ? "" : "s", fmt::join(parts, ", ")),
      width, 2);
}

/// What the threads did meanwhile that launched nothing.
std::string MeanwhileText(const RecordingSource& recording, const Places& places, int width) {
  const auto found = MakeGpuMeanwhile(recording);
  if (!found || found->cpu_ns + found->wall_ns == 0) return "";
  const bool by_wall = found->wall_ns > 0;
  std::vector<std::string> parts;
  for (const MeanwhileRow& row :
       std::span(found->rows).first(std::min(kMostMeanwhile, found->rows.size()))) {
    const double percent =
        by_wall ? PercentOf(row.wall_ns, found->wall_ns) : PercentOf(row.cpu_ns, found->cpu_ns);
    if (percent < kLeastShown) continue;
    parts.push_back(fmt::format("{:.0f} % in {}", percent, places.Text(row.line)));
    if (by_wall) {
      parts.back() +=
          fmt::format(" ({:.0f} % of that on a CPU)", PercentOf(row.cpu_ns, row.wall_ns));
    }
  }
  if (parts.empty()) return "";
  const std::string when =
      fmt::format("While the program launched nothing (the times that are known one by one: {})",
                  write::TimeText(found->gaps_ns));
  const std::string who = by_wall ? "the thread that launched next was"
                                  : fmt::format("the thread that launched next used {} of CPU time",
                                                write::TimeText(found->cpu_ns));
  return Wrap(fmt::format("{}, {}: {}.", when, who, fmt::join(parts, ", ")), width, 2);
}

}  // namespace

std::string FormatGpuIdle(const RecordingSource& recording, const TableOptions& options) {
  const GpuIdleTable table = MakeGpuIdleTable(recording);
  const Places places(recording.tables(), options);
  const int width = options.terminal.width;
  const std::string waits = WaitsText(table, places, width);
  const uint64_t all_ns = table.busy_ns + table.idle_ns;
  if (all_ns == 0) return waits;
  std::string text = Wrap(
      fmt::format("Nothing to do for {} of {}, from a GPU's first work to its last ({:.1f} %).",
                  write::TimeText(table.idle_ns), write::TimeText(all_ns),
                  PercentOf(table.idle_ns, all_ns)),
      width, 2);
  const size_t shown = CountShown(table);
  if (shown > 0) text += HeadingRow(Palette(options.terminal.color));
  for (const GpuIdleRow& row : std::span(table.rows).first(shown)) {
    text += RowText(row, table, places, options);
  }
  return text + Rest(table, shown) + MeanwhileText(recording, places, width) + waits;
}

}  // namespace pystrobe::print
