// SPDX-License-Identifier: Apache-2.0
#include "cli/command_line.h"

#include <algorithm>

#include "cli/suggest.h"
#include "cli/understand.h"
#include "cli/values.h"
#include "cli/verb_options.h"
#include "profiler/base/ascii.h"

namespace pystrobe::cli {
namespace {

constexpr std::string_view kHelp =
    R"(pystrobe shows where the time of a running Python program goes.

Usage: pystrobe VERB [options]

  attach PID             sample a running process until Ctrl-C or its end
  run SCRIPT [args]      start a program and sample it (-m MODULE, -- COMMAND)
  trace SCRIPT [args]    start a program and trace every call (-m MODULE)
  dump PID               print every thread's stack as it is now
  report FILE.strobe     print or convert what was recorded
  doctor [PID]           check everything that could stand in the way
  bench                  measure what profilers cost on this machine

  pystrobe help VERB     options and examples of a verb, as VERB --help
  pystrobe version       version, as --version

Examples:
  pystrobe attach 1234                      a table of where the time goes
  pystrobe attach 1234 -d 10 -o out.html    ten seconds, and a flame graph
  pystrobe run script.py                    the same for a program of yours
  pystrobe trace script.py                  how often is what called?
  pystrobe dump 1234                        what is it doing right now?

Exit status: 0 success, 1 failure, 2 wrong usage; of run and trace: the
program's own.
)";

constexpr std::string_view kVerbs[] = {"attach", "run",   "trace", "dump",   "report",
                                       "doctor", "bench", "help",  "version"};

Result<Command> ParseAttach(Words words) {
  RawOptions raw;
  CLI::App app("Samples a running Python process and shows where its time goes.");
  Describe(app, "attach PID [options]",
           "Examples:\n"
           "  pystrobe attach 1234                     until Ctrl-C or the end of 1234\n"
           "  pystrobe attach 1234 -d 10 -o out.html   ten seconds, a flame graph\n"
           "  pystrobe attach 1234 -o a.strobe         record now, `pystrobe report` later\n"
           "  pystrobe attach 1234 -r 100 --mode cpu   100 Hz, processor time only\n"
           "  pystrobe attach 1234 --native            C and C++ functions too\n");
  app.add_option("PID", raw.pid, "The process to sample")->required();
  AddRecording(app, raw);
  auto help = Parse(app, "attach", words);
  if (!help) return std::unexpected(help.error());
  if (*help) return PrintAndExit{app.help()};
  auto pid = ParsePid(raw.pid);
  if (!pid) return std::unexpected(pid.error());
  auto record = UnderstandRecord(raw);
  if (!record) return std::unexpected(record.error());
  if (auto fits = CheckSamples(*record); !fits) return std::unexpected(fits.error());
  return AttachOptions{*pid, *std::move(record)};
}

/// How many of `words` are options of `app` with their values; the program of `run` begins behind.
size_t CountOptionWords(const CLI::App& app, Words words) {
  const auto takes_value = [&app](const std::string& name) {
    const CLI::Option* option = app.get_option_no_throw(name);
    return option != nullptr && option->get_items_expected_max() > 0;
  };
  size_t i = 0;
  while (i < words.size()) {
    const std::string& word = words[i];
    if (word == "--" || word == "-m" || word.size() < 2 || word[0] != '-') break;
    bool value_follows = false;
    if (word.starts_with("--")) {
      value_follows = word.find('=') == std::string::npos && takes_value(word);
    } else {
      // A cluster such as -qr 100: the first letter that takes a value takes the rest, if any.
      size_t letter = 1;
      while (letter < word.size() && !takes_value({'-', word[letter]})) ++letter;
      value_follows = letter + 1 == word.size();
    }
    i += value_follows ? 2 : 1;
  }
  return std::min(i, words.size());
}

/// What looks like an output of ours among the program's own words.
std::optional<std::array<std::string, 2>> MisplacedOutput(Words program) {
  for (size_t i = 1; i + 1 < program.size(); ++i) {
    const bool names_output = program[i] == "-o" || program[i] == "--output";
    if (names_output && write::FormatByFileName(program[i + 1])) {
      return {{program[i], program[i + 1]}};
    }
  }
  return std::nullopt;
}

void AddPython(CLI::App& app, RawOptions& raw) {
  app.add_option("--python", raw.python,
                 "Interpreter for SCRIPT and -m; default\n$PYSTROBE_PYTHON, the active virtual\n"
                 "environment's, inside the program that\nof pystrobe's own, or python3")
      ->type_name("PATH")
      ->group("Program");
}

/// What is behind the options of `run` and `trace`.
Result<void> TakeProgram(const std::string& verb, Words words, RunOptions& options) {
  options.is_command = !words.empty() && words[0] == "--";
  if (options.is_command) words = words.subspan(1);
  options.program.assign(words.begin(), words.end());
  const std::string hint = fmt::format("Name a script, -m and a module{}: pystrobe {} script.py",
                                       verb == "run" ? ", or -- and a command" : "", verb);
  if (options.program.empty() || options.program == std::vector<std::string>{"-m"}) {
    return Usage(hint, "{}: the program to run is missing", verb);
  }
  if (options.program.front().empty()) {
    return Usage(hint, "{}: the name of the program is empty", verb);
  }
  return {};
}

Result<void> TakeRecord(const std::string& verb, const RawOptions& raw, RunOptions& options) {
  if (!raw.python.empty()) options.python = raw.python;
  auto record = UnderstandRecord(raw);
  if (!record) return std::unexpected(record.error());
  options.record = *std::move(record);
  if (options.record.outputs.empty()) options.misplaced = MisplacedOutput(options.program);
  for (const OutputRequest& output : options.record.outputs) {
    if (output.to_stdout()) {
      return Usage("Name a file with -o.",
                   "{} cannot write to standard output, which is the program's", verb);
    }
  }
  return {};
}

Result<Command> ParseRun(Words words) {
  RawOptions raw;
  CLI::App app(
      "Starts a program, samples it from outside, and reports on stderr when it has\n"
      "ended. Its input, output and exit status are its own.");
  Describe(app, "run [options] SCRIPT | -m MODULE | -- COMMAND  [args]",
           "Examples:\n"
           "  pystrobe run script.py --its-own-options\n"
           "  pystrobe run -o out.html -m http.server\n"
           "  pystrobe run -- venv/bin/uvicorn app:app\n"
           "  pystrobe run --gpu train.py\n"
           "Its child processes are not followed: attach to them; or, where it forks them,\n"
           "--in-process --follow-fork.\n");
  AddPython(app, raw);
  app.add_flag(
         "--in-process", raw.in_process,
         "Sample from inside, by CPU time (with --mode\nwall by elapsed time): the interpreter "
         "must have\nthe Python package pystrobe")
      ->group("Program");
  app.add_flag("--follow-fork", raw.follow_fork,
               "From inside: children made by fork too, each into\na file of its own, out.PID.html "
               "beside -o out.html")
      ->group("Program");
  app.add_flag("--gpu", raw.with_gpu,
               "What a GPU does, too, and which call asked for\nit; from inside, as --in-process. "
               "-o x.trace.json\nand .perfetto-trace have its timeline")
      ->group("Program");
  app.add_flag("--gpu-launches", raw.with_launches,
               "What a GPU is given to do, counted and not\ntimed: it costs a launch less")
      ->group("Program");
  AddRecording(app, raw);
  const size_t count = CountOptionWords(app, words);
  auto help = Parse(app, "run", words.first(count));
  if (!help) return std::unexpected(help.error());
  if (*help) return PrintAndExit{app.help()};
  RunOptions options;
  if (auto taken = TakeProgram("run", words.subspan(count), options); !taken) {
    return std::unexpected(taken.error());
  }
  if (options.is_command && !raw.python.empty()) {
    return Usage("Leave --python out, or name a script.",
                 "--python {} concerns scripts and -m, but '{}' is a command of its own",
                 raw.python, options.program[0]);
  }
  if (auto taken = TakeRecord("run", raw, options); !taken) return std::unexpected(taken.error());
  if (raw.with_gpu && raw.with_launches) {
    return Usage("Leave one of them out.", "--gpu tells what --gpu-launches leaves out");
  }
  options.record.gpu = raw.with_gpu || raw.with_launches;
  options.record.gpu_launches = raw.with_launches;
  if (auto fits = CheckSamples(options.record); !fits) return std::unexpected(fits.error());
  options.in_process = raw.in_process || options.record.gpu;
  options.follow_fork = raw.follow_fork;
  if (auto fits = CheckFollowFork(raw, options); !fits) return std::unexpected(fits.error());
  if (options.in_process) {
    if (auto fits = CheckInProcess(raw, options); !fits) return std::unexpected(fits.error());
  }
  return options;
}

Result<Command> ParseTrace(Words words) {
  RawOptions raw;
  CLI::App app(
      "Starts a program, traces every call of Python, and reports on stderr when it\n"
      "has ended: exact counts, elapsed and CPU time. Its input, output and exit status\n"
      "are its own. The interpreter must have the Python package pystrobe.");
  Describe(app, "trace [options] SCRIPT | -m MODULE  [args]",
           "Examples:\n"
           "  pystrobe trace script.py --its-own-options\n"
           "  pystrobe trace -o out.html -o out.strobe -m package.module\n"
           "  pystrobe trace --builtins --mode cpu script.py\n"
           "Child processes are not traced; nor is what a killed program did, without\n"
           "--timeline.\n");
  AddPython(app, raw);
  AddTracing(app, raw);
  AddView(app, Of::kCalls, raw);
  AddOutput(app, Of::kCalls, raw);
  AddQuiet(app, raw);
  const size_t count = CountOptionWords(app, words);
  auto help = Parse(app, "trace", words.first(count));
  if (!help) return std::unexpected(help.error());
  if (*help) return PrintAndExit{app.help()};
  RunOptions options;
  if (auto taken = TakeProgram("trace", words.subspan(count), options); !taken) {
    return std::unexpected(taken.error());
  }
  if (options.is_command) {
    return Usage(
        "Name a script or -m and a module; or set PYSTROBE_ENABLE=mode=trace for the command, and "
        "have it import pystrobe.auto.",
        "trace needs to know the interpreter, and '{}' is a command of its own",
        options.program[0]);
  }
  auto trace = UnderstandTrace(raw);
  if (!trace) return std::unexpected(trace.error());
  options.trace = *std::move(trace);
  options.in_process = true;
  if (auto taken = TakeRecord("trace", raw, options); !taken) {
    return std::unexpected(taken.error());
  }
  options.record.gpu = raw.with_gpu;
  for (const OutputRequest& output : options.record.outputs) {
    if (write::IsOfTimeline(output.format)) options.trace->timeline = true;
  }
  options.record.is_large = options.trace->timeline;
  return options;
}

Result<Command> ParseDump(Words words) {
  RawOptions raw;
  CLI::App app("Prints every thread's stack as it is now, most recent call first.");
  Describe(app, "dump PID [options]",
           "Examples:\n"
           "  pystrobe dump 1234\n"
           "  pystrobe dump 1234 --json | jq '.threads[].frames[0]'\n");
  app.add_option("PID", raw.pid, "The process to look at")->required();
  app.add_flag("--json", raw.json, "Print JSON");
  app.add_flag("--locals", raw.locals,
               "Print local variables too: values may be\nsecret, and the pause is longer");
  app.add_flag("--native", raw.native,
               "Show C and C++ functions too, and threads\nwithout Python: stops each by ptrace");
  app.add_option("--pause", raw.pause, "How to hold a thread still: auto, preempt,\nptrace, none")
      ->type_name("HOW");
  auto help = Parse(app, "dump", words);
  if (!help) return std::unexpected(help.error());
  if (*help) return PrintAndExit{app.help()};
  auto pid = ParsePid(raw.pid);
  if (!pid) return std::unexpected(pid.error());
  auto pause = UnderstandPause(raw.pause);
  if (!pause) return std::unexpected(pause.error());
  if (auto fits = CheckNative(raw, *pause); !fits) return std::unexpected(fits.error());
  return DumpVerbOptions{*pid, raw.json, raw.locals, raw.native, *pause};
}

Result<Command> ParseReport(Words words) {
  RawOptions raw;
  CLI::App app("Reads a recording and prints a table, or writes it in another format.");
  Describe(app, "report FILE.strobe [options]",
           "Examples:\n"
           "  pystrobe report a.strobe --mode cpu\n"
           "  pystrobe report a.strobe -o a.html\n"
           "  pystrobe report a.strobe -f collapsed --since 10 --until 20 | sort\n");
  app.add_option("FILE", raw.file, "The recording")->required();
  AddView(app, Of::kEither, raw);
  app.add_option("--since", raw.since, "Leave out what was before; counts from the start")
      ->type_name("TIME")
      ->group("Report");
  app.add_option("--until", raw.until, "Leave out what came after")
      ->type_name("TIME")
      ->group("Report");
  AddOutput(app, Of::kEither, raw);
  auto help = Parse(app, "report", words);
  if (!help) return std::unexpected(help.error());
  if (*help) return PrintAndExit{app.help()};
  ReportOptions options{raw.file, {}, {}, raw.force};
  auto view = UnderstandView(raw);
  if (!view) return std::unexpected(view.error());
  options.view = *std::move(view);
  auto outputs = UnderstandOutputs(raw);
  if (!outputs) return std::unexpected(outputs.error());
  options.outputs = *std::move(outputs);
  for (const OutputRequest& output : options.outputs) {
    if (output.format == write::Format::kStrobe) {
      return Usage(fmt::format("Copy the file: cp {} NAME", raw.file),
                   "report does not write .strobe: {} is one already", raw.file);
    }
  }
  if (!options.outputs.empty() && !raw.top.empty()) {
    return Usage("Leave one of them out.",
                 "--top {} concerns the table, and {} asks for something else", raw.top,
                 raw.outputs.empty() ? "-f" : "-o");
  }
  if (auto pairs = CheckPairs(raw, options.outputs); !pairs) {
    return std::unexpected(pairs.error());
  }
  return options;
}

Result<Command> ParseDoctor(Words words) {
  RawOptions raw;
  CLI::App app("Checks everything that could keep pystrobe from sampling, and tells the cure.");
  Describe(app, "doctor [PID]",
           "Examples:\n"
           "  pystrobe doctor          this machine and these privileges\n"
           "  pystrobe doctor 1234     and whether process 1234 can be sampled\n");
  app.add_option("PID", raw.pid, "A process to check as well");
  auto help = Parse(app, "doctor", words);
  if (!help) return std::unexpected(help.error());
  if (*help) return PrintAndExit{app.help()};
  DoctorOptions options;
  if (!raw.pid.empty()) {
    auto pid = ParsePid(raw.pid);
    if (!pid) return std::unexpected(pid.error());
    options.pid = *pid;
  }
  return options;
}

/// `help`, `help VERB`.
Result<Command> ParseHelp(Words words) {
  if (words.empty()) return PrintAndExit{std::string(kHelp)};
  if (words.size() > 1) {
    return Usage("Name one verb.", "help: '{}' is one too many", words[1]);
  }
  // What is no verb is refused as such.
  const bool is_general = words[0] == "help" || words[0] == "version" || words[0].starts_with('-');
  if (is_general) return PrintAndExit{std::string(kHelp)};
  return ParseCommandLine(std::vector{words[0], std::string("--help")});
}

}  // namespace

