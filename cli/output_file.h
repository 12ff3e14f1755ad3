// SPDX-License-Identifier: Apache-2.0
//
// The files a command writes: opened before sampling starts, so that nothing is refused when it is
// too late, and taken away again when nothing came of them. [one thread at a time]
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/invoker.h"
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
};

/// An output that can take bytes.
class OutputFile {
 public:
  /// Creates the file. Refuses with kExists a regular file that is there, unless `force`; its
  /// contents then stay until the first byte is written. Errors name the path.
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
  /// Truncates, lets `write` fill the file, and keeps it if all went well.
  Result<void> Fill(FunctionRef<Result<void>(write::Output&)> write);

 private:
  OutputFile(OutputRequest request, ScopedFd fd, bool created, bool is_regular);
  Result<void> Truncate();

  OutputRequest request_;
  ScopedFd fd_;
  UnkeptFile unkept_;  ///< if created by us
  bool is_regular_ = false;
};

/// Copies everything in `from` (a file or memfd, from its start) to `output`.
Result<void> CopyFile(int from, write::Output& output);

/// Saves the recording in `fd` as NAME.strobe (or NAME-2.strobe …) in the first of `directories`
/// that takes it, and returns the path. Overwrites nothing.
Result<std::string> KeepRecording(int fd, const std::vector<std::string>& directories,
                                  const std::string& name, const std::optional<Invoker>& invoker);

/// Where a recording can be kept when its own place does not take it: `first`, then the directories
/// for temporary files.
std::vector<std::string> PlacesToKeep(const std::string& first, Environment environment);

}  // namespace pystrobe::cli
