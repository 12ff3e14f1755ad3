// SPDX-License-Identifier: Apache-2.0
#include "sampler/native/elf_image.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "sampler/native/elf_file.h"
#include "sampler/remote/process_memory.h"

namespace pystrobe::native {
namespace {

/// Bytes of our own as somebody else's memory.
class Bytes final : public pyabi::Memory {
 public:
  static constexpr Address kBase = 0x10000;
  explicit Bytes(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  bool ReadAll(std::span<const pyabi::ReadRequest> requests) const override {
    for (const pyabi::ReadRequest& request : requests) {
      uint64_t offset = request.address - kBase;
      if (request.address < kBase || offset > bytes_.size() ||
          request.size > bytes_.size() - offset) {
        return false;
      }
      std::memcpy(request.into, bytes_.data() + offset, request.size);
    }
    return true;
  }

 private:
  std::vector<std::byte> bytes_;
};

std::vector<Module> OurModules(const remote::ProcessMemory& memory) {
  return FindModules(memory, ReadMaps(getpid()).value());
}

TEST(ElfImage, FindsWhatTheLoaderFinds) {
  remote::ProcessMemory memory(getpid());
  std::vector<Module> modules = OurModules(memory);
  for (const char* name :
       {"environ", "stdout", "_rtld_global", "__rseq_offset", "program_invocation_name"}) {
    auto expected = reinterpret_cast<Address>(dlsym(RTLD_DEFAULT, name));
    ASSERT_NE(expected, 0U) << name;
    bool found = std::any_of(modules.begin(), modules.end(), [&](const Module& module) {
      auto symbol = module.image.FindSymbol(memory, name);
      return symbol && symbol->address == expected;
    });
    EXPECT_TRUE(found) << name;
  }
}

TEST(ElfImage, WhatIsOnlyImportedOrNotThereIsNotFound) {
  remote::ProcessMemory memory(getpid());
  for (const Module& module : OurModules(memory)) {
    EXPECT_FALSE(module.image.FindSymbol(memory, "no_such_symbol_anywhere")) << module.path;
    EXPECT_FALSE(module.image.FindSymbol(memory, "")) << module.path;
  }
}

TEST(ElfImage, AnAddressInDataLiesInAWritableSegment) {
  static int variable = 1;
  remote::ProcessMemory memory(getpid());
  auto address = reinterpret_cast<Address>(&variable);
  size_t holders = 0;
  for (const Module& module : OurModules(memory)) {
    for (const AddressRange& range : module.image.writable()) holders += range.Contains(address);
  }
  EXPECT_EQ(holders, 1U);
}

TEST(ElfImage, DamagedHeadersAreRefused) {
  Elf64_Ehdr header{};
  auto read = [&](size_t size) {
    std::vector<std::byte> bytes(size);
    std::memcpy(bytes.data(), &header, std::min(size, sizeof header));
    return ElfImage::Read(Bytes(std::move(bytes)), Bytes::kBase);
  };
  EXPECT_FALSE(read(sizeof header));  // no magic
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS32;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_phentsize = sizeof(Elf64_Phdr);
  EXPECT_FALSE(read(sizeof header));
  header.e_ident[EI_CLASS] = ELFCLASS64;
  EXPECT_FALSE(read(sizeof header));  // no segments
  header.e_phnum = 3;
  header.e_phoff = 1U << 20;  // outside
  EXPECT_FALSE(read(sizeof header));
  header.e_phnum = 65535;
  EXPECT_FALSE(read(sizeof header));
  EXPECT_FALSE(read(10));
}

TEST(ElfImage, HashTablesThatLeadNowhereEnd) {
  // One segment holding everything, a dynamic section, and a hash table whose chain never ends.
  constexpr size_t kSize = 8192, kPhdr = 64, kDyn = 256, kHash = 512, kSym = 2048;
  std::vector<std::byte> bytes(kSize);
  auto put = [&](size_t at, const auto& value) { std::memcpy(&bytes[at], &value, sizeof value); };
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 2;
  header.e_phoff = kPhdr;
  put(0, header);
  put(kPhdr, Elf64_Phdr{.p_type = PT_LOAD,
                        .p_flags = PF_R,
                        .p_offset = 0,
                        .p_vaddr = 0,
                        .p_paddr = 0,
                        .p_filesz = kSize,
                        .p_memsz = kSize,
                        .p_align = 4096});
  put(kPhdr + sizeof(Elf64_Phdr), Elf64_Phdr{.p_type = PT_DYNAMIC,
                                             .p_flags = PF_R,
                                             .p_offset = kDyn,
                                             .p_vaddr = kDyn,
                                             .p_paddr = 0,
                                             .p_filesz = 64,
                                             .p_memsz = 64,
                                             .p_align = 8});
  std::array<Elf64_Dyn, 4> dynamic{
      {{DT_SYMTAB, {kSym}}, {DT_STRTAB, {kSym}}, {DT_HASH, {kHash}}, {DT_NULL, {0}}}};
  put(kDyn, dynamic);
  // One bucket: symbol 1, whose successor is itself.
  put(kHash, std::array<uint32_t, 5>{1, 2, 1, 0, 1});
  Bytes memory(bytes);
  auto image = ElfImage::Read(memory, Bytes::kBase);
  ASSERT_TRUE(image);
  EXPECT_EQ(image->bias(), Bytes::kBase);
  EXPECT_FALSE(image->FindSymbol(memory, "anything"));
}

TEST(ElfImage, NoiseNeverHangsOrCrashes) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 2000; ++round) {
    constexpr size_t kWords = 512;
    std::vector<std::byte> bytes(kWords * 8);
    for (size_t i = 0; i < kWords; ++i) {
      // Mostly small numbers, which lead somewhere, and some that lead nowhere.
      uint64_t word = random() % 8 == 0 ? random() : random() % (kWords * 8);
      std::memcpy(&bytes[i * 8], &word, sizeof word);
    }
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 4;
    header.e_phoff = sizeof header;
    std::memcpy(bytes.data(), &header, sizeof header);
    for (size_t i = 0; i < 4; ++i) {
      uint32_t type = i == 0 ? PT_LOAD : i == 1 ? PT_DYNAMIC : static_cast<uint32_t>(random() % 5);
      std::memcpy(&bytes[sizeof header + i * sizeof(Elf64_Phdr)], &type, sizeof type);
    }
    Bytes memory(std::move(bytes));
    if (auto image = ElfImage::Read(memory, Bytes::kBase)) {
      EXPECT_FALSE(image->FindSymbol(memory, "_PyRuntime"));
    }
  }
}

TEST(ElfFile, OurOwnSymbolTableAndBuildId) {
  remote::ProcessMemory memory(getpid());
  std::string executable = ReadLink("/proc/self/exe").value();
  for (const Module& module : OurModules(memory)) {
    if (module.path != executable) continue;
    auto file = ElfFile::OpenFor(getpid(), module);
    ASSERT_TRUE(file);
    EXPECT_EQ(file->BuildId(), module.image.build_id());
    auto text = file->FindSection(".text");
    ASSERT_TRUE(text);
    EXPECT_GT(text->size(), 0U);
    EXPECT_FALSE(file->FindSection(".no-such-section"));
    EXPECT_FALSE(file->FindSymbol("no_such_symbol_anywhere"));
    return;
  }
  FAIL() << executable << " is not among the modules";
}

TEST(ElfFile, OtherFilesAreNone) {
  EXPECT_FALSE(ElfFile::Open("/proc/self/status"));
  EXPECT_FALSE(ElfFile::Open("/dev/null"));
  EXPECT_FALSE(ElfFile::Open("/no/such/file"));
}

// A program may have put one in the place of a library of its own.
TEST(ElfFile, APipeIsNotWaitedFor) {
  const std::string path = fmt::format("{}/pipe-{}", ::testing::TempDir(), getpid());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(ElfFile::Open(path));
  unlink(path.c_str());
}

// As libdw does in a process that samples itself: a file that is read is not loaded there.
TEST(FindModules, WhatIsMappedToBeReadIsNone) {
  const auto mappings = ReadMaps(getpid()).value();
  const auto loaded = std::ranges::find_if(mappings, [](const Mapping& one) {
    return one.executable && one.path.ends_with("libc.so.6");
  });
  ASSERT_NE(loaded, mappings.end());
  const ScopedFd file(open(loaded->path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info{};
  ASSERT_EQ(fstat(file.get(), &info), 0);
  const auto size = static_cast<size_t>(info.st_size);
  void* const read = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  ASSERT_NE(read, MAP_FAILED);
  const auto at = reinterpret_cast<Address>(read);
  const remote::ProcessMemory memory(getpid());
  for (const Module& module : OurModules(memory)) {
    EXPECT_NE(module.first_mapping.start, at) << module.path;
  }
  munmap(read, size);
}

}  // namespace
}  // namespace pystrobe::native
