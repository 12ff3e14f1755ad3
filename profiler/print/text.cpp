// SPDX-License-Identifier: Apache-2.0
#include "profiler/print/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "profiler/write/labels.h"
#include "profiler/write/utf8.h"

namespace pystrobe::print {
namespace {

struct Range {
  char32_t first, last;
};

// Unicode blocks of combining marks and zero-width characters; whole blocks, so a few unassigned
// code points are counted as marks too.
constexpr std::array<Range, 20> kZeroWidth{
    {{0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x0610, 0x061A}, {0x064B, 0x065F},
     {0x06D6, 0x06DC}, {0x0900, 0x0902}, {0x093C, 0x093C}, {0x0941, 0x0948}, {0x094D, 0x094D},
     {0x0E31, 0x0E31}, {0x0E34, 0x0E3A}, {0x0E47, 0x0E4E}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF},
     {0x200B, 0x200D}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xE0100, 0xE01EF}}};

// East Asian Width W and F, and emoji that terminals draw two cells wide.
constexpr std::array<Range, 20> kWide{
    {{0x1100, 0x115F}, {0x231A, 0x231B}, {0x2329, 0x232A}, {0x23E9, 0x23EC}, {0x25FD, 0x25FE},
     {0x2614, 0x2615}, {0x26AA, 0x26AB}, {0x26BD, 0x26BE}, {0x2705, 0x2705}, {0x2728, 0x2728},
     {0x2E80, 0x303E}, {0x3041, 0x33FF}, {0x3400, 0x4DBF}, {0x4E00, 0xA4CF}, {0xA960, 0xA97F},
     {0xAC00, 0xD7A3}, {0xF900, 0xFAFF}, {0xFE30, 0xFE6F}, {0xFF00, 0xFF60}, {0xFFE0, 0xFFE6}}};

bool IsIn(const auto& ranges, char32_t c) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [c](const Range& range) { return c >= range.first && c <= range.last; });
}

int CellsOf(char32_t c) {
  if (c < 0x300) return 1;
  if (IsIn(kZeroWidth, c)) return 0;
  if (IsIn(kWide, c) || (c >= 0x1F300 && c <= 0x1FAFF) || (c >= 0x20000 && c <= 0x3FFFD)) return 2;
  return 1;
}

struct Decoded {
  char32_t code_point;
  size_t bytes;
  bool valid;
};

/// The first character of non-empty `text`. A byte that begins none is invalid and shown as U+FFFD.
Decoded DecodeFirst(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t length = write::Utf8SequenceLength(text);
  if (length == 0) return {0xFFFD, 1, false};
  if (length == 1) return {byte(0), 1, true};
  char32_t value = byte(0) & (0xFFU >> (length + 1));
  for (size_t i = 1; i < length; ++i) value = value << 6 | (byte(i) & 0x3FU);
  return {value, length, true};
}

bool MustEscape(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x200E || c == 0x200F || c == 0x2028 ||
         c == 0x2029 || (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}

/// Where in `path` the part behind site-packages/ or the standard library's directory begins; 0: it
/// is of neither.
size_t RootOfLibrary(std::string_view path) {
  for (const std::string_view packages : {"/site-packages/", "/dist-packages/"}) {
    const size_t at = path.rfind(packages);
    if (at != std::string_view::npos) return at + packages.size();
  }
  constexpr std::string_view kLibrary = "/lib/python3.";
  const size_t library = path.rfind(kLibrary);
  if (library == std::string_view::npos) return 0;
  return path.find('/', library + kLibrary.size()) + 1;  // npos + 1 is 0
}

/// A place in a file, where its function has no name: "libz.so.1.2.13+0x5d80" is "libz+0x5d80".
/// Nothing of any other name.
std::string PlaceInFile(std::string_view name) {
  const size_t place = name.rfind("+0x");
  if (place == std::string_view::npos) return {};
  const std::string_view file = name.substr(0, place);
  const size_t end =
      std::min({file.find(".so"), file.find(".cpython-"), file.find(".abi3"), file.size()});
  return std::string(file.substr(0, end)).append(name.substr(place));
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Decoded c = DecodeFirst(text);
    if (!c.valid) {
      out += write::kReplacementCharacter;
    } else if (MustEscape(c.code_point)) {
      const auto value = static_cast<uint32_t>(c.code_point);
      out += value < 0x100 ? fmt::format("\\x{:02x}", value) : fmt::format("\\u{:04x}", value);
    } else {
      out += text.substr(0, c.bytes);
    }
    text.remove_prefix(c.bytes);
  }
  return out;
}

int DisplayWidth(std::string_view text) {
  int cells = 0;
  while (!text.empty()) {
    const Decoded c = DecodeFirst(text);
    cells += CellsOf(c.code_point);
    text.remove_prefix(c.bytes);
  }
  return cells;
}

std::string CutEnd(std::string_view text, int width, std::string_view ellipsis) {
  if (DisplayWidth(text) <= width) return std::string(text);
  const int room = width - DisplayWidth(ellipsis);
  if (room <= 0) return std::string(ellipsis.substr(0, width > 0 ? ellipsis.size() : 0));
  size_t bytes = 0;
  int cells = 0;
  while (bytes < text.size()) {
    const Decoded c = DecodeFirst(text.substr(bytes));
    if (cells + CellsOf(c.code_point) > room) break;
    cells += CellsOf(c.code_point);
    bytes += c.bytes;
  }
  return std::string(text.substr(0, bytes)) + std::string(ellipsis);
}

