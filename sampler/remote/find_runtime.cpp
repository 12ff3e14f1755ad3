// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/find_runtime.h"

#include <algorithm>
#include <charconv>

#include "sampler/native/elf_file.h"

namespace pystrobe::remote {
namespace {

using pyabi::PyVersion;

constexpr std::string_view kRuntimeSymbol = "_PyRuntime";
constexpr std::string_view kRuntimeSection = ".PyRuntime";  // 3.10+

/// Takes a decimal number of at most 255 off the front of `text`.
bool TakeNumber(std::string_view& text, uint8_t& value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

bool TakeChar(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

/// "a1", "b2", "rc3" behind a micro version.
void TakeReleaseLevel(std::string_view& text, PyVersion& version) {
  if (TakeChar(text, 'a')) version.release_level = 0xa;
  if (TakeChar(text, 'b')) version.release_level = 0xb;
  if (text.starts_with("rc")) {
    text.remove_prefix(2);
    version.release_level = 0xc;
  }
  if (version.release_level != 0xf) TakeNumber(text, version.serial);
}

}  // namespace

std::optional<Address> SymbolFinder::FindExported(const native::Module& module,
                                                  std::string_view name) const {
  for (const native::Module& other : modules_) {
    if (other.path != executable_) continue;
    if (auto symbol = other.image.FindSymbol(memory_, name)) return symbol->address;
  }
  if (auto symbol = module.image.FindSymbol(memory_, name)) return symbol->address;
  return std::nullopt;
}

std::optional<Address> SymbolFinder::Find(const native::Module& module,
                                          std::string_view name) const {
  if (auto address = FindExported(module, name)) return address;
  auto file = native::ElfFile::OpenFor(pid_, module);
  if (!file) return std::nullopt;
  auto symbol = file->FindSymbol(name);
  if (!symbol) return std::nullopt;
  return symbol->address + module.image.bias();
}

std::vector<const native::Module*> SymbolFinder::ByLikelihood() const {
  std::vector<const native::Module*> result;
  for (const native::Module& module : modules_) result.push_back(&module);
  auto rank = [&](const native::Module* module) {
    if (module->path == executable_) return 0;
    return module->file_name().starts_with("libpython") ? 1 : 2;
  };
  std::stable_sort(
      result.begin(), result.end(),
      [&](const native::Module* a, const native::Module* b) { return rank(a) < rank(b); });
  return result;
}

std::vector<RuntimeCandidate> FindRuntimes(const SymbolFinder& symbols) {
  std::vector<RuntimeCandidate> found;
  std::vector<const native::Module*> modules = symbols.ByLikelihood();
  for (const native::Module* module : modules) {
    if (auto symbol = module->image.FindSymbol(symbols.memory(), kRuntimeSymbol)) {
      found.push_back({symbol->address, module, "dynamic symbol"});
    }
  }
  if (!found.empty()) return found;
  for (const native::Module* module : modules) {
    auto file = native::ElfFile::OpenFor(symbols.pid(), *module);
    if (!file) continue;
    if (auto symbol = file->FindSymbol(kRuntimeSymbol)) {
      found.push_back({symbol->address + module->image.bias(), module, "symbol table"});
    } else if (auto section = file->FindSection(kRuntimeSection)) {
      found.push_back({section->start + module->image.bias(), module, "section"});
    }
  }
  return found;
}

std::optional<PyVersion> ParseBanner(std::string_view bytes) {
  // sys.version as Py_GetVersion() composes it: "3.9.18 (main, Aug 25 2023, 00:00:00)
  // \n[GCC 12.2.0]", alone in a buffer, so a zero byte stands before it.
  for (size_t at = bytes.find("3."); at != std::string_view::npos; at = bytes.find("3.", at + 1)) {
    if (at > 0 && bytes[at - 1] != '\0') continue;
    std::string_view text = bytes.substr(at + 2);
    PyVersion version{.major = 3};
    if (!TakeNumber(text, version.minor) || !TakeChar(text, '.') ||
        !TakeNumber(text, version.micro)) {
      continue;
    }
    TakeReleaseLevel(text, version);
    TakeChar(text, '+');  // built from a checkout
    // Builds name themselves in between: "3.14.0 free-threading build (main, ...".
    size_t bracket = text.substr(0, 40).find(" (");
    if (bracket < text.find('\0')) return version;
  }
  return std::nullopt;
}

std::optional<PyVersion> ParseFileName(std::string_view file_name) {
  size_t at = file_name.find("python");
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view text = file_name.substr(at + 6);
  PyVersion version;
  if (!TakeNumber(text, version.major) || !TakeChar(text, '.') ||
      !TakeNumber(text, version.minor)) {
    return std::nullopt;
  }
  return version;
}

std::optional<PyVersion> FindVersionByText(const SymbolFinder& symbols,
                                           const native::Module& module) {
  std::string bytes;
  for (const native::AddressRange& range : module.image.writable()) {
    if (range.size() > kMaxSegment) continue;
    bytes.resize(range.size());
    if (!symbols.memory().Read(range.start, bytes.data(), bytes.size())) continue;
    if (auto version = ParseBanner(bytes)) return version;
  }
  return ParseFileName(module.file_name());
}

std::optional<PyVersion> FindVersion(const SymbolFinder& symbols, const native::Module& module) {
  auto from_symbol = [&](std::optional<Address> address) -> std::optional<PyVersion> {
    auto hex = address ? symbols.memory().Read<uint32_t>(*address) : std::nullopt;
    if (!hex) return std::nullopt;
    return PyVersion::FromHex(*hex);
  };
  if (auto version = from_symbol(symbols.FindExported(module, "Py_Version"))) return version;
  if (auto version = FindVersionByText(symbols, module)) return version;
  return from_symbol(symbols.Find(module, "Py_Version"));
}

}  // namespace pystrobe::remote
