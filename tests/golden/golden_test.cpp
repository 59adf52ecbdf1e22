// Golden text: what the tool prints, word for word. Every file *.golden of this folder is a command line and
// what it prints; the commands run in the root of the checkout.
//
//   $ stepcast replay examples/dlrm_4gpu
//   Replay of examples/dlrm_4gpu
//   ...
//
// A command that fails is followed by what it says on standard error and by `[exit code 2]`. `./dev golden`
// writes all of them anew: look at the difference before you commit it.

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/base/file.h"

#include "tests/support/command.h"
#include "tests/support/paths.h"

namespace stepcast::test::golden_test {
namespace {

std::vector<std::filesystem::path> golden_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator{source_dir() / "tests" / "golden"}) {
    if (entry.path().extension() == ".golden") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

class Golden : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(Golden, PrintsTheSame) {
  const Result<std::string> file = read_file(GetParam());
  ASSERT_TRUE(file.ok()) << file.error().message();
  const std::size_t line_end = file->find('\n');
  ASSERT_TRUE(file->starts_with("$ stepcast ")) << GetParam();
  std::istringstream words{file->substr(2, line_end - 2)};
  std::vector<std::string> arguments;
  for (std::string word; words >> word;) arguments.push_back(word);
  arguments.front() = stepcast_executable().string();

  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(source_dir());
  const CommandResult result = run_command(arguments);
  std::filesystem::current_path(before);
  std::string printed = result.out + result.err;
  if (result.exit_code != 0) printed += "[exit code " + std::to_string(result.exit_code) + "]\n";
  EXPECT_EQ(printed, file->substr(line_end + 1)) << "run `./dev golden` if this is meant";
}

INSTANTIATE_TEST_SUITE_P(Text, Golden, ::testing::ValuesIn(golden_files()), [](const auto& parameter) {
  std::string name = parameter.param.stem().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
});

}  // namespace
}  // namespace stepcast::test::golden_test
