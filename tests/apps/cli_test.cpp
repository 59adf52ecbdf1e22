#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/file.h"
#include "stepcast/base/version.h"

#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::test::cli_test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

CommandResult stepcast_with(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), stepcast_executable().string());
  return run_command(arguments);
}

void expect_one_line_error(const CommandResult& result) {
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, StartsWith("stepcast: error: "));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

TEST(Cli, PrintsTheVersionOfTheLibrary) {
  // And the commit in brackets, which a build of a checkout knows.
  const std::string expected = "^stepcast " + std::string{version()} + "( \\([0-9A-Za-z.-]+\\))?\n$";
  for (const char* spelling : {"version", "--version"}) {
    const auto result = stepcast_with({spelling});
    EXPECT_EQ(result.exit_code, 0) << spelling;
    EXPECT_THAT(result.out, ContainsRegex(expected)) << spelling;
    if (std::filesystem::exists(source_dir() / ".git")) {
      EXPECT_THAT(result.out, HasSubstr(" (")) << spelling;
    }
    EXPECT_EQ(result.err, "") << spelling;
  }
}

TEST(Cli, HelpListsTheVerbs) {
  const auto result = stepcast_with({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  // One line each, with its name and what it does.
  const Result<std::string> list = read_file(source_dir() / "apps" / "stepcast" / "verbs.def");
  ASSERT_TRUE(list.ok()) << list.error().message();
  std::size_t n = 0;
  constexpr std::string_view kLine = "\nSTEPCAST_VERB(";
  for (std::size_t at = list->find(kLine); at != std::string::npos; at = list->find(kLine, at + 1)) {
    const std::size_t name = at + kLine.size();
    const std::string verb = list->substr(name, list->find(')', name) - name);
    EXPECT_THAT(result.out, ContainsRegex("\n  " + verb + " +[a-z]+ [a-z]+")) << verb;
    ++n;
  }
  EXPECT_GE(n, 7U);
}

// Also through a pipe: a pager shows what a terminal would.
TEST(Cli, HelpFitsIntoEightyColumns) {
  for (const std::string verb : {"predict", "plan", "replay", "shard", "compare", "sweep", "calibrate"}) {
    const auto result = stepcast_with({"help", verb});
    EXPECT_EQ(result.exit_code, 0);
    std::istringstream lines{result.out};
    std::size_t n = 0;
    for (std::string line; std::getline(lines, line); ++n) {
      const std::size_t first = line.find_first_not_of(' ');
      const bool one_word = first != std::string::npos && line.find(' ', first) == std::string::npos;
      if (one_word) continue;  // nothing to break at
      EXPECT_LE(line.size(), 80U) << verb << ": " << line;
    }
    EXPECT_GT(n, 10U);
  }
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream{text};
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(Cli, WithoutArgumentsItSaysWhatItIsAndWhatToTry) {
  const auto result = stepcast_with({});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  const std::vector<std::string> lines = lines_of(result.out);
  EXPECT_LE(lines.size(), 15U);
  for (const std::string& line : lines) EXPECT_LE(line.size(), 80U) << line;
  EXPECT_EQ(
      std::ranges::count_if(lines, [](const std::string& line) { return line.starts_with("  stepcast "); }),
      5);
  EXPECT_THAT(result.out, HasSubstr("stepcast --help"));
}

TEST(Cli, HelpHasAtMostSixtyLinesAndItsOwnExamples) {
  for (const std::string verb : {"replay", "predict", "dryrun", "export", "import", "plan", "shard", "sweep",
                                 "calibrate", "models", "platforms", "inspect", "compare", "completion"}) {
    const auto result = stepcast_with({verb, "--help"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_LE(lines_of(result.out).size(), 60U) << verb;
    const std::size_t examples = result.out.find("\nExamples:\n");
    ASSERT_NE(examples, std::string::npos) << verb;
    EXPECT_THAT(result.out.substr(examples), HasSubstr("stepcast " + verb)) << verb;
  }
}

// The short help names twelve flags and the groups of the others, the long one explains every flag.
TEST(Cli, ShortHelpLeadsToAllFlags) {
  for (const std::string verb : {"predict", "plan"}) {
    const auto brief = stepcast_with({verb, "--help"}), full = stepcast_with({verb, "--help-all"});
    EXPECT_EQ(full.exit_code, 0);
    EXPECT_THAT(brief.out, HasSubstr("stepcast " + verb + " --help-all"));
    const auto n_flags = [](const std::string& text) {
      const std::vector<std::string> lines = lines_of(text);
      return std::ranges::count_if(lines, [](const std::string& line) { return line.starts_with("  --"); });
    };
    EXPECT_EQ(n_flags(brief.out), 12) << brief.out;
    EXPECT_GT(n_flags(full.out), 40) << full.out;
    for (const char* group : {"Job and machine", "Result"}) {
      EXPECT_THAT(brief.out, ContainsRegex(std::string{"\n  "} + group + " \\([0-9]+\\): --"));
      EXPECT_THAT(full.out, HasSubstr(std::string{"\n"} + group + ":\n"));
    }
  }
}

// With the flags of every verb.
TEST(Cli, HelpAllOfTheProgramHasAllVerbs) {
  const auto result = stepcast_with({"--help-all"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* flag : {"--critical-path", "--rank-platform", "--merge", "--save-tables"})
    EXPECT_THAT(result.out, HasSubstr(flag));
}

TEST(Cli, AnUnknownVerbIsAUsageErrorThatNamesIt) {
  const auto result = stepcast_with({"prophesy"});
  expect_one_line_error(result);
  EXPECT_THAT(result.err, HasSubstr("prophesy"));
}

TEST(Cli, AnUnknownFlagIsAUsageErrorThatNamesTheFlagAndTheVerb) {
  const auto result = stepcast_with({"version", "--loud"});
  expect_one_line_error(result);
  EXPECT_THAT(result.err, HasSubstr("--loud"));
  EXPECT_THAT(result.err, HasSubstr("stepcast version --help"));
}

TEST(Cli, FlagsOfADescriptionAndOfTracesAreNotMixed) {
  CommandResult result = stepcast_with({"predict", "--trace", "nowhere", "--tp", "2"});
  expect_one_line_error(result);
  EXPECT_THAT(result.err, HasSubstr("--tp describes a step; with --trace the step is the recorded one"));
  result = stepcast_with({"predict", "--model", "gpt3-175b", "--kernels", "models"});
  expect_one_line_error(result);
  EXPECT_THAT(result.err, HasSubstr("--kernels belongs to --trace"));
}

TEST(Cli, PredictTakesTheWordsOfPlan) {
  const auto predicted = [](std::vector<std::string> flags) {
    std::vector<std::string> words = {"predict", "--model", "llama-3-8b", "--gpus", "64",  "--tp",
                                      "2",       "--pp",    "4",          "--gbs",  "128", "--json"};
    words.insert(words.end(), flags.begin(), flags.end());
    return stepcast_with(words);
  };
  const CommandResult words = predicted({"--vp", "2", "--schedules", "interleaved", "--sharding", "zero1",
                                         "--sp", "on", "--recompute", "full"});
  const CommandResult flags =
      predicted({"--num-virtual-stages-per-pipeline-rank", "2", "--use-distributed-optimizer",
                 "--sequence-parallel", "--recompute-granularity", "full"});
  EXPECT_EQ(words.exit_code, 0) << words.err;
  // What is to be changed is said in the words of the question.
  const auto forecast = [](const std::string& out) { return out.substr(0, out.find("\"what_to_change\"")); };
  EXPECT_EQ(forecast(words.out), forecast(flags.out));
}

TEST(Cli, ControlCharactersOfAnArgumentDoNotReachTheTerminal) {
  const auto result = stepcast_with({"pro\nphesy\x1b[31m"});
  expect_one_line_error(result);
  EXPECT_EQ(result.err.find('\x1b'), std::string::npos);
}

TEST(Cli, AFullDiskIsAnError) {
  // A file that may not grow fails like a full disk, and for every user; the message still fits into its own.
  const TemporaryFolder folder;
  const std::string output = (folder.path() / "output").string();
  std::ofstream{output} << std::string(4096, '\n');
  const auto result = run_command({"sh", "-c",
                                   "trap '' XFSZ; ulimit -f 1; exec '" + stepcast_executable().string() +
                                       "' version >> '" + output + "'"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, StartsWith("stepcast: error: "));
}

}  // namespace
}  // namespace stepcast::test::cli_test
