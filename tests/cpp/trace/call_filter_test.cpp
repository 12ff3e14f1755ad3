// SPDX-License-Identifier: Apache-2.0
#include "profiler/trace/call_filter.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pystrobe::trace {
namespace {

NamedFunction Function(const char* name, const char* file) {
  static const std::vector<std::string> kPath = {"/srv/app", "/py/lib", "/py/lib/site-packages/"};
  return {name, file, ModulesOf(file, kPath)};
}

TEST(CallFilter, WithoutPatternsAdmitsAll) {
  EXPECT_TRUE(CallFilter{}.IsEmpty());
  EXPECT_TRUE(CallFilter{}.Admits(Function("f", "/srv/a.py")));
}

TEST(CallFilter, PatternsFitFilesNamesAndDirectories) {
  const CallFilter filter{.include = {{"/srv/app"}, {"*.save"}, {"*/tools/*.py"}}};
  EXPECT_TRUE(filter.Admits(Function("f", "/srv/app/a/b.py")));
  EXPECT_FALSE(filter.Admits(Function("f", "/srv/application/a.py")));
  EXPECT_TRUE(filter.Admits(Function("Model.save", "/x/model.py")));
  EXPECT_FALSE(filter.Admits(Function("Model.saved", "/x/model.py")));
  EXPECT_TRUE(filter.Admits(Function("f", "/x/tools/deep/y.py")));
}

TEST(CallFilter, PatternsFitModulesAndWhatIsInPackages) {
  const char* const decoder = "/py/lib/json/decoder.py";
  const auto fits = [](const char* pattern, const NamedFunction& function) {
    return CallFilter{.include = {{pattern}}}.Admits(function);
  };
  EXPECT_TRUE(fits("json.decoder", Function("JSONDecoder.decode", decoder)));
  EXPECT_TRUE(fits("json", Function("JSONDecoder.decode", decoder)));
  EXPECT_TRUE(fits("json", Function("loads", "/py/lib/json/__init__.py")));
  EXPECT_TRUE(fits("json.*", Function("loads", "/py/lib/json/__init__.py")));
  EXPECT_TRUE(fits("json.decoder.JSON*", Function("JSONDecoder.decode", decoder)));
  EXPECT_FALSE(fits("json.deco", Function("JSONDecoder.decode", decoder)));
  EXPECT_FALSE(fits("decoder", Function("JSONDecoder.decode", decoder)));
  EXPECT_FALSE(fits("json", Function("f", "/srv/other/json/decoder.py")));
}

TEST(CallFilter, AFileHasANameForEachDirectoryThatItMayBeImportedFrom) {
  using Modules = std::vector<std::string>;
  EXPECT_EQ(Function("f", "/py/lib/site-packages/yaml/reader.py").modules,
            (Modules{"site-packages.yaml.reader", "yaml.reader"}));
  EXPECT_EQ(Function("f", "<frozen importlib._bootstrap>").modules,
            Modules{"importlib._bootstrap"});
  EXPECT_EQ(Function("f", "<string>").modules, Modules{});
}

TEST(CallFilter, WhatIsExcludedIsSoWhateverIncludesIt) {
  const CallFilter filter{.include = {{"/srv"}}, .exclude = {{"*/generated/*"}, {"<lambda>"}}};
  EXPECT_TRUE(filter.Admits(Function("f", "/srv/a.py")));
  EXPECT_FALSE(filter.Admits(Function("f", "/srv/generated/a.py")));
  EXPECT_FALSE(filter.Admits(Function("<lambda>", "/srv/a.py")));
}

TEST(CallFilter, AFileMayBeNamedByItsPath) {
  const CallFilter filter{.exclude = {{"./app", "/srv/app"}}};
  EXPECT_FALSE(filter.Admits(Function("f", "/srv/app/a.py")));
  EXPECT_TRUE(filter.Admits(Function("f", "/srv/a.py")));
}

TEST(UnusedPatterns, AreThoseThatFitNothing) {
  const CallFilter filter{.include = {{"/srv"}, {"./lib", "/home/me/lib"}, {"/srv/ap"}},
                          .exclude = {{"nosuch.*"}, {"*.load"}}};
  UnusedPatterns unused(filter);
  unused.Look(Function("f", "/srv/app.py"));
  EXPECT_EQ(unused.texts(), (std::vector<std::string>{"./lib", "/srv/ap", "nosuch.*", "*.load"}));
  unused.Look(Function("Shop.load", "/home/me/lib/a.py"));
  EXPECT_EQ(unused.texts(), (std::vector<std::string>{"/srv/ap", "nosuch.*"}));
}

TEST(CallFilter, WhatWasInstalledIsNotOfTheLibrary) {
  const CallFilter filter{.library = {"/py/lib/python3.11/"}};
  EXPECT_FALSE(filter.Admits(Function("f", "/py/lib/python3.11/json/decoder.py")));
  EXPECT_FALSE(filter.Admits(Function("f", "<frozen importlib._bootstrap>")));
  EXPECT_TRUE(filter.Admits(Function("f", "/py/lib/python3.11/site-packages/yaml/reader.py")));
  EXPECT_TRUE(filter.Admits(Function("f", "/srv/a.py")));
  EXPECT_TRUE(filter.Admits(Function("f", "<string>")));
}

}  // namespace
}  // namespace pystrobe::trace
