// SPDX-License-Identifier: Apache-2.0
#include "profiler/print/table.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "profiler/print/split.h"
#include "profiler/print/text.h"
#include "profiler/write/labels.h"
#include "profiler/write/number_text.h"

namespace pystrobe::print {
namespace {

constexpr int kSelfWidth = 7;
constexpr int kTotalWidth = 9;
constexpr int kTimeWidth = 10;
constexpr int kGap = 2;
constexpr int kNumbersWidth = kSelfWidth + kTotalWidth + kTimeWidth + kGap;
/// From this share of self time on a row is drawn hot.
constexpr double kHotShare = 0.10;
/// In per cent: what would be shown as 0.0 is not worth a line.
constexpr double kLeastShown = 0.05;
constexpr uint32_t kMostRows = 20;
/// Functions without self time that are in less of the total say little.
constexpr double kLittle = 0.05;

struct Row {
  std::string count;  // where it is counted
  double self_share = 0, total_share = 0;
  std::string time, function, where;
  bool is_native = false;
};

bool CountsCalls(const Profile& profile) { return HasCalls(profile.recording->metadata()); }

/// What is counted in a column of its own; empty: nothing is.
std::string_view Counted(const Profile& profile, Mode mode) {
  if (mode == Mode::kGpu) return "count";
  return CountsCalls(profile) ? "calls" : "";
}

/// Of that column; 0: there is none.
int CountWidth(const std::vector<Row>& rows, std::string_view counted) {
  if (counted.empty()) return 0;
  int width = DisplayWidth(counted);
  for (const Row& row : rows) width = std::max(width, DisplayWidth(row.count));
  return kGap + width;
}

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
    case Mode::kGpu:
      return "gpu time (as the device told it, by what launched it)";
  }
  return "";
}

std::string Heading(const Profile& profile, const TableOptions& options) {
  const Metadata& metadata = profile.recording->metadata();
  const std::string command =
      CommandText(metadata.command, metadata.executable, options.terminal.ellipsis);
  const std::string rest =
      fmt::format(", pid {}, Python {}", metadata.pid, metadata.python_version);
  const int room = std::max(20, options.terminal.width - DisplayWidth(rest));
  return CutEnd(command, room, options.terminal.ellipsis) + Printable(rest);
}

/// Who they are, where they are few: one may be the thread that was looked for.
std::string IdleLeftOut(const Profile& profile, Dialect dialect) {
  constexpr size_t kFew = 3;
  const size_t count = profile.idle_hidden.size();
  if (count == 0) return "";
  std::vector<std::string> names;
  for (size_t i = 0; i < count && count <= kFew; ++i) {
    const Thread& thread = profile.tables().thread(profile.idle_hidden[i]);
    names.push_back(Printable(write::ThreadLabel(thread, profile.tables())));
  }
  return fmt::format("; {} idle {} left out{}, {} shows {}", write::GroupDigits(count),
                     count == 1 ? "thread" : "threads",
                     names.empty() ? "" : fmt::format(" ({})", fmt::join(names, ", ")),
                     AskForIdle(dialect), count == 1 ? "it" : "them");
}

std::string Summary(const Profile& profile, const TableOptions& options) {
  const bool of_gpu = options.mode == Mode::kGpu;
  const size_t threads = of_gpu ? profile.threads.size() : profile.CountThreads();
  const auto range =
      static_cast<uint64_t>(std::max<int64_t>(0, profile.until_ns - profile.since_ns));
  const std::string count = write::GroupDigits(threads);
  std::string whose = fmt::format("the sum of {} threads", count);
  if (of_gpu) whose = fmt::format("{} stream{}", count, threads == 1 ? "" : "s");
  if (!of_gpu && threads == 1) whose = "1 thread";
  std::string text =
      fmt::format("{} of {}: {}", write::TimeText(profile.total.nanoseconds(options.mode)),
                  Meaning(profile, options.mode), whose);
  text += fmt::format(" in {}", write::TimeText(range));
  if (profile.since_ns > 0) {
    text += fmt::format(" from {} on", write::TimeText(static_cast<uint64_t>(profile.since_ns)));
  }
  if (threads > 1 && options.mode == Mode::kWall && profile.has_cpu_time)
    text += fmt::format(" ({}: without waiting)", AskForMode(options.dialect, "cpu"));
  return text + IdleLeftOut(profile, options.dialect);
}

