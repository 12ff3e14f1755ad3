// SPDX-License-Identifier: Apache-2.0
#include "profiler/print/split.h"

#include <algorithm>
#include <vector>

#include "profiler/print/text.h"
#include "profiler/write/labels.h"

namespace pystrobe::print {
namespace {

constexpr int kNumberWidth = 8;
constexpr int kGap = 2;
constexpr int kNumbersWidth = 4 * kNumberWidth + kGap;
constexpr size_t kMostLines = 10;
/// Lines with less of the total say little.
constexpr double kLittle = 0.01;

struct Line {
  FunctionId function;
  uint32_t line;
  CpuSplit cpu;

  uint64_t all() const { return cpu.python_ns + cpu.native_ns + cpu.kernel_ns; }
};

/// The most CPU time first.
std::vector<Line> LinesOf(const SplitTimes& times) {
  std::vector<Line> lines;
  for (const FunctionSplit& function : times.functions) {
    for (const FunctionSplit::Line& line : function.lines) {
      lines.push_back({function.function, line.line, line.cpu});
    }
  }
  std::ranges::stable_sort(lines, std::ranges::greater{}, &Line::all);
  return lines;
}

size_t CountShown(const std::vector<Line>& lines, double whole, const TableOptions& options) {
  if (options.top) return std::min<size_t>(*options.top, lines.size());
  const auto little = std::ranges::find_if(
      lines, [&](const Line& line) { return static_cast<double>(line.all()) < kLittle * whole; });
  return std::min(kMostLines, static_cast<size_t>(little - lines.begin()));
}

std::string Numbers(const CpuSplit& cpu, uint64_t all, double whole) {
  std::string text;
  for (const uint64_t part : {all, cpu.python_ns, cpu.native_ns, cpu.kernel_ns}) {
    text += fmt::format("{:>{}.1f}", 100 * static_cast<double>(part) / whole, kNumberWidth);
  }
  return text;
}

struct Row {
  std::string numbers, function, where;
};

Row RowOf(const Line& line, const Tables& tables, double whole, const TableOptions& options) {
  const Function& function = tables.function(line.function);
  const std::string path = Printable(ShortPath(tables.text(function.file), options.directory));
  return {Numbers(line.cpu, line.all(), whole), Printable(write::FunctionName(function, tables)),
          line.line == 0 ? path : fmt::format("{}:{}", path, line.line)};
}

std::string Summary(const CpuSplit& total, double whole) {
  const auto percent = [whole](uint64_t part) { return 100 * static_cast<double>(part) / whole; };
  return fmt::format(
      "What used the CPU: Python {:.1f} %, native code {:.1f} %, the kernel {:.1f} %; "
      "by line, with the C functions it calls:",
      percent(total.python_ns), percent(total.native_ns), percent(total.kernel_ns));
}

std::string Headings(TwoColumns columns, const Palette& palette) {
  std::string text(palette.strong);
  for (const std::string_view heading : {"cpu %", "python", "native", "kernel"}) {
    text += fmt::format("{:>{}}", heading, kNumberWidth);
  }
  const std::string gap(kGap, ' ');
  text += gap + PadRight("function", columns.first) + gap;
  return text + fmt::format("file:line{}\n", palette.reset);
}

std::string RowText(const Row& row, TwoColumns columns, const Palette& palette,
                    std::string_view ellipsis) {
  const std::string gap(kGap, ' ');
  const std::string function = CutQualifiedName(row.function, columns.first, ellipsis);
  return row.numbers + gap + PadRight(function, columns.first) + gap +
         fmt::format("{}{}{}\n", palette.faint, CutPath(row.where, columns.second, ellipsis),
                     palette.reset);
}

}  // namespace

std::string FormatSplit(const Profile& profile, const TableOptions& options) {
  const auto whole = static_cast<double>(profile.total.cpu_ns);
  if (!profile.recording->metadata().native || whole == 0) return "";
  const SplitTimes times = SplitCpuTime(profile);
  const std::vector<Line> lines = LinesOf(times);
  std::vector<Row> rows;
  TwoColumns needed{8, 9};  // the headings
  for (const Line& line : std::span(lines).first(CountShown(lines, whole, options))) {
    const Row& row = rows.emplace_back(RowOf(line, profile.tables(), whole, options));
    needed.first = std::max(needed.first, DisplayWidth(row.function));
    needed.second = std::max(needed.second, DisplayWidth(row.where));
  }
  const Terminal& terminal = options.terminal;
  const Palette palette(terminal.color);
  std::string text = Wrap(Summary(times.total, whole), terminal.width, 2);
  if (rows.empty()) return text;
  const TwoColumns columns = ShareRoom(needed, std::max(20, terminal.width - kNumbersWidth - kGap));
  text += Headings(columns, palette);
  for (const Row& row : rows) text += RowText(row, columns, palette, terminal.ellipsis);
  return text;
}

}  // namespace pystrobe::print
