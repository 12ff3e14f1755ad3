// SPDX-License-Identifier: Apache-2.0
#include "cli/dump_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "profiler/print/text.h"
#include "profiler/write/json_writer.h"
#include "profiler/write/number_text.h"

namespace pystrobe::cli {
namespace {

using remote::DumpFrame;
using remote::DumpThread;

/// Identical frames in a row from this number on are folded into one line.
constexpr size_t kFoldFrom = 4;
constexpr int kIndent = 4;
constexpr int kGap = 2;

std::string StateText(char state) {
  switch (state) {
    case 'R':
      return "running";
    case 'S':
      return "waiting";
    case 'D':
      return "waiting for a device";
    case 'T':
      return "stopped";
    case 't':
      return "stopped by a debugger";
    default:
      return fmt::format("state {}", state);
  }
}

std::string ThreadHeading(const DumpThread& thread, bool free_threaded,
                          const print::Palette& palette) {
  std::string text =
      fmt::format("{}Thread {} \"{}\"{} {}", palette.strong, thread.tid,
                  print::Printable(thread.name), palette.reset, StateText(thread.state));
  if (thread.holds_gil) text += free_threaded ? ", attached" : ", holds the GIL";
  if (thread.interpreter != 0) text += fmt::format(", interpreter {}", thread.interpreter);
  if (!thread.complete) text += ", stack incomplete";
  if (!thread.native_whole) text += ", native frames cut";
  if (!thread.proved) text += ", not proved exact";
  return text + "\n";
}

bool SamePlace(const DumpFrame& a, const DumpFrame& b) {
  return a.line == b.line && a.function == b.function && a.file == b.file && a.locals.empty() &&
         b.locals.empty();
}

std::string PlaceText(const DumpFrame& frame) {
  return print::Printable(frame.file) + (frame.line != 0 ? fmt::format(":{}", frame.line) : "");
}

/// Those of function and place. On a terminal they fit its lines; elsewhere nothing is cut.
print::TwoColumns LayOut(const DumpThread& thread, const print::Terminal& terminal) {
  print::TwoColumns needed{0, 0};
  for (const DumpFrame& frame : thread.frames) {
    needed.first = std::max(needed.first, print::DisplayWidth(print::Printable(frame.function)));
    needed.second = std::max(needed.second, print::DisplayWidth(PlaceText(frame)));
  }
  if (!terminal.is_terminal) return needed;
  return print::ShareRoom(needed, std::max(20, terminal.width - kIndent - kGap));
}

std::string FrameText(const DumpFrame& frame, print::TwoColumns columns,
                      const print::Terminal& terminal, const print::Palette& palette) {
  const std::string function =
      print::CutQualifiedName(print::Printable(frame.function), columns.first, terminal.ellipsis);
  const std::string place = print::CutPath(PlaceText(frame), columns.second, terminal.ellipsis);
  std::string text =
      fmt::format("{:{}}{}{:{}}{}{}{}\n", "", kIndent, print::PadRight(function, columns.first), "",
                  kGap, palette.faint, place, palette.reset);
  for (const pyabi::Local& local : frame.locals) {
    const std::string line =
        fmt::format("{} = {}", print::Printable(local.name), print::Printable(local.value));
    text += fmt::format(
        "{:{}}{}\n", "", 2 * kIndent,
        print::CutEnd(line, std::max(40, terminal.width - 2 * kIndent), terminal.ellipsis));
  }
  return text;
}

std::string FramesText(const DumpThread& thread, const print::Terminal& terminal,
                       const print::Palette& palette) {
  if (thread.frames.empty()) {
    return thread.has_python ? "    (no Python frames)\n" : "    (no frames)\n";
  }
  const print::TwoColumns columns = LayOut(thread, terminal);
  std::string text;
  for (size_t i = 0; i < thread.frames.size();) {
    size_t end = i + 1;
    while (end < thread.frames.size() && SamePlace(thread.frames[i], thread.frames[end])) ++end;
    const size_t count = end - i;
    const size_t shown = count >= kFoldFrom ? 1 : count;
    for (size_t k = 0; k < shown; ++k) {
      text += FrameText(thread.frames[i], columns, terminal, palette);
    }
    if (shown < count) {
      text += fmt::format("    (the same line {} more times)\n", write::GroupDigits(count - shown));
    }
    i = end;
  }
  return text;
}

class TextOutput final : public write::Output {
 public:
  explicit TextOutput(std::string& text) : text_(text) {}
  Result<void> Write(std::string_view bytes) override {
    text_ += bytes;
    return {};
  }

 private:
  std::string& text_;
};

void AppendFrame(write::JsonWriter& json, const DumpFrame& frame, bool locals) {
  json.BeginObject();
  json.Field("function", frame.function).Field("file", frame.file).Field("line", frame.line);
  json.Field("native", frame.is_native);
  if (locals) {
    json.Key("locals").BeginObject();
    for (const pyabi::Local& local : frame.locals) {
      json.Key(local.name).BeginObject();
      json.Field("value", local.value).Field("argument", local.is_argument).EndObject();
    }
    json.EndObject();
  }
  json.EndObject();
}

void AppendThread(write::JsonWriter& json, const DumpThread& thread, bool locals) {
  json.BeginObject().Field("tid", thread.tid).Field("name", thread.name);
  json.Field("interpreter", thread.interpreter);
  json.Field("state", std::string_view(&thread.state, 1)).Field("holds_gil", thread.holds_gil);
  json.Field("proved", thread.proved).Field("complete", thread.complete);
  json.Field("native_whole", thread.native_whole);
  json.Key("frames").BeginArray();
  for (const DumpFrame& frame : thread.frames) AppendFrame(json, frame, locals);
  json.EndArray().EndObject();
}

}  // namespace

std::string DumpText(const remote::Dump& dump, const print::Terminal& terminal) {
  const print::Palette palette(terminal.color);
  const remote::TargetInfo& target = dump.target;
  const std::string rest = fmt::format(", pid {}, Python {}{}; most recent call first", target.pid,
                                       target.layout.version.ToString(),
                                       target.layout.free_threaded ? " free-threaded" : "");
  const int room = std::max(20, terminal.width - print::DisplayWidth(rest));
  const std::string command =
      print::CutEnd(print::CommandText(target.command, target.executable, terminal.ellipsis), room,
                    terminal.ellipsis);
  std::string text = fmt::format("{}{}{}{}\n", palette.strong, command, palette.reset, rest);
  for (const DumpThread& thread : dump.threads) {
    text += "\n" + ThreadHeading(thread, target.layout.free_threaded, palette);
    text += FramesText(thread, terminal, palette);
  }
  return text;
}

std::string DumpJson(const remote::Dump& dump, bool locals) {
  const remote::TargetInfo& target = dump.target;
  std::string text;
  TextOutput output(text);
  write::OutputBuffer buffer(output);
  write::JsonWriter json(buffer);
  json.BeginObject().Field("pid", target.pid);
  json.Field("python", target.layout.version.ToString());
  json.Field("free_threaded", target.layout.free_threaded).Key("command").BeginArray();
  for (const std::string& word : target.command) json.Value(word);
  json.EndArray().Field("held_ns", dump.held_ns).Key("threads").BeginArray();
  for (const DumpThread& thread : dump.threads) AppendThread(json, thread, locals);
  json.EndArray().EndObject();
  buffer.Append('\n');
  if (!buffer.Finish()) return {};  // a string takes everything
  return text;
}

}  // namespace pystrobe::cli
