// SPDX-License-Identifier: Apache-2.0
//
// What `attach` and `run` share: outputs opened, a sampler run, the recording presented, nothing
// lost. [main thread]
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/command_line.h"
#include "cli/invoker.h"
#include "cli/output_file.h"
#include "cli/signals.h"
#include "profiler/store/recorder.h"
#include "sampler/remote/sampler.h"

namespace pystrobe::cli {

/// One recording, from the opened outputs to the printed table.
class RecordingSession {
 public:
  /// Opens the outputs. Fails before anything was sampled. `options` and `signals` must outlive the
  /// session.
  static Result<std::unique_ptr<RecordingSession>> Open(const RecordOptions& options,
                                                        StopSignals& signals);

  /// Samples until the end. Errors of the sampler after its start are kept for Report.
  std::optional<remote::EndReason> Sample(remote::Sampler& sampler, bool show_progress);

  /// A descriptor for another process to write a recording to, in place of Sample. Ours.
  /// `cure`: what to do when it writes none; who writes none and has said why moves the position of
  /// the descriptor, which is the same here, away from 0.
  Result<int> LendRecording(std::string cure);
  /// It could write none, for another reason.
  void ReplaceCure(std::string cure) { lent_cure_ = std::move(cure); }
  /// From the first call after it has written something, that is kept whatever comes. False: it has
  /// not yet.
  bool SecureLent();

  /// Writes files and prints table and quality line to `table_fd`. If anything fails, the recording
  /// is kept somewhere and the place is told; outputs stay as they were when the sampler failed
  /// before there was a recording. True when all went well.
  bool Report(int table_fd);

 private:
  RecordingSession(const RecordOptions& options, StopSignals& signals);
  /// Where the recording goes while sampling: the .strobe asked for, or memory.
  Result<ScopedFd> OpenRecording();
  /// A recording and what became of it.
  struct Made {
    ScopedFd fd;
    std::optional<Error> failure;
    bool whole = true;
  };
  /// Nullopt, and says so, where nothing was recorded.
  std::optional<Made> TakeRecording();
  /// What is left of the recording, which is in `fd`, when the process ends at once.
  void SaveWhenGivingUp(int fd);
  /// Whether `fd` is that of the .strobe asked for.
  bool IsStream(int fd) const;
  /// `stream_`, or "memory".
  std::string Name() const;
  /// Where it is not in the .strobe asked for. `whole`: all that was recorded is in `fd`.
  void Keep(int fd, bool whole);

  const RecordOptions& options_;
  StopSignals& signals_;
  std::optional<Invoker> invoker_;
  std::vector<OutputFile> outputs_;
  std::optional<OutputFile> stream_;  // the .strobe that is written while sampling
  std::unique_ptr<store::Recorder> recorder_;
  ScopedFd lent_;
  std::string lent_cure_;
  timespec lent_changed_{};  ///< when it was changed last, as it was lent
  bool lent_secured_ = false;
  std::optional<Error> sampling_error_;
};

}  // namespace pystrobe::cli
