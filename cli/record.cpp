// SPDX-License-Identifier: Apache-2.0
#include "cli/record.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "cli/give_up.h"
#include "cli/message.h"
#include "cli/present.h"
#include "cli/progress.h"
#include "profiler/analyze/profile.h"
#include "profiler/print/terminal.h"

namespace pystrobe::cli {
namespace {

/// Passes a recording on, and tells at its first samples when --thread means no thread so far.
class ThreadCheck final : public RecordingSink {
 public:
  ThreadCheck(RecordingSink& sink, std::optional<std::string> filter)
      : sink_(sink), filter_(std::move(filter)) {}

  Result<void> Begin(const Metadata& metadata) override { return sink_.Begin(metadata); }
  Result<void> Append(const Tables& tables, std::span<const Sample> samples,
                      const Quality& so_far) override {
    if (!told_ && filter_ && tables.thread_count() > 0) {
      told_ = true;
      if (!MeansAThread(tables, *filter_)) {
        PrintNote(
            fmt::format("no thread matches '{}' so far; if none comes, those there are will be "
                        "listed at the end",
                        *filter_));
      }
    }
    return sink_.Append(tables, samples, so_far);
  }
  Result<void> Finish(const Tables& tables, const Quality& quality) override {
    return sink_.Finish(tables, quality);
  }
  void Expect(const DeadlineSeries& series) override { sink_.Expect(series); }

