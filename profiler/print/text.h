// SPDX-License-Identifier: Apache-2.0
//
// UTF-8 text on a grid of terminal cells. Names come from the profiled program, so nothing in them
// may be trusted: a name must not be able to move the cursor or to hide. [any thread]
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pystrobe::print {

/// `text` safe to print: control characters and direction overrides become \xNN and \uNNNN escapes,
/// bytes that are no UTF-8 become U+FFFD.
std::string Printable(std::string_view text);

/// Terminal cells that UTF-8 `text` takes: 0 for combining marks, 2 for East Asian wide characters
/// and emoji, 1 for all others.
int DisplayWidth(std::string_view text);

/// `text` cut at its end, or at its start, to at most `width` cells; "…" (or "..." when
/// `ellipsis` is that) stands for what was cut.
std::string CutEnd(std::string_view text, int width, std::string_view ellipsis);
std::string CutStart(std::string_view text, int width, std::string_view ellipsis);

/// The name of a C++ function cut to at most `width` cells: first its template arguments go, then
/// its start. Of a place in a file, which stands for a function without a name, what follows the
/// file's own name goes first.
std::string CutNativeName(std::string_view name, int width, std::string_view ellipsis);

/// The qualified name of a Python function cut to at most `width` cells: first each "<locals>"
/// goes, then what it is in: "Cache.get.<locals>.load" is "Cache.get.load", then "…load".
std::string CutQualifiedName(std::string_view name, int width, std::string_view ellipsis);

/// `text` with spaces up to `width` cells.
std::string PadRight(std::string_view text, int width);
std::string PadLeft(std::string_view text, int width);

/// Paragraph broken at spaces into lines of at most `width` cells; all but the first line indented.
/// The first line has `column` cells taken already. A word longer than a line is left whole. Ends
/// with a newline.
std::string Wrap(std::string_view paragraph, int width, int indent, int column = 0);

/// Lines of any text, each made printable, indented and wrapped.
std::string WrapLines(std::string_view text, int width, int indent);

/// A command for a heading: the program without its directory, and the first line of each argument,
/// with `ellipsis` for more of them; safe to print.
std::string CommandText(const std::vector<std::string>& command, std::string_view executable,
                        std::string_view ellipsis);

/// A source file named as briefly as stays clear: what follows site-packages/ or the standard
/// library's directory, the path below `directory` (absolute, may be empty), else the whole path.
std::string ShortPath(std::string_view path, std::string_view directory);

/// Widths of two columns in `room` cells: what each needs, and half of it when both need more.
struct TwoColumns {
  int first, second;
};
TwoColumns ShareRoom(TwoColumns needed, int room);

/// Whether a source file is the program's own: not installed, nor of the standard library.
bool IsProgramsOwn(std::string_view path);

/// `path` cut to `width` cells by leaving out leading directories: "…/web/views.py".
std::string CutPath(std::string_view path, int width, std::string_view ellipsis);

}  // namespace pystrobe::print
