// SPDX-License-Identifier: Apache-2.0
#include "gpu/kernel_name.h"

#include <gtest/gtest.h>

namespace pystrobe::gpu {
namespace {

TEST(Demangle, WhatIsMangled) {
  EXPECT_EQ(Demangle("_Z6kernelIfEvPT_i"), "void kernel<float>(float*, int)");
  EXPECT_EQ(Demangle("triton_poi_fused_add_0"), "triton_poi_fused_add_0");
  EXPECT_EQ(Demangle("_Zbroken"), "_Zbroken");
  EXPECT_EQ(Demangle(""), "");
}

TEST(ShortKernelName, HasNoArgumentsAndReturnsNothing) {
  const auto expect = [](const char* full, const char* name) {
    EXPECT_EQ(ShortKernelName(full), name) << full;
  };
  expect("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >(int, float*)",
         "at::native::reduce_kernel");
  expect("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NTT", "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NTT");
  expect("void (anonymous namespace)::softmax<float>(float*)", "(anonymous namespace)::softmax");
  expect("void cutlass::Kernel2<cutlass_80_gemm>(cutlass_80_gemm::Params)", "cutlass::Kernel2");
  expect("void shift<(1 << 2), (3 > 2)>(int)", "shift");
  expect("void call<decltype (f(1)->x)>(int)", "call");
  expect("Vector::operator<(Vector const&)", "Vector::operator<");
  expect("void Vector::operator()<int>(int)", "Vector::operator()");
  expect("copy(int)::{lambda(int)#1}::operator()(int) const", "copy::{lambda(int)#1}::operator()");
  expect("", "");
  expect("broken<", "broken");
  expect("broken<a(", "broken");
}

}  // namespace
}  // namespace pystrobe::gpu
