// SPDX-License-Identifier: Apache-2.0
#include "profiler/base/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>

#include "profiler/base/descriptors.h"

namespace pystrobe {
namespace {

/// Cuts `text` up to the first `separator` off its front. Without one, takes all of it.
std::string_view TakeUntil(std::string_view& text, char separator) {
  size_t end = text.find(separator);
  std::string_view head = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return head;
}

void SkipBlanks(std::string_view& text) {
  size_t start = text.find_first_not_of(" \t");
  text.remove_prefix(start == std::string_view::npos ? text.size() : start);
}

/// The next word, without the blanks around it; empty at the end.
std::string_view TakeWord(std::string_view& text) {
  SkipBlanks(text);
  size_t end = text.find_first_of(" \t\n");
  std::string_view word = text.substr(0, end);
  text.remove_prefix(word.size());
  return word;
}

template <typename T>
bool ParseNumber(std::string_view text, T& value, int base = 10) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

template <typename T>
T NumberOr(std::string_view text, T otherwise, int base = 10) {
  T value{};
  return ParseNumber(text, value, base) ? value : otherwise;
}

/// Undoes the kernel's escaping of newlines in paths: a backslash and three octal digits.
std::string Unescape(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    uint8_t byte = 0;
    if (text[i] == '\\' && i + 3 < text.size() && ParseNumber(text.substr(i + 1, 3), byte, 8)) {
      result.push_back(static_cast<char>(byte));
      i += 3;
    } else {
      result.push_back(text[i]);
    }
  }
  return result;
}

std::optional<Mapping> ParseMapping(std::string_view line) {
  Mapping mapping;
  std::string_view range = TakeWord(line);
  std::string_view start = TakeUntil(range, '-');
  std::string_view access = TakeWord(line);
  std::string_view offset = TakeWord(line);
  TakeWord(line);  // device
  std::string_view inode = TakeWord(line);
  if (!ParseNumber(start, mapping.start, 16) || !ParseNumber(range, mapping.end, 16) ||
      !ParseNumber(offset, mapping.offset, 16) || !ParseNumber(inode, mapping.inode) ||
      access.size() < 4 || mapping.end < mapping.start) {
    return std::nullopt;
  }
  mapping.readable = access[0] == 'r';
  mapping.writable = access[1] == 'w';
  mapping.executable = access[2] == 'x';
  SkipBlanks(line);
  mapping.deleted = line.ends_with(kDeletedSuffix);
  if (mapping.deleted) line.remove_suffix(kDeletedSuffix.size());
  mapping.path = Unescape(line);
  return mapping;
}

/// Field `index` of the fields behind the name in a stat file: 0 is the state (field 3 of proc(5)).
constexpr size_t kState = 0, kParent = 1, kFlags = 6, kUserTicks = 11, kSystemTicks = 12,
                 kChildUserTicks = 13, kChildSystemTicks = 14, kStartTicks = 19, kProcessor = 36;

}  // namespace

std::vector<Mapping> ParseMaps(std::string_view text) {
  std::vector<Mapping> mappings;
  while (!text.empty()) {
    if (auto mapping = ParseMapping(TakeUntil(text, '\n'))) mappings.push_back(std::move(*mapping));
  }
  return mappings;
}

Result<std::vector<Mapping>> ReadMaps(pid_t pid) {
  auto text = ReadSmallFile(fmt::format("/proc/{}/maps", pid));
  if (!text) return std::unexpected(text.error());
  return ParseMaps(*text);
}

std::optional<TaskStat> ParseTaskStat(std::string_view text) {
  // The name may hold brackets and blanks, so the fields are counted from the last bracket.
  size_t name_start = text.find('('), name_end = text.rfind(')');
  if (name_start == std::string_view::npos || name_end == std::string_view::npos) {
    return std::nullopt;
  }
  TaskStat stat;
  if (name_end > name_start) stat.name = text.substr(name_start + 1, name_end - name_start - 1);
  text.remove_prefix(name_end + 1);
  std::array<std::string_view, kProcessor + 1> fields;
  for (std::string_view& field : fields) field = TakeWord(text);
  uint64_t flags = 0, child_user_ticks = 0, child_system_ticks = 0;
  if (fields[kState].size() != 1 || !ParseNumber(fields[kParent], stat.parent) ||
      !ParseNumber(fields[kFlags], flags) || !ParseNumber(fields[kUserTicks], stat.user_ticks) ||
      !ParseNumber(fields[kSystemTicks], stat.system_ticks) ||
      !ParseNumber(fields[kChildUserTicks], child_user_ticks) ||
      !ParseNumber(fields[kChildSystemTicks], child_system_ticks) ||
      !ParseNumber(fields[kStartTicks], stat.start_ticks) ||
      !ParseNumber(fields[kProcessor], stat.processor)) {
    return std::nullopt;
  }
  stat.child_ticks = child_user_ticks + child_system_ticks;
  stat.state = fields[kState][0];
  constexpr uint64_t kKernelThread = 0x00200000;  // PF_KTHREAD, include/linux/sched.h
  stat.is_kernel_thread = (flags & kKernelThread) != 0;
  return stat;
}

Result<TaskStat> ReadTaskStat(pid_t pid, pid_t tid) {
  std::string path = fmt::format("/proc/{}/task/{}/stat", pid, tid);
  auto text = ReadSmallFile(path);
  if (!text) return std::unexpected(text.error());
  auto stat = ParseTaskStat(*text);
  if (!stat) return Fail(ErrorCode::kUnreadable, "{} is not as expected: '{}'", path, *text);
  return *stat;
}