Result<Command> ParseCommandLine(Words words) {
  if (words.empty()) return PrintAndExit{std::string(kHelp)};
  const std::string& verb = words[0];
  words = words.subspan(1);
  if (verb == "-h" || verb == "--help") return PrintAndExit{std::string(kHelp)};
  if (verb == "help") return ParseHelp(words);
  if (verb == "--version" || verb == "-V" || verb == "version") {
    return PrintAndExit{"pystrobe " PYSTROBE_VERSION "\n"};
  }
  if (verb == "attach") return ParseAttach(words);
  if (verb == "run") return ParseRun(words);
  if (verb == "trace") return ParseTrace(words);
  if (verb == "dump") return ParseDump(words);
  if (verb == "report") return ParseReport(words);
  if (verb == "doctor") return ParseDoctor(words);
  if (verb == "bench") return BenchOptions{{words.begin(), words.end()}};
  std::string hint =
      "The verbs are attach, run, trace, dump, report, doctor and bench; see pystrobe --help";
  if (IsNumber(verb)) {
    hint = fmt::format("To sample a process: pystrobe attach {}", verb);
  } else if (verb.ends_with(".py")) {
    hint = fmt::format("To run a program: pystrobe run {}", verb);
  } else if (verb.ends_with(".strobe")) {
    hint = fmt::format("To read a recording: pystrobe report {}", verb);
  } else if (verb == "record" || verb == "top") {  // as other profilers have it
    hint = "To sample a process: pystrobe attach PID; a program: pystrobe run";
  } else if (const auto meant = Nearest(verb, kVerbs)) {
    hint = fmt::format("Did you mean pystrobe {}? See pystrobe --help", *meant);
  }
  return Usage(std::move(hint), "there is no verb '{}'", verb);
}

}  // namespace pystrobe::cli
