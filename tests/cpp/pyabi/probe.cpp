// SPDX-License-Identifier: Apache-2.0
//
// Looks at a live interpreter with the readers of sampler/pyabi, for tests/python/test_pyabi.py:
//
//   pyabi_probe PID RUNTIME HEXVERSION CODE_TYPE
//
// Then one question per line on standard input, answered by lines, the last of them "--- end":
//
//   code ADDRESS     name, file and lines (LINExCOUNT for COUNT code units) of a code object
//   string ADDRESS   a str
//   layout           every offset known: NAME VALUE
//   names            IDENT and name of each thread of the first interpreter
//   frames IDENT     the frames of a thread, leaf first: "frame", name, file, line; then a line
//                    "local" or "argument", name and value for each of their variables
#include <fmt/format.h>

#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>

#include "sampler/pyabi/code.h"
#include "sampler/pyabi/layout.h"
#include "sampler/pyabi/layout_tables.h"
#include "sampler/pyabi/objects.h"
#include "sampler/remote/process_memory.h"

namespace pystrobe::pyabi {
namespace {

struct Target {
  const Memory& memory;
  Layout layout;
  Address runtime;
  Address code_type;
};

Result<Layout> FindLayout(const Memory& memory, Address runtime, PyVersion version) {
  if (version.minor < 13) return LayoutFromTable(version);
  std::array<std::byte, kDebugOffsetsSize> bytes;
  if (!memory.Read(runtime, bytes.data(), bytes.size())) {
    return Fail(ErrorCode::kUnreadable, "no runtime at {:#x}", runtime);
  }
  return LayoutFromDebugOffsets(bytes);
}

RawFrame FrameAt(const Layout& layout, const CodeInfo& code, uint64_t offset) {
  RawFrame frame;
  frame.instruction = code.bytecode + offset;
  if (layout.frame_style == FrameStyle::kFrameObjects) {
    frame.instruction = layout.version.minor >= 10 ? offset / 2 : offset;
  }
  return frame;
}

void PrintCode(const Target& target, Address address) {
  const auto code = ReadCode(target.memory, target.layout, target.code_type, address);
  if (!code) {
    std::cout << "unreadable\n";
    return;
  }
  std::cout << code->name << '\t' << code->file << '\t';
  uint64_t count = 0;
  uint32_t last = 0;
  const auto flush = [&] {
    if (count != 0) std::cout << last << 'x' << count << ' ';
    count = 0;
  };
  for (uint64_t offset = 0; offset < code->bytecode_size; offset += 2) {
    const uint32_t line = LineOf(target.layout, *code, FrameAt(target.layout, *code, offset));
    if (line != last) flush();
    last = line;
    ++count;
  }
  flush();
  std::cout << '\n';
}

void PrintOffset(const char* name, uint32_t value) {
  if (value != kAbsent) std::cout << name << ' ' << value << '\n';
}

void PrintLayout(const Target& target) {
  Layout layout = target.layout;
  for (const LayoutRow& row : LayoutRows()) PrintOffset(row.name, row.field(layout));
  // Those that no release of the table has.
  PrintOffset("interpreter.code_object_generation", layout.interpreter.code_object_generation);
  PrintOffset("interpreter.tlbc_generation", layout.interpreter.tlbc_generation);
  PrintOffset("gil.enabled", layout.gil.enabled);
  PrintOffset("thread.status", layout.thread.status);
  PrintOffset("thread.state", layout.thread.state);
  PrintOffset("thread.base_frame", layout.thread.base_frame);
  PrintOffset("thread.holds_gil", layout.thread.holds_gil);
  PrintOffset("frame.stackpointer", layout.frame.stackpointer);
  PrintOffset("frame.tlbc_index", layout.frame.tlbc_index);
  PrintOffset("code.tlbc", layout.code.tlbc);
}

Address FirstInterpreter(const Target& target) {
  return target.memory.Read<Address>(target.runtime + target.layout.runtime.interpreters_head)
      .value_or(0);
}

void PrintNames(const Target& target) {
  for (const auto& [ident, name] :
       ReadThreadNames(target.memory, target.layout, FirstInterpreter(target))) {
    std::cout << ident << ' ' << name << '\n';
  }
}

Address FindThread(const Target& target, uint64_t ident) {
  const auto read = [&](Address at) { return target.memory.Read<Address>(at).value_or(0); };
  Address thread = read(FirstInterpreter(target) + target.layout.interpreter.threads_head);
  while (thread != 0 && read(thread + target.layout.thread.thread_id) != ident) {
    thread = read(thread + target.layout.thread.next);
  }
  return thread;
}

/// The chain of a thread that stands still, one read per field: slow, and as simple as can be.
std::vector<RawFrame> Frames(const Target& target, Address thread) {
  const Layout& layout = target.layout;
  const auto read = [&](Address at) { return target.memory.Read<Address>(at).value_or(0); };
  Address at = layout.thread.cframe == kAbsent
                   ? read(thread + layout.thread.frame)
                   : read(read(thread + layout.thread.cframe) + layout.cframe.current_frame);
  std::vector<RawFrame> frames;
  for (; at != 0; at = read(at + layout.frame.previous)) {
    RawFrame frame;
    frame.frame = at;
    frame.code = read(at + layout.frame.code) & ~layout.frame.code_tag_mask;
    frame.instruction = read(at + layout.frame.instruction);
    if (layout.frame.tlbc_index != kAbsent) {
      frame.tlbc_index = static_cast<uint32_t>(read(at + layout.frame.tlbc_index));
    }
    if (layout.frame.owner != kAbsent) {
      frame.owner = static_cast<uint8_t>(read(at + layout.frame.owner));
    }
    if (IsPythonFrame(layout, frame.owner)) frames.push_back(frame);
  }
  return frames;
}

void PrintFrames(const Target& target, Address thread) {
  for (const RawFrame& frame : Frames(target, thread)) {
    const auto code = ReadCode(target.memory, target.layout, target.code_type, frame.code);
    if (!code) {
      std::cout << "frame\tunreadable\n";
      continue;
    }
    std::cout << "frame\t" << code->name << '\t' << code->file << '\t'
              << LineOf(target.layout, *code, frame) << '\n';
    for (const Local& local : ReadLocals(target.memory, target.layout, frame)) {
      std::cout << (local.is_argument ? "argument\t" : "local\t") << local.name << '\t'
                << local.value << '\n';
    }
  }
}

void Answer(const Target& target, const std::string& question) {
  std::istringstream words(question);
  std::string verb;
  Address address = 0;
  words >> verb >> address;
  if (verb == "code") PrintCode(target, address);
  if (verb == "string") {
    std::cout << ReadString(target.memory, target.layout, address).value_or("unreadable") << '\n';
  }
  if (verb == "layout") PrintLayout(target);
  if (verb == "names") PrintNames(target);
  if (verb == "frames") PrintFrames(target, FindThread(target, address));
  std::cout << "--- end\n";
}

}  // namespace
}  // namespace pystrobe::pyabi

int main(int argc, char** argv) {
  using namespace pystrobe;
  if (argc != 5) {
    std::cerr << "usage: pyabi_probe PID RUNTIME HEXVERSION CODE_TYPE\n";
    return 2;
  }
  const auto number = [argv](int i) { return std::strtoull(argv[i], nullptr, 0); };
  const remote::ProcessMemory memory(static_cast<pid_t>(number(1)));
  const auto version = pyabi::PyVersion::FromHex(static_cast<uint32_t>(number(3)));
  auto layout = pyabi::FindLayout(memory, number(2), version);
  if (!layout) {
    std::cerr << layout.error().message << '\n';
    return 1;
  }
  const pyabi::Target target{memory, *layout, number(2), number(4)};
  std::string question;
  while (std::getline(std::cin, question)) pyabi::Answer(target, question);
  return 0;
}