std::string CutStart(std::string_view text, int width, std::string_view ellipsis) {
  int excess = DisplayWidth(text) - width;
  if (excess <= 0) return std::string(text);
  excess += DisplayWidth(ellipsis);
  while (!text.empty() && excess > 0) {
    const Decoded c = DecodeFirst(text);
    excess -= CellsOf(c.code_point);
    text.remove_prefix(c.bytes);
  }
  return std::string(ellipsis) + std::string(text);
}

std::string CutNativeName(std::string_view name, int width, std::string_view ellipsis) {
  if (DisplayWidth(name) <= width) return std::string(name);
  if (const std::string place = PlaceInFile(name); !place.empty()) {
    return CutStart(place, width, ellipsis);
  }
  std::string without;
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool is_operator = depth == 0 && without.ends_with("operator");
    const bool is_arrow = name[i] == '>' && i > 0 && name[i - 1] == '-';
    if (name[i] == '<' && !is_operator) ++depth;
    if (depth == 0) without += name[i];
    if (name[i] == '>' && !is_arrow && depth > 0) --depth;
  }
  return CutStart(without, width, ellipsis);
}

std::string CutQualifiedName(std::string_view name, int width, std::string_view ellipsis) {
  std::string text(name);
  constexpr std::string_view kLocals = ".<locals>";
  for (size_t at = 0; DisplayWidth(text) > width;) {
    at = text.find(kLocals, at);
    if (at == std::string::npos) break;
    text.erase(at, kLocals.size());
  }
  if (DisplayWidth(text) <= width) return text;
  const int room = width - DisplayWidth(ellipsis);
  for (size_t dot = text.find('.'); dot != std::string::npos; dot = text.find('.', dot + 1)) {
    const std::string_view rest = std::string_view(text).substr(dot + 1);
    if (DisplayWidth(rest) <= room) return std::string(ellipsis).append(rest);
  }
  return CutStart(text, width, ellipsis);
}

std::string PadRight(std::string_view text, int width) {
  const int missing = std::max(0, width - DisplayWidth(text));
  return std::string(text) + std::string(static_cast<size_t>(missing), ' ');
}

std::string PadLeft(std::string_view text, int width) {
  const int missing = std::max(0, width - DisplayWidth(text));
  return std::string(static_cast<size_t>(missing), ' ') + std::string(text);
}

std::string Wrap(std::string_view paragraph, int width, int indent, int column) {
  std::string out;
  bool line_begins = true;
  while (!paragraph.empty()) {
    size_t space = paragraph.find(' ');
    // A number and its sign are one word.
    if (space != std::string_view::npos && paragraph.substr(space + 1).starts_with('%')) {
      space = paragraph.find(' ', space + 1);
    }
    const std::string_view word = paragraph.substr(0, space);
    paragraph.remove_prefix(space == std::string_view::npos ? paragraph.size() : space + 1);
    if (word.empty()) continue;
    const int cells = DisplayWidth(word);
    if (!line_begins && column + 1 + cells > width) {
      out += "\n" + std::string(static_cast<size_t>(indent), ' ');
      column = indent;
    } else if (!line_begins) {
      out += ' ';
      ++column;
    }
    out += word;
    column += cells;
    line_begins = false;
  }
  return out + "\n";
}

std::string WrapLines(std::string_view text, int width, int indent) {
  std::string out;
  const std::string margin(static_cast<size_t>(indent), ' ');
  while (!text.empty()) {
    const size_t end = text.find('\n');
    out += margin + Wrap(Printable(text.substr(0, end)), width, indent, indent);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return out;
}

std::string CommandText(const std::vector<std::string>& command, std::string_view executable,
                        std::string_view ellipsis) {
  const std::string_view program = command.empty() ? executable : std::string_view(command[0]);
  std::string text(program.substr(program.rfind('/') + 1));
  for (size_t i = 1; i < command.size(); ++i) {
    text += " " + write::FirstLine(command[i], ellipsis);
  }
  return Printable(text);
}

std::string ShortPath(std::string_view path, std::string_view directory) {
  if (const size_t root = RootOfLibrary(path); root > 0) return std::string(path.substr(root));
  if (directory.size() > 1 && path.size() > directory.size() + 1 && path.starts_with(directory) &&
      path[directory.size()] == '/') {
    return std::string(path.substr(directory.size() + 1));
  }
  return std::string(path);
}

TwoColumns ShareRoom(TwoColumns needed, int room) {
  const int half = room / 2;
  if (needed.first + needed.second <= room) return needed;
  if (needed.first <= half) return {needed.first, room - needed.first};
  if (needed.second <= half) return {room - needed.second, needed.second};
  return {half, room - half};
}

bool IsProgramsOwn(std::string_view path) {
  return !path.empty() && RootOfLibrary(path) == 0 && !path.starts_with("<frozen ");
}

std::string CutPath(std::string_view path, int width, std::string_view ellipsis) {
  if (DisplayWidth(path) <= width) return std::string(path);
  const int room = width - DisplayWidth(ellipsis);
  // A whole number of directories when the file name at least fits behind them.
  for (size_t slash = path.find('/', 1); slash != std::string_view::npos;
       slash = path.find('/', slash + 1)) {
    const std::string_view tail = path.substr(slash);
    if (DisplayWidth(tail) <= room) return std::string(ellipsis) + std::string(tail);
  }
  return CutStart(path, width, ellipsis);
}

}  // namespace pystrobe::print