std::string NoCalls(const Profile& profile, const TableOptions& options) {
  if (profile.part) return "No call took any time in the part that was asked for.";
  if (options.mode == Mode::kCpu && !profile.recording->quality().complete) {
    return fmt::format(
        "The program was killed, so its calls have no CPU time. {} shows the elapsed time.",
        AskForMode(options.dialect, "wall"));
  }
  return "Nothing was called.";
}

/// Whether there is no table to make. Calls that took no time that could be told were calls.
bool IsEmpty(const Profile& profile, Mode mode) {
  if (profile.total.nanoseconds(mode) > 0) return false;
  if (mode == Mode::kGpu || !CountsCalls(profile) || profile.part) return true;
  if (mode == Mode::kCpu && !profile.recording->quality().complete) return true;
  return profile.total.count(Mode::kWall) == 0;
}

/// What shares are of: never nothing.
double Whole(const Profile& profile, Mode mode) {
  return static_cast<double>(std::max<uint64_t>(profile.total.nanoseconds(mode), 1));
}

std::string Nothing(const Profile& profile, const TableOptions& options) {
  const Quality& quality = profile.recording->quality();
  const uint64_t looks = std::min(quality.taken, profile.total.samples);
  std::string why;
  if (options.mode == Mode::kGpu) {
    return Wrap("Nothing was seen that took any time of a GPU.", options.terminal.width, 0);
  }
  if (CountsCalls(profile)) return Wrap(NoCalls(profile, options), options.terminal.width, 0);
  const bool whole = profile.since_ns == 0 && profile.until_ns >= quality.duration_ns;
  const bool nothing = profile.total.wall_ns == 0;
  if (quality.samples == 0 && !quality.complete) {
    why = "The recording was cut off before its first samples.";
  } else if (quality.samples == 0) {
    why = "No samples were taken: the time was too short, or the program ended first.";
  } else if (nothing && !whole) {
    why = "No samples lie in the part that was asked for.";
  } else if (nothing || looks < write::kFewestSamples) {
    why = fmt::format(
        "Too few samples to say anything ({}). Sample for a longer time, or more often with {}.",
        write::GroupDigits(looks), NameOfRate(options.dialect));
  } else if (options.mode == Mode::kGil) {
    why = fmt::format("No thread was seen with the interpreter's lock. {} shows where they waited.",
                      AskForMode(options.dialect, "wall"));
  } else {
    why = fmt::format("The kernel charged no processor time: every thread waited. {} shows where.",
                      AskForMode(options.dialect, "wall"));
  }
  return Wrap(why, options.terminal.width, 0);
}

// "_generator.cpython-311-x86_64-linux-gnu.so" is _generator.so to a person.
std::string WithoutAbiTag(std::string path) {
  const size_t tag = path.find(".cpython-");
  const size_t end = path.rfind(".so");
  if (tag != std::string::npos && end != std::string::npos && tag < end) {
    path.erase(tag, end - tag);
  }
  return path;
}

std::string Where(const Tables& tables, const FunctionRow& row, const std::string& directory) {
  const Function& function = tables.function(row.function);
  std::string path = Printable(ShortPath(tables.text(function.file), directory));
  if (function.is_native) path = WithoutAbiTag(std::move(path));
  const uint32_t line = row.hottest_line != 0 ? row.hottest_line : function.first_line;
  return line == 0 ? path : fmt::format("{}:{}", path, line);
}

