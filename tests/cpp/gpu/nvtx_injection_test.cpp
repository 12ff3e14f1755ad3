// SPDX-License-Identifier: Apache-2.0
//
// NVTX's own headers, as a library that uses them, call what is tested: this program has it built
// in (built_in_injection.cpp); tests/python/test_gpu_ranges.py has it by its path.
#include "gpu/nvtx_injection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nvtx3/nvToolsExt.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <optional>
#include <string>

#include "gpu/nvtx.h"
#include "gpu/nvtx_ranges.h"
#include "tests/cpp/gpu/recorded_ranges.h"

extern "C" int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);

namespace pystrobe::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::Pair;

constexpr const char* kVariable = "NVTX_INJECTION64_PATH";

class NvtxInjectionTest : public ::testing::Test {
 protected:
  NvtxInjectionTest() {
    unsetenv(kVariable);
    EXPECT_TRUE(HearNvtx());
    // This program is no library that could be loaded.
    unsetenv(kVariable);
  }
  static nvtxEventAttributes_t Attributes(int32_t type) {
    nvtxEventAttributes_t attributes{};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = type;
    return attributes;
  }
};

TEST_F(NvtxInjectionTest, RangesOfTheDefaultDomain) {
  RecordedRanges recorded;
  EXPECT_EQ(nvtxRangePushA("a"), 0);
  EXPECT_EQ(nvtxRangePushW(L"b\x20AC\x1F600"), 1);
  auto attributes = Attributes(NVTX_MESSAGE_TYPE_ASCII);
  attributes.message.ascii = "c";
  EXPECT_EQ(nvtxRangePushEx(&attributes), 2);
  nvtxMarkA("a mark");
  EXPECT_EQ(nvtxRangePop(), 2);
  EXPECT_EQ(nvtxRangePop(), 1);
  EXPECT_EQ(nvtxRangePop(), 0);
  EXPECT_LT(nvtxRangePop(), 0);
  const nvtxRangeId_t first = nvtxRangeStartA("d");
  const nvtxRangeId_t second = nvtxRangeStartW(L"e");
  const nvtxRangeId_t third = nvtxRangeStartEx(&attributes);
  nvtxRangeEnd(first);
  nvtxRangeEnd(third);
  nvtxRangeEnd(second);
  EXPECT_EQ(NvtxRanges::Current(), 0U);
  recorded.End();
  EXPECT_THAT(recorded.Counts(),
              ElementsAre(Pair("a", 1), Pair("a/b\xE2\x82\xAC\xF0\x9F\x98\x80", 1),
                          Pair("a/b\xE2\x82\xAC\xF0\x9F\x98\x80/c", 1), Pair("d", 1),
                          Pair("d/e", 1), Pair("d/e/c", 1)));
}

TEST_F(NvtxInjectionTest, RangesOfDomainsWithRegisteredStrings) {
  RecordedRanges recorded;
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("domain");
  EXPECT_EQ(nvtxDomainCreateW(L"domain"), domain);
  EXPECT_NE(nvtxDomainCreateA("another"), domain);
  auto attributes = Attributes(NVTX_MESSAGE_TYPE_REGISTERED);
  attributes.message.registered = nvtxDomainRegisterStringA(domain, "registered");
  EXPECT_EQ(nvtxDomainRegisterStringW(domain, L"registered"), attributes.message.registered);
  EXPECT_EQ(nvtxDomainRangePushEx(domain, &attributes), 0);
  const nvtxRangeId_t id = nvtxDomainRangeStartEx(domain, &attributes);
  EXPECT_NE(id, 0U);
  EXPECT_LT(nvtxRangePop(), 0);
  EXPECT_EQ(nvtxDomainRangePop(domain), 0);
  nvtxDomainRangeEnd(domain, id);
  nvtxDomainDestroy(domain);
  recorded.End();
  EXPECT_THAT(recorded.Counts(), ElementsAre(Pair("domain:registered", 1),
                                             Pair("domain:registered/domain:registered", 1)));
}

