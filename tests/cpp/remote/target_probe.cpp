// SPDX-License-Identifier: Apache-2.0
//
// target_probe PID: opens a process as a target and prints what was found, or the error, as one
// line of JSON. For tests/python/test_targets.py.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdlib>

#include "sampler/remote/target.h"

namespace pystrobe::remote {
namespace {

/// A JSON string of text without control characters but newlines.
std::string Quote(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return quoted + '"';
}

void PrintError(const Error& error) {
  fmt::print("{{\"error\":{},\"message\":{},\"hint\":{}}}\n", static_cast<int>(error.code),
             Quote(error.message), Quote(error.hint));
}

int Probe(pid_t pid) {
  auto start = std::chrono::steady_clock::now();
  auto target = Target::Open(pid);
  auto open_time = std::chrono::steady_clock::now() - start;
  if (!target) return PrintError(target.error()), 1;
  auto threads = target->ListThreads();
  if (!threads) return PrintError(threads.error()), 1;
  std::vector<std::string> items;
  for (const PyThread& thread : threads->threads) {
    items.push_back(fmt::format("{{\"tid\":{},\"interpreter\":{},\"pthread\":{}}}", thread.tid,
                                thread.interpreter_id, thread.pthread));
  }
  const TargetInfo& info = target->info();
  fmt::print(
      "{{\"version\":{},\"free_threaded\":{},\"executable\":{},\"python_file\":{},\"deleted\":{},"
      "\"found_by\":{},\"rseq_offset\":{},\"rseq_reason\":{},\"open_us\":{},\"still_there\":{},"
      "\"threads\":[{}]}}\n",
      Quote(info.layout.version.ToString()), info.layout.free_threaded, Quote(info.executable),
      Quote(info.python_file), info.python_file_deleted, Quote(info.found_by),
      info.rseq_offset ? fmt::to_string(*info.rseq_offset) : "null", Quote(info.rseq_reason),
      std::chrono::duration_cast<std::chrono::microseconds>(open_time).count(),
      target->StillThere(), fmt::join(items, ","));
  return 0;
}

}  // namespace
}  // namespace pystrobe::remote

int main(int argc, char** argv) {
  return argc == 2 ? pystrobe::remote::Probe(std::atoi(argv[1])) : 2;
}
