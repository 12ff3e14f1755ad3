// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "profiler/base/ascii.h"
#include "profiler/write/writer.h"

namespace pystrobe::write {
namespace {

struct FormatInfo {
  Format format;
  std::string_view name;
  bool binary = false;
};

constexpr std::array kFormats = {
    FormatInfo{Format::kStrobe, "strobe", true},
    FormatInfo{Format::kHtml, "html"},
    FormatInfo{Format::kSpeedscope, "speedscope"},
    FormatInfo{Format::kPprof, "pprof", true},
    FormatInfo{Format::kCollapsed, "collapsed"},
    FormatInfo{Format::kJson, "json"},
    FormatInfo{Format::kCallgrind, "callgrind"},
    FormatInfo{Format::kPstats, "pstats", true},
    FormatInfo{Format::kTraceEvents, "trace-events"},
    FormatInfo{Format::kPerfetto, "perfetto", true},
};

struct Suffix {
  std::string_view text;
  Format format;
};

// The first that fits decides: .speedscope.json is a .json too.
constexpr std::array kSuffixes = {
    Suffix{".strobe", Format::kStrobe},
    Suffix{".html", Format::kHtml},
    Suffix{".htm", Format::kHtml},
    Suffix{".speedscope.json", Format::kSpeedscope},
    Suffix{".speedscope", Format::kSpeedscope},
    Suffix{".trace.json", Format::kTraceEvents},
    Suffix{".perfetto-trace", Format::kPerfetto},
    Suffix{".pftrace", Format::kPerfetto},
    Suffix{".pb.gz", Format::kPprof},
    Suffix{".pprof", Format::kPprof},
    Suffix{".collapsed", Format::kCollapsed},
    Suffix{".folded", Format::kCollapsed},
    Suffix{".txt", Format::kCollapsed},
    Suffix{".json", Format::kJson},
    Suffix{".callgrind", Format::kCallgrind},
    Suffix{".pstats", Format::kPstats},
    Suffix{".prof", Format::kPstats},
};

bool EndsWithIgnoringCase(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() &&
         EqualsIgnoringCase(text.substr(text.size() - suffix.size()), suffix);
}

}  // namespace

std::string ShellQuoted(std::string_view word) {
  const bool plain = !word.empty() && std::ranges::all_of(word, [](char c) {
    return IsLetter(c) || IsDigit(c) || std::string_view("_-./+:@%,=").contains(c);
  });
  if (plain) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += R"('\'')";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::optional<Unit> UnitByName(std::string_view name) {
  if (name == "samples") return Unit::kSamples;
  if (name == "us") return Unit::kMicroseconds;
  if (name == "ns") return Unit::kNanoseconds;
  return std::nullopt;
}

std::optional<Format> FormatByName(std::string_view name) {
  for (const FormatInfo& info : kFormats) {
    if (info.name == name) return info.format;
  }
  return std::nullopt;
}

std::optional<Format> FormatByFileName(std::string_view file_name) {
  for (const Suffix& suffix : kSuffixes) {
    if (EndsWithIgnoringCase(file_name, suffix.text)) return suffix.format;
  }
  return std::nullopt;
}

std::pair<std::string_view, std::string_view> SplitSuffix(std::string_view path) {
  const size_t name = path.rfind('/') + 1;  // 0 without one
  size_t length = 0;
  for (const Suffix& suffix : kSuffixes) {
    if (!EndsWithIgnoringCase(path.substr(name), suffix.text)) continue;
    length = suffix.text.size();
    break;
  }
  if (const size_t dot = path.rfind('.'); length == 0 && dot != path.npos && dot > name) {
    length = path.size() - dot;
  }
  return {path.substr(0, path.size() - length), path.substr(path.size() - length)};
}

bool IsBinary(Format format) {
  return std::ranges::any_of(
      kFormats, [&](const FormatInfo& info) { return info.format == format && info.binary; });
}

bool IsOfCalls(Format format) { return format == Format::kCallgrind || format == Format::kPstats; }

bool IsOfTimeline(Format format) {
  return format == Format::kTraceEvents || format == Format::kPerfetto;
}

std::string_view FormatName(Format format) {
  for (const FormatInfo& info : kFormats) {
    if (info.format == format) return info.name;
  }
  return "unknown";
}

FoldOptions FoldOptionsFor(Format format, const RecordingSource& recording, FoldOptions asked) {
  if (format == Format::kHtml) asked.include_idle = true;
  const bool has_all_modes = format == Format::kHtml || format == Format::kPprof;
  // A filter means threads or streams: who asked for one kind is not given the other.
  const bool has_both = recording.gpu() != nullptr && !asked.thread;
  if (has_all_modes && has_both) asked.work = Work::kBoth;
  // It has the work of a GPU whatever is asked for, and of threads what they did.
  if (IsOfTimeline(format)) asked.work = Work::kThreads;
  return asked;
}

std::string HowToOpen(Format format, std::string_view file_name) {
  const std::string file = ShellQuoted(file_name);
  switch (format) {
    case Format::kStrobe:
      return fmt::format("pystrobe report {0} -o report.html", file);
    case Format::kHtml:
      return fmt::format("xdg-open {}   (any browser; the file needs no network)", file);
    case Format::kSpeedscope:
      return fmt::format("npx speedscope {}   (or drop it on https://www.speedscope.app)", file);
    case Format::kPprof:
      return fmt::format("go tool pprof -http=: {}", file);
    case Format::kCollapsed:
      return fmt::format("flamegraph.pl {0} > flame.svg   (or: npx speedscope {0})", file);
    case Format::kCallgrind:
      return fmt::format("callgrind_annotate {0}   (or: kcachegrind {0})", file);
    case Format::kPstats:
      return fmt::format("python3 -m pstats {}   (or: snakeviz)", file);
    case Format::kTraceEvents:
    case Format::kPerfetto:
      return fmt::format("open {} at https://ui.perfetto.dev   (it stays on your machine)", file);
    case Format::kJson:
      return fmt::format("python3 -m json.tool {}   (fields: docs/json.md)", file);
  }
  return {};
}

std::string SizeNote(Format format, uint64_t bytes) {
  constexpr uint64_t kLarge = 100'000'000;
  if (bytes < kLarge) return {};
  const std::string size = bytes < 1'000'000'000
                               ? fmt::format("{:.0f} MB", static_cast<double>(bytes) / 1e6)
                               : fmt::format("{:.2f} GB", static_cast<double>(bytes) / 1e9);
  // 141 and 41 bytes a call of a traced program.
  if (format != Format::kTraceEvents) return fmt::format(" ({})", size);
  return fmt::format(" ({}; as .perfetto-trace it is a third of that)", size);
}

}  // namespace pystrobe::write
