// SPDX-License-Identifier: Apache-2.0
#include "pyext/launch/own_frames.h"

#include <pthread.h>

#include <memory>
#include <new>

#include "profiler/base/hash.h"
#include "pyext/launch/last_walk.h"
#include "sampler/pyabi/chain_start.h"
#include "sampler/pyabi/walk_over.h"

namespace pystrobe::launch {
namespace {

// What a frame says of itself, from 3.11 on.
class Links {
 public:
  explicit Links(const pyabi::Layout& layout)
      : previous_(layout.frame.previous), instruction_(layout.frame.instruction) {}
  Address CallerOf(Address frame) const { return OwnMemory::ValueOr0<Address>(frame + previous_); }
  uint64_t InstructionOf(Address frame) const {
    return OwnMemory::ValueOr0<uint64_t>(frame + instruction_);
  }

 private:
  uint32_t previous_, instruction_;
};

// On the heap: where a library is loaded late there may be no room for more in the threads' own
// memory.
[[gnu::tls_model("initial-exec")]] constinit thread_local LastWalk* last_walk = nullptr;

/// What frees a thread's own as it ends. Nullopt where the process has no key left.
std::optional<pthread_key_t> KeyOfWalks() {
  pthread_key_t key{};
  const auto free = [](void* walk) {
    delete static_cast<LastWalk*>(walk);
    last_walk = nullptr;
  };
  return pthread_key_create(&key, free) == 0 ? std::optional(key) : std::nullopt;
}

/// Of the calling thread, empty at first. Null where there is no memory for it.
LastWalk* LastWalkOfThisThread() noexcept {
  if (last_walk != nullptr) return last_walk;
  static const std::optional<pthread_key_t> key = KeyOfWalks();
  if (!key) return nullptr;
  std::unique_ptr<LastWalk> made(new (std::nothrow) LastWalk);
  if (made == nullptr || pthread_setspecific(*key, made.get()) != 0) return nullptr;
  return last_walk = made.release();
}

uint64_t HashByLastWalk(const Links& links, Address first, uint64_t seed) noexcept {
  if (LastWalk* const walk = LastWalkOfThisThread()) return walk->Hash(links, first, seed);
  return LastWalk().Hash(links, first, seed);
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
  if (tells_code && codes_live && regions == nullptr) {
    return MixBits(HashByLastWalk(Links(layout_), first, seed));
  }
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
