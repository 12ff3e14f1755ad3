// SPDX-License-Identifier: Apache-2.0
#include "profiler/trace/call_filter.h"

#include <gtest/gtest.h>

namespace pystrobe::trace {
namespace {

TEST(CallFilter, WithoutPatternsAdmitsAll) {
  EXPECT_TRUE(CallFilter{}.IsEmpty());
  EXPECT_TRUE(CallFilter{}.Admits("f", "/srv/a.py"));
}

TEST(CallFilter, PatternsFitFilesNamesAndDirectories) {
  const CallFilter filter{.include = {"/srv/app", "*.save", "*/tools/*.py"}};
  EXPECT_TRUE(filter.Admits("f", "/srv/app/a/b.py"));
  EXPECT_FALSE(filter.Admits("f", "/srv/application/a.py"));
  EXPECT_TRUE(filter.Admits("Model.save", "/x/model.py"));
  EXPECT_FALSE(filter.Admits("Model.saved", "/x/model.py"));
  EXPECT_TRUE(filter.Admits("f", "/x/tools/deep/y.py"));
}

TEST(CallFilter, WhatIsExcludedIsSoWhateverIncludesIt) {
  const CallFilter filter{.include = {"/srv"}, .exclude = {"*/generated/*", "<lambda>"}};
  EXPECT_TRUE(filter.Admits("f", "/srv/a.py"));
  EXPECT_FALSE(filter.Admits("f", "/srv/generated/a.py"));
  EXPECT_FALSE(filter.Admits("<lambda>", "/srv/a.py"));
}

TEST(CallFilter, WhatWasInstalledIsNotOfTheLibrary) {
  const CallFilter filter{.library = {"/py/lib/python3.11/"}};
  EXPECT_FALSE(filter.Admits("f", "/py/lib/python3.11/json/decoder.py"));
  EXPECT_FALSE(filter.Admits("f", "<frozen importlib._bootstrap>"));
  EXPECT_TRUE(filter.Admits("f", "/py/lib/python3.11/site-packages/yaml/reader.py"));
  EXPECT_TRUE(filter.Admits("f", "/srv/a.py"));
  EXPECT_TRUE(filter.Admits("f", "<string>"));
}

}  // namespace
}  // namespace pystrobe::trace