std::optional<SchedStat> ParseSchedStat(std::string_view text) {
  SchedStat stat;
  if (!ParseNumber(TakeWord(text), stat.cpu_ns) ||
      !ParseNumber(TakeWord(text), stat.run_delay_ns) ||
      !ParseNumber(TakeWord(text), stat.switches)) {
    return std::nullopt;
  }
  return stat;
}

ProcessStatus ParseStatus(std::string_view text) {
  ProcessStatus status;
  while (!text.empty()) {
    std::string_view line = TakeUntil(text, '\n');
    std::string_view key = TakeUntil(line, ':');
    if (key == "Uid") {
      status.real_uid = NumberOr(TakeWord(line), status.real_uid);
      status.effective_uid = NumberOr(TakeWord(line), status.effective_uid);
      status.saved_uid = NumberOr(TakeWord(line), status.saved_uid);
    } else if (key == "Gid") {
      status.real_gid = NumberOr(TakeWord(line), status.real_gid);
    } else if (key == "Tgid") {
      status.process = NumberOr(TakeWord(line), status.process);
    } else if (key == "TracerPid") {
      status.tracer = NumberOr(TakeWord(line), status.tracer);
    } else if (key == "Seccomp") {
      status.seccomp = NumberOr(TakeWord(line), status.seccomp);
    } else if (key == "CapEff") {
      status.effective_capabilities = NumberOr(TakeWord(line), uint64_t{0}, 16);
    } else if (key == "CapPrm") {
      status.permitted_capabilities = NumberOr(TakeWord(line), uint64_t{0}, 16);
    } else if (key == "Threads") {
      status.thread_count = NumberOr(TakeWord(line), status.thread_count);
    } else if (key == "NSpid") {
      for (std::string_view word = TakeWord(line); !word.empty(); word = TakeWord(line)) {
        if (pid_t pid = 0; ParseNumber(word, pid)) status.namespace_pids.push_back(pid);
      }
    }
  }
  return status;
}

Result<ProcessStatus> ReadStatus(pid_t pid) {
  auto text = ReadSmallFile(fmt::format("/proc/{}/status", pid));
  if (!text) return std::unexpected(text.error());
  return ParseStatus(*text);
}

Result<ProcessStatus> ReadTaskStatus(pid_t pid, pid_t tid) {
  auto text = ReadSmallFile(fmt::format("/proc/{}/task/{}/status", pid, tid));
  if (!text) return std::unexpected(text.error());
  return ParseStatus(*text);
}

Result<ScopedFd> OpenForReading(const std::string& path) {
  // Not blocking: a pipe in the place of a file would be waited for without end.
  ScopedFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd.valid()) return FailToOpen(errno, "opening", path);
  return fd;
}

std::string_view ReadInto(int fd, std::span<char> buffer) {
  const ssize_t length = pread(fd, buffer.data(), buffer.size(), 0);
  return {buffer.data(), length > 0 ? static_cast<size_t>(length) : 0};
}

Result<std::string> ReadSmallFile(const std::string& path) {
  auto fd = OpenForReading(path);
  if (!fd) return std::unexpected(fd.error());
  std::string text;
  size_t used = 0;
  while (true) {
    text.resize(std::max<size_t>(4096, used * 2));
    ssize_t got = read(fd->get(), text.data() + used, text.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FailErrno(errno, ErrorCode::kIo, "reading {}", path);
    used += static_cast<size_t>(got);
    if (got == 0) break;
  }
  text.resize(used);
  return text;
}

Result<std::string> ReadLink(const std::string& path) {
  std::string text(256, '\0');
  while (true) {
    ssize_t got = readlink(path.c_str(), text.data(), text.size());
    if (got < 0) return FailErrno(errno, ErrorCode::kIo, "reading the link {}", path);
    if (static_cast<size_t>(got) < text.size()) {
      text.resize(static_cast<size_t>(got));
      return text;
    }
    text.resize(text.size() * 2);
  }
}

Result<std::vector<pid_t>> ListTasks(pid_t pid) {
  std::string path = fmt::format("/proc/{}/task", pid);
  std::unique_ptr<DIR, decltype([](DIR* dir) { closedir(dir); })> dir(opendir(path.c_str()));
  if (!dir) {
    if (errno == ENOENT) return Fail(ErrorCode::kExited, "process {} is gone", pid);
    return FailToOpen(errno, "listing", path);
  }
  std::vector<pid_t> tids;
  while (const dirent* entry = readdir(dir.get())) {
    if (pid_t tid = 0; ParseNumber(std::string_view(entry->d_name), tid)) tids.push_back(tid);
  }
  if (tids.empty()) return Fail(ErrorCode::kExited, "process {} is gone", pid);
  std::sort(tids.begin(), tids.end());
  return tids;
}

std::vector<pid_t> ListChildren(pid_t pid) {
  std::vector<pid_t> children;
  const auto tasks = ListTasks(pid);
  if (!tasks) return children;
  for (const pid_t tid : *tasks) {
    const auto text = ReadSmallFile(fmt::format("/proc/{}/task/{}/children", pid, tid));
    if (!text) continue;
    std::string_view rest = *text;
    for (std::string_view word = TakeWord(rest); !word.empty(); word = TakeWord(rest)) {
      if (pid_t child = 0; ParseNumber(word, child)) children.push_back(child);
    }
  }
  std::sort(children.begin(), children.end());
  return children;
}

std::vector<std::string> ReadCommandLine(pid_t pid) {
  std::string text = ReadSmallFile(fmt::format("/proc/{}/cmdline", pid)).value_or("");
  std::vector<std::string> arguments;
  for (std::string_view rest = text; !rest.empty();) arguments.emplace_back(TakeUntil(rest, '\0'));
  return arguments;
}

}  // namespace pystrobe
