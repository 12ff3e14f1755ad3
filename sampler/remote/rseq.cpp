// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/rseq.h"

#include <sched.h>

#include <thread>

#include "profiler/base/proc.h"

namespace pystrobe::remote {
namespace {

using pyabi::Memory;

constexpr int kTries = 10;
constexpr size_t kMaxThreads = 16;  // that are asked

struct RseqVariables {
  int64_t offset = 0;
  uint32_t size = 0;
};

/// Only the dynamic loader, or the executable of a static program, defines them; libc in between
/// imports them.
std::optional<RseqVariables> ReadVariables(const Memory& memory,
                                           const std::vector<native::Module>& modules) {
  for (const native::Module& module : modules) {
    auto offset = module.image.FindSymbol(memory, "__rseq_offset");
    auto size = module.image.FindSymbol(memory, "__rseq_size");
    if (!offset || !size) continue;
    auto offset_value = memory.Read<int64_t>(offset->address);
    auto size_value = memory.Read<uint32_t>(size->address);
    if (offset_value && size_value) return RseqVariables{*offset_value, *size_value};
  }
  return std::nullopt;
}

/// The first fields of struct rseq.
struct RseqHead {
  uint32_t cpu_id_start, cpu_id;
};

enum class Agreement { kYes, kNo, kImpossible, kUnknown };

/// Compares one thread's rseq with the kernel's own record, read before and after.
Agreement Compare(pid_t pid, const Memory& memory, const PyThread& thread, int64_t offset) {
  auto before = ReadTaskStat(pid, thread.tid);
  auto rseq = memory.Read<RseqHead>(thread.pthread + static_cast<uint64_t>(offset));
  auto after = ReadTaskStat(pid, thread.tid);
  if (!before || !after) return Agreement::kUnknown;
  if (!rseq || rseq->cpu_id >= CPU_SETSIZE) return Agreement::kImpossible;
  if (before->processor != after->processor) return Agreement::kUnknown;
  if (static_cast<int>(rseq->cpu_id) == before->processor) return Agreement::kYes;
  // One that was moved while it slept in the kernel differs until it runs user code again.
  return before->state == 'R' && after->state == 'R' ? Agreement::kNo : Agreement::kUnknown;
}

}  // namespace

RseqFinding FindRseq(pid_t pid, const Memory& memory, const std::vector<native::Module>& modules,
                     std::span<const PyThread> threads) {
  auto variables = ReadVariables(memory, modules);
  if (!variables) return {{}, "its C library has no rseq (glibc before 2.35, musl, or static)"};
  if (variables->size == 0) {
    return {{}, "its C library did not register rseq (switched off by GLIBC_TUNABLES, or refused)"};
  }
  size_t agreed = 0, differed = 0;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    agreed = differed = 0;
    size_t asked = 0;
    for (const PyThread& thread : threads) {
      if (thread.tid == 0) continue;
      if (asked++ == kMaxThreads) break;
      switch (Compare(pid, memory, thread, variables->offset)) {
        case Agreement::kYes:
          ++agreed;
          break;
        case Agreement::kNo:
          ++differed;
          break;
        case Agreement::kUnknown:
          break;
        case Agreement::kImpossible:
          return {{},
                  fmt::format("thread {} has no rseq area at offset {}", thread.tid,
                              variables->offset)};
      }
    }
    if (differed == 0 || agreed > differed) return {variables->offset, {}};
  }
  return {{},
          fmt::format("rseq and /proc disagree on the CPU of {} of {} threads", differed,
                      agreed + differed)};
}

}  // namespace pystrobe::remote
