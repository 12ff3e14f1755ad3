// SPDX-License-Identifier: Apache-2.0
#include "sampler/native/binaries.h"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <libelf.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "profiler/base/descriptors.h"
#include "profiler/base/environment.h"
#include "profiler/base/proc.h"
#include "sampler/native/call_frame.h"
#include "sampler/native/debug_file.h"
#include "sampler/native/elf_file.h"
#include "sampler/native/function_name.h"
#include "sampler/native/function_range.h"
#include "sampler/native/source_lines.h"
#include "sampler/native/symbol_table.h"

namespace pystrobe::native {
namespace {

// Larger ones in no file are not the kernel's [vdso].
constexpr uint64_t kMostInMemory = uint64_t{1} << 20;

// libdwfl keeps open what it has opened: the file of each binary that is asked about, and often
// another one with debug information. They have a third of the descriptors that are free to begin
// with, and nothing is begun where that is next to nothing.
constexpr size_t kPartOfDescriptors = 3, kDescriptorsOfEach = 2, kFewestBinaries = 5;

bool IsSame(const Module& a, const Module& b) {
  return a.path == b.path && a.inode == b.inode && a.image.range().start == b.image.range().start &&
         a.image.range().end == b.image.range().end && a.image.build_id() == b.image.build_id();
}

/// Where instructions come from: what is mapped without a file, as heaps are, comes and goes.
std::vector<Mapping> CodeOf(const std::vector<Mapping>& mappings) {
  std::vector<Mapping> code;
  std::ranges::copy_if(mappings, std::back_inserter(code), [](const Mapping& mapping) {
    return mapping.executable && !mapping.path.empty();
  });
  return code;
}

// Whether the user has named servers that are to be asked for debug information.
bool HasServers() { return !kProcessEnvironment("DEBUGINFOD_URLS").value_or("").empty(); }

// libdwfl keeps a module whose name and addresses are what they were: the name tells all of it.
std::string NameOf(const Module& module) {
  std::string name = fmt::format("{}:{}:", module.path, module.inode);
  for (const char byte : module.image.build_id()) {
    name += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return name;
}

}  // namespace

/// What libdwfl's module of the same place refers to.
struct Binaries::File {
  File(Module file_module, pid_t file_pid, const pyabi::Memory* its_memory, size_t* its_room)
      : module(std::move(file_module)), pid(file_pid), memory(its_memory), room(its_room) {}
  ~File() {
    if (is_open) ++*room;
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  Module module;
  pid_t pid;
  const pyabi::Memory* memory;
  size_t* room;  ///< for files that are not open yet
  bool is_open = false;
  std::vector<char> bytes;             ///< of one that is in no file
  std::optional<SymbolTable> symbols;  ///< when first needed
};

void Binaries::DwflEnd::operator()(Dwfl* dwfl) const { dwfl_end(dwfl); }

Binaries::Binaries(pid_t pid, const pyabi::Memory& memory, Dwfl* dwfl, size_t most)
    : pid_(pid),
      memory_(&memory),
      room_(std::make_unique<size_t>(most)),
      one_of_all_(open("/", O_PATH | O_CLOEXEC)),
      dwfl_(dwfl) {}
Binaries::Binaries(Binaries&&) noexcept = default;
Binaries::~Binaries() {
  if (dwfl_ != nullptr && !one_of_all_.IsIntact()) static_cast<void>(dwfl_.release());
}

Result<Binaries> Binaries::Of(pid_t pid, const pyabi::Memory& memory) {
  const size_t most = CountFreeDescriptors() / (kPartOfDescriptors * kDescriptorsOfEach);
  if (most < kFewestBinaries) {
    return FailToOpen(EMFILE, "opening the binaries of", fmt::format("process {}", pid));
  }
  static constexpr Dwfl_Callbacks kAsksNobody = {
      .find_elf = OpenFile,
      .find_debuginfo = FindDebugFile,
      .section_address = nullptr,
      .debuginfo_path = nullptr,
  };
  static constexpr Dwfl_Callbacks kAsksServers = {
      .find_elf = OpenFile,
      .find_debuginfo = dwfl_standard_find_debuginfo,
      .section_address = nullptr,
      .debuginfo_path = nullptr,
  };
  const bool asks_servers = HasServers();
  Dwfl* dwfl = dwfl_begin(asks_servers ? &kAsksServers : &kAsksNobody);
  if (dwfl == nullptr) return Fail(ErrorCode::kUnsupported, "libdw: {}", dwfl_errmsg(-1));
  // What it loads is loaded now: a child that another thread forks meanwhile has half of it.
  if (asks_servers) static_cast<void>(dwfl_get_debuginfod_client(dwfl));
  Binaries binaries(pid, memory, dwfl, most);
  if (auto read = binaries.Refresh(); !read) return std::unexpected(read.error());
  return binaries;
}

Result<Binaries::Change> Binaries::Refresh() {
  if (!one_of_all_.IsIntact()) {
    return Fail(ErrorCode::kUnreadable, "this process has closed the files of its machine code");
  }
  auto mappings = ReadMaps(pid_);
  if (!mappings) return std::unexpected(mappings.error());
  std::vector<Mapping> code = CodeOf(*mappings);
  if (code == code_) return Change::kNone;
  code_ = std::move(code);
  std::vector<std::unique_ptr<File>> before = std::exchange(files_, {});
  dwfl_report_begin(dwfl_.get());
  for (Module& module : FindModules(*memory_, *mappings)) {
    const auto known = std::ranges::find_if(
        before, [&module](const auto& file) { return file && IsSame(file->module, module); });
    auto& file = files_.emplace_back(known != before.end() ? std::move(*known) : nullptr);
    if (file == nullptr)
      file = std::make_unique<File>(std::move(module), pid_, memory_, room_.get());
    const AddressRange range = file->module.image.range();
    Dwfl_Module* reported =
        dwfl_report_module(dwfl_.get(), NameOf(file->module).c_str(), range.start, range.end);
    if (reported == nullptr) continue;
    void** userdata = nullptr;
    dwfl_module_info(reported, &userdata, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
    *userdata = file.get();
  }
  dwfl_report_end(dwfl_.get(), nullptr, nullptr);
  const bool all_there = std::ranges::all_of(before, [](const auto& file) { return !file; });
  return all_there ? Change::kCame : Change::kWent;
}

Binaries::File* Binaries::FileAt(Address pc) const {
  // The nearest: with what they leave zero, images may reach into each other.
  const auto behind = std::ranges::upper_bound(
      files_, pc, {}, [](const auto& file) { return file->module.image.range().start; });
  if (behind == files_.begin()) return nullptr;
  File* file = std::prev(behind)->get();
  return file->module.image.range().Contains(pc) ? file : nullptr;
}

const Module* Binaries::ModuleAt(Address pc) const {
  const File* file = FileAt(pc);
  return file == nullptr ? nullptr : &file->module;
}

RuleRange Binaries::RuleAt(Address pc) { return RuleBy(pc, FindRule); }
RuleRange Binaries::RuleFrom(Address pc) { return RuleBy(pc, FindRuleFrom); }

template <typename Finder>
RuleRange Binaries::RuleBy(Address pc, Finder find) {
  const RuleRange unknown{pc, pc + 1, {}};
  Dwfl_Module* module = dwfl_addrmodule(dwfl_.get(), pc);
  if (module == nullptr) return unknown;
  Dwarf_Addr bias = 0;
  Dwarf_CFI* cfi = dwfl_module_eh_cfi(module, &bias);
  if (cfi == nullptr) cfi = dwfl_module_dwarf_cfi(module, &bias);
  if (cfi == nullptr) return unknown;
  RuleRange found = find(cfi, pc - bias);
  found.start += bias;
  found.end += bias;
  return found;
}

std::optional<AddressRange> Binaries::FunctionAt(Address pc) const {
  const File* file = FileAt(pc);
  if (file == nullptr) return std::nullopt;
  return FunctionRange(*memory_, file->module, pc);
}

NativePlace Binaries::PlaceOf(Address pc, bool source) {
  NativePlace place;
  File* file = FileAt(pc);
  if (file == nullptr) return place;
  place.binary = file->module.path;
  const auto function = FunctionRange(*memory_, file->module, pc);
  place.offset = (function ? function->start : pc) - file->module.image.range().start;
  Dwfl_Module* module = dwfl_addrmodule(dwfl_.get(), pc);
  if (module == nullptr) return place;
  if (!file->symbols) file->symbols.emplace(module);
  const char* symbol = file->symbols->Find(pc, function ? function->start : 0);
  if (source) place.functions = FunctionsAt(module, pc);
  if (symbol == nullptr) return place;
  // How others know a function: "sqrt", where its source has "__sqrt".
  if (place.functions.empty()) place.functions.emplace_back();
  place.functions.back().name = FunctionName(symbol);
  return place;
}

// Owned by the caller, as libdwfl wants it: a descriptor, or what lies in memory only.
int Binaries::OpenFile(Dwfl_Module*, void** userdata, const char*, uint64_t, char** file_name,
                       Elf** elf) {
  auto& file = *static_cast<File*>(*userdata);
  auto opened = *file.room == 0 ? std::nullopt : ElfFile::OpenFor(file.pid, file.module);
  if (opened) {
    --*file.room;
    file.is_open = true;
    *file_name = strdup(file.module.path.c_str());
    return std::move(*opened).TakeFd().release();
  }
  const AddressRange range = file.module.image.range();
  if (file.module.inode != 0 || range.size() > kMostInMemory) return -1;
  file.bytes.resize(range.size());
  if (!file.memory->Read(range.start, file.bytes.data(), file.bytes.size())) return -1;
  *elf = elf_memory(file.bytes.data(), file.bytes.size());
  return -1;
}

}  // namespace pystrobe::native
