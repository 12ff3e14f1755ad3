// SPDX-License-Identifier: Apache-2.0
#include "sampler/native/function_name.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

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

TEST(FunctionNameTest, LeavesOutNothingThatIsPartOfTheName) {
  EXPECT_EQ(FunctionName("runtime.mallocgc"), "runtime.mallocgc");
  EXPECT_EQ(FunctionName("main.(*Tree).Walk.func1"), "main.(*Tree).Walk.func1");
  EXPECT_EQ(FunctionName("lookup.v2"), "lookup.v2");
  EXPECT_EQ(FunctionName("lookup.2"), "lookup.2");
  EXPECT_EQ(FunctionName("lookup.llvm.1234567890"), "lookup");
}

// As types they are float, int * and unsigned long.
TEST(FunctionNameTest, OfCIsNoTypeOfCpp) {
  for (const char* name : {"f", "Pi", "m"}) EXPECT_EQ(FunctionName(name), name);
}

TEST(FunctionNameTest, OfRustIsWhatRustCallsIt) {
  EXPECT_EQ(FunctionName("_ZN5alloc6string6String4push17h0123456789abcdefE"),
            "alloc::string::String::push");
  EXPECT_EQ(FunctionName("_ZN58_$LT$alloc..string..String$u20$as$u20$core..fmt..Debug$GT$3fmt"
                         "17h0123456789abcdefE"),
            "<alloc::string::String as core::fmt::Debug>::fmt");
  EXPECT_EQ(
      FunctionName("_ZN4core3ptr43drop_in_place$LT$$RF$$u5b$u8$u3b$4$u5d$$GT$17h0123456789abcdefE"
                   ".llvm.7"),
      "core::ptr::drop_in_place<&[u8;4]>");
  EXPECT_EQ(FunctionName("_ZN3foo13_$SP$bar$u3d$17h0123456789abcdefE"), "foo::@bar=");
  EXPECT_EQ(FunctionName("_ZN3foo21gr$uf6$$udf$e$u1d518$17h0123456789abcdefE"), "foo::größe𝔘");
  // No characters that could be shown, or no numbers.
  EXPECT_EQ(FunctionName("_ZN3foo9a$u1b$$u$17h0123456789abcdefE"), "foo::a$u1b$$u$");
  EXPECT_EQ(FunctionName("_ZN3foo6$u20x$17h0123456789abcdefE"), "foo::$u20x$");
}

// f<A<int, int>, A<A<int, int>, A<int, int>>, ...>: each twice as long as the one before.
std::string DoublingName(size_t levels) {
  constexpr std::string_view kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string symbol = "_Z1fI1AIiiE";
  for (size_t i = 1; i <= levels; ++i) {
    symbol += fmt::format("S0_IS{0}_S{0}_E", kDigits[i]);
  }
  return symbol + "Evv";
}

TEST(FunctionNameTest, ThatDoublesWithEachPartIsBounded) {
  const std::string some = FunctionName(DoublingName(9).c_str());
  EXPECT_TRUE(some.starts_with("f<A<int, int>, A<A<int, int>, A<int, int> >,")) << some;
  EXPECT_TRUE(some.ends_with("...")) << some;
  EXPECT_LT(some.size(), 5000U);
  EXPECT_EQ(FunctionName(DoublingName(18).c_str()), DoublingName(18));
  // Terabytes, were it made before it is measured.
  EXPECT_EQ(FunctionName(DoublingName(35).c_str()), DoublingName(35));
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
