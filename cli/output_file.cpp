// SPDX-License-Identifier: Apache-2.0
#include "cli/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "cli/message.h"

namespace pystrobe::cli {
namespace {

constexpr size_t kBufferSize = 64 * 1024;

/// Gathers small writes.
class FdOutput final : public write::Output {
 public:
  explicit FdOutput(int fd) : fd_(fd) { buffer_.reserve(kBufferSize); }

  Result<void> Write(std::string_view bytes) override {
    if (failure_) return std::unexpected(*failure_);
    if (buffer_.size() + bytes.size() <= kBufferSize) {
      buffer_ += bytes;
      return {};
    }
    if (auto flushed = Flush(); !flushed) return flushed;
    if (bytes.size() < kBufferSize) {
      buffer_ += bytes;
      return {};
    }
    return Send(bytes);
  }

  Result<void> Flush() {
    if (failure_) return std::unexpected(*failure_);
    auto sent = Send(buffer_);
    buffer_.clear();
    return sent;
  }

  bool closed() const { return closed_; }

 private:
  Result<void> Send(std::string_view bytes) {
    auto written = WriteAll(fd_, bytes);
    if (written) return {};
    failure_ = written.error().error;
    closed_ = written.error().closed;
    return std::unexpected(*failure_);
  }

  int fd_;
  std::string buffer_;
  std::optional<Error> failure_;
  bool closed_ = false;
};

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Error OpenError(int error_number, const std::string& path) {
  Error error = FailErrno(error_number, ErrorCode::kIo, "cannot write {}", path).error();
  const std::string directory = DirectoryOf(path);
  struct stat status{};
  if (error_number == ENOENT && stat(directory.c_str(), &status) != 0) {
    error.message = fmt::format("cannot write {}: there is no directory {}", path, directory);
    error.hint = fmt::format("Make it first: mkdir -p {}", directory);
  } else if (error_number == EACCES || error_number == EROFS || error_number == EPERM) {
    error.hint = "Name a file where you may write: -o /tmp/FILE";
  }
  return error;
}

void GiveTo(int fd, const std::optional<Invoker>& invoker) {
  // A file system without owners (vfat, some network ones) refuses; the file is still good.
  if (invoker && fchown(fd, invoker->uid, invoker->gid) != 0) return;
}

}  // namespace

OutputFile::OutputFile(OutputRequest request, ScopedFd fd, bool created, bool is_regular)
    : request_(std::move(request)), fd_(std::move(fd)), is_regular_(is_regular) {
  if (created) unkept_ = UnkeptFile(request_.path);
}

Result<OutputFile> OutputFile::Open(const OutputRequest& request, bool force,
                                    const std::optional<Invoker>& invoker) {
  if (request.to_stdout()) {
    const bool binary =
        request.format == write::Format::kPprof || request.format == write::Format::kStrobe;
    if (binary && isatty(STDOUT_FILENO) == 1) {
      return FailWithHint(ErrorCode::kInvalidArgument, "Name a file with -o, or redirect: > FILE",
                          "{} is binary, and standard output is a terminal",
                          write::FormatName(request.format));
    }
    return OutputFile(request, ScopedFd(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)), false, false);
  }
  const std::string& path = request.path;
  ScopedFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (fd.valid()) {
    GiveTo(fd.get(), invoker);
    return OutputFile(request, std::move(fd), true, true);
  }
  if (errno != EEXIST) return std::unexpected(OpenError(errno, path));
  struct stat status{};
  if (stat(path.c_str(), &status) != 0) {
    return Fail(ErrorCode::kIo, "cannot write {}: it is a symbolic link to nowhere", path);
  }
  if (S_ISDIR(status.st_mode)) {
    return FailWithHint(ErrorCode::kIo, fmt::format("Name a file in it: -o {}/profile.html", path),
                        "cannot write {}: it is a directory", path);
  }
  const bool is_regular = S_ISREG(status.st_mode);
  if (is_regular && !force) {
    return FailWithHint(ErrorCode::kExists, "Choose another name, or add --force to overwrite it.",
                        "{} exists already ({} bytes)", path, status.st_size);
  }
  // A pipe or a device may not be opened for reading as well.
  fd.reset(::open(path.c_str(), (is_regular ? O_RDWR : O_WRONLY) | O_CLOEXEC));
  if (!fd.valid()) return std::unexpected(OpenError(errno, path));
  return OutputFile(request, std::move(fd), false, is_regular);
}

