// SPDX-License-Identifier: Apache-2.0
#include "gpu/library.h"

#include <dlfcn.h>
#include <link.h>

#include <utility>

namespace pystrobe::gpu {
namespace {

struct Search {
  std::string_view stem;
  std::string found;
};

int LookAt(dl_phdr_info* info, size_t, void* context) {
  auto& search = *static_cast<Search*>(context);
  const std::string_view path = info->dlpi_name;
  if (!path.substr(path.rfind('/') + 1).starts_with(search.stem)) return 0;
  search.found = path;
  return 1;
}

}  // namespace

std::string PathOfLoaded(std::string_view stem) {
  Search search{stem, {}};
  dl_iterate_phdr(LookAt, &search);
  return std::move(search.found);
}

Result<Library> Library::Open(std::string_view stem, std::span<const char* const> names) {
  if (std::string path = PathOfLoaded(stem); !path.empty()) {
    if (void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD)) {
      return Library(handle, std::move(path));
    }
  }
  std::string reason = "no name to look for";
  for (const char* const name : names) {
    if (void* const handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
      return Library(handle, PathOfLoaded(stem));
    }
    reason = dlerror();
  }
  return Fail(ErrorCode::kGpu, "{}", reason);
}

void* Library::Symbol(const char* name) const { return dlsym(handle_, name); }

}  // namespace pystrobe::gpu
