// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/target_facts.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <utility>

namespace pystrobe::remote {
namespace {

std::string HostName() {
  utsname name{};
  return uname(&name) == 0 ? name.nodename : "";
}

std::string VersionText(const pyabi::Layout& layout) {
  return layout.version.ToString() + (layout.free_threaded ? " free-threading build" : "");
}

}  // namespace

Metadata DescribeTarget(const Target& target, std::string pystrobe_version, Nanoseconds start) {
  Metadata metadata;
  metadata.pid = target.pid();
  metadata.command = target.info().command;
  metadata.executable = target.info().executable;
  metadata.python_version = VersionText(target.layout());
  metadata.host = HostName();
  metadata.pystrobe_version = std::move(pystrobe_version);
  metadata.start_unix_ns = (UnixNow() - (MonotonicNow() - start)).count();
  metadata.start_monotonic_ns = start.count();
  metadata.cpu_count = static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN));
  return metadata;
}

}  // namespace pystrobe::remote
