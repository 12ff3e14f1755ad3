// SPDX-License-Identifier: Apache-2.0
#include "profiler/write/json_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "profiler/write/utf8.h"
#include "tests/cpp/write/outputs.h"

namespace pystrobe::write {
namespace {

using namespace std::string_view_literals;

std::string Quoted(std::string_view text) {
  std::string json;
  AppendJsonString(text, json);
  return json;
}

template <typename Fill>
std::string Document(Fill fill) {
  testing::StringOutput output;
  OutputBuffer buffer(output);
  JsonWriter json(buffer);
  fill(json);
  EXPECT_TRUE(buffer.Finish());
  return output.text;
}

TEST(JsonStringTest, EscapesWhatMustBe) {
  EXPECT_EQ(Quoted(""), R"("")");
  EXPECT_EQ(Quoted("a\"b\\c/d"), R"("a\"b\\c/d")");
  EXPECT_EQ(Quoted("\n\r\t"), R"("\n\r\t")");
  EXPECT_EQ(Quoted("\0\x01\x1F\x7F"sv), R"("\u0000\u0001\u001f\u007f")");
}

TEST(JsonStringTest, IsSafeInAScriptElementAndReadable) {
  EXPECT_EQ(Quoted("</script>"), R"("\u003c/script>")");
  EXPECT_EQ(Quoted("<!--"), R"("\u003c!--")");
  EXPECT_EQ(Quoted("<module>"), R"("<module>")");
  EXPECT_EQ(Quoted("<"), R"("<")");
}

TEST(JsonStringTest, KeepsUtf8AndReplacesTheRest) {
  EXPECT_EQ(Quoted("\xC3\xA9\xF0\x9F\x8E\x89"), "\"\xC3\xA9\xF0\x9F\x8E\x89\"");
  EXPECT_EQ(Quoted("a\xFFz"), "\"a\xEF\xBF\xBDz\"");
  EXPECT_EQ(Quoted("a\xC3"), "\"a\xEF\xBF\xBD\"");
}

TEST(Utf8Test, TakesTheShortestFormOnly) {
  EXPECT_EQ(Utf8SequenceLength("a"), 1U);
  EXPECT_EQ(Utf8SequenceLength("\xC2\x80"), 2U);
  EXPECT_EQ(Utf8SequenceLength("\xE0\xA0\x80"), 3U);
  EXPECT_EQ(Utf8SequenceLength("\xF4\x8F\xBF\xBF"), 4U);
  EXPECT_EQ(Utf8SequenceLength(""), 0U);
  EXPECT_EQ(Utf8SequenceLength("\x80"), 0U);              // a continuation alone
  EXPECT_EQ(Utf8SequenceLength("\xC1\xBF"), 0U);          // overlong
  EXPECT_EQ(Utf8SequenceLength("\xE0\x9F\xBF"), 0U);      // overlong
  EXPECT_EQ(Utf8SequenceLength("\xED\xA0\x80"), 0U);      // a surrogate
  EXPECT_EQ(Utf8SequenceLength("\xF4\x90\x80\x80"), 0U);  // above U+10FFFF
  EXPECT_EQ(Utf8SequenceLength("\xE2\x82"), 0U);          // cut off
  EXPECT_EQ(Utf8SequenceLength("\xE2\x82z"), 0U);
}

TEST(Utf8Test, ReplacesByteByByte) {
  EXPECT_EQ(ValidUtf8("ok"), "ok");
  EXPECT_EQ(ValidUtf8("a\n\x1b\xff"), "a\n\x1b\xEF\xBF\xBD");
  EXPECT_EQ(ValidUtf8("\xE2\x82z"), "\xEF\xBF\xBD\xEF\xBF\xBDz");
}

TEST(JsonWriterTest, NestsAndSeparates) {
  const std::string text = Document([](JsonWriter& json) {
    json.BeginObject().Field("a", 1).Key("b").BeginArray().Value("x").BeginArray().EndArray();
    json.BeginObject().EndObject().Value(false).EndArray().Key("c").BeginObject();
    json.Field("d", true).EndObject().EndObject();
  });
  EXPECT_EQ(text, R"({"a":1,"b":["x",[],{},false],"c":{"d":true}})");
}

TEST(JsonWriterTest, WritesNumbersExactly) {
  const std::string text = Document([](JsonWriter& json) {
    json.BeginArray().Value(std::numeric_limits<uint64_t>::max());
    json.Value(std::numeric_limits<int64_t>::min()).Value(0.1).Value(1000.0).Value(1e300);
    json.Value(std::nan("")).Value(std::numeric_limits<double>::infinity()).EndArray();
  });
  EXPECT_EQ(text, "[18446744073709551615,-9223372036854775808,0.1,1000,1e+300,null,null]");
}

TEST(JsonWriterTest, BreaksLinesWhereAsked) {
  const std::string text = Document([](JsonWriter& json) {
    json.BeginArray().NewLine().Value(1).NewLine().Value(2).NewLine().EndArray();
  });
  EXPECT_EQ(text, "[\n1,\n2\n]");
}

}  // namespace
}  // namespace pystrobe::write
