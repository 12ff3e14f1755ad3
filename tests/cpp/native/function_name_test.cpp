// SPDX-License-Identifier: Apache-2.0
#include "sampler/native/function_name.h"

#include <gtest/gtest.h>

namespace pystrobe::native {
namespace {

TEST(FunctionNameTest, IsTheFunctionsWhateverTheCompilerMadeOfIt) {
  EXPECT_EQ(FunctionName("deflate"), "deflate");
  EXPECT_EQ(FunctionName("_ZNSt6vectorIiSaIiEE9push_backEOi"),
            "std::vector<int, std::allocator<int> >::push_back");
  EXPECT_EQ(FunctionName("_ZN3foo3barEv.cold"), "foo::bar");
  EXPECT_EQ(FunctionName("lookup.constprop.0.isra.0"), "lookup");
  EXPECT_EQ(FunctionName("clock_nanosleep@@GLIBC_2.17"), "clock_nanosleep");
  EXPECT_EQ(FunctionName(".L5"), ".L5");
}

TEST(ShortNameTest, LeavesOutResultsParametersAndQualifiers) {
  EXPECT_EQ(ShortName("foo::bar(int, std::string const&) const"), "foo::bar");
  EXPECT_EQ(ShortName("void f<int, char>(int, char)"), "f<int, char>");
  EXPECT_EQ(ShortName("std::vector<int, std::allocator<int> > ns::g<(E)1>(int)"), "ns::g<(E)1>");
  EXPECT_EQ(ShortName("(anonymous namespace)::h(int)"), "(anonymous namespace)::h");
  EXPECT_EQ(ShortName("f(int)::{lambda(int)#1}::operator()(int) const"),
            "f::{lambda(int)#1}::operator()");
  EXPECT_EQ(ShortName("auto k<int (*)(char)>(int) const &"), "k<int (*)(char)>");
  EXPECT_EQ(ShortName("foo[abi:cxx11](int)"), "foo[abi:cxx11]");
}

TEST(ShortNameTest, KnowsOperators) {
  EXPECT_EQ(ShortName("operator new(unsigned long)"), "operator new");
  EXPECT_EQ(ShortName("A::operator<<(int)"), "A::operator<<");
  EXPECT_EQ(ShortName("A::operator unsigned long() const"), "A::operator unsigned long");
  EXPECT_EQ(ShortName("bool std::operator==<char>(X, Y)"), "std::operator==<char>");
  EXPECT_EQ(ShortName("A::operator->() const"), "A::operator->");
  EXPECT_EQ(ShortName("my_operator(int)"), "my_operator");
  EXPECT_EQ(ShortName("o A<int>::operator()<(E)1, double&>(double&) const"),
            "A<int>::operator()<(E)1, double&>");
  EXPECT_EQ(ShortName("bool ns::operator==<char, int>(X, Y)"), "ns::operator==<char, int>");
  EXPECT_EQ(ShortName("o& operator<< <char, int>(o&, int)"), "operator<< <char, int>");
  EXPECT_EQ(ShortName("bool operator< <char, int>(X, Y)"), "operator< <char, int>");
  EXPECT_EQ(ShortName("bool operator>(X, Y)"), "operator>");
  EXPECT_EQ(ShortName("T& A::operator[]<int>(int)"), "A::operator[]<int>");
  EXPECT_EQ(ShortName("A::operator std::vector<int (*)(char)>() const"),
            "A::operator std::vector<int (*)(char)>");
  EXPECT_EQ(ShortName("operator delete[](void*)"), "operator delete[]");
}

TEST(ShortNameTest, WhatItDoesNotUnderstandStays) {
  EXPECT_EQ(ShortName(""), "");
  EXPECT_EQ(ShortName("f(int"), "f(int");
  EXPECT_EQ(ShortName("vtable for A"), "A");
}

}  // namespace
}  // namespace pystrobe::native
