// SPDX-License-Identifier: Apache-2.0
#include "sampler/signal/captures.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "sampler/pyabi/unicode.h"

namespace pystrobe::signals {
namespace {

using pyabi::kAbsent;

// Of one object: longer ones are read when the record is, should they be there still.
constexpr uint64_t kLongest = 8192;
constexpr uint64_t kLongestName = 1024;

size_t RoundUp(size_t size) { return (size + 7) & ~size_t{7}; }

}  // namespace

Result<Captures> Captures::Make() {
  auto bytes = LazyArray<std::byte>::Make(kMostBytes);
  if (!bytes) return std::unexpected(bytes.error());
  return Captures(*std::move(bytes));
}

void Captures::AddCode(OwnMemory& memory, const pyabi::Layout& layout, const FoundCode& found) {
  const auto& at = layout.code;
  const pyabi::CodeIdentity& identity = found.identity;
  Add(memory, found.code, at.size);
  AddString(memory, layout, identity.qualname != 0 ? identity.qualname : identity.name);
  AddString(memory, layout, identity.filename);
  const auto lines = memory.ValueOr0<uint64_t>(identity.line_table + layout.object.bytes_size);
  Add(memory, identity.line_table, layout.object.bytes_data + lines);
  if (layout.frame_style == pyabi::FrameStyle::kFrameObjects) {
    Add(memory, memory.ValueOr0<Address>(found.code + at.bytecode), layout.object.bytes_data);
  }
  if (at.tlbc != kAbsent) {
    // _PyCodeArray: the number of copies, then their addresses (Include/cpython/code.h).
    const auto copies = memory.ValueOr0<Address>(found.code + at.tlbc);
    Add(memory, copies, sizeof(uint64_t) + memory.ValueOr0<uint64_t>(copies) * sizeof(Address));
  }
}

void Captures::AddString(OwnMemory& memory, const pyabi::Layout& layout, Address str) {
  const size_t size = layout.object.ascii_data;
  const std::byte* head = memory.Find(str, size);
  if (head == nullptr) return;
  const auto parsed = pyabi::ParseStringHead(layout, {head, size}, kLongestName);
  if (parsed && !parsed->is_apart) Add(memory, str, parsed->data + parsed->byte_count());
}

void Captures::Add(OwnMemory& memory, Address address, uint64_t size) {
  const size_t begin = bytes_.size();
  if (address == 0 || size > kLongest) return;
  if (bytes_.capacity() - begin < sizeof(Head) + RoundUp(size)) return;
  const Head head{address, size};
  std::byte* into = bytes_.data() + begin;
  std::memcpy(into, &head, sizeof head);
  for (uint64_t done = 0; done < size;) {
    const size_t part = std::min<uint64_t>(size - done, OwnMemory::kLongest);
    const std::byte* found = memory.Find(address + done, part);
    if (found == nullptr) return;
    std::memcpy(into + sizeof head + done, found, part);
    done += part;
  }
  bytes_.resize(begin + sizeof head + RoundUp(size));
}

CapturedMemory::CapturedMemory(std::span<const std::byte> pieces) {
  while (pieces.size() >= sizeof(Captures::Head)) {
    Captures::Head head;
    std::memcpy(&head, pieces.data(), sizeof head);
    pieces = pieces.subspan(sizeof head);
    if (head.size > pieces.size()) return;
    pieces_.push_back({head.address, pieces.first(head.size)});
    pieces = pieces.subspan(std::min(pieces.size(), RoundUp(head.size)));
  }
}

bool CapturedMemory::ReadAll(std::span<const pyabi::ReadRequest> requests) const {
  return std::ranges::all_of(requests, [this](const auto& request) { return ReadOne(request); });
}

bool CapturedMemory::ReadOne(const pyabi::ReadRequest& request) const {
  for (const Piece& piece : pieces_) {
    if (request.address < piece.address) continue;
    const uint64_t offset = request.address - piece.address;
    if (offset > piece.bytes.size() || request.size > piece.bytes.size() - offset) continue;
    std::memcpy(request.into, piece.bytes.data() + offset, request.size);
    return true;
  }
  return false;
}

}  // namespace pystrobe::signals
