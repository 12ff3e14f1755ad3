// SPDX-License-Identifier: Apache-2.0
//
// Who really started us: under sudo, files belong to the invoking user and `run` starts the program
// as that user.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "profiler/base/environment.h"

namespace pystrobe::cli {

struct Invoker {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string name;           ///< empty when the user database does not know the uid
  std::string home;           ///< likewise
  std::vector<gid_t> groups;  ///< supplementary ones, never empty
};

/// The user behind sudo, from SUDO_UID and SUDO_GID. Nothing when we do not run as root, not under
/// sudo, or root used sudo.
std::optional<Invoker> FindInvoker(uid_t effective_uid, Environment environment);

}  // namespace pystrobe::cli
