// SPDX-License-Identifier: Apache-2.0
#include "profiler/analyze/kernel_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>

namespace pystrobe {
namespace {

using ::testing::ElementsAre;

/// Labels of kernels that have this short name all.
std::vector<std::string> LabelsOf(std::string_view short_name,
                                  std::initializer_list<std::string_view> names) {
  Tables tables;
  GpuRecord record;
  for (const std::string_view name : names) {
    record.kernels.push_back(
        {.name = tables.Intern(name), .short_name = tables.Intern(short_name)});
  }
  const KernelLabels labels(record, tables);
  std::vector<std::string> found;
  for (const GpuKernel& kernel : record.kernels) {
    found.emplace_back(labels.Of(kernel.name, kernel.short_name));
    EXPECT_EQ(labels.IsTold(kernel.name), found.back() != short_name);
  }
  return found;
}

TEST(KernelLabels, OfOneKernelIsItsShortName) {
  EXPECT_THAT(LabelsOf("gemm", {"void gemm<float, 128>(float*)", "void gemm<float, 128>(float*)"}),
              ElementsAre("gemm", "gemm"))
      << "in two shapes";
}

TEST(KernelLabels, TellArgumentsInWhichKernelsDiffer) {
  EXPECT_THAT(LabelsOf("at::native::vectorized_elementwise_kernel",
                       {"void at::native::vectorized_elementwise_kernel<4, "
                        "at::native::FillFunctor<int>, std::array<char*, 1ul> >(int, "
                        "at::native::FillFunctor<int>, std::array<char*, 1ul>)",
                        "void at::native::vectorized_elementwise_kernel<4, "
                        "at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)"}),
              ElementsAre("at::native::vectorized_elementwise_kernel<FillFunctor<int>>",
                          "at::native::vectorized_elementwise_kernel<CUDAFunctor_add<float>>"))
      << "as few as do";
  EXPECT_THAT(LabelsOf("gemm", {"void gemm<float, 128>()", "void gemm<float, 64>()"}),
              ElementsAre("gemm<128>", "gemm<64>"));
  EXPECT_THAT(
      LabelsOf("gemm", {"void gemm<float, 1>()", "void gemm<float, 2>()", "void gemm<int, 2>()"}),
      ElementsAre("gemm<float, 1>", "gemm<float, 2>", "gemm<int, 2>"));
  EXPECT_THAT(LabelsOf("gemm", {"void gemm<float>()", "void gemm<float, 64>()"}),
              ElementsAre("gemm", "gemm<64>"));
}

TEST(KernelLabels, TellFunctionsInsideOfFunctionsShortly) {
  EXPECT_THAT(
      LabelsOf(
          "at::unrolled",
          {"void at::unrolled<at::direct_copy(at::TensorIteratorBase&)::{lambda()#3}::operator()"
           "() const::{lambda()#7}::operator()() const::{lambda(float)#1}>(int)",
           "void at::unrolled<(anonymous namespace)::square((a::B<int>)5)::{lambda(int)#1}>()"}),
      ElementsAre("at::unrolled<direct_copy::{lambda()#3}::{lambda()#7}::{lambda(float)#1}>",
                  "at::unrolled<square::{lambda(int)#1}>"));
}

TEST(KernelLabels, KeepNamespacesThatTellKernelsApart) {
  EXPECT_THAT(LabelsOf("run", {"void run<a::Sum>()", "void run<b::Sum>()"}),
              ElementsAre("run<a::Sum>", "run<b::Sum>"));
}

TEST(KernelLabels, WithoutArgumentsThatDifferAreWholeNames) {
  EXPECT_THAT(LabelsOf("run", {"run(int)", "run(float)"}), ElementsAre("run(int)", "run(float)"));
  EXPECT_THAT(LabelsOf("", {"<", ">"}), ElementsAre("<", ">"));
  EXPECT_THAT(LabelsOf("broken", {"broken<a(", "broken<"}), ElementsAre("broken<a(", "broken<"));
}

TEST(KernelLabels, AreOfTheFunctionNotOfWhatItReturns) {
  EXPECT_THAT(
      LabelsOf("call", {"std::enable_if<(1 > 0), int>::type call<f(1)->x, 2>(List<int>)",
                        "std::enable_if<(1 > 0), int>::type call<f(1)->y, 2>(List<float>)"}),
      ElementsAre("call<f(1)->x>", "call<f(1)->y>"));
}

// What a file may say must not take a reader long: each of these would take minutes if every
// bracket or argument were looked at once for every other.
TEST(KernelLabels, OfHostileNamesTakeNoTime) {
  const std::string open(1'000'000, '(');
  std::vector<std::string> names = {"k<" + open + "1>", "k<" + open + "2>",
                                    "k<" + std::string(1'000'000, ',') + ">",
                                    "k<" + std::string(500'000, '<')};
  for (int i = 0; i < 20'000; ++i) names.push_back(std::to_string(i));
  Tables tables;
  GpuRecord record;
  for (const std::string& name : names) {
    record.kernels.push_back({.name = tables.Intern(name), .short_name = tables.Intern("k")});
  }
  const KernelLabels labels(record, tables);
  EXPECT_EQ(labels.Of(record.kernels.back().name, tables.Intern("k")), "19999");
}

}  // namespace
}  // namespace pystrobe
