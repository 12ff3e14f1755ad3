// SPDX-License-Identifier: Apache-2.0
#include "cli/present.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "cli/message.h"
#include "profiler/base/write_all.h"
#include "profiler/print/range_table.h"
#include "profiler/print/report.h"
#include "profiler/write/fd_output.h"

namespace pystrobe::cli {
namespace {

std::string WorkingDirectory() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::current_path(error);
  return error ? std::string() : path.string();
}

/// 0 where that is no file.
uint64_t SizeOf(const std::string& path) {
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path, error);
  return error ? 0 : size;
}

FoldOptions FoldFor(const View& view, Mode mode) {
  return {.thread = view.thread,
          .since_ns = view.since_ns,
          .until_ns = view.until_ns,
          .include_idle = view.idle,
          .work = WorkOf(mode)};
}

/// What it is where its name tells of another format: -f goes before the name.
std::string AsWhat(write::Format format, const std::string& path) {
  const auto named = write::FormatByFileName(path);
  return !named || *named == format ? "" : fmt::format(" as {}", write::FormatName(format));
}

bool WriteOutput(OutputFile& output, const Profile& profile, Mode mode,
                 const PresentOptions& options) {
  const write::Format format = output.request().format;
  const write::WriteOptions write_options{mode, options.view.unit, {}, options.view.idle};
  auto filled = output.Fill([&](write::Output& bytes) -> Result<void> {
    if (format == write::Format::kStrobe) return write::CopyFile(options.recording_fd, bytes);
    return write::Write(format, profile, write_options, bytes);
  });
  if (!filled) {
    PrintError(filled.error());
    return false;
  }
  if (!options.quiet && !output.request().to_stdout()) {
    const std::string& path = output.request().path;
    PrintNote(fmt::format("wrote {}{}{}; {}", path, AsWhat(format, path),
                          write::SizeNote(format, SizeOf(path)), write::HowToOpen(format, path)));
  }
  return true;
}

/// WriteOutput of `profile`, or of one folded anew where the format asks for it.
bool FoldAndWrite(OutputFile& output, const store::StrobeFile& recording, const Profile& profile,
                  Mode mode, const PresentOptions& options) {
  const FoldOptions printed = FoldFor(options.view, mode);
  const FoldOptions wanted = write::FoldOptionsFor(output.request().format, recording, printed);
  if (wanted == printed) return WriteOutput(output, profile, mode, options);
  const Result<Profile> folded = Fold(recording, wanted);
  if (!folded) {
    PrintError(Wrap(folded.error(), "{}", output.request().Name()).error());
    return false;
  }
  return WriteOutput(output, *folded, mode, options);
}

/// False when it cannot be written; a reader that went away wanted no more of it.
bool PrintText(std::string_view text, int fd) {
  const auto written = WriteAll(fd, text);
  if (written || written.error().closed) return true;
  PrintError(Wrap(written.error().error, "the table").error());
  return false;
}

bool PrintTable(const store::StrobeFile& recording, const Profile& profile, Mode mode,
                const PresentOptions& options, bool table) {
  const int fd = table ? options.table_fd : STDERR_FILENO;
  const print::Terminal terminal = print::DescribeTerminal(fd, kProcessEnvironment);
  const View& view = options.view;
  const std::string how_to_show_gpu =
      fmt::format("pystrobe report {} --gpu", options.file.empty() ? "FILE" : options.file);
  const std::string text = print::FormatReport(
      profile,
      {.table = {mode, view.top, terminal, WorkingDirectory()},
       .with_table = table,
       .of_a_part = view.thread || view.since_ns > 0 || view.until_ns,
       .thread = view.thread,
       .cut_off = recording.cut_off(),
       .how_to_show_gpu = view.mode || options.gpu_too ? std::string_view() : how_to_show_gpu});
  return PrintText(text, fd);
}

bool PrintRanges(const store::StrobeFile& recording, const PresentOptions& options) {
  const int fd = options.table_fd;
  const print::Terminal terminal = print::DescribeTerminal(fd, kProcessEnvironment);
  return PrintText(print::FormatRangeReport(
                       recording, {Mode::kGpu, options.view.top, terminal, WorkingDirectory()},
                       {.width = terminal.width, .cut_off = recording.cut_off()}),
                   fd);
}

bool PrintGpuTable(const store::StrobeFile& recording, const PresentOptions& options, bool table) {
  const auto profile = Fold(recording, FoldFor(options.view, Mode::kGpu));
  if (profile) return PrintTable(recording, *profile, Mode::kGpu, options, table);
  PrintError(profile.error());
  return false;
}

}  // namespace

bool Present(const store::StrobeFile& recording, std::vector<OutputFile>& outputs,
             const PresentOptions& options) {
  const bool of_part = options.view.since_ns > 0 || options.view.until_ns;
  if (outputs.empty() && !of_part && !options.view.thread &&
      print::HasRangesAlone(recording, options.view.mode)) {
    return options.quiet || !options.table || PrintRanges(recording, options);
  }
  const auto mode = ChooseMode(recording, options.view.mode, of_part);
  if (!mode) {
    PrintError(mode.error());
    return false;
  }
  auto profile = Fold(recording, FoldFor(options.view, *mode));
  if (!profile) {
    PrintError(profile.error());
    return false;
  }
  const bool stdout_taken =
      std::any_of(outputs.begin(), outputs.end(),
                  [](const OutputFile& output) { return output.request().to_stdout(); });
  bool all_written = true;
  if (options.table && !options.quiet) {
    const bool table = !stdout_taken && (options.table_is_all || IsWritable(options.table_fd));
    all_written = PrintTable(recording, *profile, *mode, options, table);
    if (options.gpu_too && recording.gpu() != nullptr) {
      all_written = PrintGpuTable(recording, options, table) && all_written;
    }
  }
  for (OutputFile& output : outputs) {
    all_written = FoldAndWrite(output, recording, *profile, *mode, options) && all_written;
  }
  return all_written;
}

}  // namespace pystrobe::cli
