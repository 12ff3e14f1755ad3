// SPDX-License-Identifier: Apache-2.0
#include "cli/command_line.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cli/run_command.h"

namespace pystrobe::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using Words = std::vector<std::string>;

template <typename Options>
Options ParseAs(const Words& words) {
  auto command = ParseCommandLine(words);
  EXPECT_TRUE(command) << command.error().message;
  if (!command) return {};
  EXPECT_TRUE(std::holds_alternative<Options>(*command));
  return std::get<Options>(*std::move(command));
}

/// The message of the refusal; every refusal tells what to do.
std::string Refusal(const Words& words) {
  const auto command = ParseCommandLine(words);
  EXPECT_FALSE(command) << words.back();
  if (command) return "";
  EXPECT_EQ(command.error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(command.error().hint.empty()) << command.error().message;
  return command.error().message;
}

TEST(CommandLine, HelpAndVersion) {
  EXPECT_THAT(ParseAs<PrintAndExit>({}).text, HasSubstr("Usage: pystrobe VERB"));
  EXPECT_THAT(ParseAs<PrintAndExit>({"--help"}).text, HasSubstr("Exit status"));
  EXPECT_THAT(ParseAs<PrintAndExit>({"--version"}).text, HasSubstr("pystrobe 0."));
  EXPECT_THAT(ParseAs<PrintAndExit>({"version"}).text, HasSubstr("pystrobe 0."));
  EXPECT_THAT(ParseAs<PrintAndExit>({"help"}).text, HasSubstr("Exit status"));
  EXPECT_THAT(ParseAs<PrintAndExit>({"help", "version"}).text, HasSubstr("Exit status"));
  for (const char* verb : {"attach", "run", "trace", "dump", "report", "doctor"}) {
    const std::string help = ParseAs<PrintAndExit>({verb, "--help"}).text;
    EXPECT_THAT(help, HasSubstr(std::string("Usage: pystrobe ") + verb));
    EXPECT_THAT(help, HasSubstr("Examples:"));
    EXPECT_EQ(ParseAs<PrintAndExit>({"help", verb}).text, help);
  }
}

TEST(CommandLine, HelpOffersNothingThatIsRefused) {
  const auto help = [](const char* verb) { return ParseAs<PrintAndExit>({verb, "--help"}).text; };
  for (const char* of_samples : {"attach", "run"}) {
    EXPECT_THAT(help(of_samples), HasSubstr("gil: time"));
    EXPECT_THAT(help(of_samples), HasSubstr("--idle"));
    EXPECT_THAT(help(of_samples), Not(HasSubstr("callgrind")));
    EXPECT_THAT(help(of_samples), Not(HasSubstr("pstats")));
  }
  EXPECT_THAT(help("trace"), Not(HasSubstr("gil")));
  EXPECT_THAT(help("trace"), Not(HasSubstr("--idle")));
  EXPECT_THAT(help("trace"),
              HasSubstr(".json\n                           .callgrind .pstats .trace.json\n"));
  EXPECT_THAT(help("report"), HasSubstr("gil: time"));
  EXPECT_THAT(help("report"), HasSubstr("--gpu"));
  EXPECT_THAT(help("attach"), Not(HasSubstr("gpu")));
  EXPECT_THAT(Refusal({"attach", "7", "--mode", "gpu"}), HasSubstr("do not tell what a GPU did"));
  const auto twice = ParseCommandLine(Words{"run", "--gpu", "--mode", "gpu", "a.py"});
  ASSERT_FALSE(twice);
  EXPECT_THAT(twice.error().hint, HasSubstr("'report FILE --gpu' shows that alone"));
  EXPECT_THAT(Refusal({"run", "--gpu", "--gpu-launches", "a.py"}), HasSubstr("leaves out"));
  EXPECT_THAT(Refusal({"run", "--gpu-launches", "-o", "x.trace.json", "a.py"}),
              HasSubstr("which --gpu-launches does not tell"));
  EXPECT_THAT(Refusal({"attach", "7", "--gpu"}), HasSubstr("no option '--gpu'"));
  EXPECT_THAT(Refusal({"trace", "--mode", "gpu", "a.py"}), HasSubstr("'gpu' is not known"));
  EXPECT_THAT(Refusal({"report", "a.strobe", "--gpu", "--mode", "cpu"}),
              HasSubstr("--gpu is short for --mode gpu"));
  EXPECT_THAT(help("report"), HasSubstr("calls also .callgrind .pstats"));
  EXPECT_THAT(Refusal({"trace", "--idle", "a.py"}), HasSubstr("no thread whose calls are traced"));
  const auto no_mode = ParseCommandLine(Words{"trace", "--mode", "all", "a.py"});
  ASSERT_FALSE(no_mode);
  EXPECT_EQ(no_mode.error().hint, "It is one of wall, cpu.");
}

TEST(CommandLine, HelpTellsWhichReleasesHaveAnEngine) {
  const std::string help = ParseAs<PrintAndExit>({"trace", "--help"}).text;
  EXPECT_THAT(help, HasSubstr("frame-eval (up to 3.11, but not 3.11.0 to 3.11.3),"));
  EXPECT_THAT(help, HasSubstr("monitoring (from 3.12 on)"));
}

TEST(CommandLine, HelpFitsEightyColumns) {
  for (const Words& words :
       {Words{}, Words{"attach", "-h"}, Words{"run", "-h"}, Words{"trace", "-h"},
        Words{"dump", "-h"}, Words{"report", "-h"}, Words{"doctor", "-h"}}) {
    std::istringstream text(ParseAs<PrintAndExit>(words).text);
    for (std::string line; std::getline(text, line);) EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST(CommandLine, Traces) {
  const RunOptions plain = ParseAs<RunOptions>({"trace", "a.py", "--builtins"});
  ASSERT_TRUE(plain.trace);
  EXPECT_EQ(plain.trace->engine, "auto");
  EXPECT_FALSE(plain.trace->builtins) << "what follows the script is its own";
  EXPECT_TRUE(plain.in_process);
  const RunOptions all = ParseAs<RunOptions>(
      {"trace", "--engine", "setprofile", "--builtins", "-o", "a.html", "-m", "b"});
  EXPECT_EQ(all.trace->engine, "setprofile");
  EXPECT_TRUE(all.trace->builtins);
  EXPECT_EQ(all.record.outputs.size(), 1U);
  EXPECT_FALSE(ParseAs<RunOptions>({"run", "a.py"}).trace);
}

TEST(CommandLine, TracesByAClock) {
  EXPECT_EQ(ParseAs<RunOptions>({"trace", "a.py"}).trace->clock, CallClock::kBoth);
  EXPECT_EQ(ParseAs<RunOptions>({"trace", "--clock", "wall", "a.py"}).trace->clock,
            CallClock::kWall);
  EXPECT_EQ(ParseAs<RunOptions>({"trace", "--clock=cpu", "--mode=wall", "a.py"}).trace->clock,
            CallClock::kCpu);
  EXPECT_THAT(Refusal({"trace", "--clock", "gil", "a.py"}),
              HasSubstr("--clock 'gil' is not known"));
  EXPECT_THAT(Refusal({"trace", "--clock", "wall", "--mode", "cpu", "a.py"}),
              HasSubstr("--clock wall has no CPU time read, which --mode cpu would show"));
}

TEST(CommandLine, TracesToADepth) {
  EXPECT_FALSE(ParseAs<RunOptions>({"trace", "a.py"}).trace->max_depth);
  EXPECT_EQ(ParseAs<RunOptions>({"trace", "--max-depth", "3", "a.py"}).trace->max_depth, 3U);
  for (const char* bad : {"0", "-1", "2.5", "many", "131073", "99999999999"}) {
    EXPECT_THAT(Refusal({"trace", "--max-depth", bad, "a.py"}),
                HasSubstr(fmt::format("--max-depth '{}' is not a depth of calls", bad)));
  }
  const auto refused = ParseCommandLine(Words{"trace", "--max-depth", "0", "a.py"});
  EXPECT_EQ(refused.error().hint,
            "Give a whole number from 1 to 131072, for instance --max-depth 20.");
}

TEST(CommandLine, NativeFramesFromOutside) {
  EXPECT_FALSE(ParseAs<AttachOptions>({"attach", "1"}).record.sampler.native);
  EXPECT_TRUE(ParseAs<AttachOptions>({"attach", "1", "--native"}).record.sampler.native);
  const RunOptions run = ParseAs<RunOptions>({"run", "--native", "--pause", "ptrace", "a.py"});
  EXPECT_TRUE(run.record.sampler.native);
  EXPECT_FALSE(run.in_process);
  EXPECT_THAT(Refusal({"attach", "1", "--native", "--pause", "none"}),
              HasSubstr("--native stops threads by ptrace, not by --pause none"));
  EXPECT_THAT(Refusal({"dump", "1", "--native", "--pause", "preempt"}),
              HasSubstr("--native stops threads by ptrace, not by --pause preempt"));
}

TEST(CommandLine, AttachDefaults) {
  const auto options = ParseAs<AttachOptions>({"attach", "1234"});
  EXPECT_EQ(options.pid, 1234);
  EXPECT_EQ(options.record.sampler.rate_hz, 1000);
  EXPECT_EQ(options.record.sampler.max_overhead, 0.01);
  EXPECT_EQ(options.record.sampler.pause, remote::PauseMode::kAuto);
  EXPECT_FALSE(options.record.sampler.duration);
  EXPECT_TRUE(options.record.outputs.empty());
  EXPECT_EQ(options.record.view.mode, std::nullopt);
}

TEST(CommandLine, AnExplicitRateIsObeyed) {
  EXPECT_EQ(ParseAs<AttachOptions>({"attach", "1", "-r", "500"}).record.sampler.max_overhead, 0);
  const auto both =
      ParseAs<AttachOptions>({"attach", "1", "-r500", "--max-overhead=5%"}).record.sampler;
  EXPECT_EQ(both.rate_hz, 500);
  EXPECT_DOUBLE_EQ(both.max_overhead, 0.05);
  EXPECT_EQ(ParseAs<AttachOptions>({"attach", "1", "--pause", "none"}).record.sampler.max_overhead,
            0);
}

TEST(CommandLine, EmptyValuesAreRefused) {
  for (const char* option : {"-d", "-r", "--max-overhead", "--thread", "--pause", "--mode", "--top",
                             "-o", "-f", "--unit"}) {
    EXPECT_THAT(Refusal({"attach", "1", option, ""}), HasSubstr("is given an empty value"));
  }
  EXPECT_THAT(Refusal({"attach", ""}), HasSubstr("PID is given an empty value"));
  EXPECT_THAT(Refusal({"doctor", ""}), HasSubstr("PID is given an empty value"));
  EXPECT_THAT(Refusal({"report", ""}), HasSubstr("FILE is given an empty value"));
  EXPECT_THAT(Refusal({"report", "a.strobe", "--since", ""}), HasSubstr("--since is given an"));
  EXPECT_THAT(Refusal({"run", "--python", "", "a.py"}), HasSubstr("--python is given an empty"));
  EXPECT_THAT(Refusal({"run", ""}), HasSubstr("the name of the program is empty"));
  EXPECT_THAT(Refusal({"run", "--", ""}), HasSubstr("the name of the program is empty"));
}

TEST(CommandLine, WhatIsTooManyIsNamed) {
  EXPECT_EQ(Refusal({"attach", "1", "2"}), "attach: one process at a time; '2' is one too many");
  EXPECT_EQ(Refusal({"attach", "1", "x"}), "attach: nothing is expected at 'x'");
  EXPECT_EQ(Refusal({"attach", "1", "-d", "1", "-d", "2"}), "attach: --duration is given 2 times");
  EXPECT_EQ(Refusal({"attach", "1", "-d"}), "attach: --duration needs a value");
}

TEST(CommandLine, OptionsMayComeFirst) {
  const auto options = ParseAs<AttachOptions>({"attach", "-d", "10", "-o", "a.html", "-o",
                                               "b.strobe", "--mode", "cpu", "--idle", "--thread",
                                               "worker", "--top", "5", "--force", "99"});
  EXPECT_EQ(options.pid, 99);
  EXPECT_EQ(options.record.sampler.duration, std::chrono::seconds(10));
  ASSERT_EQ(options.record.outputs.size(), 2u);
  EXPECT_EQ(options.record.outputs[0].format, write::Format::kHtml);
  EXPECT_EQ(options.record.outputs[1].format, write::Format::kStrobe);
  EXPECT_EQ(options.record.view.mode, Mode::kCpu);
  EXPECT_TRUE(options.record.view.idle);
  EXPECT_EQ(options.record.view.thread, "worker");
  EXPECT_EQ(options.record.view.top, 5u);
  EXPECT_TRUE(options.record.force);
}

TEST(CommandLine, AFormatWithoutAFileIsForStandardOutput) {
  const auto options = ParseAs<AttachOptions>({"attach", "1", "-f", "collapsed", "--unit", "us"});
  ASSERT_EQ(options.record.outputs.size(), 1u);
  EXPECT_TRUE(options.record.outputs[0].to_stdout());
  EXPECT_EQ(options.record.view.unit, write::Unit::kMicroseconds);
}

TEST(CommandLine, RefusesWithTheWordThatIsWrong) {
  EXPECT_THAT(Refusal({"attach"}), HasSubstr("the process id is missing"));
  EXPECT_THAT(Refusal({"attach", "x"}), HasSubstr("'x'"));
  EXPECT_THAT(Refusal({"attach", "-5"}), HasSubstr("-5"));
  EXPECT_THAT(Refusal({"attach", "0"}), HasSubstr("'0'"));
  EXPECT_THAT(Refusal({"attach", "1", "2"}), HasSubstr("'2'"));
  EXPECT_THAT(Refusal({"attach", "1", "--frobnicate"}), HasSubstr("'--frobnicate'"));
  EXPECT_THAT(Refusal({"attach", "1", "-r"}), HasSubstr("--rate"));
  EXPECT_THAT(Refusal({"attach", "1", "-r", "0"}), HasSubstr("'0'"));
  EXPECT_THAT(Refusal({"attach", "1", "-r", "-1"}), HasSubstr("'-1'"));
  EXPECT_THAT(Refusal({"attach", "1", "-r", "nan"}), HasSubstr("'nan'"));
  EXPECT_THAT(Refusal({"attach", "1", "-r", "1e9"}), HasSubstr("1,000,000"));
  EXPECT_THAT(Refusal({"attach", "1", "-d", "0"}), HasSubstr("'0'"));
  EXPECT_THAT(Refusal({"attach", "1", "--max-overhead", "1"}), HasSubstr("could mean"));
  EXPECT_THAT(Refusal({"attach", "1", "--mode", "fast"}), HasSubstr("'fast'"));
  EXPECT_THAT(Refusal({"attach", "1", "--pause", "hard"}), HasSubstr("'hard'"));
  EXPECT_THAT(Refusal({"attach", "1", "-o", "x.xyz"}), HasSubstr("x.xyz"));
  EXPECT_THAT(Refusal({"attach", "1", "-f", "xyz"}), HasSubstr("'xyz'"));
  EXPECT_THAT(Refusal({"attach", "1", "--top", "0"}), HasSubstr("'0'"));
  EXPECT_THAT(Refusal({"report"}), HasSubstr("file"));
  EXPECT_THAT(Refusal({"frobnicate"}), HasSubstr("'frobnicate'"));
  EXPECT_THAT(Refusal({"help", "frobnicate"}), HasSubstr("no verb 'frobnicate'"));
  EXPECT_THAT(Refusal({"help", "run", "x.py"}), HasSubstr("'x.py' is one too many"));
}

TEST(CommandLine, AMistypedWordGetsASuggestion) {
  const auto hint = [](const Words& words) { return ParseCommandLine(words).error().hint; };
  EXPECT_THAT(hint({"atach", "1"}), HasSubstr("Did you mean pystrobe attach?"));
  EXPECT_EQ(hint({"attach", "1", "--durations", "3"}), "Did you mean --duration?");
  EXPECT_EQ(hint({"report", "a.strobe", "--sinse=3"}), "Did you mean --since?");
  EXPECT_EQ(hint({"dump", "1", "--frobnicate"}), "See pystrobe dump --help");
  EXPECT_EQ(hint({"report", "a.strobe", "a b.html"}), "Did you mean -o 'a b.html'?");
  EXPECT_EQ(hint({"dump", "1", "out.html"}), "See pystrobe dump --help") << "it writes no file";
}

TEST(CommandLine, AWrongVerbGetsTheRightHint) {
  EXPECT_THAT(ParseCommandLine(Words{"1234"}).error().hint, HasSubstr("attach 1234"));
  EXPECT_THAT(ParseCommandLine(Words{"x.py"}).error().hint, HasSubstr("run x.py"));
  EXPECT_THAT(ParseCommandLine(Words{"x.strobe"}).error().hint, HasSubstr("report x.strobe"));
}

TEST(CommandLine, RefusesPairsWithoutEffect) {
  EXPECT_THAT(Refusal({"attach", "1", "--unit", "us"}), HasSubstr("collapsed"));
  EXPECT_THAT(Refusal({"attach", "1", "--force"}), HasSubstr("no -o"));
  EXPECT_THAT(Refusal({"attach", "1", "-q", "--top", "5"}), HasSubstr("-q"));
  EXPECT_THAT(Refusal({"attach", "1", "--pause", "none", "--max-overhead", "1%"}),
              HasSubstr("nothing is held"));
  EXPECT_THAT(Refusal({"attach", "1", "-o", "a.html", "-o", "a.html"}), HasSubstr("twice"));
  EXPECT_THAT(Refusal({"attach", "1", "-o", "a.html", "-o", "./a.html"}), HasSubstr("twice"));
  EXPECT_THAT(Refusal({"attach", "1", "-o", "a.strobe", "-o", "b.strobe"}), HasSubstr("both"));
  EXPECT_THAT(Refusal({"attach", "1", "-o", "a.html", "-o", "b.json", "-f", "html"}),
              HasSubstr("2 outputs"));
  EXPECT_THAT(Refusal({"report", "a.strobe", "--since", "5", "--until", "5"}),
              HasSubstr("not after"));
  EXPECT_THAT(Refusal({"report", "a.strobe", "-o", "b.strobe"}), HasSubstr("does not write"));
  EXPECT_THAT(Refusal({"report", "a.strobe", "-o", "b.html", "--top", "5"}), HasSubstr("table"));
  EXPECT_THAT(Refusal({"run", "-f", "json", "x.py"}), HasSubstr("standard output"));
  EXPECT_THAT(Refusal({"run", "--python", "p", "--", "x"}), HasSubstr("--python"));
}

TEST(CommandLine, RunLeavesTheProgramItsOptions) {
  const auto script =
      ParseAs<RunOptions>({"run", "-r", "10", "script.py", "-r", "20", "report", "--", "-m"});
  EXPECT_EQ(script.record.sampler.rate_hz, 10);
  EXPECT_FALSE(script.is_command);
  EXPECT_THAT(script.program, ElementsAre("script.py", "-r", "20", "report", "--", "-m"));

  const auto module =
      ParseAs<RunOptions>({"run", "--idle", "-m", "http.server", "-d", "x", "8000"});
  EXPECT_TRUE(module.record.view.idle);
  EXPECT_THAT(module.program, ElementsAre("-m", "http.server", "-d", "x", "8000"));

  const auto command = ParseAs<RunOptions>({"run", "-qd", "5", "--", "attach", "--help"});
  EXPECT_TRUE(command.is_command);
  EXPECT_TRUE(command.record.quiet);
  EXPECT_EQ(command.record.sampler.duration, std::chrono::seconds(5));
  EXPECT_THAT(command.program, ElementsAre("attach", "--help"));

  EXPECT_THAT(ParseAs<RunOptions>({"run", "-r100", "--mode=cpu", "x.py"}).program,
              ElementsAre("x.py"));
}

TEST(CommandLine, RunNoticesAnOutputBehindTheProgram) {
  const auto misplaced = [](const Words& words) {
    const auto found = ParseAs<RunOptions>(words).misplaced;
    return found ? fmt::format("{}", fmt::join(*found, " ")) : "";
  };
  EXPECT_EQ(misplaced({"run", "x.py", "-v", "-o", "out.html"}), "-o out.html");
  EXPECT_EQ(misplaced({"run", "-m", "build", "--output", "a.strobe"}), "--output a.strobe");
  EXPECT_EQ(misplaced({"run", "-o", "out.html", "x.py"}), "");
  EXPECT_EQ(misplaced({"run", "-o", "out.html", "x.py", "-o", "results.json"}), "");
  EXPECT_EQ(misplaced({"run", "x.py", "-o", "out.csv"}), "");
  EXPECT_EQ(misplaced({"run", "x.py", "-o"}), "");
}

TEST(CommandLine, RunNeedsAProgram) {
  EXPECT_THAT(Refusal({"run"}), HasSubstr("missing"));
  EXPECT_THAT(Refusal({"run", "-r", "10"}), HasSubstr("missing"));
  EXPECT_THAT(Refusal({"run", "-m"}), HasSubstr("missing"));
  EXPECT_THAT(Refusal({"run", "--"}), HasSubstr("missing"));
  EXPECT_THAT(Refusal({"run", "--nonsense", "x.py"}), HasSubstr("'--nonsense'"));
}

TEST(CommandLine, OtherVerbs) {
  const auto dump = ParseAs<DumpVerbOptions>({"dump", "7", "--json", "--locals"});
  EXPECT_EQ(dump.pid, 7);
  EXPECT_TRUE(dump.json);
  EXPECT_TRUE(dump.locals);
  const auto report = ParseAs<ReportOptions>(
      {"report", "a.strobe", "--since", "0", "--until", "1.5", "--mode", "gil"});
  EXPECT_EQ(report.file, "a.strobe");
  EXPECT_EQ(report.view.until_ns, 1'500'000'000);
  EXPECT_EQ(report.view.mode, Mode::kGil);
  EXPECT_EQ(ParseAs<ReportOptions>({"report", "a.strobe", "--gpu"}).view.mode, Mode::kGpu);
  EXPECT_EQ(ParseAs<ReportOptions>({"report", "a.strobe", "--mode", "gpu"}).view.mode, Mode::kGpu);
  EXPECT_FALSE(ParseAs<DoctorOptions>({"doctor"}).pid);
  EXPECT_EQ(ParseAs<DoctorOptions>({"doctor", "12"}).pid, 12);
  EXPECT_THAT(ParseAs<BenchOptions>({"bench", "--rounds", "2"}).words,
              ElementsAre("--rounds", "2"));
  EXPECT_THAT(ParseAs<BenchOptions>({"help", "bench"}).words, ElementsAre("--help"));
}

TEST(CommandToRun, FindsTheInterpreter) {
  const auto nothing = [](const char*) -> std::optional<std::string> { return std::nullopt; };
  const auto chosen = [](const char* name) -> std::optional<std::string> {
    if (std::string_view(name) == "PYSTROBE_PYTHON") return "/opt/python";
    return std::nullopt;
  };
  RunOptions module;
  module.program = {"-m", "http.server"};
  EXPECT_THAT(CommandToRun(module, nothing, "").value(),
              ElementsAre("python3", "-m", "http.server"));
  EXPECT_THAT(CommandToRun(module, chosen, "").value(),
              ElementsAre("/opt/python", "-m", "http.server"));
  module.python = "pypy";
  EXPECT_THAT(CommandToRun(module, chosen, "").value(), ElementsAre("pypy", "-m", "http.server"));

  RunOptions command;
  command.is_command = true;
  command.program = {"ls", "-l"};
  EXPECT_THAT(CommandToRun(command, chosen, "").value(), ElementsAre("ls", "-l"));

  RunOptions missing;
  missing.program = {"gunicorn", "app:app"};
  const auto refused = CommandToRun(missing, nothing, "");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().hint, HasSubstr("run -- gunicorn app:app"));
  const auto hint = [&](std::vector<std::string> program) {
    missing.program = std::move(program);
    return CommandToRun(missing, nothing, "").error().hint;
  };
  EXPECT_THAT(hint({"http.server", "80"}), HasSubstr("run -m http.server 80"));
  EXPECT_THAT(hint({"python3.12", "a b.py"}), HasSubstr("run -- python3.12 'a b.py'"));
  EXPECT_THAT(hint({"none.py"}), HasSubstr("path"));
  EXPECT_THAT(hint({"with spaces.py"}), HasSubstr("path"));
  EXPECT_THAT(hint({"slow.py 1"}), HasSubstr("each word by itself"));
}

TEST(CommandToRun, FindsThePackagesOwnInterpreterWhereItIsNeeded) {
  const auto nothing = [](const char*) -> std::optional<std::string> { return std::nullopt; };
  std::string name = std::filesystem::temp_directory_path() / "venv-XXXXXX";
  const std::filesystem::path environment = mkdtemp(name.data());
  const std::filesystem::path bin = environment / "bin";
  std::filesystem::create_directory(bin);
  std::filesystem::create_symlink("/bin/true", bin / "python");
  const std::string executable = bin / "pystrobe";
  RunOptions options;
  options.program = {"-m", "timeit"};
  const auto python = [&] { return CommandToRun(options, nothing, executable).value().front(); };
  options.in_process = true;
  EXPECT_EQ(python(), "python3") << "that is no virtual environment";
  std::ofstream(environment / "pyvenv.cfg") << "home = /usr/bin";
  EXPECT_EQ(python(), bin / "python");
  options.in_process = false;
  EXPECT_EQ(python(), "python3");
  options.in_process = true;
  options.python = "python3.9";
  EXPECT_EQ(python(), "python3.9");
  std::filesystem::remove_all(environment);
}

TEST(CureInside, NamesTheInterpreter) {
  RunOptions options;
  EXPECT_THAT(CureInside(options, "/opt/my python"), HasSubstr("'/opt/my python' -m pip"));
  options.is_command = true;
  EXPECT_THAT(CureInside(options, "gunicorn"), HasSubstr("python3 -m pip"));
}

}  // namespace
}  // namespace pystrobe::cli
