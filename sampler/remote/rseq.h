// SPDX-License-Identifier: Apache-2.0
//
// Where the target's C library keeps each thread's `struct rseq`, in which the kernel writes the
// CPU before user code runs there. [any thread]
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sampler/native/elf_image.h"
#include "sampler/remote/target.h"

namespace pystrobe::remote {

/// Offset of rseq_abi::cpu_id (linux/rseq.h).
inline constexpr uint32_t kRseqCpuId = 4;

struct RseqFinding {
  std::optional<int64_t> offset;  ///< from pthread_self to struct rseq, when it can be relied on
  std::string reason;             ///< why there is none; empty when there is one
};

/// Reads the target's own __rseq_offset and __rseq_size (glibc 2.35+) and compares what the
/// threads' rseq areas say with /proc: every cpu_id must be a CPU of this machine, and those of
/// running threads must be the CPU that the kernel says they run on.
RseqFinding FindRseq(pid_t pid, const pyabi::Memory& memory,
                     const std::vector<native::Module>& modules, std::span<const PyThread> threads);

}  // namespace pystrobe::remote