 private:
  RecordingSink& sink_;
  std::optional<std::string> filter_;
  bool told_ = false;
};

void TellKept(const std::string& path, bool whole) {
  PrintNote(fmt::format("{} is in {}; {}",
                        whole ? "nothing recorded is lost: it" : "what could be kept", path,
                        write::HowToOpen(write::Format::kStrobe, path)));
}

}  // namespace

RecordingSession::RecordingSession(const RecordOptions& options, StopSignals& signals)
    : options_(options), signals_(signals), invoker_(FindInvoker(geteuid(), kProcessEnvironment)) {}

Result<std::unique_ptr<RecordingSession>> RecordingSession::Open(const RecordOptions& options,
                                                                 StopSignals& signals) {
  std::unique_ptr<RecordingSession> session(new RecordingSession(options, signals));
  auto outputs = OpenOutputs(options.outputs, options.force, session->invoker_);
  if (!outputs) return std::unexpected(outputs.error());
  session->outputs_ = *std::move(outputs);
  return session;
}

Result<ScopedFd> RecordingSession::OpenRecording() {
  for (auto output = outputs_.begin(); output != outputs_.end(); ++output) {
    if (output->request().format != write::Format::kStrobe || !output->is_regular()) continue;
    stream_ = std::move(*output);
    outputs_.erase(output);
    return stream_->OpenStream();
  }
  return options_.is_large ? store::CreateTemporaryFile() : store::CreateMemoryFile();
}

void RecordingSession::SaveWhenGivingUp(int fd) {
  if (IsStream(fd)) {
    stream_->Keep();
    SaveOnGivingUp(-1, std::array{Name()}, invoker_);
    return;
  }
  std::vector<std::string> paths = PlacesToKeep("", kProcessEnvironment);
  for (std::string& path : paths) path += fmt::format("/pystrobe-{}.strobe", getpid());
  SaveOnGivingUp(fd, paths, invoker_);
}

bool RecordingSession::IsStream(int fd) const {
  return stream_ && IdentityOf(fd) == stream_->Identity();
}

std::string RecordingSession::Name() const { return stream_ ? stream_->request().path : "memory"; }

std::optional<remote::EndReason> RecordingSession::Sample(remote::Sampler& sampler,
                                                          bool show_progress) {
  auto fd = OpenRecording();
  if (!fd) {
    sampling_error_ = fd.error();
    return std::nullopt;
  }
  recorder_ = std::make_unique<store::Recorder>(*std::move(fd), Name(), signals_.stop(),
                                                [this](int place) { SaveWhenGivingUp(place); });
  ProgressLine progress(show_progress && !options_.quiet && isatty(STDERR_FILENO) == 1);
  ThreadCheck checked(*recorder_, options_.quiet ? std::nullopt : options_.view.thread);
  auto end = sampler.Run(checked, signals_.stop(), [&](const remote::Progress& now) {
    if (now.stacks_left > 0) signals_.OfferShortcut();
    progress.Show(now);
    return !signals_.shortcut_taken();
  });
  if (end) return *end;
  sampling_error_ = end.error();
  return std::nullopt;
}

Result<int> RecordingSession::LendRecording(std::string cure) {
  lent_cure_ = std::move(cure);
  auto fd = OpenRecording();
  if (!fd) return std::unexpected(fd.error());
  lent_ = *std::move(fd);
  struct stat status{};
  if (fstat(lent_.get(), &status) == 0) lent_changed_ = status.st_mtim;
  return lent_.get();
}

bool RecordingSession::SecureLent() {
  struct stat status{};
  if (lent_secured_ || fstat(lent_.get(), &status) != 0) return lent_secured_;
  // A file that is to be overwritten may have something in it from before.
  const bool is_changed = status.st_mtim.tv_sec != lent_changed_.tv_sec ||
                          status.st_mtim.tv_nsec != lent_changed_.tv_nsec;
  if (!is_changed || status.st_size == 0) return false;
  SaveWhenGivingUp(lent_.get());
  return lent_secured_ = true;
}

std::optional<RecordingSession::Made> RecordingSession::TakeRecording() {
  if (lent_.valid()) {
    struct stat status{};
    const bool has_any = fstat(lent_.get(), &status) == 0 && status.st_size > 0;
    if (SecureLent() && has_any) return Made{std::move(lent_)};
    const bool has_said_why = lseek(lent_.get(), 0, SEEK_CUR) != 0;
    if (!has_said_why) {
      PrintError({ErrorCode::kNotPython, "nothing was recorded inside the program", lent_cure_});
    }
    return std::nullopt;
  }
  if (recorder_ == nullptr || !recorder_->begun()) return std::nullopt;
  Made made{.fd = {}, .failure = recorder_->failure(), .whole = recorder_->whole()};
  made.fd = recorder_->TakeFd();
  recorder_.reset();  // what its writer remembers of the stacks is as much as the report's own
  return made;
}

bool RecordingSession::Report(int table_fd) {
  bool good = true;
  if (sampling_error_) {
    PrintError(*sampling_error_);
    good = false;
  }
  const std::optional<Made> made = TakeRecording();
  if (!made) return false;
  const auto& [fd, failure, whole] = *made;
  ScopedFd copy(fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
  auto recording = store::StrobeFile::Open(std::move(copy), Name());
  if (failure) {
    PrintError(Wrap(*failure, "sampling ended early").error());
    good = false;
  }
  if (recording) {
    const PresentOptions present{.view = options_.view,
                                 .quiet = options_.quiet,
                                 .gpu_too = options_.gpu,
                                 .table_is_all = outputs_.empty() && !stream_,
                                 .table_fd = table_fd,
                                 .recording_fd = fd.get()};
    good = Present(**recording, outputs_, present) && good;
  } else {
    PrintError(recording.error());
    good = false;
  }
  const Place place = stream_ && !failure ? stream_->FindPlace() : Place::kOurs;
  if (place != Place::kOurs) {
    const std::string_view what =
        place == Place::kNothing ? "was removed" : "was replaced by another file";
    PrintError({ErrorCode::kIo, fmt::format("{} {} while it was written", Name(), what), {}});
    good = false;
  }
  if (stream_ && !failure && place == Place::kOurs) {
    if (!options_.quiet || !good) {
      PrintNote(
          fmt::format("wrote {}; {}", Name(), write::HowToOpen(write::Format::kStrobe, Name())));
    }
  } else if (!good) {
    Keep(fd.get(), whole);
  }
  SaveNothing();
  return good;
}

void RecordingSession::Keep(int fd, bool whole) {
  if (IsStream(fd) && stream_->FindPlace() == Place::kOurs) {
    TellKept(Name(), whole);
    return;
  }
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
  TellKept(*kept, whole);
}

}  // namespace pystrobe::cli
