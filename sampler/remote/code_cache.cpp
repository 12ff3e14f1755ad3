// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/code_cache.h"

#include <algorithm>
#include <utility>

namespace pystrobe::remote {
namespace {

using pyabi::CodeInfo;
using pyabi::kAbsent;

// Programs that make and drop code objects do it quickly; what has lived this long will live on.
constexpr Nanoseconds kYouth = std::chrono::milliseconds(250);
constexpr uint32_t kYoungLooks = 50;  // time alone means little where the target waits for a CPU
constexpr Nanoseconds kChurn = std::chrono::seconds(10);
constexpr Nanoseconds kLongestUnchecked = std::chrono::seconds(5);
constexpr size_t kChecksAtOnce = 16;
// About 0.1 us each, in the pause; what is dropped is seldom far from a leaf.
constexpr size_t kMostSelected = 256;

// CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR (Include/code.h, Include/cpython/code.h).
constexpr int32_t kGeneratorFlags = 0x20 | 0x80 | 0x200;

// Code that the interpreter makes for itself. From 3.12 on a call of a class pushes, below
// __init__, a frame that checks what __init__ returned: its name and its file are one and the same
// string. In 3.12 a run of the evaluation loop begins with a frame of its own (_Py_MakeShimCode in
// Objects/codeobject.c); a copy that is not proved may find it half made, when it does not say yet
// that it is no Python frame.
bool IsInterpretersOwn(const pyabi::CodeInfo& info) {
  if (info.file == "__init__") return info.identity.name == info.identity.filename;
  return info.file == "<shim>" && info.name == "<interpreter trampoline>";
}

uint64_t InstructionKey(const pyabi::RawFrame& frame) {
  return frame.instruction ^ (uint64_t{frame.tlbc_index} << 48);
}

}  // namespace

CodeCache::CodeCache(const Target& target, Tables& tables, Quality& quality, size_t capacity)
    : target_(target),
      tables_(tables),
      quality_(quality),
      has_generation_(target.layout().interpreter.code_object_generation != kAbsent),
      capacity_(capacity),
      gone_function_(
          tables.Intern(Function{tables.Intern("<code object gone>"), kEmptyString, 0})) {}

bool CodeCache::NeedsLook(const Entry& entry, uint64_t generation) const {
  if (!entry.known) return true;
  if (has_generation_) return entry.generation != generation;
  return entry.reused || now_ < churning_until_ || entry.looks < kYoungLooks ||
         entry.checked - entry.first_seen < kYouth;
}

void CodeCache::Select(const std::vector<pyabi::RawFrame>& frames, uint64_t generation,
                       std::vector<Address>& codes) const {
  Address last = 0;
  for (const pyabi::RawFrame& frame : frames) {
    if (frame.code == last) continue;
    last = frame.code;
    auto it = entries_.find(frame.code);
    if (it != entries_.end() && !NeedsLook(*it->second, generation)) continue;
    if (std::find(codes.begin(), codes.end(), frame.code) == codes.end()) {
      codes.push_back(frame.code);
    }
    if (codes.size() >= kMostSelected) return;
  }
}

CodeWatch::Knowledge CodeCache::KnowledgeOf(const SeenCode& seen) const {
  const auto it = entries_.find(seen.code);
  if (it == entries_.end()) return Knowledge::kNone;
  const Entry& entry = *it->second;
  if (!entry.known || entry.info.identity != seen.identity) return Knowledge::kNone;
  return entry.reused ? Knowledge::kPassing : Knowledge::kLasting;
}

std::optional<CodeInfo> CodeCache::Read(Address code) const {
  return pyabi::ReadCode(target_.memory(), target_.layout(), target_.info().code_type, code);
}

void CodeCache::Update(std::span<const SeenCode> codes, uint64_t generation, Nanoseconds now) {
  now_ = now;
  if (generation != generation_) ++epoch_;
  generation_ = generation;
  for (const SeenCode& seen : codes) {
    Entry& entry = Load(seen.code, now);
    if (!entry.known || entry.info.identity != seen.identity) {
      if (entry.known) NoteReuse(entry, now);
      Replace(entry, seen.info ? seen.info : Read(seen.code), now);
      // Gone between the pause and the reading of its names, and another one is there already.
      if (entry.known && entry.info.identity != seen.identity) entry.known = false;
    }
    entry.checked = now;
    entry.generation = generation_;
    ++entry.looks;
  }
}

void CodeCache::Doubt(Address code) {
  const auto found = entries_.find(code);
  if (found == entries_.end()) return;
  found->second->known = false;
  found->second->frames.clear();
}

CodeCache::Entry& CodeCache::Load(Address code, Nanoseconds now) {
  auto it = entries_.find(code);
  if (it != entries_.end()) {
    it->second->used = ++uses_;
    return *it->second;
  }
  auto entry = std::make_unique<Entry>();
  entry->code = code;
  entry->first_seen = now;
  entry->used = ++uses_;
  Entry& result = *entry;
  order_.push_back(&result);
  entries_.emplace(code, std::move(entry));
  return result;
}

void CodeCache::Replace(Entry& entry, std::optional<CodeInfo> info, Nanoseconds now) {
  entry.known = info.has_value();
  if (!info) return;
  entry.info = std::move(*info);
  entry.trampoline = IsInterpretersOwn(entry.info);
  entry.function =
      tables_.Intern(Function{tables_.Intern(entry.info.name), tables_.Intern(entry.info.file),
                              static_cast<uint32_t>(entry.info.identity.first_line)});
  entry.checked = now;
  entry.generation = generation_;
}

CodeCache::Entry& CodeCache::LoadNamed(Address code, Nanoseconds now) {
  Entry& entry = Load(code, now);
  // What was looked at in this pause and could not be read is gone: there may be another by now.
  if (!entry.known && entry.checked != now) Replace(entry, Read(code), now);
  return entry;
}

void CodeCache::NoteReuse(Entry& entry, Nanoseconds now) {
  ++quality_.reused_code;
  ++epoch_;
  entry.reused = true;
  entry.frames.clear();
  churning_until_ = now + kChurn;
}

std::optional<FrameId> CodeCache::Resolve(const pyabi::RawFrame& frame, Nanoseconds now) {
  Entry& entry = LoadNamed(frame.code, now);
  if (!entry.known) {
    ++quality_.unresolved;
    return tables_.Intern(Frame{gone_function_, 0});
  }
  if (entry.trampoline) return std::nullopt;
  auto [it, added] = entry.frames.try_emplace(InstructionKey(frame), FrameId{});
  if (added) {
    // A thread of a free-threaded interpreter may have made its copy of the bytecode since.
    const pyabi::Layout& layout = target_.layout();
    if (layout.code.tlbc != kAbsent && !pyabi::InstructionOffset(layout, entry.info, frame)) {
      if (auto info = Read(frame.code); info && info->identity == entry.info.identity) {
        entry.info = std::move(*info);
      }
    }
    it.value() = tables_.Intern(Frame{entry.function, pyabi::LineOf(layout, entry.info, frame)});
  }
  return it->second;
}

StackId CodeCache::incomplete_stack() {
  if (incomplete_stack_ == kEmptyStack) {
    const Function callers{tables_.Intern("<incomplete stack>"), kEmptyString, 0};
    incomplete_stack_ =
        tables_.Push(kEmptyStack, tables_.Intern(Frame{tables_.Intern(callers), 0}));
  }
  return incomplete_stack_;
}

bool CodeCache::CanName(std::span<const pyabi::RawFrame> frames, Nanoseconds now) {
  return std::all_of(frames.begin(), frames.end(), [&](const pyabi::RawFrame& frame) {
    return LoadNamed(frame.code, now).known;
  });
}

bool CodeCache::EndsInGenerator(std::span<const pyabi::RawFrame> frames, Nanoseconds now) {
  if (frames.empty()) return false;
  const Entry& entry = LoadNamed(frames.back().code, now);
  return entry.known && (entry.info.identity.flags & kGeneratorFlags) != 0;
}

bool CodeCache::IsSettled(Address code) {
  auto it = entries_.find(code);
  if (it == entries_.end()) return false;
  it->second->used = ++uses_;
  return !it->second->reused && !NeedsLook(*it->second, generation_);
}

const pyabi::CodeIdentity* CodeCache::Lasting(Address code) const {
  const auto it = entries_.find(code);
  if (it == entries_.end()) return nullptr;
  const Entry& entry = *it->second;
  return entry.known && !entry.reused ? &entry.info.identity : nullptr;
}

void CodeCache::ForgetOldHalf() {
  const auto middle = order_.begin() + static_cast<std::ptrdiff_t>(order_.size() / 2);
  std::nth_element(order_.begin(), middle, order_.end(),
                   [](const Entry* a, const Entry* b) { return a->used < b->used; });
  for (auto entry = order_.begin(); entry != middle; ++entry) entries_.erase((*entry)->code);
  order_.erase(order_.begin(), middle);
  // What was settled may be among the forgotten.
  ++epoch_;
}

void CodeCache::CheckSome(Nanoseconds now) {
  if (entries_.size() > capacity_) ForgetOldHalf();
  if (order_.empty()) return;
  const pyabi::Layout& layout = target_.layout();
  std::vector<std::byte> bytes(layout.code.size);
  for (size_t i = 0; i < std::min(kChecksAtOnce, order_.size()); ++i) {
    next_check_ = (next_check_ + 1) % order_.size();
    Entry& entry = *order_[next_check_];
    if (!entry.known || (has_generation_ && entry.generation == generation_)) continue;
    Nanoseconds due = std::min((entry.checked - entry.first_seen) / 2, kLongestUnchecked);
    if (now - entry.checked < due) continue;
    entry.checked = now;
    if (!target_.memory().Read(entry.code, bytes.data(), bytes.size()) ||
        pyabi::IdentityOf(layout, bytes) != entry.info.identity) {
      // Dead or replaced. Only its address's next use can tell what is there.
      NoteReuse(entry, now);
      entry.known = false;
    } else {
      entry.generation = generation_;
    }
  }
}

}  // namespace pystrobe::remote
