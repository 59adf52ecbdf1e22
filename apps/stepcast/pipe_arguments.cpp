#include "pipe_arguments.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stepcast/base/result.h"

namespace stepcast::cli {
namespace {

// The value in `--flag=value`, or the argument itself.
std::string_view value_of(std::string_view argument) {
  if (argument.starts_with("--")) argument.remove_prefix(std::min(argument.find('=') + 1, argument.size()));
  return argument;
}

// The descriptor of a pipe's read end, if the argument names one.
std::optional<int> pipe_of(std::string_view argument) {
  int descriptor = -1;
  if (argument == "/dev/stdin") descriptor = STDIN_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!argument.starts_with(folder)) continue;
    const char* const end = argument.data() + argument.size();
    const auto read = std::from_chars(argument.data() + folder.size(), end, descriptor);
    if (read.ec != std::errc{} || read.ptr != end) return std::nullopt;
  }
  struct stat status {};
  if (descriptor < 0 || fstat(descriptor, &status) != 0 || !S_ISFIFO(status.st_mode)) return std::nullopt;
  const int flags = fcntl(descriptor, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) != O_RDONLY) return std::nullopt;
  return descriptor;
}

bool keep_pipe(int descriptor, const std::string& beginning) {
  std::FILE* const file = std::tmpfile();
  if (file == nullptr) return false;
  std::array<char, 1U << 16> block{};
  bool kept = std::fwrite(beginning.data(), 1, beginning.size(), file) == beginning.size();
  for (;;) {
    const ssize_t n = read(descriptor, block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    kept = kept && n >= 0;
    if (n <= 0 || !kept) break;
    const auto bytes = static_cast<std::size_t>(n);
    kept = std::fwrite(block.data(), 1, bytes, file) == bytes;
  }
  kept = kept && std::fflush(file) == 0 && std::fseek(file, 0, SEEK_SET) == 0 &&
         dup2(fileno(file), descriptor) >= 0;
  std::fclose(file);
  return kept;
}

// Whether an argument is an output: the value of a flag that writes a file.
bool is_written_to(std::string_view before, std::string_view argument) {
  constexpr std::string_view kOutputs[] = {"-o",    "--output", "--report",     "--timeline",
                                           "--csv", "--chakra", "--save-tables"};
  const std::size_t equals = argument.starts_with("--") ? argument.find('=') : std::string_view::npos;
  const std::string_view flag = equals == std::string_view::npos ? before : argument.substr(0, equals);
  return std::ranges::find(kOutputs, flag) != std::end(kOutputs);
}

// An opened named pipe, and the bytes that were read from it.
struct NamedPipe {
  int descriptor = -1;
  std::string beginning;
};

// Waiting for a writer is limited, because waiting forever looks like a hanging program.
Result<NamedPipe> open_named_pipe(const std::string& file) {
  constexpr int kTries = 100;
  constexpr std::chrono::milliseconds kBetween{50};
  NamedPipe pipe{::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC), {}};
  for (int i = 0; i < kTries && pipe.descriptor >= 0; ++i) {
    char first = 0;
    const ssize_t n = ::read(pipe.descriptor, &first, 1);  // 0 (end of file) until a program writes
    if (n == 1) pipe.beginning = first;
    const bool is_written = n == 1 || (n < 0 && errno == EAGAIN);
    if (is_written && ::fcntl(pipe.descriptor, F_SETFL, O_RDONLY) == 0) return pipe;
    std::this_thread::sleep_for(kBetween);
  }
  if (pipe.descriptor >= 0) ::close(pipe.descriptor);
  return Error::at(file, "")
      .found("a pipe without a writer")
      .expected("a file, or a pipe that is written into");
}

Error lost(const std::string& argument) {
  return Error::at(argument, "", "what the pipe holds cannot be kept in a temporary file");
}

}  // namespace

Result<std::vector<std::string>> keep_pipe_arguments(int argc, const char* const* argv) {
  std::vector<std::string> words(argv, argv + argc);
  for (std::size_t i = 1; i < words.size(); ++i) {
    std::string& word = words[i];
    const std::string value{value_of(word)};
    if (const std::optional<int> descriptor = pipe_of(value)) {
      if (!keep_pipe(*descriptor, {})) return lost(word);
      continue;
    }
    std::error_code ignored;
    if (value.empty() || value.starts_with("/dev/") || value.starts_with("/proc/") ||
        !std::filesystem::is_fifo(value, ignored) || is_written_to(words[i - 1], word))
      continue;
    STEPCAST_ASSIGN(const NamedPipe pipe, open_named_pipe(value));
    if (!keep_pipe(pipe.descriptor, pipe.beginning)) return lost(word);
    word.replace(word.size() - value.size(), value.size(), "/dev/fd/" + std::to_string(pipe.descriptor));
  }
  return words;
}

}  // namespace stepcast::cli
