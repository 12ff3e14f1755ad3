// SPDX-License-Identifier: Apache-2.0
#include "pyext/launch/own_frames.h"

#include "profiler/base/hash.h"
#include "sampler/pyabi/chain_start.h"
#include "sampler/pyabi/walk_over.h"

namespace pystrobe::launch {
namespace {

// Once for each frame, so no more than a multiplication: MixBits follows at the end.
uint64_t Roll(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9fb21c651e98df25U;
  return hash ^ (hash >> 35);
}

}  // namespace

std::optional<uint64_t> OwnFrames::Hash(Address tstate, uint64_t seed, bool codes_live) const {
  const Address first = First(tstate);
  if (first == 0) return std::nullopt;
  const auto* regions = pyabi::Regions::OfThisProcessIfAny();
  if (regions != nullptr && !regions->any()) regions = nullptr;
  // An instruction lies within its code object, and so tells it too, from 3.11 on; but not where
  // each thread has a copy of the bytecode, which may go while the code object stays.
  const bool tells_code = layout_.frame_style == pyabi::FrameStyle::kInterpreterFrames &&
                          layout_.code.tlbc == pyabi::kAbsent;
  if (tells_code && codes_live && regions == nullptr) return MixBits(HashPlain(first, seed));
  return MixBits(HashInFull(first, seed, codes_live, regions));
}

Address OwnFrames::First(Address tstate) const {
  OwnMemory memory;
  const Address first = pyabi::ChainStart(layout_, tstate).FindFirst(memory).value_or(0);
  // From 3.12 on a thread without Python frames may have one of the evaluation loop's own.
  for (Address frame = first; frame != 0;
       frame = OwnMemory::ValueOr0<Address>(frame + layout_.frame.previous)) {
    if (layout_.frame.owner == pyabi::kAbsent) return first;
    const auto owner = OwnMemory::ValueOr0<uint8_t>(frame + layout_.frame.owner);
    if (pyabi::IsPythonOwner(owner)) return first;
  }
  return 0;
}

uint64_t OwnFrames::HashPlain(Address first, uint64_t hash) const {
  const uint32_t instruction = layout_.frame.instruction, previous = layout_.frame.previous;
  for (Address frame = first; frame != 0; frame = OwnMemory::ValueOr0<Address>(frame + previous)) {
    hash = Roll(hash, OwnMemory::ValueOr0<uint64_t>(frame + instruction));
  }
  return hash;
}

uint64_t OwnFrames::HashInFull(Address first, uint64_t hash, bool codes_live,
                               const pyabi::Regions* regions) const {
  const pyabi::walk::Shape shape(layout_);
  for (Address address = first; address != 0;
       address = OwnMemory::ValueOr0<Address>(address + shape.at.previous)) {
    const pyabi::RawFrame frame = pyabi::walk::LoadFrame(
        shape, address, {OwnMemory::Find(address, shape.at.size), shape.at.size});
    if (!pyabi::IsPythonFrame(layout_, frame.owner)) continue;
    hash = Roll(Roll(hash, frame.code), frame.instruction);
    if (regions != nullptr) hash = Roll(hash, regions->Of(frame));
    if (!codes_live) hash = HashOfCode(frame.code, hash);
  }
  return hash;
}

// What a code object refers to is freed with it, and so are the addresses of the next one's: what
// is there tells more. A name has its hash behind its length (Include/cpython/unicodeobject.h); the
// first bytes of a table of lines are there with even the shortest.
uint64_t OwnFrames::HashOfCode(Address code, uint64_t hash) const {
  const auto word = [](Address at) { return OwnMemory::ValueOr0<uint64_t>(at); };
  const Address name = word(code + layout_.code.name);
  const Address lines = word(code + layout_.code.line_table);
  hash = Roll(hash, word(name + layout_.object.unicode_length + sizeof(uint64_t)));
  hash = Roll(hash, word(lines + layout_.object.bytes_size));
  hash = Roll(hash, word(lines + layout_.object.bytes_data));
  return Roll(hash, OwnMemory::ValueOr0<uint32_t>(code + layout_.code.first_line));
}

void OwnFrames::Walk(Address tstate, std::vector<pyabi::RawFrame>& frames,
                     std::vector<Address>& loop_frames) const {
  OwnMemory memory;
  pyabi::WalkOver(memory, layout_, First(tstate), frames, loop_frames);
  if (const auto* const regions = pyabi::Regions::OfThisProcessIfAny()) regions->Note(frames);
}

}  // namespace pystrobe::launch
