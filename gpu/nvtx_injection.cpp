// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvtx_injection.h"

#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cwchar>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "gpu/name_table.h"
#include "gpu/nvtx_ranges.h"
#include "profiler/base/utf8.h"

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get_table);

namespace pystrobe::gpu {
namespace {

constexpr const char* kVariable = "NVTX_INJECTION64_PATH";
constexpr std::string_view kNoName = "(no name)";
constexpr uint32_t kMaxStrings = 1 << 16;  // that libraries register

/// What NVTX's functions have to do with. Never destroyed, as it may call to the end.
struct Hearing {
  NvtxRanges& ranges;
  NameTable strings;
  std::string path;  // of this library
};
// Null: in this process nobody wants to hear.
std::atomic<Hearing*> hearing{nullptr};

// Handles are numbers, so that none can be wrong: 0 is the default domain, and no string.
template <typename Handle>
uint32_t ToNumber(Handle handle) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(handle));
}
template <typename Handle>
Handle ToHandle(uint32_t number) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return reinterpret_cast<Handle>(uintptr_t{number});
}

// Throws std::bad_alloc.
std::string ToUtf8(const wchar_t* text) {
  if (text == nullptr) return "";
  // No more of it is kept.
  const std::span characters(text, wcsnlen(text, RangeNodes::kMaxName + 1));
  return pystrobe::ToUtf8(std::as_bytes(characters), sizeof(wchar_t));
}

std::string_view NameOf(const char* text) {
  if (text == nullptr || *text == 0) return kNoName;
  // No more of it is kept, and it may be a message of megabytes.
  return {text, strnlen(text, RangeNodes::kMaxName + 1)};
}
std::string_view NameOf(const std::string& text) { return text.empty() ? kNoName : text; }

// Calls `use` with the name that the attributes give. Throws std::bad_alloc.
template <typename Use>
auto WithName(const Hearing& self, const nvtxEventAttributes_t* attributes, Use use) {
  constexpr size_t kLeast = offsetof(nvtxEventAttributes_t, message) + sizeof(nvtxMessageValue_t);
  if (attributes == nullptr || attributes->size < kLeast) return use(kNoName);
  const nvtxMessageValue_t& message = attributes->message;
  switch (attributes->messageType) {
    case NVTX_MESSAGE_TYPE_ASCII:
      return use(NameOf(message.ascii));
    case NVTX_MESSAGE_TYPE_UNICODE:
      return use(NameOf(ToUtf8(message.unicode)));
    case NVTX_MESSAGE_TYPE_REGISTERED: {
      const std::string_view text = self.strings.text(ToNumber(message.registered));
      return use(text.empty() ? kNoName : text);
    }
    default:
      return use(kNoName);
  }
}

// Nothing may be thrown through NVTX: where there is no memory it is as if nobody had heard.
template <typename Do>
auto Heard(Do what, decltype(what(std::declval<Hearing&>())) otherwise) noexcept {
  try {
    return what(*hearing.load(std::memory_order_acquire));
  } catch (const std::bad_alloc&) {
    return otherwise;
  }
}

// A push that is not kept would have its pop close another one.
template <typename Message>
int Push(uint32_t domain, Message message) noexcept {
  return Heard(
      [&](Hearing& self) {
        try {
          return message(self,
                         [&](std::string_view name) { return self.ranges.Push(domain, name); });
        } catch (const std::bad_alloc&) {
          return self.ranges.Push(domain, kNoName);
        }
      },
      NVTX_NO_PUSH_POP_TRACKING);
}

template <typename Message>
nvtxRangeId_t Start(uint32_t domain, Message message) noexcept {
  return Heard(
      [&](Hearing& self) {
        return message(self,
                       [&](std::string_view name) { return self.ranges.Start(domain, name); });
      },
      nvtxRangeId_t{0});
}

auto Of(const char* text) {
  return [text](Hearing&, auto use) { return use(NameOf(text)); };
}
auto Of(const wchar_t* text) {
  return [text](Hearing&, auto use) { return use(NameOf(ToUtf8(text))); };
}
auto Of(const nvtxEventAttributes_t* attributes) {
  return [attributes](Hearing& self, auto use) { return WithName(self, attributes, use); };
}