Result<void> OutputFile::Truncate() {
  if (is_regular_ && (ftruncate(fd_.get(), 0) != 0 || lseek(fd_.get(), 0, SEEK_SET) != 0)) {
    return FailErrno(errno, ErrorCode::kIo, "cannot truncate {}", request_.path);
  }
  return {};
}

Result<ScopedFd> OutputFile::OpenStream() const {
  ScopedFd stream(fcntl(fd_.get(), F_DUPFD_CLOEXEC, 3));
  if (!stream.valid()) {
    return FailErrno(errno, ErrorCode::kIo, "cannot duplicate the descriptor of {}", request_.path);
  }
  return stream;
}

Result<void> OutputFile::Fill(FunctionRef<Result<void>(write::Output&)> write) {
  if (auto truncated = Truncate(); !truncated) return truncated;
  FdOutput output(fd_.get());
  Result<void> done = write(output);
  if (done) done = output.Flush();
  // Network file systems report a full disk no sooner than at a close.
  if (done && is_regular_ && ::close(::dup(fd_.get())) != 0) {
    done = FailErrno(errno, ErrorCode::kIo, "writing failed");
  }
  if (!done) {
    if (output.closed() && request_.to_stdout()) return {};
    if (is_regular_) ::unlink(request_.path.c_str());
    Keep();
    return Wrap(done.error(), "{}", request_.to_stdout() ? "standard output" : request_.path);
  }
  Keep();
  return {};
}

Result<void> CopyFile(int from, write::Output& output) {
  std::array<char, 64 * 1024> buffer;
  off_t offset = 0;
  for (;;) {
    const ssize_t got = pread(from, buffer.data(), buffer.size(), offset);
    if (got == 0) return {};
    if (got < 0) {
      if (errno == EINTR) continue;
      return FailErrno(errno, ErrorCode::kUnreadable, "reading the recording back failed");
    }
    if (auto sent = output.Write({buffer.data(), static_cast<size_t>(got)}); !sent) return sent;
    offset += got;
  }
}

Result<std::string> KeepRecording(int fd, const std::vector<std::string>& directories,
                                  const std::string& name, const std::optional<Invoker>& invoker) {
  Error last{ErrorCode::kIo, "no place to keep the recording", {}};
  for (const std::string& directory : directories) {
    for (int attempt = 1; attempt < 1000; ++attempt) {
      const std::string suffix = attempt == 1 ? "" : fmt::format("-{}", attempt);
      const OutputRequest request{fmt::format("{}/{}{}.strobe", directory, name, suffix),
                                  write::Format::kStrobe};
      auto file = OutputFile::Open(request, false, invoker);
      if (!file) {
        last = file.error();
        if (last.code == ErrorCode::kExists) continue;
        break;
      }
      auto filled = file->Fill([fd](write::Output& output) { return CopyFile(fd, output); });
      if (filled) return request.path;
      last = filled.error();
      break;
    }
  }
  return Wrap(last, "the recording could not be kept anywhere");
}

std::vector<std::string> PlacesToKeep(const std::string& first, Environment environment) {
  std::vector<std::string> places;
  if (!first.empty()) places.push_back(DirectoryOf(first));
  if (const auto temporary = environment("TMPDIR"); temporary && !temporary->empty()) {
    places.push_back(*temporary);
  }
  places.insert(places.end(), {"/tmp", "/var/tmp", "."});
  if (const auto home = environment("HOME"); home && !home->empty()) places.push_back(*home);
  places.emplace_back("/dev/shm");
  return places;
}

}  // namespace pystrobe::cli
