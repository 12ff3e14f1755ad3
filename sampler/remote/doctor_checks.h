// SPDX-License-Identifier: Apache-2.0
//
// Checks of the doctor by the value found: what it says of machines and processes that are not at
// hand can be seen, too. [any thread]
#pragma once

#include <sys/utsname.h>

#include "sampler/remote/doctor.h"
#include "sampler/remote/target.h"

namespace pystrobe::remote {

Check CheckKernel(const utsname& name);
/// `microseconds`: for 4 KiB of another process.
Check CheckReadingTime(double microseconds);
/// `root`: what stands before the path of the setting.
Check CheckYama(bool privileged, const std::string& root = {});
/// `usable`: by us, of those that are online.
Check CheckCpuCount(int usable, long online);
Check CheckPriority(bool may_be_raised);

/// `tracer`: as TracerOf().
Check CheckTracer(const std::string& tracer);
Check CheckRseq(const TargetInfo& info);
Check CheckScheduling(pid_t pid, size_t real_time_threads);

}  // namespace pystrobe::remote
