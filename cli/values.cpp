// SPDX-License-Identifier: Apache-2.0
#include "cli/values.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "profiler/base/ascii.h"
#include "profiler/write/number_text.h"
#include "sampler/remote/sampler.h"

namespace pystrobe::cli {
namespace {

/// The number at the start of `text`, which is moved behind it.
std::optional<double> TakeNumber(std::string_view& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value)) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

/// The letters at the start of `text`, which is moved behind them.
std::string_view TakeLetters(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), IsLetter);
  const std::string_view letters = text.substr(0, static_cast<size_t>(end - text.begin()));
  text.remove_prefix(letters.size());
  return letters;
}

std::optional<double> SecondsPerUnit(std::string_view unit) {
  if (unit == "s") return 1;
  if (unit == "ms") return 1e-3;
  if (unit == "us") return 1e-6;
  if (unit == "m" || unit == "min") return 60;
  if (unit == "h") return 3600;
  return std::nullopt;
}

/// A number of seconds, or numbers with units one after another: "1h30m".
std::optional<double> SecondsOf(std::string_view text) {
  double seconds = 0;
  for (bool first = true; first || !text.empty(); first = false) {
    const std::optional<double> number = TakeNumber(text);
    if (!number) return std::nullopt;
    if (first && text.empty()) return number;
    const std::optional<double> unit = SecondsPerUnit(TakeLetters(text));
    if (!unit || (!first && *number < 0)) return std::nullopt;
    seconds += *number * *unit;
  }
  return seconds;
}

}  // namespace

Result<double> ParseRate(std::string_view text) {
  const std::string hint = "Give samples a second, for instance -r 1000.";
  std::string_view rest = text;
  const std::optional<double> hz = TakeNumber(rest);
  if (!hz || !(rest.empty() || rest == "Hz" || rest == "hz")) {
    return FailWithHint(ErrorCode::kInvalidArgument, hint, "rate '{}' is not a number", text);
  }
  if (*hz <= 0) {
    return FailWithHint(ErrorCode::kInvalidArgument, hint, "rate '{}' is not above 0", text);
  }
  if (*hz > remote::kMaxRateHz) {
    return FailWithHint(ErrorCode::kInvalidArgument,
                        "Useful rates are 10 to 10000; what a rate costs is printed at the end.",
                        "rate '{}' is above {} Hz", text,
                        write::GroupDigits(static_cast<uint64_t>(remote::kMaxRateHz)));
  }
  // Less than one sample in ten hours is a slip of the finger, and its period overflows nothing
  // only by luck.
  if (*hz < 1.0 / 36000) {
    return FailWithHint(ErrorCode::kInvalidArgument, hint,
                        "rate '{}' is less than one sample in ten hours", text);
  }
  return *hz;
}

Result<Nanoseconds> ParseDuration(std::string_view option, std::string_view text,
                                  bool zero_allowed) {
  const std::string hint =
      fmt::format("Give seconds, or numbers with ms, s, m or h: {} 10, {} 1h30m.", option, option);
  const std::optional<double> seconds = SecondsOf(text);
  if (!seconds) {
    return FailWithHint(ErrorCode::kInvalidArgument, hint, "{} '{}' is not a time", option, text);
  }
  const bool is_nothing = *seconds * 1e9 < 0.5 && !zero_allowed;
  if (*seconds < 0 || is_nothing) {
    return FailWithHint(ErrorCode::kInvalidArgument, hint, "{} '{}' is {} 0", option, text,
                        zero_allowed ? "below" : "not above");
  }
  constexpr double kCentury = 100 * 365.25 * 86400;
  if (*seconds > kCentury) {
    return FailWithHint(ErrorCode::kInvalidArgument, "Leave the option out to have no limit.",
                        "{} '{}' is above a century", option, text);
  }
  return Nanoseconds(static_cast<int64_t>(std::llround(*seconds * 1e9)));
}

Result<double> ParseShare(std::string_view option, std::string_view text) {
  const std::string hint = fmt::format("Give a share as {} 1% or {} 0.01.", option, option);
  std::string_view rest = text;
  const std::optional<double> number = TakeNumber(rest);
  if (!number || !(rest.empty() || rest == "%")) {
    return FailWithHint(ErrorCode::kInvalidArgument, hint, "{} '{}' is not a share", option, text);
  }
  if (*number <= 0) {
    return FailWithHint(ErrorCode::kInvalidArgument, hint, "{} '{}' is not above 0", option, text);
  }
  if (rest.empty() && *number >= 1) {
    return FailWithHint(ErrorCode::kInvalidArgument,
                        fmt::format("For {} per cent write {} {}%.", text, option, text),
                        "{} '{}' could mean {} per cent or {} times the whole", option, text, text,
                        text);
  }
  const double share = rest.empty() ? *number : *number / 100;
  if (share > 1) {
    return FailWithHint(ErrorCode::kInvalidArgument, hint, "{} '{}' is above 100 %", option, text);
  }
  return share;
}

Result<pid_t> ParsePid(std::string_view text) {
  const std::string hint =
      "Give the number of a running process, as `pgrep -af python` or `ps` show it.";
  int64_t value = 0;
  const char* const end_of_text = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), end_of_text, value);
  if (error == std::errc::invalid_argument || end != end_of_text) {
    return FailWithHint(ErrorCode::kInvalidArgument, hint, "process id '{}' is not a number", text);
  }
  if (error != std::errc() || value <= 0 || value > std::numeric_limits<pid_t>::max()) {
    return FailWithHint(ErrorCode::kInvalidArgument, hint,
                        "process id '{}' is not one a process can have", text);
  }
  if (value == getpid()) {
    return FailWithHint(
        ErrorCode::kInvalidArgument,
        hint +
            " In a shell $! is that of the program last started with &; $$ is the shell's own, "
            "which `exec pystrobe` takes over.",
        "process id '{}' is that of this pystrobe itself", text);
  }
  return static_cast<pid_t>(value);
}

Result<uint32_t> ParseCount(std::string_view option, std::string_view text) {
  uint32_t value = 0;
  const char* const end_of_text = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), end_of_text, value);
  if (error != std::errc() || end != end_of_text || value == 0) {
    return FailWithHint(ErrorCode::kInvalidArgument,
                        fmt::format("Give a whole number from 1 on, for instance {} 30.", option),
                        "{} '{}' is not a number of lines", option, text);
  }
  return value;
}

Result<uint32_t> ParseDepth(std::string_view option, std::string_view text) {
  uint32_t value = 0;
  const char* const end_of_text = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), end_of_text, value);
  if (error != std::errc() || end != end_of_text || value == 0 || value > kMostMaxDepth) {
    return FailWithHint(
        ErrorCode::kInvalidArgument,
        fmt::format("Give a whole number from 1 to {}, for instance {} 20.", kMostMaxDepth, option),
        "{} '{}' is not a depth of calls", option, text);
  }
  return value;
}

}  // namespace pystrobe::cli
