#include "stepcast/base/file.h"

#include <algorithm>
#include <limits>
#include <system_error>

#include <fmt/format.h>
#include <zlib.h>

#include "stepcast/base/byte_source.h"

namespace stepcast {

Result<std::string> read_file(const std::filesystem::path& file, std::uint64_t max_bytes) {
  STEPCAST_ASSIGN(ByteSource source, ByteSource::open(file, {}));
  // One byte more than the file size, so that the end of a plain file is seen without another block. File
  // sizes are only a hint (0 for /proc files, compressed size for gzip).
  constexpr std::uintmax_t kLeast = std::uintmax_t{1} << 12, kMost = std::uintmax_t{1} << 24;
  std::error_code unknown;
  const std::uintmax_t on_disk = std::filesystem::file_size(file, unknown);
  const auto too_large = [&] {
    return Error::at(file.string(), "the file")
        .found(fmt::format("more than {} MiB of content", max_bytes >> 20U))
        .expected("at most that much")
        .advice("is this the file that was meant? larger tables can be cut into several files");
  };
  if (!unknown && on_disk > max_bytes) return too_large();
  std::string content;
  content.resize(unknown ? kLeast : std::clamp(on_disk + 1, kLeast, kMost));
  std::size_t size = 0;
  for (;;) {
    if (size > max_bytes) return too_large();
    if (content.size() == size) content.resize(std::min<std::uintmax_t>(content.size() * 2, max_bytes + 1));
    STEPCAST_ASSIGN(const std::size_t n, source.read(content.data() + size, content.size() - size));
    if (n == 0) break;
    size += n;
  }
  if (size > max_bytes) return too_large();
  content.resize(size);
  return content;
}

std::vector<std::filesystem::path> csv_files_in(const std::filesystem::path& folder, bool below) {
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  std::error_code failure, ignored;
  // Errors while iterating end the loop: the files found so far are returned.
  for (fs::recursive_directory_iterator entry{folder, failure}, end; !failure && entry != end;
       entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    if (!below) entry.disable_recursion_pending();
    if (entry->is_regular_file(ignored) && (name.ends_with(".csv") || name.ends_with(".csv.gz")))
      files.push_back(entry->path());
  }
  std::ranges::sort(files);
  return files;
}

Result<std::string> gzip_compress(std::string_view content, int level) {
  z_stream stream{};
  if (deflateInit2(&stream, std::clamp(level, 1, 9), Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    return Error("zlib could not be initialised");
  std::string out;
  out.resize(deflateBound(&stream, content.size()));
  std::size_t produced = 0;
  int code = Z_OK;
  // zlib has 32-bit sizes, so input and output are passed in parts. Z_FINISH is set with the last part of the input.
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
