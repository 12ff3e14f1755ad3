// SPDX-License-Identifier: Apache-2.0
#include "cli/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "cli/message.h"
#include "profiler/write/fd_output.h"

namespace pystrobe::cli {
namespace {

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
  if (!is_regular_) return;
  std::error_code error;
  real_path_ = std::filesystem::canonical(request_.path, error);
  if (error) real_path_ = request_.path;
  if (created) unkept_ = UnkeptFile(real_path_, fd_.get());
}

Result<OutputFile> OutputFile::Open(const OutputRequest& request, bool force,
                                    const std::optional<Invoker>& invoker) {
  if (request.to_stdout()) return OpenStandardOutput(request);
  ScopedFd fd(::open(request.path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (fd.valid()) {
    GiveTo(fd.get(), invoker);
    return OutputFile(request, std::move(fd), true, true);
  }
  if (errno != EEXIST) return std::unexpected(OpenError(errno, request.path));
  return OpenExisting(request, force);
}

Result<OutputFile> OutputFile::OpenStandardOutput(const OutputRequest& request) {
  if (write::IsBinary(request.format) && isatty(STDOUT_FILENO) == 1) {
    return FailWithHint(ErrorCode::kInvalidArgument, "Name a file with -o, or redirect: > FILE",
                        "{} is binary, and standard output is a terminal",
                        write::FormatName(request.format));
  }
  if (!IsWritable(STDOUT_FILENO)) {
    return FailWithHint(ErrorCode::kIo, "Name a file with -o, or redirect: > FILE",
                        "cannot write {} to standard output: it is closed",
                        write::FormatName(request.format));
  }
  ScopedFd fd(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  if (!fd.valid()) return FailErrno(errno, ErrorCode::kIo, "cannot write to standard output");
  return OutputFile(request, std::move(fd), false, false);
}

Result<OutputFile> OutputFile::OpenExisting(const OutputRequest& request, bool force) {
  const std::string& path = request.path;
  struct stat status{};
  if (stat(path.c_str(), &status) != 0) {
    return Fail(ErrorCode::kIo, "cannot write {}: it is a symbolic link to nowhere", path);
  }
  if (S_ISDIR(status.st_mode)) {
    return FailWithHint(ErrorCode::kIo, fmt::format("Name a file in it: -o {}/profile.html", path),
                        "cannot write {}: it is a directory", path);
  }
  const bool is_regular = S_ISREG(status.st_mode);
  if (is_regular && !force && status.st_size > 0) {
    return FailWithHint(ErrorCode::kExists, "Choose another name, or add --force to overwrite it.",
                        "{} exists already ({} bytes)", path, status.st_size);
  }
  // A pipe or a device may not be opened for reading as well, and may keep a writer waiting for a
  // reader that never comes.
  const int how = is_regular ? O_RDWR : O_WRONLY | O_NONBLOCK;
  ScopedFd fd(::open(path.c_str(), how | O_CLOEXEC));
  if (!fd.valid() && errno == ENXIO && S_ISFIFO(status.st_mode)) {
    return FailWithHint(ErrorCode::kIo, fmt::format("Start its reader first: cat {} &", path),
                        "cannot write {}: it is a pipe that nobody reads", path);
  }
  if (!fd.valid()) return std::unexpected(OpenError(errno, path));
  if (!is_regular) fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
  return OutputFile(request, std::move(fd), false, is_regular);
}

Result<void> OutputFile::Lock() const {
  // A file system without locks has none to tell of.
  if (!is_regular_ || flock(fd_.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return {};
  return FailWithHint(ErrorCode::kExists, "Name another file, or wait until that one is done.",
                      "{} is being written by another process", request_.path);
}

Result<ScopedFd> OutputFile::OpenStream() const {
  ScopedFd stream(fcntl(fd_.get(), F_DUPFD_CLOEXEC, 3));
  if (!stream.valid()) {
    return FailErrno(errno, ErrorCode::kIo, "cannot duplicate the descriptor of {}", request_.path);
  }
  return stream;
}

Place OutputFile::FindPlace() const {
  return is_regular_ ? PlaceOf(real_path_.c_str(), Identity()) : Place::kOurs;
}

Result<void> OutputFile::Fill(Writing write) {
  auto replacement =
      is_regular_ ? Replacement::Beside(real_path_, fd_.get()) : std::optional<Replacement>();
  Result<void> done = RefuseAnother();
  if (done) {
    done = replacement ? FillReplacement(*std::move(replacement), write) : FillInPlace(write);
  }
  if (done) {
    Keep();
    return {};
  }
  unkept_ = UnkeptFile();  // removes what we created
  return Wrap(done.error(), "{}", request_.Name());
}

Result<void> OutputFile::FillReplacement(Replacement replacement, Writing write) {
  if (auto done = FillDescriptor(replacement.fd(), write); !done) return done;
  // Again: writing takes seconds.
  if (auto ours = RefuseAnother(); !ours) return ours;
  if (replacement.TakePlace()) return {};
  return FillInPlace(
      [&](write::Output& output) { return write::CopyFile(replacement.fd(), output); });
}

Result<void> OutputFile::FillInPlace(Writing write) {
  if (auto ours = RefuseLost(); !ours) return ours;
  if (is_regular_ && (ftruncate(fd_.get(), 0) != 0 || lseek(fd_.get(), 0, SEEK_SET) != 0)) {
    return FailErrno(errno, ErrorCode::kIo, "cannot be truncated");
  }
  auto done = FillDescriptor(fd_.get(), write);
  const Result<void> ours = RefuseLost();
  if (done) done = ours;
  if (done || !is_regular_) return done;
  // Half a file is worse than none.
  if (!ours || ::unlink(real_path_.c_str()) != 0) (void)!ftruncate(fd_.get(), 0);
  return done;
}

Result<void> OutputFile::RefuseAnother() const {
  if (FindPlace() != Place::kAnother) return {};
  return Fail(ErrorCode::kIo, "another file took its place meanwhile, and is left as it is");
}

Result<void> OutputFile::RefuseLost() const {
  if (FindPlace() != Place::kNothing) return RefuseAnother();
  return Fail(ErrorCode::kIo, "it was removed before it was written");
}

Result<void> OutputFile::FillDescriptor(int fd, Writing write) const {
  write::FdOutput output(fd);
  Result<void> done = write(output);
  if (done) done = output.Flush();
  // Network file systems report a full disk no sooner than at a close. (With too many files open
  // there is no second descriptor to close.)
  const int second = done && is_regular_ ? ::dup(fd) : -1;
  if (second >= 0 && ::close(second) != 0) {
    done = FailErrno(errno, ErrorCode::kIo, "writing failed");
  }
  if (!done && output.closed() && request_.to_stdout()) return {};
  return done;
}

Result<std::vector<OutputFile>> OpenOutputs(const std::vector<OutputRequest>& requests, bool force,
                                            const std::optional<Invoker>& invoker,
                                            const std::string& input) {
  struct stat status{};
  const bool has_input = !input.empty() && stat(input.c_str(), &status) == 0;
  std::vector<OutputFile> outputs;
  for (const OutputRequest& request : requests) {
    auto output = OutputFile::Open(request, force, invoker);
    if (!output) return std::unexpected(output.error());
    if (has_input && output->Identity() == FileIdentity{status.st_dev, status.st_ino}) {
      return FailWithHint(ErrorCode::kInvalidArgument, "Name another file.",
                          "-o {} is the recording itself, and would overwrite it", request.path);
    }
    for (const OutputFile& other : outputs) {
      if (!output->is_regular() || output->Identity() != other.Identity()) continue;
      return FailWithHint(ErrorCode::kInvalidArgument, "Name two files.",
                          "-o {} and -o {} are one file", other.request().path, request.path);
    }
    if (auto locked = output->Lock(); !locked) return std::unexpected(locked.error());
    outputs.push_back(*std::move(output));
  }
  return outputs;
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
      auto filled = file->Fill([fd](write::Output& output) { return write::CopyFile(fd, output); });
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