int NVTX_API PushEx(const nvtxEventAttributes_t* attributes) { return Push(0, Of(attributes)); }
int NVTX_API PushA(const char* text) { return Push(0, Of(text)); }
int NVTX_API PushW(const wchar_t* text) { return Push(0, Of(text)); }
int NVTX_API Pop() {
  return Heard([](Hearing& self) { return self.ranges.Pop(0); }, -1);
}
nvtxRangeId_t NVTX_API StartEx(const nvtxEventAttributes_t* attributes) {
  return Start(0, Of(attributes));
}
nvtxRangeId_t NVTX_API StartA(const char* text) { return Start(0, Of(text)); }
nvtxRangeId_t NVTX_API StartW(const wchar_t* text) { return Start(0, Of(text)); }
void NVTX_API End(nvtxRangeId_t id) {
  Heard([id](Hearing& self) { return self.ranges.End(id), 0; }, 0);
}

int NVTX_API DomainPushEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  return Push(ToNumber(domain), Of(attributes));
}
int NVTX_API DomainPop(nvtxDomainHandle_t domain) {
  return Heard([domain](Hearing& self) { return self.ranges.Pop(ToNumber(domain)); }, -1);
}
nvtxRangeId_t NVTX_API DomainStartEx(nvtxDomainHandle_t domain,
                                     const nvtxEventAttributes_t* attributes) {
  return Start(ToNumber(domain), Of(attributes));
}
void NVTX_API DomainEnd(nvtxDomainHandle_t, nvtxRangeId_t id) { End(id); }

nvtxDomainHandle_t CreateDomain(std::string_view name, Hearing& self) {
  return ToHandle<nvtxDomainHandle_t>(self.ranges.Domain(name));
}
nvtxDomainHandle_t NVTX_API DomainCreateA(const char* name) {
  return Heard([name](Hearing& self) { return CreateDomain(name != nullptr ? name : "", self); },
               nvtxDomainHandle_t{});
}
nvtxDomainHandle_t NVTX_API DomainCreateW(const wchar_t* name) {
  return Heard([name](Hearing& self) { return CreateDomain(ToUtf8(name), self); },
               nvtxDomainHandle_t{});
}

nvtxStringHandle_t Register(std::string_view text, Hearing& self) {
  return ToHandle<nvtxStringHandle_t>(self.strings.Intern(text));
}
nvtxStringHandle_t NVTX_API RegisterStringA(nvtxDomainHandle_t, const char* text) {
  return Heard([text](Hearing& self) { return Register(NameOf(text), self); },
               nvtxStringHandle_t{});
}
nvtxStringHandle_t NVTX_API RegisterStringW(nvtxDomainHandle_t, const wchar_t* text) {
  return Heard([text](Hearing& self) { return Register(NameOf(ToUtf8(text)), self); },
               nvtxStringHandle_t{});
}

struct Slot {
  uint32_t index;
  NvtxFunctionPointer function;
};
template <typename Function>
Slot At(uint32_t index, Function* function) {
  return {index, reinterpret_cast<NvtxFunctionPointer>(function)};
}

// Marks have no duration; nothing else is set, so NVTX does without. A domain's name may be needed
// longer than the domain.
std::array<Slot, 8> CoreSlots() {
  return {At(NVTX_CBID_CORE_RangePushEx, &PushEx),   At(NVTX_CBID_CORE_RangePushA, &PushA),
          At(NVTX_CBID_CORE_RangePushW, &PushW),     At(NVTX_CBID_CORE_RangePop, &Pop),
          At(NVTX_CBID_CORE_RangeStartEx, &StartEx), At(NVTX_CBID_CORE_RangeStartA, &StartA),
          At(NVTX_CBID_CORE_RangeStartW, &StartW),   At(NVTX_CBID_CORE_RangeEnd, &End)};
}
std::array<Slot, 8> Core2Slots() {
  return {At(NVTX_CBID_CORE2_DomainRangePushEx, &DomainPushEx),
          At(NVTX_CBID_CORE2_DomainRangePop, &DomainPop),
          At(NVTX_CBID_CORE2_DomainRangeStartEx, &DomainStartEx),
          At(NVTX_CBID_CORE2_DomainRangeEnd, &DomainEnd),
          At(NVTX_CBID_CORE2_DomainCreateA, &DomainCreateA),
          At(NVTX_CBID_CORE2_DomainCreateW, &DomainCreateW),
          At(NVTX_CBID_CORE2_DomainRegisterStringA, &RegisterStringA),
          At(NVTX_CBID_CORE2_DomainRegisterStringW, &RegisterStringW)};
}

