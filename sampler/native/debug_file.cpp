// SPDX-License-Identifier: Apache-2.0
#include "sampler/native/debug_file.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "profiler/base/proc.h"
#include "profiler/base/scoped_fd.h"
#include "sampler/native/elf_file.h"

namespace pystrobe::native {
namespace {

std::string_view BuildIdOf(Dwfl_Module* module) {
  const unsigned char* bits = nullptr;
  GElf_Addr address = 0;
  const int size = dwfl_module_build_id(module, &bits, &address);
  if (size <= 0) return {};
  return {reinterpret_cast<const char*>(bits), static_cast<size_t>(size)};
}

// All of a file has to be read for its checksum. A larger one, or none that ends, is not waited
// for.
constexpr off_t kMostToRead = off_t{1} << 30;

/// As in .gnu_debuglink: the CRC-32 of zlib. Nullopt where it cannot be read, or not in good time.
std::optional<GElf_Word> ChecksumOf(int fd) {
  struct stat info{};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  if (info.st_size > kMostToRead) return std::nullopt;
  std::array<unsigned char, 1 << 16> part;
  uLong checksum = crc32(0, nullptr, 0);
  for (ssize_t size; (size = read(fd, part.data(), part.size())) != 0;) {
    if (size < 0) return std::nullopt;
    checksum = crc32(checksum, part.data(), static_cast<uInt>(size));
  }
  return static_cast<GElf_Word>(checksum);
}

/// Opens it if it was made with the binary.
ScopedFd OpenIfOf(const std::string& path, std::string_view build_id, GElf_Word checksum) {
  if (!build_id.empty()) {
    auto file = ElfFile::Open(path);
    return file && file->BuildId() == build_id ? std::move(*file).TakeFd() : ScopedFd();
  }
  auto fd = OpenForReading(path);
  return fd && ChecksumOf(fd->get()) == checksum ? *std::move(fd) : ScopedFd();
}

std::vector<std::string> PlacesOf(const std::filesystem::path& binary, const char* link) {
  const std::filesystem::path directory = binary.parent_path();
  return {directory / link, directory / ".debug" / link,
          std::filesystem::path("/usr/lib/debug") / directory.relative_path() / link};
}

}  // namespace

int FindDebugFile(Dwfl_Module* module, void** userdata, const char* name, Dwarf_Addr base,
                  const char* file, const char* link, GElf_Word link_checksum, char** found) {
  const int by_id =
      dwfl_build_id_find_debuginfo(module, userdata, name, base, file, link, link_checksum, found);
  if (by_id >= 0 || file == nullptr || link == nullptr) return by_id;
  const std::string_view build_id = BuildIdOf(module);
  for (const std::string& path : PlacesOf(file, link)) {
    std::error_code unknown;
    if (std::filesystem::equivalent(path, file, unknown)) continue;  // often both have one name
    ScopedFd fd = OpenIfOf(path, build_id, link_checksum);
    if (!fd.valid()) continue;
    *found = strdup(path.c_str());
    return fd.release();
  }
  return -1;
}

}  // namespace pystrobe::native
