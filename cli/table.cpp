// SPDX-License-Identifier: Apache-2.0
#include "cli/table.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "cli/text.h"
#include "profiler/write/number_text.h"

namespace pystrobe::cli {
namespace {

constexpr int kSelfWidth = 7;
constexpr int kTotalWidth = 9;
constexpr int kTimeWidth = 10;
constexpr int kGap = 2;
constexpr int kNumbersWidth = kSelfWidth + kTotalWidth + kTimeWidth + kGap;
/// From this share of self time on a row is drawn hot.
constexpr double kHotShare = 0.10;

struct Row {
  double self_share = 0, total_share = 0;
  std::string time, function, where;
};

bool IsFreeThreaded(const Profile& profile) {
  return profile.recording->metadata().python_version.find("free-thread") != std::string::npos;
}

std::string_view Meaning(const Profile& profile, Mode mode) {
  switch (mode) {
    case Mode::kWall:
      return "wall time (elapsed, waiting included)";
    case Mode::kCpu:
      return "cpu time (as the kernel charged it)";
    case Mode::kGil:
      return IsFreeThreaded(profile) ? "gil time (elapsed while attached to the interpreter)"
                                     : "gil time (elapsed while holding the interpreter's lock)";
  }
  return "";
}

std::string Heading(const Profile& profile, const TableOptions& options) {
  const Metadata& metadata = profile.recording->metadata();
  const std::string command = CommandText(metadata.command, metadata.executable);
  const std::string rest =
      fmt::format(", pid {}, Python {}", metadata.pid, metadata.python_version);
  const int room = std::max(20, options.terminal.width - DisplayWidth(rest));
  return CutEnd(command, room, options.terminal.ellipsis) + Printable(rest);
}

std::string Summary(const Profile& profile, const TableOptions& options) {
  const size_t threads = profile.threads.size();
  const auto range =
      static_cast<uint64_t>(std::max<int64_t>(0, profile.until_ns - profile.since_ns));
  std::string text = fmt::format(
      "{} of {}: {}", write::TimeText(profile.total.nanoseconds(options.mode)),
      Meaning(profile, options.mode),
      threads == 1 ? "1 thread" : fmt::format("{} threads", write::GroupDigits(threads)));
  text += fmt::format(" in {}", write::TimeText(range));
  if (profile.since_ns > 0) {
    text += fmt::format(" from {} on", write::TimeText(static_cast<uint64_t>(profile.since_ns)));
  }
  if (profile.idle_threads_hidden > 0) {
    text += fmt::format("; {} idle {} left out, --idle shows {}", profile.idle_threads_hidden,
                        profile.idle_threads_hidden == 1 ? "thread" : "threads",
                        profile.idle_threads_hidden == 1 ? "it" : "them");
  }
  return text;
}

std::string Nothing(const Profile& profile, const TableOptions& options) {
  const Quality& quality = profile.recording->quality();
  std::string why;
  if (quality.samples == 0) {
    why = "No samples were taken: the time was too short, or the program ended first.";
  } else if (profile.total.wall_ns == 0 && profile.total.samples == 0) {
    why = "No samples lie in the part that was asked for.";
  } else if (options.mode == Mode::kGil) {
    why = "No thread was seen with the interpreter's lock. --mode wall shows where they waited.";
  } else {
    why = "The kernel charged no processor time: every thread waited. --mode wall shows where.";
  }
  return Wrap(why, options.terminal.width, 0);
}

std::string Where(const Tables& tables, const FunctionRow& row, const std::string& directory) {
  const Function& function = tables.function(row.function);
  const std::string path = Printable(ShortPath(tables.text(function.file), directory));
  const uint32_t line = row.hottest_line != 0 ? row.hottest_line : function.first_line;
  return line == 0 ? path : fmt::format("{}:{}", path, line);
}

std::vector<Row> MakeRows(const Profile& profile, const std::vector<FunctionRow>& table,
                          size_t count, const TableOptions& options) {
  const auto whole = static_cast<double>(profile.total.nanoseconds(options.mode));
  std::vector<Row> rows;
  for (const FunctionRow& from : std::span(table).first(count)) {
    const uint64_t self = from.self.nanoseconds(options.mode);
    rows.push_back(
        {.self_share = static_cast<double>(self) / whole,
         .total_share = static_cast<double>(from.total.nanoseconds(options.mode)) / whole,
         .time = write::TimeText(self),
         .function =
             Printable(profile.tables().text(profile.tables().function(from.function).name)),
         .where = Where(profile.tables(), from, options.directory)});
  }
  return rows;
}

struct Columns {
  int function, where;
};

/// Shares the room between function and place: each what it needs, and half when both need more.
Columns ShareRoom(const std::vector<Row>& rows, int width) {
  int function = 8, where = 9;  // the headings
  for (const Row& row : rows) {
    function = std::max(function, DisplayWidth(row.function));
    where = std::max(where, DisplayWidth(row.where));
  }
  const int room = std::max(20, width - kNumbersWidth - kGap);
  if (function + where > room) {
    const int half = room / 2;
    if (function <= half) {
      where = room - function;
    } else if (where <= half) {
      function = room - where;
    } else {
      function = half;
      where = room - half;
    }
  }
  return {function, where};
}

std::string RowText(const Row& row, Columns columns, const Palette& palette,
                    std::string_view ellipsis) {
  const std::string_view style = row.self_share >= kHotShare ? palette.hot : std::string_view();
  const std::string_view reset = style.empty() ? std::string_view() : palette.reset;
  const std::string function = CutStart(row.function, columns.function, ellipsis);
  const std::string where = CutPath(row.where, columns.where, ellipsis);
  std::string text;
  text += fmt::format("{}{:>{}.1f}{}", style, row.self_share * 100, kSelfWidth, reset);
  text += fmt::format("{:>{}.1f}", row.total_share * 100, kTotalWidth);
  text += PadLeft(row.time, kTimeWidth) + std::string(kGap, ' ');
  text += fmt::format("{}{}{}", style, PadRight(function, columns.function), reset);
  text += std::string(kGap, ' ');
  return text + fmt::format("{}{}{}\n", palette.faint, where, palette.reset);
}

std::string HeadingRow(Columns columns, const Palette& palette) {
  const std::string gap(kGap, ' ');
  return fmt::format("{}{:>{}}{:>{}}{:>{}}{}{}{}{}{}\n", palette.strong, "self %", kSelfWidth,
                     "total %", kTotalWidth, "self", kTimeWidth, gap,
                     PadRight("function", columns.function), gap, "file:line", palette.reset);
}

std::string Rest(const Profile& profile, const std::vector<FunctionRow>& table, size_t shown,
                 Mode mode) {
  if (shown >= table.size()) return "";
  uint64_t rest = 0;
  for (const FunctionRow& row : std::span(table).subspan(shown)) rest += row.self.nanoseconds(mode);
  const double share =
      static_cast<double>(rest) / static_cast<double>(profile.total.nanoseconds(mode));
  return fmt::format("{:>{}.1f}  in {} other functions; --top {} shows all\n", share * 100,
                     kSelfWidth, write::GroupDigits(table.size() - shown), table.size());
}

}  // namespace

std::string FormatTable(const Profile& profile, const TableOptions& options) {
  const Palette palette(options.terminal.color);
  const int width = options.terminal.width;
  std::string out = fmt::format("{}{}{}", palette.strong, Heading(profile, options), palette.reset);
  out += "\n";
  if (profile.total.nanoseconds(options.mode) == 0) return out + Nothing(profile, options);
  out += Wrap(Summary(profile, options), width, 2) + "\n";

  const std::vector<FunctionRow> table = FunctionTable(profile, options.mode);
  const size_t shown = std::min<size_t>(options.top, table.size());
  const std::vector<Row> rows = MakeRows(profile, table, shown, options);
  const Columns columns = ShareRoom(rows, width);
  out += HeadingRow(columns, palette);
  for (const Row& row : rows) out += RowText(row, columns, palette, options.terminal.ellipsis);
  out += Rest(profile, table, shown, options.mode);
  for (const std::string_view line : {"self: time in the function itself, most of it at file:line",
                                      "total: time in the function and in all that it called"}) {
    out += fmt::format("{}{}{}{}", line.starts_with("self") ? "\n" : "", palette.faint,
                       Wrap(line, width, 2), palette.reset);
  }
  return out;
}

}  // namespace pystrobe::cli