TEST_F(NvtxInjectionTest, WhatIsNoNameHasOne) {
  RecordedRanges recorded;
  auto attributes = Attributes(NVTX_MESSAGE_UNKNOWN);
  nvtxRangePushEx(&attributes);
  nvtxRangePop();
  attributes = Attributes(NVTX_MESSAGE_TYPE_REGISTERED);
  nvtxRangePushEx(&attributes);
  nvtxRangePop();
  // As of a newer version, with a handle that nobody gave.
  attributes.message.registered = reinterpret_cast<nvtxStringHandle_t>(~uintptr_t{0});
  nvtxRangePushEx(&attributes);
  nvtxRangePop();
  attributes.messageType = 77;
  nvtxRangePushEx(&attributes);
  nvtxRangePop();
  attributes.size = 8;
  nvtxRangePushEx(&attributes);
  nvtxRangePop();
  nvtxRangePushEx(nullptr);
  nvtxRangePop();
  nvtxRangePushA(nullptr);
  nvtxRangePop();
  nvtxRangePushW(nullptr);
  nvtxRangePop();
  nvtxRangePushA("");
  nvtxRangePop();
  const auto wrong = reinterpret_cast<nvtxDomainHandle_t>(~uintptr_t{0});
  EXPECT_LT(nvtxDomainRangePushEx(wrong, &attributes), 0);
  EXPECT_LT(nvtxDomainRangePop(wrong), 0);
  recorded.End();
  EXPECT_THAT(recorded.Counts(), ElementsAre(Pair("(no name)", 9)));
}

TEST_F(NvtxInjectionTest, WhatIsNoCharacterIsReplaced) {
  RecordedRanges recorded;
  const std::array<wchar_t, 4> text{L'a', 0xD800, static_cast<wchar_t>(0x110000), 0};
  nvtxRangePushW(text.data());
  nvtxRangePop();
  nvtxRangePushA("b\xFF");
  nvtxRangePop();
  recorded.End();
  EXPECT_THAT(recorded.Counts(),
              ElementsAre(Pair("a\xEF\xBF\xBD\xEF\xBF\xBD", 1), Pair("b\xFF", 1)));
}

TEST_F(NvtxInjectionTest, OurOwnRangesAreHeardAsAnyOthers) {
  RecordedRanges recorded;
  PushNvtxRange("step");
  nvtxRangePushA("inside");
  nvtxRangePop();
  PopNvtxRange();
  recorded.End();
  EXPECT_THAT(recorded.Counts(),
              ElementsAre(Pair("pystrobe:step", 1), Pair("pystrobe:step/inside", 1)));
}

