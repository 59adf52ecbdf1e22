#include "stepcast/base/output_file.h"

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stepcast/base/read_scope.h"
#include "stepcast/base/scan.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // the limit of Linux

// Errors that are not the user's: a full disk or quota, a broken device, too many open files.
bool is_fault_of_machine(int code) {
  return code == ENOSPC || code == EDQUOT || code == EIO || code == EFBIG || code == ENOMEM ||
         code == EPIPE || code == EMFILE || code == ENFILE;
}

// The error for errno value `code`.
Error cannot_write(const fs::path& path, int code) {
  Error error = Error::at(path.string(), "",
                          "cannot write: " + std::error_code(code, std::generic_category()).message());
  return is_fault_of_machine(code) ? std::move(error).of_machine() : std::move(error);
}

// Writes all of `content`. Returns 0, or the errno value of the failure.
int write_all(int descriptor, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = ::write(descriptor, content.data(), content.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

// The open descriptor N that a path denotes: /dev/fd/N, /dev/stdout, /dev/stderr. These must be written through
// the descriptor: opening the path again would overwrite a file from its start that others also write to.
std::optional<int> descriptor_named(const fs::path& path) {
  std::string_view text = path.native();
  if (text == "/dev/stdout") return STDOUT_FILENO;
  if (text == "/dev/stderr") return STDERR_FILENO;
  const std::string own = "/proc/" + std::to_string(::getpid()) + "/fd/";
  for (const std::string_view folder :
       {std::string_view{"/dev/fd/"}, std::string_view{"/proc/self/fd/"}, std::string_view{own}}) {
    if (!text.starts_with(folder)) continue;
    text.remove_prefix(folder.size());
    const std::optional<int> n = scan<int>(text);
    return n.value_or(-1) >= 0 ? n : std::nullopt;
  }
  return std::nullopt;
}

Error as_found(const fs::path& path, std::string found) {
  return Error::at(path.string(), "").found(std::move(found)).expected("a file to write to");
}

}  // namespace

Result<OutputFile> OutputFile::at(const fs::path& path, std::span<const fs::path> inputs) {
  if (path.empty()) return Error{"the name of a file to write is empty"};
  STEPCAST_TRY(may_write(path));
  OutputFile output;
  output.path_ = path;
  output.target_ = path;
  std::error_code failure;
  struct stat found {};
  bool exists = false;
  for (int i = 0;; ++i) {
    output.descriptor_ = descriptor_named(output.target_);
    if (output.descriptor_) return output;
    exists = ::stat(output.target_.c_str(), &found) == 0;
    if (!exists && errno != ENOENT && errno != ELOOP) return cannot_write(path, errno);
    // Follows links of regular files one by one, because the file at the end of the links is replaced.
    // Special files are opened by their name.
    if ((exists && !S_ISREG(found.st_mode)) || !fs::is_symlink(output.target_, failure)) break;
    if (i == kMostLinks) return as_found(path, "links that lead in a circle");
    const fs::path next = fs::read_symlink(output.target_, failure);
    if (failure) return cannot_write(path, failure.value());
    output.target_ = next.is_absolute() ? next : output.target_.parent_path() / next;
  }
  if (exists && S_ISDIR(found.st_mode)) return as_found(path, "a folder");
  output.is_regular_ = !exists || S_ISREG(found.st_mode);
  if (exists && ::access(output.target_.c_str(), W_OK) != 0) return cannot_write(path, errno);
  if (!output.is_regular_) return output;

  // Checked last, because it needs the final target.
  for (const fs::path& input : inputs) {
    if (!is_same_file(output.target_, input)) continue;
    return Error::at(path.string(), "", "is read to make the result; writing would destroy it")
        .advice("choose another file to write");
  }
  fs::path folder = output.target_.parent_path();
  if (folder.empty()) folder = ".";
  if (!output.target_.has_filename() || !fs::is_directory(folder, failure)) return cannot_write(path, ENOENT);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) return cannot_write(path, errno);
  return output;
}

Status make_folder(const fs::path& folder) {
  STEPCAST_TRY(may_write(folder));
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (!failure && fs::is_directory(folder, failure)) return Ok{};
  return Error::at(folder.string(), "", "cannot make the folder")
      .found(failure ? failure.message() : "a file of this name")
      .advice("name another folder");
}

Status OutputFile::write(std::string_view content) const {
  if (descriptor_) {
    const int code = write_all(*descriptor_, content);
    if (code != 0) return cannot_write(path_, code);
    return Ok{};
  }
  if (is_regular_) return replace(content);
  const int descriptor = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
  if (descriptor < 0) return cannot_write(path_, errno);
  int code = write_all(descriptor, content);
  if (::close(descriptor) != 0 && code == 0) code = errno;
  if (code != 0) return cannot_write(path_, code);
  return Ok{};
}

Status OutputFile::replace(std::string_view content) const {
  struct stat before {};
  const bool keeps_mode = ::stat(target_.c_str(), &before) == 0;
  std::string temporary;
  int descriptor = -1;
  for (int attempt = 0; descriptor < 0 && attempt < 1000; ++attempt) {
    temporary = target_.string() + ".tmp" + std::to_string(::getpid()) + "-" + std::to_string(attempt);
    // A new file gets the mode that the umask allows. A file that replaces a private one is never readable by
    // others, not even temporarily.
    descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, keeps_mode ? 0600 : 0666);
    if (descriptor < 0 && errno != EEXIST) break;
  }
  if (descriptor < 0) return cannot_write(path_, errno);
  int code = write_all(descriptor, content);
  if (code == 0 && keeps_mode && ::fchmod(descriptor, before.st_mode & 07777) != 0) code = errno;
  if (::close(descriptor) != 0 && code == 0) code = errno;
  if (code == 0 && ::rename(temporary.c_str(), target_.c_str()) != 0) code = errno;
  if (code == 0) return Ok{};
  ::unlink(temporary.c_str());
  return cannot_write(path_, code);
}

bool is_same_file(const fs::path& a, const fs::path& b) {
  std::error_code failure;
  return fs::equivalent(a, b, failure) && !failure;
}

Status write_file(const fs::path& path, std::string_view content) {
  STEPCAST_ASSIGN(const OutputFile output, OutputFile::at(path));
  return output.write(content);
}

}  // namespace stepcast
