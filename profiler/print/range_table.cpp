// SPDX-License-Identifier: Apache-2.0
#include "profiler/print/range_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "profiler/analyze/range_table.h"
#include "profiler/print/text.h"
#include "profiler/write/number_text.h"
#include "profiler/write/range_labels.h"

namespace pystrobe::print {
namespace {

constexpr int kCountWidth = 10;
constexpr int kTimeWidth = 9;
constexpr int kGap = 2;
constexpr int kIndent = 2;
constexpr int kLeastName = 12;
constexpr int kLeastRoom = 20;
constexpr uint32_t kMostRows = 20;
/// What takes less of all is not worth a line.
constexpr double kLeastShown = 0.0005;

/// Those to be shown, in the order of the table. No share is larger than that of the range around,
/// which comes first: so none is shown without those that it is in.
std::vector<size_t> Choose(const RangeTable& table, std::optional<uint32_t> top) {
  std::vector<size_t> rows(table.rows.size());
  std::iota(rows.begin(), rows.end(), 0);
  std::ranges::stable_sort(rows, std::ranges::greater{},
                           [&table](size_t row) { return table.rows[row].share; });
  size_t count = rows.size();
  // Where nothing has any time all of it is of interest.
  if (!top && !rows.empty() && table.rows[rows.front()].share > 0) {
    const auto minor = std::ranges::find_if(
        rows, [&table](size_t row) { return table.rows[row].share < kLeastShown; });
    count = static_cast<size_t>(minor - rows.begin());
  }
  rows.resize(std::min<size_t>(count, top.value_or(kMostRows)));
  std::ranges::sort(rows);
  return rows;
}

class RangePrinter {
 public:
  RangePrinter(const RecordingSource& recording, const TableOptions& options, bool has_work)
      : record_(*recording.ranges()),
        tables_(recording.tables()),
        options_(options),
        has_work_(has_work),
        room_(std::max(kLeastRoom, options.terminal.width - NumbersWidth())) {}

  std::string Heading() const {
    const Palette palette(options_.terminal.color);
    std::string text = fmt::format("{}{:>{}}", palette.strong, "count", kCountWidth);
    for (const std::string_view heading : {"host", "mean"}) {
      text += fmt::format("{:>{}}", heading, kTimeWidth);
    }
    if (has_work_) {
      text += fmt::format("{:>{}}{:>{}}{:>{}}", "GPU span", kTimeWidth, "busy", kTimeWidth, "works",
                          kCountWidth);
    }
    return text + fmt::format("{}range{}\n", std::string(kGap, ' '), palette.reset);
  }

  std::string Row(const RangeRow& row) const {
    const NamedRange& range = record_.ranges[row.range];
    std::string text = PadLeft(write::GroupDigits(range.count), kCountWidth);
    text += PadLeft(write::TimeText(range.host_ns), kTimeWidth);
    const uint64_t mean_ns = range.count == 0 ? 0 : range.host_ns / range.count;
    text += PadLeft(range.count == 0 ? "" : write::TimeText(mean_ns), kTimeWidth);
    if (has_work_) {
      const bool has = row.streams > 0;
      text += PadLeft(has ? write::TimeText(row.span_ns) : "", kTimeWidth);
      text += PadLeft(has ? write::TimeText(row.busy_ns) : "", kTimeWidth);
      text += PadLeft(has ? write::GroupDigits(row.works) : "", kCountWidth);
    }
    return text + std::string(kGap, ' ') + Name(row) + "\n";
  }

 private:
  int NumbersWidth() const {
    return 2 * kTimeWidth + kCountWidth + kGap + (has_work_ ? 2 * kTimeWidth + kCountWidth : 0);
  }

  std::string Name(const RangeRow& row) const {
    const std::string streams = row.streams > 1 ? fmt::format(" x{}", row.streams) : std::string();
    // However deep it is, some of its name is to be seen.
    const int most_indent = std::max(0, room_ - kLeastName - DisplayWidth(streams));
    const int indent = static_cast<int>(
        std::min<uint64_t>(uint64_t{row.depth} * kIndent, static_cast<uint64_t>(most_indent)));
    const std::string name = Printable(write::RangeName(record_.ranges[row.range], tables_));
    return std::string(static_cast<size_t>(indent), ' ') +
           CutEnd(name, room_ - indent - DisplayWidth(streams), options_.terminal.ellipsis) +
           streams;
  }

  const RangeRecord& record_;
  const Tables& tables_;
  const TableOptions& options_;
  bool has_work_;
  int room_;  // for names, and what is said behind them
};

std::string Legend(bool has_work, const TableOptions& options) {
  const Palette palette(options.terminal.color);
  std::string text = "host: elapsed, from begin to end";
  if (has_work) {
    text +=
        "; GPU span: from the start of the first work launched in it to the end of the last; busy: "
        "what the works took of that; x2: of 2 streams together";
  }
  return fmt::format("\n{}{}{}", palette.faint, Wrap(text, options.terminal.width, 2),
                     palette.reset);
}

std::string Rest(size_t shown, size_t all, Dialect dialect) {
  if (shown >= all) return "";
  return fmt::format("{:>{}}  other{}; {} shows all\n", write::GroupDigits(all - shown),
                     kCountWidth, all - shown == 1 ? "" : "s", AskForRows(dialect, all));
}

}  // namespace

std::string FormatRangeTable(const RecordingSource& recording, const TableOptions& options,
                             const std::optional<std::string>& stream) {
  if (recording.ranges() == nullptr || recording.ranges()->ranges.empty()) return "";
  const RangeTable table = MakeRangeTable(*recording.ranges(), stream);
  const RangePrinter printer(recording, options, table.has_work);
  std::string out = Wrap(
      fmt::format("Ranges that the program named: {}.", write::RangeSummary(*recording.ranges())),
      options.terminal.width, 2);
  out += printer.Heading();
  const std::vector<size_t> shown = Choose(table, options.top);
  for (const size_t row : shown) out += printer.Row(table.rows[row]);
  return out + Rest(shown.size(), table.rows.size(), options.dialect) +
         Legend(table.has_work, options);
}

bool HasRangesAlone(const RecordingSource& recording, std::optional<Mode> asked) {
  const bool only_gpu = recording.metadata().pause_mode == kOfGpu;
  return asked.value_or(only_gpu ? Mode::kGpu : Mode::kWall) == Mode::kGpu &&
         recording.gpu() == nullptr && recording.ranges() != nullptr &&
         !recording.ranges()->ranges.empty();
}

std::string FormatRangeReport(const RecordingSource& recording, const TableOptions& options,
                              const QualityOptions& quality) {
  const std::string_view no_gpu =
      "The recording does not tell what a GPU did: there was none, which a warning said, or nobody "
      "asked for it.";
  return Wrap(no_gpu, options.terminal.width, 2) + "\n" + FormatRangeTable(recording, options) +
         "\n" + FormatQuality(recording.metadata(), recording.quality(), quality);
}

}  // namespace pystrobe::print
