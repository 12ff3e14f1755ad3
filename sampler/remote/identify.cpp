// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/identify.h"

#include <elf.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "profiler/base/proc.h"
#include "sampler/remote/find_runtime.h"

namespace pystrobe::remote {
namespace {

constexpr std::string_view kListPythons =
    "`pgrep -af python` lists the Python programs that you can reach.";
constexpr std::string_view kSupported = "pystrobe knows CPython 3.8 to 3.15.";

std::string_view FileName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::optional<Elf64_Ehdr> ReadHeader(const std::string& path) {
  auto fd = OpenForReading(path);
  Elf64_Ehdr header{};
  if (!fd || read(fd->get(), &header, sizeof header) != sizeof header) return std::nullopt;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return std::nullopt;
  return header;
}

bool HasLivingThread(pid_t pid) {
  const auto tasks = ListTasks(pid);
  return tasks && std::ranges::any_of(*tasks, [pid](pid_t tid) {
           const auto stat = ReadTaskStat(pid, tid);
           return stat && stat->state != 'Z' && stat->state != 'X';
         });
}

/// The file that makes it a PyPy, or empty.
std::string FindPypy(const std::string& executable, const std::vector<native::Module>& modules) {
  if (FileName(executable).starts_with("pypy")) return executable;
  auto library = std::find_if(modules.begin(), modules.end(), [](const native::Module& module) {
    return module.file_name().starts_with("libpypy");
  });
  return library == modules.end() ? std::string() : library->path;
}

}  // namespace

std::optional<Error> WhyNoProc() {
  if (access("/proc/self/stat", R_OK) != 0) {
    return Error{ErrorCode::kNotFound, "/proc is not mounted here", "mount -t proc proc /proc"};
  }
  const auto self = ReadLink("/proc/self");
  if (!self || *self == std::to_string(getpid())) return std::nullopt;
  return Error{ErrorCode::kPermission,
               fmt::format("/proc is of another pid namespace: we are process {}, and there {}",
                           getpid(), *self),
               "Mount one for this namespace: mount -t proc proc /proc (unshare --mount-proc)."};
}

std::optional<Error> WhyNoProgram(pid_t pid) {
  if (auto error = WhyNoProc()) return error;
  auto stat =
      pid > 0 ? ReadTaskStat(pid, pid) : Result<TaskStat>(Fail(ErrorCode::kNotFound, "not a pid"));
  if (!stat) {
    if (stat.error().code == ErrorCode::kIo) return stat.error();
    if (pid > 0 && (kill(pid, 0) == 0 || errno == EPERM)) {
      return Error{ErrorCode::kPermission,
                   fmt::format("process {} exists, but /proc hides it from this user", pid),
                   "/proc is mounted with hidepid: run as root or as the user of the process."};
    }
    return Error{ErrorCode::kNotFound, fmt::format("there is no process {}", pid),
                 "A pid inside a container differs from the pid outside: `pgrep -af python` here "
                 "lists those you can reach."};
  }
  auto status = ReadStatus(pid);
  if (status && status->process != 0 && status->process != pid) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("{} is a thread ({}) of process {}", pid, stat->name, status->process),
                 fmt::format("Use {}: its threads are all sampled.", status->process)};
  }
  if (stat->state == 'Z' && HasLivingThread(pid)) {
    return Error{ErrorCode::kNotPython,
                 fmt::format("the main thread of process {} ({}) has ended while others run on",
                             pid, stat->name),
                 "The kernel then shows no memory of the process: it cannot be sampled."};
  }
  if (stat->state == 'Z' || stat->state == 'X') {
    return Error{ErrorCode::kNotPython,
                 fmt::format("process {} ({}) has ended; it is a zombie that its parent {} has not "
                             "waited for",
                             pid, stat->name, stat->parent),
                 "Nothing is left of it to sample. " + std::string(kListPythons)};
  }
  if (stat->is_kernel_thread) {
    return Error{ErrorCode::kNotPython,
                 fmt::format("process {} ({}) is a thread of the kernel", pid, stat->name),
                 std::string(kListPythons)};
  }
  return std::nullopt;
}

std::optional<Error> WhyForeign(pid_t pid, const std::string& executable) {
  auto header = ReadHeader(fmt::format("/proc/{}/exe", pid));
  if (!header) return std::nullopt;
  if (header->e_ident[EI_CLASS] != ELFCLASS64) {
    return Error{ErrorCode::kNotPython,
                 fmt::format("process {} is a 32-bit program ({})", pid, executable),
                 "Only 64-bit programs can be sampled."};
  }
  if (header->e_machine != EM_X86_64) {
    return Error{ErrorCode::kNotPython,
                 fmt::format("process {} is built for another processor ({}, ELF machine {})", pid,
                             executable, header->e_machine),
                 "Only programs for x86-64 can be sampled."};
  }
  return std::nullopt;
}

Error WhyNotPython(pid_t pid, const pyabi::Memory& memory, const std::string& executable,
                   const std::vector<native::Module>& modules) {
  if (std::string pypy = FindPypy(executable, modules); !pypy.empty()) {
    return {ErrorCode::kNotPython, fmt::format("process {} runs PyPy ({}), not CPython", pid, pypy),
            std::string(kSupported)};
  }
  for (const native::Module& module : modules) {
    if (!module.image.FindSymbol(memory, "Py_GetVersion")) continue;
    auto version = ParseFileName(module.file_name());
    return {ErrorCode::kUnsupported,
            fmt::format("process {} runs a Python without _PyRuntime ({}{})", pid, module.path,
                        version ? ", " + version->ToString() : ""),
            std::string(kSupported)};
  }
  std::string_view name = FileName(executable);
  Error error{ErrorCode::kNotPython,
              fmt::format("process {} runs {}; no Python interpreter was found in it ({} ELF files "
                          "searched)",
                          pid, executable, modules.size()),
              std::string(kListPythons)};
  if (name == "sh" || name == "bash" || name == "dash" || name == "sudo" || name == "env" ||
      name == "timeout" || name == "docker" || name == "tini") {
    error.hint = fmt::format(
        "It may have started the Python you mean: `pgrep -P {} -a` lists its "
        "children, attach to that one; or let a shell become Python: exec python3 ...",
        pid);
  }
  return error;
}

}  // namespace pystrobe::remote
