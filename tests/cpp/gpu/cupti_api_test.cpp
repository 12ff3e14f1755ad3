// SPDX-License-Identifier: Apache-2.0
#include "gpu/cupti_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/gpu/mock_cupti.h"

namespace pystrobe::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(CuptiNames, AreOfTheRuntimeThenOfTheDriverAndBefore) {
  EXPECT_THAT(CuptiNames(0, 13), ElementsAre("libcupti.so.13", "libcupti.so.12"));
  EXPECT_THAT(CuptiNames(12, 13), ElementsAre("libcupti.so.12", "libcupti.so.13"));
  EXPECT_THAT(CuptiNames(13, 13), ElementsAre("libcupti.so.13", "libcupti.so.12"));
  EXPECT_THAT(CuptiNames(13, 12), ElementsAre("libcupti.so.12")) << "too new for the driver";
  EXPECT_THAT(CuptiNames(11, 12), ElementsAre("libcupti.so.12")) << "too old for us";
}

TEST(CuptiApi, IsTheOneThatTheProcessHas) {
  const MockCupti mock;
  const std::string elsewhere[] = {"/nowhere/libcupti.so.13"};
  const auto api = CuptiApi::Load(elsewhere);
  ASSERT_TRUE(api) << api.error().message;
  EXPECT_EQ((*api)->version, 130001U);
  EXPECT_THAT((*api)->path, EndsWith("mock_cuda/libcupti.so.13"));
  EXPECT_EQ(CuptiApi::Load({}).value(), *api) << "it is kept";
}

TEST(CuptiApi, IsTheFirstNameThatIsThere) {
  const std::string names[] = {"/nowhere/libcupti.so.13", "libcupti.so.13"};
  const auto api = CuptiApi::Open("not a library's name", names);
  ASSERT_TRUE(api) << api.error().message;
  EXPECT_EQ(api->version, 130001U);
}

TEST(CuptiApi, SaysThatThereIsNone) {
  const std::string names[] = {"libcupti.so.99"};
  const auto api = CuptiApi::Open("libcupti.so.99", names);
  ASSERT_FALSE(api);
  EXPECT_EQ(api.error().code, ErrorCode::kGpu);
  EXPECT_THAT(api.error().message, HasSubstr("there is no CUPTI: libcupti.so.99"));
  EXPECT_THAT(api.error().hint, HasSubstr("pip install nvidia-cuda-cupti"));
}

TEST(CuptiApi, SaysWhichFunctionIsMissing) {
  const std::string names[] = {"libcuda.so.1"};
  const auto api = CuptiApi::Open("libcuda.so", names);
  ASSERT_FALSE(api);
  EXPECT_THAT(api.error().message, HasSubstr("has no cuptiGetVersion"));
}

TEST(CuptiApi, SaysThatItIsTooOld) {
  const MockCupti mock;
  mock.SetVersion(18);
  const auto api = CuptiApi::Open("libcupti.so", {});
  mock.SetVersion(130001);
  ASSERT_FALSE(api);
  EXPECT_THAT(api.error().message, HasSubstr("too old: its version is 18"));
  EXPECT_THAT(api.error().hint, HasSubstr("CUDA 12.0 or later"));
}

TEST(CuptiApi, NamesItsErrorsAndTheirCure) {
  const MockCupti mock;
  const auto api = CuptiApi::Load({});
  ASSERT_TRUE(api);
  const Error held =
      (*api)->ErrorOf(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, "asking for callbacks");
  EXPECT_EQ(held.message,
            "asking for callbacks: CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED (39)");
  EXPECT_THAT(held.hint, HasSubstr("torch.profiler"));
  EXPECT_THAT((*api)->ErrorOf(CUPTI_ERROR_NOT_INITIALIZED, "x").hint, HasSubstr("driver"));
  EXPECT_EQ((*api)->ErrorOf(static_cast<CUptiResult>(1234), "x").message,
            "x: an error without a name (1234)");
}

}  // namespace
}  // namespace pystrobe::gpu
