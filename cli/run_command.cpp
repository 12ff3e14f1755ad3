// SPDX-License-Identifier: Apache-2.0
#include "cli/run_command.h"

#include <unistd.h>

#include "cli/understand.h"
#include "profiler/base/ascii.h"
#include "profiler/write/writer.h"

namespace pystrobe::cli {
namespace {

// Of the virtual environment that the executable is installed in: where the package is, too.
std::optional<std::string> PythonBeside(std::string_view executable) {
  const size_t slash = executable.rfind('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string directory(executable.substr(0, slash));
  if (access((directory + "/../pyvenv.cfg").c_str(), F_OK) != 0) return std::nullopt;
  std::string python = directory + "/python";
  if (access(python.c_str(), X_OK) != 0) return std::nullopt;
  return python;
}

std::string FindPython(const RunOptions& options, Environment environment,
                       std::string_view executable) {
  if (options.python) return *options.python;
  if (const auto python = environment("PYSTROBE_PYTHON"); python && !python->empty()) {
    return *python;
  }
  if (const auto venv = environment("VIRTUAL_ENV"); venv && !venv->empty()) {
    const std::string python = *venv + "/bin/python";
    if (access(python.c_str(), X_OK) == 0) return python;
  }
  if (options.in_process) return PythonBeside(executable).value_or("python3");
  return "python3";
}

// As pystrobe.auto reads it: what would end a word of a list, or the list, in hexadecimal.
std::string ListSetting(std::string_view key, const std::vector<std::string>& words) {
  std::string setting;
  for (const std::string& word : words) {
    setting += setting.empty() ? fmt::format(",{}=", key) : ";";
    for (const char c : word) {
      const bool is_special = std::string_view("%,;").contains(c);
      setting +=
          is_special ? fmt::format("%{:02x}", static_cast<unsigned char>(c)) : std::string(1, c);
    }
  }
  return setting;
}

// "http.server", but not "python3.12" or "./tool".
bool LooksLikeModule(std::string_view word) {
  const size_t dot = word.find('.');
  if (dot == std::string_view::npos || word.find('/') != std::string_view::npos) return false;
  return dot > 0 && dot + 1 < word.size() && IsLetter(word[dot + 1]);
}

}  // namespace

Result<std::vector<std::string>> CommandToRun(const RunOptions& options, Environment environment,
                                              std::string_view executable) {
  if (options.is_command) return options.program;
  const std::string& script = options.program.front();
  if (script != "-m" && script != "-" && access(script.c_str(), F_OK) != 0) {
    std::string words;
    for (const std::string& word : options.program) words += " " + write::ShellQuoted(word);
    std::string hint = "To run a command write -- before it: pystrobe run --" + words;
    if (script.ends_with(".py")) {
      hint = "Give its path as seen from the working directory.";
    } else if (script.find(' ') != std::string::npos) {
      hint = "Give each word by itself, without quotes around them all.";
    } else if (LooksLikeModule(script)) {
      hint = "To run a module write -m before it: pystrobe run -m" + words;
    }
    return FailWithHint(ErrorCode::kNotFound, std::move(hint), "there is no script {}", script);
  }
  std::vector<std::string> command{FindPython(options, environment, executable)};
  command.insert(command.end(), options.program.begin(), options.program.end());
  return command;
}

std::string PythonWithPackage(Environment environment, std::string_view executable) {
  RunOptions options;
  options.in_process = true;
  return FindPython(options, environment, executable);
}

std::vector<std::string> CommandInside(const std::vector<std::string>& command) {
  std::vector<std::string> inside{command.front(), "-m", "pystrobe._launch"};
  inside.insert(inside.end(), command.begin() + 1, command.end());
  return inside;
}

std::string CureInside(const RunOptions& options, const std::string& python) {
  return fmt::format(
             "Unless a line above tells why: the interpreter must have the package. In a virtual "
             "environment, from pystrobe's source: {} -m pip install DIRECTORY. Or choose one that "
             "has it: --python PATH",
             options.is_command ? "python3" : write::ShellQuoted(python)) +
         (options.trace ? ". And the program must end by itself: one that calls os._exit leaves no "
                          "trace, but with --timeline -o NAME.strobe what it did until then"
                        : ". Or leave --in-process out, and the program is sampled from outside");
}

std::string CureOfKilled(const RunOptions& options) {
  return options.trace ? "A trace is written as the program ends: with --timeline -o NAME.strobe "
                         "what it did until then is kept."
                       : "It was too early for any samples.";
}

std::string SettingsInside(const RunOptions& run, int descriptor,
                           const std::optional<std::string>& children) {
  if (run.trace) {
    const TraceOptions& trace = *run.trace;
    return fmt::format(
        "mode=trace,engine={},clock={},builtins={:d},stdlib={:d},timeline={:d},gpu={:d}{}"
        ",fd={}{}{}",
        trace.engine, ClockName(trace.clock), trace.builtins, trace.stdlib, trace.timeline,
        run.record.gpu, trace.max_depth ? fmt::format(",max_depth={}", *trace.max_depth) : "",
        descriptor, ListSetting("include", trace.include), ListSetting("exclude", trace.exclude));
  }
  const RecordOptions& options = run.record;
  const bool by_wall = IsByWallTime(options.view);
  std::string settings = fmt::format("mode={},rate={},fd={}", by_wall ? "wall" : "cpu",
                                     options.sampler.rate_hz, descriptor);
  if (by_wall && options.sampler.max_overhead > 0) {
    settings += fmt::format(",max_overhead={}", options.sampler.max_overhead);
  }
  if (options.sampler.native) settings += ",native=1";
  if (options.gpu) {
    const bool timeline = std::ranges::any_of(options.outputs, [](const OutputRequest& output) {
      return write::IsOfTimeline(output.format);
    });
    settings +=
        fmt::format(",gpu={},timeline={:d}", options.gpu_launches ? "launches" : "1", timeline);
  }
  if (children) settings += ListSetting("children", {*children});
  return settings;
}

}  // namespace pystrobe::cli
