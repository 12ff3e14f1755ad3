// SPDX-License-Identifier: Apache-2.0
//
// The files a command writes: opened before sampling starts, so that nothing is refused when it is
// too late, and taken away again when nothing came of them. [one thread at a time]
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/file_place.h"
#include "cli/invoker.h"
#include "cli/replacement.h"
#include "cli/unkept_file.h"
#include "profiler/base/error.h"
#include "profiler/base/function_ref.h"
#include "profiler/base/scoped_fd.h"
#include "profiler/write/writer.h"

namespace pystrobe::cli {

/// One -o, its format settled.
struct OutputRequest {
  std::string path;  ///< "-" is standard output
  write::Format format;

  bool to_stdout() const { return path == "-"; }
  /// As messages call it.
  std::string Name() const { return to_stdout() ? "standard output" : path; }
};

/// An output that can take bytes.
class OutputFile {
 public:
  /// Creates the file. Refuses with kExists a regular file that is there and not empty, unless
  /// `force`; its contents then stay until others are written. Refuses a pipe that nobody reads,
  /// and standard output that is closed. Errors name the path.
  static Result<OutputFile> Open(const OutputRequest& request, bool force,
                                 const std::optional<Invoker>& invoker);

  const OutputRequest& request() const { return request_; }
  /// A file that can be read again while it is written, not a pipe or a device.
  bool is_regular() const { return is_regular_; }

  /// A second descriptor of the file, for who writes it bit by bit. Who writes truncates and calls
  /// Keep() when something is in it.
  Result<ScopedFd> OpenStream() const;
  /// The file stays. One that we created is removed otherwise when this object goes.
  void Keep() { unkept_.Keep(); }
  /// Fails where another process has locked the file: it writes its own there. Ours as long as this
  /// lives.
  Result<void> Lock() const;
  /// Lets `write` fill the file, and keeps it if all went well. Else a file that we created is
  /// removed, and one that was there has its old contents, where it can be replaced
  /// (replacement.h), or is removed too. Fails, and touches nothing, when others put a file of
  /// theirs in its place since.
  Result<void> Fill(FunctionRef<Result<void>(write::Output&)> write);

  FileIdentity Identity() const { return IdentityOf(fd_.get()); }
  /// That of the file at its path. Pipes and devices are always ours.
  Place FindPlace() const;

 private:
  using Writing = FunctionRef<Result<void>(write::Output&)>;

  OutputFile(OutputRequest request, ScopedFd fd, bool created, bool is_regular);
  static Result<OutputFile> OpenStandardOutput(const OutputRequest& request);
  static Result<OutputFile> OpenExisting(const OutputRequest& request, bool force);
  Result<void> FillInPlace(Writing write);
  Result<void> FillReplacement(Replacement replacement, Writing write);
  Result<void> FillDescriptor(int fd, Writing write) const;
  Result<void> RefuseAnother() const;
  Result<void> RefuseLost() const;

  OutputRequest request_;
  std::string real_path_;  ///< where symbolic links led; of regular files
  ScopedFd fd_;
  UnkeptFile unkept_;  ///< if created by us
  bool is_regular_ = false;
};

/// Opens and locks all, or none. Refuses those that are one file, and one that is the file `input`,
/// from which they are made (empty: none).
Result<std::vector<OutputFile>> OpenOutputs(const std::vector<OutputRequest>& requests, bool force,
                                            const std::optional<Invoker>& invoker,
                                            const std::string& input = {});

/// Saves the recording in `fd` as NAME.strobe (or NAME-2.strobe …) in the first of `directories`
/// that takes it, and returns the path. Overwrites nothing.
Result<std::string> KeepRecording(int fd, const std::vector<std::string>& directories,
                                  const std::string& name, const std::optional<Invoker>& invoker);

/// Where a recording can be kept when its own place does not take it: `first`, then the directories
/// for temporary files.
std::vector<std::string> PlacesToKeep(const std::string& first, Environment environment);

}  // namespace pystrobe::cli
