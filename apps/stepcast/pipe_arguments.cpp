#include "pipe_arguments.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace stepcast::cli {
namespace {

// The descriptor that an argument names, if it is the read end of a pipe.
std::optional<int> pipe_of(std::string_view argument) {
  if (argument.starts_with("--")) argument.remove_prefix(std::min(argument.find('=') + 1, argument.size()));
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

bool keep_pipe(int descriptor) {
  std::FILE* const file = std::tmpfile();
  if (file == nullptr) return false;
  std::array<char, 1U << 16> block{};
  bool kept = true;
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

}  // namespace

std::string keep_pipe_arguments(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::optional<int> descriptor = pipe_of(argv[i]);
    if (descriptor && !keep_pipe(*descriptor)) return argv[i];
  }
  return {};
}

}  // namespace stepcast::cli