std::vector<Row> MakeRows(const Profile& profile, const std::vector<FunctionRow>& table,
                          size_t count, const TableOptions& options) {
  const auto whole = Whole(profile, options.mode);
  std::vector<Row> rows;
  for (const FunctionRow& from : std::span(table).first(count)) {
    const uint64_t self = from.self.nanoseconds(options.mode);
    rows.push_back(
        {.count = Counted(profile, options.mode).empty()
                      ? ""
                      : write::GroupDigits(
                            from.self.count(options.mode == Mode::kGpu ? Mode::kGpu : Mode::kWall)),
         .self_share = static_cast<double>(self) / whole,
         .total_share = static_cast<double>(from.total.nanoseconds(options.mode)) / whole,
         .time = write::TimeText(self),
         .function = Printable(
             write::FunctionName(profile.tables().function(from.function), profile.tables())),
         .where = Where(profile.tables(), from, options.directory),
         .is_native = profile.tables().function(from.function).is_native});
  }
  return rows;
}

/// Whether every number of a row that has no calls would be shown as zero.
bool IsAllZero(const FunctionRow& row, const Weights& whole, Mode mode) {
  const auto total = static_cast<double>(row.total.nanoseconds(mode));
  return row.self.nanoseconds(mode) == 0 &&
         total * 100 < kLeastShown * static_cast<double>(whole.nanoseconds(mode));
}

/// Whether a row says little of where the time goes.
bool IsMinor(const FunctionRow& row, const Weights& whole, Mode mode) {
  return row.self.nanoseconds(mode) == 0 &&
         static_cast<double>(row.total.nanoseconds(mode)) <
             kLittle * static_cast<double>(whole.nanoseconds(mode));
}

/// The functions worth a row, in order. Of those without self time the program's own come first:
/// with few samples there are as many as the import machinery has.
std::vector<FunctionRow> OrderedRows(const Profile& profile, Mode mode) {
  std::vector<FunctionRow> table = FunctionTable(profile, mode);
  if (!CountsCalls(profile)) {
    std::erase_if(table,
                  [&](const FunctionRow& row) { return IsAllZero(row, profile.total, mode); });
  }
  const auto first = std::find_if(table.begin(), table.end(), [mode](const FunctionRow& row) {
    return row.self.nanoseconds(mode) == 0;
  });
  const Tables& tables = profile.tables();
  std::stable_partition(first, table.end(), [&](const FunctionRow& row) {
    return IsProgramsOwn(tables.text(tables.function(row.function).file));
  });
  std::stable_partition(first, table.end(),
                        [&](const FunctionRow& row) { return !IsMinor(row, profile.total, mode); });
  return table;
}

bool IsRegion(const Tables& tables, FunctionId id) {
  return tables.text(tables.function(id).file) == kRegionFile;
}

/// The most time first; those one within the other are rows of their own. Takes them out of
/// `table`.
std::vector<FunctionRow> TakeRegions(const Tables& tables, Mode mode,
                                     std::vector<FunctionRow>& table) {
  const auto first = std::stable_partition(table.begin(), table.end(), [&](const FunctionRow& row) {
    return !IsRegion(tables, row.function);
  });
  std::vector<FunctionRow> regions(first, table.end());
  table.erase(first, table.end());
  std::ranges::stable_sort(regions, std::ranges::greater{},
                           [mode](const FunctionRow& row) { return row.total.nanoseconds(mode); });
  return regions;
}

std::string RegionRows(const Profile& profile, const std::vector<FunctionRow>& regions,
                       const TableOptions& options, const Palette& palette) {
  if (regions.empty()) return "";
  const auto whole = Whole(profile, options.mode);
  const int room = std::max(20, options.terminal.width - kNumbersWidth);
  const std::string gap(kGap, ' ');
  std::string text =
      fmt::format("\n{}{:>{}}{}{}region{}\n", palette.strong, "total %", kSelfWidth + kTotalWidth,
                  PadLeft("total", kTimeWidth), gap, palette.reset);
  const size_t shown = std::min<size_t>(options.top.value_or(kMostRows), regions.size());
  for (const FunctionRow& row : std::span(regions).first(shown)) {
    const uint64_t total = row.total.nanoseconds(options.mode);
    const Tables& tables = profile.tables();
    const std::string name = Printable(tables.text(tables.function(row.function).name));
    text += fmt::format("{:>{}.1f}", 100 * static_cast<double>(total) / whole,
                        kSelfWidth + kTotalWidth);
    text += PadLeft(write::TimeText(total), kTimeWidth) + gap;
    text += CutEnd(name, room, options.terminal.ellipsis) + "\n";
  }
  if (shown < regions.size()) {
    text += fmt::format("  and {} more; {} shows them\n", regions.size() - shown,
                        AskForRows(options.dialect, regions.size()));
  }
  return text;
}

