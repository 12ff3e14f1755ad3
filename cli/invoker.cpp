// SPDX-License-Identifier: Apache-2.0
#include "cli/invoker.h"

#include <grp.h>
#include <pwd.h>

#include <charconv>

namespace pystrobe::cli {
namespace {

std::optional<uint32_t> ParseId(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  uint32_t id = 0;
  const char* const end_of_text = text->data() + text->size();
  const auto [end, error] = std::from_chars(text->data(), end_of_text, id);
  if (error != std::errc() || end != end_of_text) return std::nullopt;
  return id;
}

std::vector<gid_t> GroupsOf(const std::string& name, gid_t gid) {
  int count = 64;
  std::vector<gid_t> groups(static_cast<size_t>(count));
  while (getgrouplist(name.c_str(), gid, groups.data(), &count) < 0) {
    groups.resize(static_cast<size_t>(count));
  }
  groups.resize(static_cast<size_t>(count));
  return groups;
}

}  // namespace

std::optional<Invoker> FindInvoker(uid_t effective_uid, Environment environment) {
  if (effective_uid != 0) return std::nullopt;
  const std::optional<uint32_t> uid = ParseId(environment("SUDO_UID"));
  const std::optional<uint32_t> gid = ParseId(environment("SUDO_GID"));
  if (!uid || !gid || *uid == 0) return std::nullopt;
  Invoker invoker{*uid, *gid, {}, {}, {*gid}};
  if (const passwd* entry = getpwuid(*uid); entry != nullptr) {
    invoker.name = entry->pw_name;
    invoker.home = entry->pw_dir;
    invoker.groups = GroupsOf(invoker.name, *gid);
  }
  return invoker;
}

}  // namespace pystrobe::cli
