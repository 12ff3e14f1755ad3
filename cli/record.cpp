// SPDX-License-Identifier: Apache-2.0
#include "cli/record.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "cli/message.h"
#include "cli/present.h"
#include "cli/progress.h"
#include "cli/terminal.h"

namespace pystrobe::cli {

RecordingSession::RecordingSession(const RecordOptions& options, StopSignals& signals)
    : options_(options), signals_(signals), invoker_(FindInvoker(geteuid(), kProcessEnvironment)) {}

Result<std::unique_ptr<RecordingSession>> RecordingSession::Open(const RecordOptions& options,
                                                                 StopSignals& signals) {
  std::unique_ptr<RecordingSession> session(new RecordingSession(options, signals));
  if (auto opened = session->OpenOutputs(); !opened) return std::unexpected(opened.error());
  return session;
}

Result<void> RecordingSession::OpenOutputs() {
  for (const OutputRequest& request : options_.outputs) {
    auto output = OutputFile::Open(request, options_.force, invoker_);
    if (!output) return std::unexpected(output.error());
    outputs_.push_back(*std::move(output));
  }
  return {};
}

Result<ScopedFd> RecordingSession::OpenRecording() {
  for (auto output = outputs_.begin(); output != outputs_.end(); ++output) {
    if (output->request().format != write::Format::kStrobe || !output->is_regular()) continue;
    stream_ = std::move(*output);
    outputs_.erase(output);
    return stream_->OpenStream();
  }
  return CreateMemoryFile();
}

void RecordingSession::KeepOnSecond(int memory_fd) {
  if (stream_) {
    stream_->Keep();
    signals_.KeepOnSecond(-1, Name(), invoker_);
    return;
  }
  const std::string temporary = PlacesToKeep("", kProcessEnvironment).front();
  signals_.KeepOnSecond(memory_fd, fmt::format("{}/pystrobe-{}.strobe", temporary, getpid()),
                        invoker_);
}

std::string RecordingSession::Name() const { return stream_ ? stream_->request().path : "memory"; }

std::optional<remote::EndReason> RecordingSession::Sample(remote::Sampler& sampler,
                                                          bool show_progress) {
  auto fd = OpenRecording();
  if (!fd) {
    sampling_error_ = fd.error();
    return std::nullopt;
  }
  const int number = fd->get();
  recorder_ = std::make_unique<Recorder>(*std::move(fd), Name(), signals_.stop(),
                                         [this, number] { KeepOnSecond(number); });
  ProgressLine progress(show_progress && !options_.quiet && isatty(STDERR_FILENO) == 1);
  auto end = sampler.Run(*recorder_, signals_.stop(),
                         [&progress](const remote::Progress& now) { progress.Show(now); });
  if (end) return *end;
  sampling_error_ = end.error();
  return std::nullopt;
}

bool RecordingSession::Report(int table_fd) {
  bool good = true;
  if (sampling_error_) {
    PrintError(*sampling_error_);
    good = false;
  }
  if (recorder_ == nullptr || !recorder_->begun()) return false;
  const std::optional<Error> failure = recorder_->failure();
  const ScopedFd fd = recorder_->TakeFd();
  ScopedFd copy(fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
  auto recording = store::StrobeFile::Open(std::move(copy), Name());
  if (failure) {
    PrintError(Wrap(*failure, "sampling ended early").error());
    good = false;
  }
  if (recording) {
    const PresentOptions present{.view = options_.view,
                                 .quiet = options_.quiet,
                                 .table_fd = table_fd,
                                 .recording_fd = fd.get()};
    good = Present(**recording, outputs_, present) && good;
  } else {
    PrintError(recording.error());
    good = false;
  }
  if (stream_ && !failure) {
    if (!options_.quiet || !good) {
      PrintNote(
          fmt::format("wrote {}; {}", Name(), write::HowToOpen(write::Format::kStrobe, Name())));
    }
  } else if (!good) {
    Keep(fd.get());
  }
  signals_.KeepNothing();
  return good;
}

void RecordingSession::Keep(int fd) {
  // Not next to a device or a pipe: /dev is no place for files.
  const auto file = std::find_if(outputs_.begin(), outputs_.end(),
                                 [](const OutputFile& output) { return output.is_regular(); });
  const std::string near = stream_ ? Name() : file != outputs_.end() ? file->request().path : "";
  const auto kept = KeepRecording(fd, PlacesToKeep(near, kProcessEnvironment),
                                  fmt::format("pystrobe-{}", getpid()), invoker_);
  if (!kept) {
    PrintError(kept.error());
    return;
  }
  PrintNote(fmt::format("nothing recorded is lost: it is in {}; {}", *kept,
                        write::HowToOpen(write::Format::kStrobe, *kept)));
}

}  // namespace pystrobe::cli
