// Runs a program the way a shell would, and keeps what it said.
//
//   const auto result = run_command({stepcast_executable().string(), "version"});
//   EXPECT_EQ(result.exit_code, 0) << result.err;
#pragma once

#include <string>
#include <vector>

namespace stepcast::test {

struct CommandResult {
  int exit_code = -1;  // 128 + the signal's number if a signal ended it
  std::string out;
  std::string err;
};

// `arguments` starts with the program; nothing is expanded. Standard input is empty.
[[nodiscard]] CommandResult run_command(const std::vector<std::string>& arguments);

}  // namespace stepcast::test
