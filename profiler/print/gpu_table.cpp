// SPDX-License-Identifier: Apache-2.0
#include "profiler/print/gpu_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <vector>

#include "profiler/analyze/gpu_table.h"
#include "profiler/print/text.h"
#include "profiler/write/gpu_labels.h"
#include "profiler/write/number_text.h"

namespace pystrobe::print {
namespace {

constexpr int kShareWidth = 7;
constexpr int kCountWidth = 11;
constexpr int kTimeWidth = 9;
constexpr int kTimes = 4;
constexpr int kGap = 2;
constexpr int kNumbersWidth = kShareWidth + kCountWidth + kTimes * kTimeWidth + kGap;
constexpr uint32_t kMostRows = 20;
/// From this share of the time on a row is drawn hot.
constexpr double kHotShare = 0.10;
/// In per cent: what would be shown as 0.0 is not worth a line.
constexpr double kLeastShown = 0.05;

double PercentOf(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

std::string LineText(const Tables& tables, const GpuRow& row, const std::string& directory) {
  if (!row.line) return "launched outside of Python";
  const Frame& frame = tables.frame(*row.line);
  const Function& function = tables.function(frame.function);
  const std::string path = Printable(ShortPath(tables.text(function.file), directory));
  const std::string name = Printable(write::FunctionName(function, tables));
  if (path.empty()) return fmt::format("launched by {}", name);
  return fmt::format("launched by {} ({}{})", name, path,
                     frame.line == 0 ? "" : fmt::format(":{}", frame.line));
}

std::string ShapeText(const GpuRow& row) {
  const uint64_t threads = uint64_t{row.block[0]} * row.block[1] * row.block[2];
  const std::string text =
      fmt::format("{} {} a block", threads, threads == 1 ? "thread" : "threads");
  if (!row.occupancy) return text;
  return text + fmt::format(", occupancy {:.0f} %, {:.3g} {} ({:.0f} % of the device busy)",
                            100 * row.occupancy->theoretical, row.occupancy->waves,
                            row.occupancy->waves == 1 ? "wave" : "waves",
                            100 * row.occupancy->tail_efficiency);
}

std::string BytesText(const GpuRow& row) {
  std::string text = fmt::format("{:.3g} GB", static_cast<double>(row.bytes) / 1e9);
  if (row.gigabytes_per_second() > 0) {
    text += fmt::format(" at {:.3g} GB/s", row.gigabytes_per_second());
  }
  return text;
}

/// What is told of a row below its numbers.
std::string Details(const Tables& tables, const GpuRow& row, const TableOptions& options) {
  std::vector<std::string> parts = {LineText(tables, row, options.directory)};
  if (row.kind == GpuWorkKind::kKernel && row.block[0] != 0) parts.push_back(ShapeText(row));
  if (row.bytes > 0) parts.push_back(BytesText(row));
  if (row.count > 0 && row.untimed > 0) {
    parts.push_back(fmt::format("{} more without times", write::GroupDigits(row.untimed)));
  }
  const std::string& advice = tables.text(row.advice);
  if (!advice.empty()) parts.push_back(Printable(advice));
  return fmt::format("{}", fmt::join(parts, "; "));
}

/// What rows are sorted by, and shares are of: time, or the number where nobody asked for that.
uint64_t WeightOf(const GpuTable& table, const GpuRow& row) {
  return table.launches_only ? row.untimed : row.total_ns;
}

uint64_t WholeOf(const GpuTable& table) {
  return table.launches_only ? table.count : table.total_ns;
}

std::string NumbersText(const GpuTable& table, const GpuRow& row) {
  if (table.launches_only) return PadLeft(write::GroupDigits(row.untimed), kCountWidth);
  std::string text = PadLeft(write::GroupDigits(row.count), kCountWidth);
  for (const uint64_t ns :
       {row.total_ns, static_cast<uint64_t>(row.mean_ns()), row.min_ns, row.max_ns}) {
    text += PadLeft(write::TimeText(ns), kTimeWidth);
  }
  return text;
}

std::string RowText(const Tables& tables, const GpuTable& table, const GpuRow& row,
                    const TableOptions& options) {
  const Palette palette(options.terminal.color);
  const double percent = PercentOf(WeightOf(table, row), WholeOf(table));
  const std::string_view style = percent >= 100 * kHotShare ? palette.hot : std::string_view();
  const std::string_view reset = style.empty() ? std::string_view() : palette.reset;
  const int taken = kNumbersWidth - (table.launches_only ? kTimes * kTimeWidth : 0);
  const int room = std::max(20, options.terminal.width - taken);
  const std::string name = Printable(table.LabelOf(row));
  // What tells it from others is at its end.
  const auto cut = table.labels.IsTold(row.name) ? CutStart : CutNativeName;
  std::string text = fmt::format("{}{:>{}.1f}{}", style, percent, kShareWidth, reset);
  text += NumbersText(table, row);
  text += fmt::format("{}{}{}{}\n", std::string(kGap, ' '), style,
                      cut(name, room, options.terminal.ellipsis), reset);
  constexpr int kIndent = kShareWidth + kGap;
  const std::string details =
      Wrap(Details(tables, row, options), options.terminal.width, kIndent + kGap, kIndent);
  return text +
         fmt::format("{}{}{}{}", palette.faint, std::string(kIndent, ' '), details, palette.reset);
}

std::string HeadingRow(const GpuTable& table, const Palette& palette) {
  std::string text(palette.strong);
  if (table.launches_only) {
    text += fmt::format("{:>{}}{:>{}}", "%", kShareWidth, "launches", kCountWidth);
  } else {
    text += fmt::format("{:>{}}{:>{}}", "time %", kShareWidth, "count", kCountWidth);
    for (const std::string_view heading : {"time", "mean", "min", "max"}) {
      text += fmt::format("{:>{}}", heading, kTimeWidth);
    }
  }
  return text + fmt::format("{}kernel{}\n", std::string(kGap, ' '), palette.reset);
}

size_t CountShown(const GpuTable& table, const TableOptions& options) {
  if (options.top) return std::min<size_t>(*options.top, table.rows.size());
  const auto minor = std::ranges::find_if(table.rows, [&table](const GpuRow& row) {
    return PercentOf(WeightOf(table, row), WholeOf(table)) < kLeastShown;
  });
  // Where nothing has any time all of it is of interest.
  const size_t worth =
      WholeOf(table) == 0 ? table.rows.size() : static_cast<size_t>(minor - table.rows.begin());
  return std::min<size_t>(kMostRows, worth);
}

std::string Rest(const GpuTable& table, size_t shown, Dialect dialect) {
  if (shown >= table.rows.size()) return "";
  uint64_t rest = 0;
  for (const GpuRow& row : std::span(table.rows).subspan(shown)) rest += WeightOf(table, row);
  const size_t others = table.rows.size() - shown;
  return fmt::format("{:>{}.1f}  in {} other{}; {} shows all\n", PercentOf(rest, WholeOf(table)),
                     kShareWidth, write::GroupDigits(others), others == 1 ? "" : "s",
                     AskForRows(dialect, table.rows.size()));
}

std::string DevicesText(const RecordingSource& recording) {
  std::vector<std::string> devices;
  for (const GpuDevice& device : recording.gpu()->devices) {
    devices.push_back(
        fmt::format("GPU {}: {}", device.number, Printable(recording.tables().text(device.name))));
  }
  return devices.empty() ? "" : fmt::format(" ({})", fmt::join(devices, ", "));
}

}  // namespace

std::string FormatGpuTable(const RecordingSource& recording, const TableOptions& options,
                           const std::optional<std::string>& stream) {
  const GpuTable table = MakeGpuTable(recording, stream);
  const Palette palette(options.terminal.color);
  std::string out =
      Wrap(fmt::format("{}: {}{}.", table.launches_only ? "What was put on GPUs" : "What GPUs did",
                       write::GpuSummary(table), DevicesText(recording)),
           options.terminal.width, 2);
  if (table.rows.empty()) return out;
  const size_t shown = CountShown(table, options);
  out += HeadingRow(table, palette);
  for (const GpuRow& row : std::span(table.rows).first(shown)) {
    out += RowText(recording.tables(), table, row, options);
  }
  return out + Rest(table, shown, options.dialect);
}

std::string FormatGpuQuality(const RecordingSource& recording, const QualityOptions& options) {
  constexpr int kIndent = 2;
  const std::string line = Printable(write::GpuQualityLine(*recording.gpu(), recording.tables()));
  std::string text = Wrap(fmt::format("Quality of the GPU's figures{}: {}.",
                                      options.of_a_part ? ", of the whole recording" : "", line),
                          options.width, kIndent);
  if (!options.cut_off.empty()) text += Wrap(Printable(options.cut_off), options.width, kIndent);
  return text;
}

std::string FormatGpuNote(const RecordingSource& recording, std::string_view how, int width) {
  if (recording.gpu() == nullptr || recording.gpu()->sums.empty()) return "";
  const std::string what = write::GpuSummary(MakeGpuTable(recording));
  const std::string command = Printable(how);
  const std::string line = fmt::format("GPU: {}: {}", what, command);
  if (DisplayWidth(line) <= width) return line + "\n";
  // Whole, to be copied.
  return Wrap(fmt::format("GPU: {}:", what), width, 2) + fmt::format("  {}\n", command);
}

}  // namespace pystrobe::print
