// SPDX-License-Identifier: Apache-2.0
//
// A recording that Python holds.
#pragma once

#include <memory>
#include <string>

#include "profiler/base/scoped_fd.h"
#include "profiler/model/recording.h"
#include "profiler/store/strobe.h"

namespace pystrobe::pyext {

/// The .strobe behind a Profile or a Report: a file, or one in memory. [any thread, const]
class Recording {
 public:
  static Result<std::unique_ptr<Recording>> Open(const std::string& path);
  static Result<std::unique_ptr<Recording>> Open(ScopedFd fd, const std::string& name);

  const store::StrobeFile& file() const { return *file_; }
  /// Reads all bytes of the file, whatever others read of it. Fails where the program closed it.
  Result<int> fd() const;

 private:
  Recording(ScopedFd fd, std::unique_ptr<store::StrobeFile> file)
      : fd_(std::move(fd)), file_(std::move(file)) {}

  ScopedFd fd_;
  std::unique_ptr<store::StrobeFile> file_;
};

/// All of a recording's Metadata but how it is made; it starts now.
Result<Metadata> DescribeThisProcess();

}  // namespace pystrobe::pyext
