// SPDX-License-Identifier: Apache-2.0
//
// Errors as values. Everything below the Python binding returns Result<T>; nothing throws
// but for want of memory (no_memory.h).
//
// An Error tells a user what was tried and the value seen (`message`) and what to do about it
// (`hint`, may be empty). Three ways to handle one:
//
//   auto maps = ReadMaps(pid);
//   if (!maps) return std::unexpected(maps.error());            // pass it on
//   if (!maps) return Wrap(maps.error(), "attaching to {}", pid);  // pass it on with context
//   auto value = ReadMaps(pid).value_or({});                    // the failure is an answer too
//
// [any thread] Error is a plain value.
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace pystrobe {

/// What kind of failure it was; decides the exit code of the command line and the Python
/// exception type. The words for people are in Error::message.
enum class ErrorCode {
  kInvalidArgument,  ///< an option or value that cannot be accepted
  kNotFound,         ///< no such process, file or thread
  kPermission,       ///< the kernel or a policy refused
  kNotPython,        ///< the process runs no CPython that we can find
  kUnsupported,      ///< CPython, but a version or build that cannot be verified
  kUnreadable,       ///< memory or a file that could not be read although it was allowed
  kExited,           ///< the process ended meanwhile
  kCorrupt,          ///< a file that is not what it says
  kExists,           ///< refusing to overwrite
  kIo,               ///< writing failed
  kGpu,              ///< a GPU, its driver or one of its libraries is missing or refused
};

struct Error {
  ErrorCode code;
  std::string message;  ///< what was tried and what was seen, one line
  std::string hint;     ///< the cure; may be empty or several lines
};

template <typename T>
using Result = std::expected<T, Error>;

/// Builds the unexpected value of a Result: `return Fail(ErrorCode::kNotFound, "no process {}",
/// pid)`.
template <typename... Args>
[[nodiscard]] std::unexpected<Error> Fail(ErrorCode code, fmt::format_string<Args...> format,
                                          Args&&... args) {
  return std::unexpected(Error{code, fmt::format(format, std::forward<Args>(args)...), {}});
}

/// Fail() with a cure.
template <typename... Args>
[[nodiscard]] std::unexpected<Error> FailWithHint(ErrorCode code, std::string hint,
                                                  fmt::format_string<Args...> format,
                                                  Args&&... args) {
  return std::unexpected(
      Error{code, fmt::format(format, std::forward<Args>(args)...), std::move(hint)});
}

/// Fail() for a system call: appends strerror and picks the code from errno
/// (EPERM/EACCES -> kPermission, ENOENT -> kNotFound, ESRCH -> kExited, else `otherwise`).
template <typename... Args>
[[nodiscard]] std::unexpected<Error> FailErrno(int error_number, ErrorCode otherwise,
                                               fmt::format_string<Args...> format, Args&&... args) {
  ErrorCode code = otherwise;
  if (error_number == EPERM || error_number == EACCES) code = ErrorCode::kPermission;
  if (error_number == ENOENT) code = ErrorCode::kNotFound;
  if (error_number == ESRCH) code = ErrorCode::kExited;
  return std::unexpected(
      Error{code,
            fmt::format(format, std::forward<Args>(args)...) + ": " + std::strerror(error_number),
            {}});
}

/// Passes an error on with context before its message: "context: message".
template <typename... Args>
[[nodiscard]] std::unexpected<Error> Wrap(const Error& error, fmt::format_string<Args...> context,
                                          Args&&... args) {
  return std::unexpected(
      Error{error.code, fmt::format(context, std::forward<Args>(args)...) + ": " + error.message,
            error.hint});
}

}  // namespace pystrobe
