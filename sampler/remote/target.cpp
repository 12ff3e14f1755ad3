// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/target.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "profiler/base/proc.h"
#include "sampler/remote/find_runtime.h"
#include "sampler/remote/identify.h"
#include "sampler/remote/memory_scan.h"
#include "sampler/remote/permission.h"
#include "sampler/remote/rseq.h"
#include "sampler/remote/thread_ids.h"
#include "sampler/remote/thread_list.h"
#include "sampler/remote/verify.h"

namespace pystrobe::remote {
namespace {

using pyabi::Layout;
using pyabi::Memory;

/// A process that execs while it is opened is looked at again, this often.
constexpr int kOpenTries = 3;
constexpr int kListTries = 50;

std::unexpected<Error> Refused(pid_t pid, std::string what, int error_number) {
  if (error_number == ESRCH || error_number == ENOENT) {
    return Fail(ErrorCode::kExited, "process {} ended while it was looked at", pid);
  }
  // Sandboxes that forbid a system call answer with either of the latter two.
  if (error_number == EACCES || error_number == EPERM || error_number == ENOSYS) {
    return std::unexpected(ExplainRefusal(pid, std::move(what), error_number));
  }
  return FailErrno(error_number, ErrorCode::kUnreadable, "{}", what);
}

std::unexpected<Error> Refused(pid_t pid, std::string what, const Error& error) {
  if (error.code == ErrorCode::kPermission) return Refused(pid, std::move(what), EACCES);
  if (error.code == ErrorCode::kNotFound) return Refused(pid, std::move(what), ENOENT);
  if (error.code == ErrorCode::kExited) return Refused(pid, std::move(what), ESRCH);
  return std::unexpected(error);
}

/// What is true of a process before anything is known of its Python.
struct Program {
  uint64_t start_ticks = 0;
  std::string executable;
  std::vector<Mapping> mappings;
  ScopedFd address_space;
};

Result<Program> OpenProgram(pid_t pid) {
  if (auto error = WhyNoProgram(pid)) return std::unexpected(std::move(*error));
  Program program;
  auto stat = ReadTaskStat(pid, pid);
  if (!stat) return Refused(pid, "reading its status", stat.error());
  program.start_ticks = stat->start_ticks;
  auto address_space = OpenForReading(fmt::format("/proc/{}/mem", pid));
  if (!address_space) {
    return Refused(pid, fmt::format("opening /proc/{}/mem", pid), address_space.error());
  }
  program.address_space = std::move(*address_space);
  auto mappings = ReadMaps(pid);
  if (!mappings) return Refused(pid, fmt::format("reading /proc/{}/maps", pid), mappings.error());
  program.mappings = std::move(*mappings);
  auto executable = ReadLink(fmt::format("/proc/{}/exe", pid));
  if (!executable) {
    return Refused(pid, fmt::format("reading the link /proc/{}/exe", pid), executable.error());
  }
  program.executable = std::move(*executable);
  if (program.executable.ends_with(kDeletedSuffix)) {
    program.executable.resize(program.executable.size() - kDeletedSuffix.size());
  }
  if (auto error = WhyForeign(pid, program.executable)) return std::unexpected(std::move(*error));
  // Reading memory has a rule of its own (seccomp): try it before anything is concluded from it.
  for (const Mapping& mapping : program.mappings) {
    if (!mapping.readable || !mapping.path.starts_with('/')) continue;
    char byte = 0;
    pyabi::ReadRequest request{mapping.start, &byte, 1};
    int error_number = ProcessMemory(pid).TryReadAll({&request, 1});
    if (error_number == 0) return program;
    if (error_number != EFAULT) return Refused(pid, "process_vm_readv", error_number);
  }
  if (program.mappings.empty()) return Refused(pid, "", ESRCH);
  return program;
}

bool Lives(const AddressSpace& address_space, Address anywhere) {
  return address_space.Read<char>(anywhere).has_value();
}

/// The layouts that may describe the interpreter at `candidate`: its own debug offsets when it has
/// them, else the table of its release.
Result<Layout> FindLayout(const SymbolFinder& symbols, const RuntimeCandidate& candidate) {
  const Memory& memory = symbols.memory();
  std::vector<std::byte> head(kDebugOffsetsCookie.size());
  if (!memory.Read(candidate.runtime, head.data(), head.size())) {
    return Fail(ErrorCode::kUnreadable, "_PyRuntime at {:#x} is unreadable", candidate.runtime);
  }
  if (std::memcmp(head.data(), kDebugOffsetsCookie.data(), head.size()) == 0) {
    head.resize(pyabi::kDebugOffsetsSize);
    if (!memory.Read(candidate.runtime, head.data(), head.size())) {
      return Fail(ErrorCode::kUnreadable, "_PyRuntime at {:#x} is cut off", candidate.runtime);
    }
    return pyabi::LayoutFromDebugOffsets(head);
  }
  auto version = FindVersion(symbols, *candidate.module);
  if (!version) {
    return Fail(ErrorCode::kUnsupported, "the version of the Python in {} could not be found",
                candidate.module->path);
  }
  return pyabi::LayoutFromTable(*version);
}

Result<TargetInfo> TryCandidate(const SymbolFinder& symbols, const RuntimeCandidate& candidate,
                                ThreadIds& ids) {
  auto layout = FindLayout(symbols, candidate);
  if (!layout) return std::unexpected(layout.error());
  auto code_type = symbols.Find(*candidate.module, "PyCode_Type");
  auto verified = VerifyLayout(symbols.memory(), *layout, candidate.runtime, code_type, ids);
  if (!verified) {
    if (verified.error().code != ErrorCode::kUnsupported) return std::unexpected(verified.error());
    return Wrap(verified.error(),
                "Python {} was found ({} in {}), but its memory is not laid out as "
                "that release is known to be",
                layout->version.ToString(), candidate.found_by, candidate.module->path);
  }
  if (verified->code_type == 0) {  // no symbol, and no frame to lead to one
    code_type = ScanForType(symbols.memory(), *layout, *candidate.module, "code");
    verified->code_type = code_type.value_or(0);
  }
  if (verified->code_type == 0) {
    return Fail(ErrorCode::kUnsupported,
                "Python {} was found in {}, but not its type of code objects",
                layout->version.ToString(), candidate.module->path);
  }
  TargetInfo info;
  info.python_file = candidate.module->path;
  info.python_file_deleted = candidate.module->deleted;
  info.layout = std::move(*layout);
  if (info.layout.version.micro == 0) {
    // In a program that has just begun, the banner may have been written only now.
    if (auto version = FindVersion(symbols, *candidate.module)) info.layout.version = *version;
  }
  info.runtime = candidate.runtime;
  info.code_type = verified->code_type;
  info.found_by = candidate.found_by;
  return info;
}

Result<TargetInfo> FindInterpreter(pid_t pid, const Memory& memory, const Program& program,
                                   const std::vector<native::Module>& modules, ThreadIds& ids) {
  SymbolFinder symbols(pid, memory, modules, program.executable);
  std::vector<RuntimeCandidate> candidates = FindRuntimes(symbols);
  if (candidates.empty()) candidates = ScanForRuntimes(symbols);
  if (candidates.empty()) {
    return std::unexpected(WhyNotPython(pid, memory, program.executable, modules));
  }
  std::optional<Error> first_error;
  for (const RuntimeCandidate& candidate : candidates) {
    auto info = TryCandidate(symbols, candidate, ids);
    if (info) return info;
    if (!first_error) first_error = info.error();
  }
  return Wrap(*first_error, "process {}", pid);
}

}  // namespace

Target::Target(TargetInfo info, ProcessMemory memory, AddressSpace address_space,
               std::unique_ptr<ThreadIds> ids)
    : info_(std::move(info)),
      memory_(memory),
      address_space_(std::move(address_space)),
      ids_(std::move(ids)) {}
Target::Target(Target&&) noexcept = default;
Target& Target::operator=(Target&&) noexcept = default;
Target::~Target() = default;

Result<Target> Target::Open(pid_t pid) {
  for (int attempt = 1;; ++attempt) {
    auto program = OpenProgram(pid);
    if (!program) return std::unexpected(program.error());
    ProcessMemory memory(pid);
    auto ids = std::make_unique<ThreadIds>(pid);
    std::vector<native::Module> modules = native::FindModules(memory, program->mappings);
    auto info = FindInterpreter(pid, memory, *program, modules, *ids);
    Address anywhere = program->mappings.front().start;
    for (const Mapping& mapping : program->mappings) {
      if (mapping.readable && mapping.path == program->executable) anywhere = mapping.start;
    }
    AddressSpace address_space(std::move(program->address_space));
    if (!Lives(address_space, anywhere)) {
      if (auto error = WhyNoProgram(pid)) {
        return Fail(ErrorCode::kExited, "process {} ended while it was looked at", pid);
      }
      if (attempt < kOpenTries) continue;
      return Fail(ErrorCode::kExited, "process {} keeps executing other programs", pid);
    }
    if (!info) return std::unexpected(info.error());
    info->pid = pid;
    info->start_ticks = program->start_ticks;
    info->executable = program->executable;
    info->command = ReadCommandLine(pid);
    Target target(std::move(*info), memory, std::move(address_space), std::move(ids));
    auto threads = target.ListThreads();
    if (!threads) return std::unexpected(threads.error());
    RseqFinding rseq = FindRseq(pid, memory, modules, threads->threads);
    target.info_.rseq_offset = rseq.offset;
    target.info_.rseq_reason = std::move(rseq.reason);
    return target;
  }
}

Result<ThreadStates> Target::ListThreads() const {
  Error last{ErrorCode::kUnreadable, "", ""};
  for (int attempt = 0; attempt < kListTries; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    if (!StillThere()) return Fail(ErrorCode::kExited, "process {} has ended", info_.pid);
    auto states = ReadThreadStates(memory_, info_.layout, info_.runtime);
    if (!states) {
      last = states.error();
      continue;
    }
    if (auto done = ids_->Resolve(memory_, info_.layout, states->threads); !done) {
      return std::unexpected(done.error());
    }
    return states;
  }
  return Wrap(last, "the list of threads of process {} made no sense {} times", info_.pid,
              kListTries);
}

bool Target::StillThere() const { return Lives(address_space_, info_.runtime); }

}  // namespace pystrobe::remote
