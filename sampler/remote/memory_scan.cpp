// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/memory_scan.h"

#include <algorithm>
#include <cstring>

#include "sampler/remote/thread_list.h"

namespace pystrobe::remote {
namespace {

using pyabi::Layout;
using pyabi::Memory;

/// The words of the segments of `module` that can be read, one segment at a time.
template <typename Visit>
void ForEachSegment(const Memory& memory, const std::vector<native::AddressRange>& ranges,
                    Visit visit) {
  std::vector<uint64_t> words;
  for (const native::AddressRange& range : ranges) {
    Address start = (range.start + 7) & ~uint64_t{7};
    if (range.size() > kMaxSegment || start + 8 > range.end) continue;
    words.resize((range.end - start) / 8);
    if (memory.Read(start, words.data(), words.size() * 8)) visit(start, words);
  }
}

void ScanForCookie(const Memory& memory, const native::Module& module,
                   std::vector<RuntimeCandidate>& found) {
  uint64_t cookie;
  std::memcpy(&cookie, kDebugOffsetsCookie.data(), sizeof cookie);
  ForEachSegment(memory, module.image.writable(), [&](Address start, const auto& words) {
    for (size_t i = 0; i < words.size(); ++i) {
      if (words[i] == cookie) found.push_back({start + i * 8, &module, "memory scan"});
    }
  });
}

bool LooksLikePointer(uint64_t word) {
  return word >= 4096 && word < (uint64_t{1} << 47) && word % 8 == 0;
}

// struct pyinterpreters, 3.8 to 3.12: the lock, `head`, `main`. One interpreter is the rule, then
// both are equal; those are tried first, since each try costs some reads.
void ScanForLists(const Memory& memory, const native::Module& module, const Layout& layout,
                  std::vector<RuntimeCandidate>& found) {
  for (bool equal : {true, false}) {
    ForEachSegment(memory, module.image.writable(), [&](Address start, const auto& words) {
      for (size_t i = 0; i + 1 < words.size(); ++i) {
        if (!LooksLikePointer(words[i]) || !LooksLikePointer(words[i + 1])) continue;
        if ((words[i] == words[i + 1]) != equal) continue;
        Address runtime = start + i * 8 - layout.runtime.interpreters_head;
        auto states = ReadThreadStates(memory, layout, runtime);
        if (states && !states->threads.empty()) found.push_back({runtime, &module, "memory scan"});
      }
    });
    if (!found.empty()) return;
  }
}

}  // namespace

std::vector<RuntimeCandidate> ScanForRuntimes(const SymbolFinder& symbols) {
  std::vector<RuntimeCandidate> found;
  for (const native::Module* module : symbols.ByLikelihood()) {
    ScanForCookie(symbols.memory(), *module, found);
    if (!found.empty()) return found;
    auto version = FindVersionByText(symbols, *module);
    if (!version) continue;
    auto layout = pyabi::LayoutFromTable(*version);
    if (layout) ScanForLists(symbols.memory(), *module, *layout, found);
    if (!found.empty()) return found;
  }
  return found;
}

std::optional<Address> ScanForType(const Memory& memory, const Layout& layout,
                                   const native::Module& module, std::string_view name) {
  std::vector<Address> texts;  // where the name stands among the constants
  for (const native::AddressRange& range : module.image.constant()) {
    if (range.size() > kMaxSegment) continue;
    std::string bytes(range.size(), '\0');
    if (!memory.Read(range.start, bytes.data(), bytes.size())) continue;
    // Not only where a string begins: linkers let "code" share the end of "opcode".
    std::string wanted = std::string(name) + '\0';
    for (size_t at = bytes.find(wanted); at != std::string::npos; at = bytes.find(wanted, at + 1)) {
      texts.push_back(range.start + at);
    }
  }
  std::sort(texts.begin(), texts.end());
  std::optional<Address> found;
  ForEachSegment(memory, module.image.writable(), [&](Address start, const auto& words) {
    for (size_t i = layout.object.type_name / 8; i < words.size() && !found; ++i) {
      if (!std::binary_search(texts.begin(), texts.end(), words[i])) continue;
      Address type = start + i * 8 - layout.object.type_name;
      // A type's own type is `type`, whose type is itself.
      auto meta = memory.Read<Address>(type + layout.object.type);
      if (meta && memory.Read<Address>(*meta + layout.object.type) == *meta) found = type;
    }
  });
  return found;
}

}  // namespace pystrobe::remote