TEST_F(NvtxInjectionTest, AChildOfForkCanCallIt) {
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("domain");
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    auto attributes = Attributes(NVTX_MESSAGE_TYPE_REGISTERED);
    attributes.message.registered = nvtxDomainRegisterStringA(domain, "in the child");
    const bool good = nvtxDomainRangePushEx(domain, &attributes) == 0 &&
                      nvtxDomainRangePop(domain) == 0 && nvtxRangePushA("a") == 0;
    _exit(good ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

/// Tables as NVTX would give them, but for one thing.
struct Tables {
  static inline size_t struct_size;
  static inline unsigned core_size, core2_size;
  static inline std::array<NvtxFunctionPointer, NVTX_CBID_CORE_SIZE> core;
  static inline std::array<NvtxFunctionPointer, NVTX_CBID_CORE2_SIZE> core2;
  static inline std::array<NvtxFunctionPointer*, NVTX_CBID_CORE_SIZE + 1> core_table;
  static inline std::array<NvtxFunctionPointer*, NVTX_CBID_CORE2_SIZE + 1> core2_table;

  static void Reset() {
    struct_size = sizeof(NvtxExportTableCallbacks);
    core_size = NVTX_CBID_CORE_SIZE;
    core2_size = NVTX_CBID_CORE2_SIZE;
    core = {};
    core2 = {};
    core_table = {};
    core2_table = {};
    for (size_t i = 1; i < core.size(); ++i) core_table[i] = &core[i];
    for (size_t i = 1; i < core2.size(); ++i) core2_table[i] = &core2[i];
  }
  static int NVTX_API Get(NvtxCallbackModule module, NvtxFunctionTable* table, unsigned* size) {
    if (module == NVTX_CB_MODULE_CORE) {
      *table = core_table.data();
      *size = core_size;
      return core_size == 0 ? 0 : 1;
    }
    *table = core2_table.data();
    *size = core2_size;
    return core2_size == 0 ? 0 : 1;
  }
  static const void* NVTX_API Export(uint32_t id) {
    static NvtxExportTableCallbacks callbacks;
    callbacks = {.struct_size = struct_size, .GetModuleFunctionTable = &Get};
    return id == NVTX_ETID_CALLBACKS ? &callbacks : nullptr;
  }
};

TEST_F(NvtxInjectionTest, TablesThatAreTooSmallAreLeftAlone) {
  Tables::Reset();
  EXPECT_EQ(InitializeInjectionNvtx2(&Tables::Export), 1);
  EXPECT_NE(Tables::core[NVTX_CBID_CORE_RangePushA], nullptr);
  EXPECT_NE(Tables::core2[NVTX_CBID_CORE2_DomainRangePop], nullptr);
  EXPECT_EQ(Tables::core[NVTX_CBID_CORE_MarkA], nullptr);

  Tables::Reset();
  Tables::core_size = NVTX_CBID_CORE_RangePop;
  EXPECT_EQ(InitializeInjectionNvtx2(&Tables::Export), 1);
  EXPECT_EQ(Tables::core[NVTX_CBID_CORE_RangePushA], nullptr) << "without its pop";
  EXPECT_NE(Tables::core2[NVTX_CBID_CORE2_DomainRangePop], nullptr);

  Tables::Reset();
  Tables::core_size = 0;
  Tables::core2_table[NVTX_CBID_CORE2_DomainRangePop] = nullptr;
  EXPECT_EQ(InitializeInjectionNvtx2(&Tables::Export), 0);
  EXPECT_EQ(Tables::core2[NVTX_CBID_CORE2_DomainRangePushEx], nullptr);

  Tables::Reset();
  Tables::struct_size = sizeof(size_t);
  EXPECT_EQ(InitializeInjectionNvtx2(&Tables::Export), 0);
  EXPECT_EQ(InitializeInjectionNvtx2([](uint32_t) -> const void* { return nullptr; }), 0);
  EXPECT_EQ(InitializeInjectionNvtx2(nullptr), 0);
}

TEST_F(NvtxInjectionTest, TheVariableIsSetUnlessAnotherToolHasIt) {
  ASSERT_TRUE(HearNvtx());
  EXPECT_THAT(getenv(kVariable), EndsWith("/gpu_test"));
  EXPECT_EQ(OtherNvtxTool(), std::nullopt);
  setenv(kVariable, "/opt/nsys/libToolsInjection64.so", 1);
  ASSERT_TRUE(HearNvtx());
  EXPECT_STREQ(getenv(kVariable), "/opt/nsys/libToolsInjection64.so");
  EXPECT_EQ(OtherNvtxTool(), "/opt/nsys/libToolsInjection64.so");
  // Of the parent of this process.
  setenv(kVariable, "/env/site-packages/pystrobe/_core.cpython-39-x86_64-linux-gnu.so", 1);
  ASSERT_TRUE(HearNvtx());
  EXPECT_THAT(getenv(kVariable), EndsWith("/gpu_test"));
  setenv(kVariable, "", 1);
  ASSERT_TRUE(HearNvtx());
  EXPECT_THAT(getenv(kVariable), EndsWith("/gpu_test"));
}

}  // namespace
}  // namespace pystrobe::gpu
