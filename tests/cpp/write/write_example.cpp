// SPDX-License-Identifier: Apache-2.0
//
// Writes a recording with known content in a format, for readers that are not ours:
//
//   write_example EXAMPLE FILE [wall|cpu|gil|gpu [samples|us|ns]]
//
// The format follows the file name, as with `pystrobe report`. Examples: example_recordings.h.
#include <fcntl.h>
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <span>
#include <string_view>

#include "profiler/base/scoped_fd.h"
#include "profiler/store/strobe.h"
#include "profiler/write/writer.h"
#include "tests/cpp/write/example_recordings.h"

namespace pystrobe {
namespace {

class FileOutput final : public write::Output {
 public:
  explicit FileOutput(const char* path) : file_(std::fopen(path, "wb"), std::fclose) {}
  Result<void> Write(std::string_view bytes) override {
    if (file_ && std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) == bytes.size()) return {};
    return FailErrno(errno, ErrorCode::kIo, "writing");
  }

 private:
  std::unique_ptr<FILE, int (*)(FILE*)> file_;
};

write::Unit UnitByName(std::string_view name) {
  if (name == "us") return write::Unit::kMicroseconds;
  return name == "ns" ? write::Unit::kNanoseconds : write::Unit::kSamples;
}

Result<void> WriteRecording(const testing::MemoryRecording& recording, const char* path) {
  ScopedFd fd(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  store::StrobeWriter writer(std::move(fd), path);
  if (auto begun = writer.Begin(recording.metadata()); !begun) return begun;
  const Tables& tables = recording.tables();
  auto taken = writer.Append(tables, recording.samples(), recording.quality());
  if (taken && recording.gpu() != nullptr) taken = writer.AppendGpu(tables, *recording.gpu());
  if (taken && recording.ranges() != nullptr) {
    taken = writer.AppendRanges(tables, *recording.ranges());
  }
  return taken ? writer.Finish(tables, recording.quality()) : taken;
}

Result<void> WriteExample(std::span<char*> arguments) {
  if (arguments.size() < 3) {
    return Fail(ErrorCode::kInvalidArgument, "usage: write_example EXAMPLE FILE [MODE [UNIT]]");
  }
  testing::MemoryRecording recording;
  if (!testing::FillExample(arguments[1], recording)) {
    return Fail(ErrorCode::kInvalidArgument, "no example {}", arguments[1]);
  }
  const auto format = write::FormatByFileName(arguments[2]);
  if (!format) return Fail(ErrorCode::kInvalidArgument, "no format for {}", arguments[2]);
  if (format == write::Format::kStrobe) return WriteRecording(recording, arguments[2]);
  write::WriteOptions options;
  if (arguments.size() > 3) options.mode = ModeByName(arguments[3]).value_or(Mode::kWall);
  if (arguments.size() > 4) options.unit = UnitByName(arguments[4]);
  const FoldOptions asked{.include_idle = true, .work = WorkOf(options.mode)};
  const auto profile = Fold(recording, write::FoldOptionsFor(*format, recording, asked));
  if (!profile) return std::unexpected(profile.error());
  FileOutput output(arguments[2]);
  return write::Write(*format, *profile, options, output);
}

}  // namespace
}  // namespace pystrobe

int main(int argc, char** argv) {
  const auto written = pystrobe::WriteExample({argv, static_cast<size_t>(argc)});
  if (!written) fmt::print(stderr, "write_example: {}\n", written.error().message);
  return written ? 0 : 1;
}
