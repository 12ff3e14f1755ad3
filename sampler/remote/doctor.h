// SPDX-License-Identifier: Apache-2.0
//
// Everything that could stop or hamper sampling, checked one by one and explained: `pystrobe
// doctor`.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pystrobe::remote {

enum class CheckState {
  kOk,
  kWarn,  ///< works, but worse or only in part
  kFail,  ///< stops sampling
};
std::string_view CheckStateName(CheckState state);  ///< "ok", "warn", "fail"

struct Check {
  std::string name = {};  ///< two or three words, the same on every run
  CheckState state = CheckState::kOk;
  std::string seen = {};     ///< the value found
  std::string meaning = {};  ///< what follows from it; empty when there is nothing to say
  std::string cure = {};     ///< what to do; empty when nothing needs to be; may be several lines
};

/// Checks of this machine and of ourselves, then, with a pid, of that process. Starts one
/// short-lived child of ours to try a read on; takes some milliseconds. Never fails: what cannot be
/// found out is a check that says so. [one thread at a time]
std::vector<Check> RunChecks(std::optional<pid_t> pid);

/// The two halves of RunChecks.
std::vector<Check> CheckMachine();
std::vector<Check> CheckProcess(pid_t pid);

/// Of CheckMachine: whether programs here can use an NVIDIA GPU; nothing where there is no driver.
/// `root`: what stands before the paths that are looked at.
std::optional<Check> CheckGpu(const std::string& root = {});

}  // namespace pystrobe::remote