size_t CountShown(const Profile& profile, const std::vector<FunctionRow>& table,
                  const TableOptions& options) {
  if (options.top) return std::min<size_t>(*options.top, table.size());
  const auto minor = std::ranges::find_if(
      table, [&](const FunctionRow& row) { return IsMinor(row, profile.total, options.mode); });
  return std::min<size_t>(kMostRows, static_cast<size_t>(minor - table.begin()));
}

/// Those of function and place.
TwoColumns LayOut(const std::vector<Row>& rows, int room, std::string_view ellipsis) {
  constexpr int kLeastFunction = 8, kLeastPlace = 9;  // the headings
  TwoColumns needed{kLeastFunction, kLeastPlace};
  for (const Row& row : rows) {
    needed.first = std::max(needed.first, DisplayWidth(row.function));
    needed.second = std::max(needed.second, DisplayWidth(row.where));
  }
  room = std::max(20, room);
  const TwoColumns shared = ShareRoom(needed, room);
  // Paths are cut where a directory ends, so that they may need less.
  int second = kLeastPlace;
  for (const Row& row : rows) {
    second = std::max(second, DisplayWidth(CutPath(row.where, shared.second, ellipsis)));
  }
  return {std::min(needed.first, room - second), second};
}

std::string RowText(const Row& row, int count_width, TwoColumns columns, const Palette& palette,
                    std::string_view ellipsis) {
  const std::string_view style = row.self_share >= kHotShare ? palette.hot : std::string_view();
  const std::string_view reset = style.empty() ? std::string_view() : palette.reset;
  const auto cut = row.is_native ? CutNativeName : CutQualifiedName;
  const std::string function = cut(row.function, columns.first, ellipsis);
  const std::string where = CutPath(row.where, columns.second, ellipsis);
  std::string text = PadLeft(row.count, count_width);
  text += fmt::format("{}{:>{}.1f}{}", style, row.self_share * 100, kSelfWidth, reset);
  text += fmt::format("{:>{}.1f}", row.total_share * 100, kTotalWidth);
  text += PadLeft(row.time, kTimeWidth) + std::string(kGap, ' ');
  text += fmt::format("{}{}{}", style, PadRight(function, columns.first), reset);
  text += std::string(kGap, ' ');
  return text + fmt::format("{}{}{}\n", palette.faint, where, palette.reset);
}

std::string HeadingRow(int count_width, TwoColumns columns, std::string_view counted,
                       const Palette& palette) {
  const std::string gap(kGap, ' ');
  return fmt::format("{}{}{:>{}}{:>{}}{:>{}}{}{}{}{}{}\n", palette.strong,
                     PadLeft(counted, count_width), "self %", kSelfWidth, "total %", kTotalWidth,
                     "self", kTimeWidth, gap, PadRight("function", columns.first), gap, "file:line",
                     palette.reset);
}

std::string Rest(const Profile& profile, const std::vector<FunctionRow>& table, size_t shown,
                 int count_width, const TableOptions& options) {
  const Mode mode = options.mode;
  if (shown >= table.size()) return "";
  uint64_t rest = 0;
  for (const FunctionRow& row : std::span(table).subspan(shown)) rest += row.self.nanoseconds(mode);
  const double share = static_cast<double>(rest) / Whole(profile, mode);
  const size_t others = table.size() - shown;
  return fmt::format("{:>{}.1f}  in {} other {}; {} shows all\n", share * 100,
                     count_width + kSelfWidth, write::GroupDigits(others),
                     others == 1 ? "function" : "functions",
                     AskForRows(options.dialect, table.size()));
}

