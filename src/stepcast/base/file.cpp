#include "stepcast/base/file.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <zlib.h>

#include "stepcast/base/byte_source.h"

namespace stepcast {
namespace {

std::string system_message(int code) { return std::error_code(code, std::generic_category()).message(); }

// Writes everything or says why not (an errno value; 0 is success).
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

}  // namespace

Result<std::string> read_file(const std::filesystem::path& file, std::uint64_t max_bytes) {
  ByteSource::Options options;
  options.max_bytes = max_bytes;
  STEPCAST_ASSIGN(ByteSource source, ByteSource::open(file, std::move(options)));
  std::string content;
  std::size_t size = 0;
  for (;;) {
    if (content.size() - size < (std::size_t{1} << 16))
      content.resize(std::max(content.size() * 2, std::size_t{1} << 17));
    STEPCAST_ASSIGN(const std::size_t n, source.read(content.data() + size, content.size() - size));
    if (n == 0) break;
    size += n;
  }
  content.resize(size);
  return content;
}

Status write_file_atomically(const std::filesystem::path& file, std::string_view content) {
  std::string temporary;
  int descriptor = -1;
  for (int attempt = 0; descriptor < 0 && attempt < 1000; ++attempt) {
    temporary = file.string() + ".tmp" + std::to_string(::getpid()) + "-" + std::to_string(attempt);
    descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0 && errno != EEXIST) break;
  }
  if (descriptor < 0) {
    return Error::at(file.string(), "", "cannot write: " + system_message(errno));
  }
  int code = write_all(descriptor, content);
  if (::close(descriptor) != 0 && code == 0) code = errno;
  if (code == 0 && ::rename(temporary.c_str(), file.c_str()) != 0) code = errno;
  if (code != 0) {
    ::unlink(temporary.c_str());
    return Error::at(file.string(), "", "cannot write: " + system_message(code));
  }
  return Ok{};
}

Result<std::string> gzip_compress(std::string_view content, int level) {
  z_stream stream{};
  if (deflateInit2(&stream, std::clamp(level, 1, 9), Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    return Error("zlib could not be initialised");
  }
  std::string out;
  out.resize(deflateBound(&stream, content.size()));
  std::size_t produced = 0;
  int code = Z_OK;
  do {
    const std::size_t take = std::min<std::size_t>(content.size(), std::numeric_limits<uInt>::max());
    const std::size_t room = std::min<std::size_t>(out.size() - produced, std::numeric_limits<uInt>::max());
    stream.next_in =
        reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));  // zlib's interface lacks the const
    stream.avail_in = static_cast<uInt>(take);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + produced);
    stream.avail_out = static_cast<uInt>(room);
    code = deflate(&stream, take == content.size() ? Z_FINISH : Z_NO_FLUSH);
    content.remove_prefix(take - stream.avail_in);
    produced += room - stream.avail_out;
    if (code == Z_OK && produced == out.size()) out.resize(out.size() + (out.size() / 8) + 64);
  } while (code == Z_OK || (code == Z_BUF_ERROR && !content.empty()));
  deflateEnd(&stream);
  if (code != Z_STREAM_END) return Error("zlib could not compress");
  out.resize(produced);
  return out;
}

}  // namespace stepcast
