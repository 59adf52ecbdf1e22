// Input that is broken, contradictory or plainly not what was meant: what the tool says, with which exit code, and what
// is on disk afterwards. Every file of inputs/ is a table of cases:
//
//   case a file is read and written at once
//   file io.csv                       a file of the case's own folder; its lines stand behind bars
//   | collective,n_nodes
//   run calibrate kernels io.csv -o io.csv    one line for sh, where `stepcast` is the tool; the folder is current,
//                                     $SEEDS that of the fuzzers' seeds
//   exit 2
//   says is read to make the result   part of what is printed; several are possible
//   not margin                        what must not be printed
//   disk io.csv unchanged             or: absent, or: holds TEXT
//
// A case that fails prints one line on standard error, and nothing on standard output.

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/file.h"

#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::test::inputs_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct InputCase {
  std::string name, place;  // file:line
  std::map<std::string, std::string> files;
  std::string command;
  int exit_code = 0;
  std::vector<std::string> says, says_not;
  std::vector<std::pair<std::string, std::string>> disk;  // file, what is expected of it
};

std::string rest_of(const std::string& line, std::size_t from) {
  return from < line.size() ? line.substr(from) : std::string{};
}

std::vector<InputCase> cases_of(const fs::path& table) {
  std::vector<InputCase> cases;
  std::ifstream in{table};
  std::string* open = nullptr;
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.starts_with("| ") || line == "|") {
      if (open != nullptr) *open += rest_of(line, 2) + "\n";
      continue;
    }
    if (line.empty() || line.starts_with('#')) continue;
    const std::size_t blank = std::min(line.find(' '), line.size());
    const std::string word = line.substr(0, blank), rest = rest_of(line, blank + 1);
    if (word == "case") {
      cases.push_back({.name = rest, .place = table.filename().string() + ":" + std::to_string(number)});
      continue;
    }
    InputCase& c = cases.back();
    if (word == "file") {
      open = &c.files[rest];
    } else if (word == "run") {
      c.command = rest;
    } else if (word == "exit") {
      c.exit_code = std::stoi(rest);
    } else if (word == "says") {
      c.says.push_back(rest);
    } else if (word == "not") {
      c.says_not.push_back(rest);
    } else if (word == "disk") {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      c.disk.emplace_back(rest.substr(0, end), rest_of(rest, end + 1));
    } else {
      ADD_FAILURE() << table << ":" << number << ": unknown word " << word;
    }
  }
  return cases;
}

std::vector<InputCase> all_cases() {
  std::vector<fs::path> tables;
  for (const auto& entry : fs::directory_iterator{source_dir() / "tests/apps/inputs"})
    tables.push_back(entry.path());
  std::sort(tables.begin(), tables.end());
  std::vector<InputCase> all;
  for (const fs::path& table : tables) {
    for (InputCase& c : cases_of(table)) all.push_back(std::move(c));
  }
  return all;
}

void expect_on_disk(const InputCase& c, const fs::path& folder) {
  for (const auto& [name, expected] : c.disk) {
    const fs::path file = folder / name;
    if (expected == "absent") {
      EXPECT_FALSE(fs::exists(file)) << name;
      continue;
    }
    const Result<std::string> text = read_file(file);
    ASSERT_TRUE(text.ok()) << text.error().message();
    if (expected == "unchanged") {
      EXPECT_EQ(*text, c.files.at(name));
    } else {
      EXPECT_THAT(*text, HasSubstr(rest_of(expected, 6)));  // holds TEXT
    }
  }
}

class Inputs : public ::testing::TestWithParam<InputCase> {};

TEST_P(Inputs, MeanWhatTheySayOrAreRefused) {
  const InputCase& c = GetParam();
  SCOPED_TRACE(c.place);
  const TemporaryFolder folder;
  for (const auto& [name, text] : c.files) std::ofstream{folder.path() / name} << text;
  const std::string seeds = (source_dir() / "fuzz" / "corpus").string();
  const std::string program = "'" + stepcast_executable().string() + "'";
  // What is looked for may stand in any table.
  const std::string line = "SEEDS='" + seeds + "'; cd '" + folder.path().string() +
                           "' && stepcast() { verb=$1; shift; case $verb in " +
                           "predict|plan|replay|shard|compare|inspect|models|platforms) " + program +
                           " $verb --details \"$@\";; *) " + program + " \"$verb\" \"$@\";; esac; }\n" +
                           c.command;
  const CommandResult result = run_command({"sh", "-c", line});
  EXPECT_EQ(result.exit_code, c.exit_code) << result.err;
  if (c.exit_code == 1 || c.exit_code == 2) {
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, StartsWith("stepcast: error: "));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_LT(result.err.size(), 2500U);
  } else {
    EXPECT_EQ(result.err, "");
  }
  const std::string printed = result.out + result.err;
  for (const std::string& text : c.says) EXPECT_THAT(printed, HasSubstr(text));
  for (const std::string& text : c.says_not) EXPECT_THAT(printed, Not(HasSubstr(text)));
  EXPECT_THAT(printed, Not(HasSubstr("\x1b")));
  EXPECT_THAT(printed, Not(HasSubstr("internal error")));
  expect_on_disk(c, folder.path());
}

INSTANTIATE_TEST_SUITE_P(Table, Inputs, ::testing::ValuesIn(all_cases()), [](const auto& parameter) {
  std::string name = parameter.param.place + "_" + parameter.param.name;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
});

}  // namespace
}  // namespace stepcast::test::inputs_test