/// The time of threads that were seen outside any Python function.
uint64_t OutsidePython(const Profile& profile, Mode mode) {
  uint64_t outside = 0;
  for (const ThreadProfile& thread : profile.threads) {
    outside += thread.OutsidePython().nanoseconds(mode);
  }
  return outside;
}

/// The CPU time of threads that were not sampled at all.
uint64_t Unsampled(const Profile& profile, Mode mode) {
  uint64_t unsampled = 0;
  for (const ThreadProfile& thread : profile.threads) {
    if (profile.tables().thread(thread.thread).is_real()) continue;
    unsampled += thread.unseen.nanoseconds(mode);
  }
  return unsampled;
}

/// What is in no row, so that all self times come to 100 %.
std::string InNoFunction(const Profile& profile, int count_width, const TableOptions& options) {
  const int width = count_width + kSelfWidth;
  const auto whole = Whole(profile, options.mode);
  const uint64_t unsampled = Unsampled(profile, options.mode);
  const uint64_t unseen = profile.unseen.nanoseconds(options.mode) - unsampled;
  std::string text;
  for (const auto& [time, what] :
       {std::pair(OutsidePython(profile, options.mode), "outside any Python function"),
        std::pair(unseen,
                  "without a stack: before the first look at a thread, or while the "
                  "sampler had no CPU"),
        std::pair(unsampled,
                  "CPU time of threads that lived too briefly to be seen (a higher "
                  "-r sees more) or ran no Python")}) {
    const double percent = static_cast<double>(time) / whole * 100;
    if (percent < kLeastShown) continue;
    text += fmt::format("{:>{}.1f}  ", percent, width);
    text += Wrap(what, options.terminal.width, width + kGap, width + kGap);
  }
  return text;
}

/// What the columns mean.
std::string Legend(const Profile& profile, const TableOptions& options) {
  const Palette palette(options.terminal.color);
  std::string_view self =
      "self: time in the function itself; file:line is where most of it was spent";
  if (CountsCalls(profile)) self = "self: time in the function itself; calls: those that began";
  std::string_view total = "total: time in the function and in all that it called";
  if (options.mode == Mode::kGpu) {
    self = "self: GPU time of what the function itself launched; count: of how many works";
    total = "total: with what all that it called launched; file:line has most of its own";
  }
  std::string text = "\n";
  for (const std::string_view line : {self, total}) {
    text +=
        fmt::format("{}{}{}", palette.faint, Wrap(line, options.terminal.width, 2), palette.reset);
  }
  return text;
}

}  // namespace

std::string FormatTable(const Profile& profile, const TableOptions& options) {
  const Palette palette(options.terminal.color);
  const int width = options.terminal.width;
  std::string out = fmt::format("{}{}{}", palette.strong, Heading(profile, options), palette.reset);
  out += "\n";
  if (IsEmpty(profile, options.mode)) return out + Nothing(profile, options);
  out += Wrap(Summary(profile, options), width, 2);
  if (profile.part) out += Wrap(write::PartLine(profile), width, 2);
  out += "\n";

  std::vector<FunctionRow> table = OrderedRows(profile, options.mode);
  const std::vector<FunctionRow> regions = TakeRegions(profile.tables(), options.mode, table);
  const size_t shown = CountShown(profile, table, options);
  const std::vector<Row> rows = MakeRows(profile, table, shown, options);
  const std::string_view counted = Counted(profile, options.mode);
  const int count_width = CountWidth(rows, counted);
  const TwoColumns columns =
      LayOut(rows, width - count_width - kNumbersWidth - kGap, options.terminal.ellipsis);
  out += HeadingRow(count_width, columns, counted, palette);
  for (const Row& row : rows) {
    out += RowText(row, count_width, columns, palette, options.terminal.ellipsis);
  }
  out += Rest(profile, table, shown, count_width, options);
  out += InNoFunction(profile, count_width, options);
  out += RegionRows(profile, regions, options, palette);
  out += Legend(profile, options);
  if (const std::string split = FormatSplit(profile, options); !split.empty()) out += "\n" + split;
  return out;
}

}  // namespace pystrobe::print
