// SPDX-License-Identifier: Apache-2.0
#include "sampler/native/native_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

namespace pystrobe::native {
namespace {

// Some hundred bytes each. A program that runs for ever comes to more than are of use at a time.
constexpr size_t kMostKnown = 100'000;

// Since 3.14 the loop may be a function for each instruction, which calls the next one last.
constexpr std::string_view kTailCalled = "_TAIL_CALL_";

std::string_view FileName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool IsSystem(std::string_view file) {
  constexpr std::array<std::string_view, 8> kBeginnings = {
      "libc.so", "libc-", "libc.musl", "libm.so", "libm-", "libpthread", "ld-", "[vdso]"};
  return std::ranges::any_of(kBeginnings, [file](auto begin) { return file.starts_with(begin); });
}

// An extension module; of the package, which gevent and eventlet use, too.
bool IsGreenlet(std::string_view file) {
  return file.starts_with("_greenlet.") || file.starts_with("greenlet.");
}

// Of the C library, and of the interpreter's small executable.
bool IsStart(std::string_view file, std::string_view name) {
  if (name == "_start") return true;
  if (file.starts_with("python")) return name == "main";
  return name.starts_with("__libc_start") || name == "start_thread" || name == "clone" ||
         name == "clone3";
}

CodeKind KindOf(const NativePlace& place) {
  const std::string_view file = FileName(place.binary);
  const std::string_view name =
      place.functions.empty() ? std::string_view() : place.functions.back().name;
  if (IsStart(file, name)) return CodeKind::kStart;
  if (IsGreenlet(file)) return CodeKind::kGreenlet;
  return IsSystem(file) ? CodeKind::kSystem : CodeKind::kOther;
}

}  // namespace

const NativeCode::Known& NativeCode::Of(Address instruction) {
  const auto known = known_.find(instruction);
  if (known != known_.end()) return known->second;
  if (known_.size() >= kMostKnown) known_.clear();
  const Module* module = binaries_->ModuleAt(instruction);
  const EvaluationLoop* loop = module == nullptr ? nullptr : LoopOf(*module);
  // Of the interpreter's functions none is shown.
  Known found{.place = binaries_->PlaceOf(instruction, loop == nullptr)};
  found.kind =
      loop != nullptr ? InterpreterKind(*loop, instruction, found.place) : KindOf(found.place);
  return known_.insert_or_assign(instruction, std::move(found)).first->second;
}

void NativeCode::ForgetUnknown() {
  for (auto it = known_.begin(); it != known_.end();) {
    it = it->second.place.binary.empty() ? known_.erase(it) : std::next(it);
  }
}

void NativeCode::Forget() {
  known_.clear();
  loops_.clear();
}

CodeKind NativeCode::InterpreterKind(const EvaluationLoop& loop, Address instruction,
                                     const NativePlace& place) const {
  if (!place.functions.empty()) {
    const std::string_view name = place.functions.back().name;
    return name == kEvaluationLoop || name.starts_with(kTailCalled) ? CodeKind::kEvaluation
                                                                    : CodeKind::kInterpreter;
  }
  const auto function = binaries_->FunctionAt(instruction);
  return function && loop.Has(*function) ? CodeKind::kEvaluation : CodeKind::kInterpreter;
}

const EvaluationLoop* NativeCode::LoopOf(const Module& module) {
  auto known = loops_.find(module.image.range().start);
  if (known == loops_.end()) {
    known =
        loops_.insert_or_assign(module.image.range().start, EvaluationLoop::Find(*memory_, module))
            .first;
  }
  return known->second ? &*known->second : nullptr;
}

std::string NameOfUnknown(const NativePlace& place, Address instruction) {
  if (place.binary.empty()) return fmt::format("{:#x}", instruction);
  return fmt::format("{}+{:#x}", FileName(place.binary), place.offset);
}

}  // namespace pystrobe::native
