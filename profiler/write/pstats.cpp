// SPDX-License-Identifier: Apache-2.0
//
// What cProfile dumps, for pstats, snakeviz and their like: {(file, line, name): (calls that are
// not recursive, calls, self s, total s, {caller: the same, but calls first})} (Lib/cProfile.py),
// "~" and 0 being the place of a function of C. As Python's marshal writes it, in forms that each
// version reads (Python/marshal.c).
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "profiler/analyze/call_graph.h"
#include "profiler/write/labels.h"
#include "profiler/write/output_buffer.h"
#include "profiler/write/utf8.h"
#include "profiler/write/writer.h"

namespace pystrobe::write {
namespace {

/// The few types of marshal that are needed.
class Marshal {
 public:
  explicit Marshal(OutputBuffer& out) : out_(out) {}

  void BeginDict() { out_.Append('{'); }
  void EndDict() { out_.Append('0'); }
  void Tuple(uint32_t size) {
    out_.Append('(');
    LittleEndian(size, 4);
  }
  void Text(std::string_view text) {
    const std::string valid = ValidUtf8(text);
    out_.Append('u');
    LittleEndian(valid.size(), 4);
    out_.Append(valid);
  }
  void Float(double value) {
    out_.Append('g');
    LittleEndian(std::bit_cast<uint64_t>(value), 8);
  }
  /// Up to 31 bits as such, beyond in digits of 15 bits.
  void Int(uint64_t value) {
    if (value < (uint64_t{1} << 31)) {
      out_.Append('i');
      LittleEndian(value, 4);
      return;
    }
    uint32_t digits = 0;
    for (uint64_t rest = value; rest > 0; rest >>= kDigitBits) ++digits;
    out_.Append('l');
    LittleEndian(digits, 4);
    for (; value > 0; value >>= kDigitBits) LittleEndian(value & ((1U << kDigitBits) - 1), 2);
  }

 private:
  static constexpr int kDigitBits = 15;

  void LittleEndian(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out_.Append(static_cast<char>(value >> (8 * i)));
  }

  OutputBuffer& out_;
};

class PstatsWriter {
 public:
  PstatsWriter(const Profile& profile, Mode mode, Output& output)
      : profile_(profile), tables_(profile.tables()), mode_(mode), out_(output), marshal_(out_) {}

  Result<void> Run() {
    marshal_.BeginDict();
    for (const CalledFunction& function : BuildCallGraph(profile_)) {
      if (!out_.ok()) break;
      WriteKey(function.key);
      marshal_.Tuple(5);
      WritePrimitive(function.sums);
      WriteCalls(function.sums);
      WriteTimes(function.sums);
      marshal_.BeginDict();
      for (const CalledFunction::Caller& caller : function.callers) {
        if (!caller.key) continue;
        WriteKey(*caller.key);
        marshal_.Tuple(4);
        WriteCalls(caller.sums);
        WritePrimitive(caller.sums);
        WriteTimes(caller.sums);
      }
      marshal_.EndDict();
    }
    marshal_.EndDict();
    return out_.Finish();
  }

 private:
  void WriteKey(FunctionId id) {
    const Function& function = tables_.function(id);
    marshal_.Tuple(3);
    marshal_.Text(function.first_line == 0 ? "~" : tables_.text(function.file));
    marshal_.Int(function.first_line);
    marshal_.Text(FunctionName(function, tables_));
  }

  void WriteCalls(const CallSums& sums) { marshal_.Int(sums.self.samples); }
  void WritePrimitive(const CallSums& sums) { marshal_.Int(sums.self.samples - sums.recursive); }
  void WriteTimes(const CallSums& sums) {
    marshal_.Float(static_cast<double>(sums.self.nanoseconds(mode_)) / 1e9);
    marshal_.Float(static_cast<double>(sums.total.nanoseconds(mode_)) / 1e9);
  }

  const Profile& profile_;
  const Tables& tables_;
  const Mode mode_;
  OutputBuffer out_;
  Marshal marshal_;
};

}  // namespace

Result<void> WritePstats(const Profile& profile, const WriteOptions& options, Output& output) {
  return PstatsWriter(profile, options.mode, output).Run();
}

}  // namespace pystrobe::write