// All or none: a push without its pop would be worse than neither.
bool Fill(const NvtxExportTableCallbacks& callbacks, NvtxCallbackModule module,
          const std::array<Slot, 8>& slots) {
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks.GetModuleFunctionTable(module, &table, &size) == 0 || table == nullptr)
    return false;
  for (const Slot& slot : slots) {
    if (slot.index >= size || table[slot.index] == nullptr) return false;
  }
  for (const Slot& slot : slots) *table[slot.index] = slot.function;
  return true;
}

bool HearFrom(NvtxGetExportTableFunc_t get_table) {
  const auto* const callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  constexpr size_t kLeast = offsetof(NvtxExportTableCallbacks, GetModuleFunctionTable) +
                            sizeof(NvtxExportTableCallbacks::GetModuleFunctionTable);
  if (callbacks == nullptr || callbacks->struct_size < kLeast) return false;
  const bool core = Fill(*callbacks, NVTX_CB_MODULE_CORE, CoreSlots());
  const bool core2 = Fill(*callbacks, NVTX_CB_MODULE_CORE2, Core2Slots());
  return core || core2;
}

// As dlopen takes it wherever the process goes.
Result<std::string> PathOfThisLibrary() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&InitializeInjectionNvtx2), &info) == 0 ||
      info.dli_fname == nullptr) {
    return Fail(ErrorCode::kGpu, "the dynamic linker does not tell where this library is");
  }
  const std::unique_ptr<char, decltype(&std::free)> path(realpath(info.dli_fname, nullptr),
                                                         &std::free);
  if (path == nullptr) return FailErrno(errno, ErrorCode::kGpu, "{}", info.dli_fname);
  return std::string(path.get());
}

// A pystrobe of another interpreter, whose process has started this one.
bool IsOfAnotherPystrobe(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash != std::string_view::npos && path.substr(0, slash).ends_with("/pystrobe") &&
         path.substr(slash + 1).starts_with("_core.");
}

}  // namespace

Result<void> HearNvtx() {
  if (hearing.load() == nullptr) {
    const auto ranges = NvtxRanges::OfThisProcess();
    if (!ranges) return std::unexpected(ranges.error());
    auto strings = NameTable::Make(kMaxStrings, RangeNodes::kOtherName);
    if (!strings) return std::unexpected(strings.error());
    auto path = PathOfThisLibrary();
    if (!path) return std::unexpected(path.error());
    hearing = new Hearing(**ranges, *std::move(strings), *std::move(path));
    const auto unlock = [] { hearing.load()->strings.mutex().unlock(); };
    pthread_atfork([] { hearing.load()->strings.mutex().lock(); }, unlock, unlock);
  }
  const char* const set = std::getenv(kVariable);
  if (set == nullptr || *set == 0 || IsOfAnotherPystrobe(set)) {
    setenv(kVariable, hearing.load()->path.c_str(), 1);
  }
  return {};
}

std::optional<std::string> OtherNvtxTool() {
  const Hearing* const self = hearing.load();
  const char* const set = std::getenv(kVariable);
  if (set == nullptr || (self != nullptr && self->path == set)) return std::nullopt;
  return std::string(set);
}

}  // namespace pystrobe::gpu

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  if (pystrobe::gpu::hearing.load() == nullptr || get_table == nullptr) return 0;
  return pystrobe::gpu::HearFrom(get_table) ? 1 : 0;
}
