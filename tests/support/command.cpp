#include "tests/support/command.h"

#include <cerrno>
#include <cstdio>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace stepcast::test {
namespace {

// A file without a name that takes the output, so that neither stream can block the other.
class CapturedStream {
 public:
  CapturedStream() : file_(std::tmpfile()) {
    if (file_ == nullptr) throw std::system_error(errno, std::generic_category(), "tmpfile");
  }
  ~CapturedStream() { std::fclose(file_); }
  CapturedStream(const CapturedStream&) = delete;
  CapturedStream& operator=(const CapturedStream&) = delete;

  [[nodiscard]] int descriptor() const { return fileno(file_); }
  [[nodiscard]] std::string text() const {
    std::rewind(file_);
    std::string all;
    char buffer[1 << 14];
    while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, file_)) all.append(buffer, n);
    return all;
  }

 private:
  std::FILE* file_;
};

}  // namespace

CommandResult run_command(const std::vector<std::string>& arguments) {
  const CapturedStream out;
  const CapturedStream err;
  std::vector<std::string> storage = arguments;
  std::vector<char*> argv;
  for (std::string& argument : storage) argv.push_back(argument.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.descriptor(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.descriptor(), STDERR_FILENO);
  pid_t child = 0;
  const int problem = posix_spawnp(&child, argv.front(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) throw std::system_error(problem, std::generic_category(), arguments.front());

  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "waitpid");
  }
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {code, out.text(), err.text()};
}

}  // namespace stepcast::test
