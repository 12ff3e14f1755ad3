// SPDX-License-Identifier: Apache-2.0
#include "cli/present.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "cli/message.h"
#include "profiler/base/write_all.h"
#include "profiler/print/quality.h"
#include "profiler/print/table.h"
#include "profiler/write/fd_output.h"

namespace pystrobe::cli {
namespace {

std::string WorkingDirectory() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::current_path(error);
  return error ? std::string() : path.string();
}

Result<Profile> FoldFor(const store::StrobeFile& recording, const View& view, bool include_idle) {
  return Fold(recording, {.thread = view.thread,
                          .since_ns = view.since_ns,
                          .until_ns = view.until_ns,
                          .include_idle = include_idle});
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
    PrintNote(fmt::format("wrote {}; {}", output.request().path,
                          write::HowToOpen(format, output.request().path)));
  }
  return true;
}

/// WriteOutput of `profile`, or of one folded anew where the format asks for it.
bool FoldAndWrite(OutputFile& output, const store::StrobeFile& recording, const Profile& profile,
                  Mode mode, const PresentOptions& options) {
  const Profile* wanted = &profile;
  Result<Profile> with_idle;
  // The page has a switch of its own for idle threads.
  if (output.request().format == write::Format::kHtml && !options.view.idle) {
    with_idle = FoldFor(recording, options.view, true);
    if (!with_idle) {
      PrintError(Wrap(with_idle.error(), "{}", output.request().Name()).error());
      return false;
    }
    wanted = &*with_idle;
  }
  return WriteOutput(output, *wanted, mode, options);
}

/// False when the table cannot be written; a reader that went away wanted no more of it.
bool PrintTable(const store::StrobeFile& recording, const Profile& profile, Mode mode,
                const PresentOptions& options, bool table) {
  const int fd = table ? options.table_fd : STDERR_FILENO;
  const print::Terminal terminal = print::DescribeTerminal(fd, kProcessEnvironment);
  std::string text;
  if (table) {
    text = print::FormatTable(profile, {mode, options.view.top, terminal, WorkingDirectory()});
    text += "\n";
  }
  const View& view = options.view;
  const bool part = view.thread || view.since_ns > 0 || view.until_ns;
  text += print::FormatQuality(recording.metadata(), recording.quality(),
                               {terminal.width, part, recording.cut_off()});
  const auto written = WriteAll(fd, text);
  if (written || written.error().closed) return true;
  PrintError(Wrap(written.error().error, "the table").error());
  return false;
}

}  // namespace

bool Present(const store::StrobeFile& recording, std::vector<OutputFile>& outputs,
             const PresentOptions& options) {
  const bool of_part = options.view.since_ns > 0 || options.view.until_ns;
  const auto mode = ChooseMode(recording.metadata(), options.view.mode, of_part);
  if (!mode) {
    PrintError(mode.error());
    return false;
  }
  auto profile = FoldFor(recording, options.view, options.view.idle);
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
  }
  for (OutputFile& output : outputs) {
    all_written = FoldAndWrite(output, recording, *profile, *mode, options) && all_written;
  }
  return all_written;
}

}  // namespace pystrobe::cli
