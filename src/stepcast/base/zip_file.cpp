#include "stepcast/base/zip_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <istream>
#include <limits>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <zlib.h>

#include "stepcast/base/detail/little_endian.h"
#include "stepcast/base/read_scope.h"

namespace stepcast {

using detail::number_at;

namespace {

// A zip archive ends with a central directory and an end record. Reading starts at the end record, which is
// searched backwards because a comment of up to 64 KiB may follow it. zip64 archives have a second end
// record, found through a locator in front of the first.
constexpr std::uint64_t kMostMembers = 10'000;
// Deflate expands by a factor of at most 1032.
constexpr std::uint64_t kMostInflation = 1032;
// Sizes of the fixed parts of the records, then their magic numbers.
constexpr std::uint64_t kEndBytes = 22, kMostComment = 65535, kLocalBytes = 30, kCentralBytes = 46;
constexpr std::uint64_t kEndMagic = 0x06054b50, kEnd64Magic = 0x06064b50, kLocator64Magic = 0x07064b50,
                        kCentralMagic = 0x02014b50, kLocalMagic = 0x04034b50;

// An entry of the central directory. Sizes and offsets are in bytes.
struct Member {
  std::string name;
  std::uint64_t flags = 0, method = 0, crc = 0, compressed = 0, size = 0, offset = 0;
};

}  // namespace

// An open archive. Members share it, so that it stays open while they are read.
struct ZipFile::Impl {
  std::string name;
  std::unique_ptr<std::istream> stream;
  std::uint64_t size = 0;
  std::vector<Member> members;

  [[nodiscard]] Error error(std::string place, std::string problem = {}) const {
    return Error::at(name, std::move(place), std::move(problem));
  }

  // The `n` bytes at offset `at`; nothing if the file is shorter.
  std::optional<std::string> bytes(std::uint64_t at, std::uint64_t n) const {
    if (at > size || n > size - at) return std::nullopt;
    std::string out(static_cast<std::size_t>(n), '\0');
    stream->clear();
    stream->seekg(static_cast<std::streamoff>(at));
    stream->read(out.data(), static_cast<std::streamsize>(n));
    if (static_cast<std::uint64_t>(stream->gcount()) != n) return std::nullopt;
    return out;
  }

  // Finds the end record and reads all entries of the directory.
  Status read_directory() {
    const auto no_zip = [&] {
      return error("the file")
          .found("no zip archive, or one that was cut off")
          .expected("a whole zip archive");
    };
    if (size < kEndBytes) return no_zip();
    const std::uint64_t tail = std::min(size, kEndBytes + kMostComment);
    const std::optional<std::string> end = bytes(size - tail, tail);
    if (!end) return no_zip();
    const std::string magic{"PK\x05\x06"};
    // The last match that leaves room for a whole end record; earlier ones may be part of file content.
    const std::size_t at = end->rfind(magic, end->size() - kEndBytes);
    if (at == std::string::npos) return no_zip();
    std::uint64_t count = number_at(*end, at + 10, 2), directory_bytes = number_at(*end, at + 12, 4),
                  directory = number_at(*end, at + 16, 4);
    const std::uint64_t place = size - tail + at;
    // Saturated fields mean that the values are in the zip64 end record.
    if (count == 0xFFFF || directory_bytes == 0xFFFFFFFF || directory == 0xFFFFFFFF) {
      const std::optional<std::string> locator = place >= 20 ? bytes(place - 20, 20) : std::nullopt;
      if (!locator || number_at(*locator, 0, 4) != kLocator64Magic) return no_zip();
      const std::optional<std::string> end64 = bytes(number_at(*locator, 8, 8), 56);
      if (!end64 || number_at(*end64, 0, 4) != kEnd64Magic) return no_zip();
      count = number_at(*end64, 32, 8);
      directory_bytes = number_at(*end64, 40, 8);
      directory = number_at(*end64, 48, 8);
    }
    if (count > kMostMembers) {
      return error("the directory")
          .found(fmt::format("{} members", count))
          .expected(fmt::format("at most {}", kMostMembers));
    }
    // bytes() checks that the directory is inside the file, so that sizes in the end record cannot cause
    // large allocations.
    const std::optional<std::string> central = bytes(directory, directory_bytes);
    if (!central) return no_zip();
    std::size_t next = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (central->size() < next || central->size() - next < kCentralBytes ||
          number_at(*central, next, 4) != kCentralMagic) {
        return no_zip();
      }
      STEPCAST_TRY(add_member(*central, next));
    }
    return Ok{};
  }

  // Appends the directory entry at `next` to `members` and moves `next` past it.
  Status add_member(std::string_view central, std::size_t& next) {
    const std::string_view entry = central.substr(next);
    Member m;
    m.flags = number_at(entry, 8, 2);
    m.method = number_at(entry, 10, 2);
    m.crc = number_at(entry, 16, 4);
    m.compressed = number_at(entry, 20, 4);
    m.size = number_at(entry, 24, 4);
    m.offset = number_at(entry, 42, 4);
    // Three variable parts follow the fixed one: name, extra fields, comment.
    const std::size_t name_bytes = number_at(entry, 28, 2), extra_bytes = number_at(entry, 30, 2),
                      comment_bytes = number_at(entry, 32, 2);
    const std::size_t all = kCentralBytes + name_bytes + extra_bytes + comment_bytes;
    if (entry.size() < all)
      return error("the directory").found("a member that ends behind it").expected("a whole directory");
    m.name = entry.substr(kCentralBytes, name_bytes);
    std::string_view extra = entry.substr(kCentralBytes + name_bytes, extra_bytes);
    while (extra.size() >= 4) {
      const std::uint64_t id = number_at(extra, 0, 2);
      const std::size_t length = std::min<std::size_t>(number_at(extra, 2, 2), extra.size() - 4);
      std::string_view field = extra.substr(4, length);
      extra.remove_prefix(4 + length);
      // Extra field 1 (zip64) contains the 64-bit values of the fields that are saturated, in this order.
      if (id != 1) continue;
      for (std::uint64_t* value : {&m.size, &m.compressed, &m.offset}) {
        if (*value != 0xFFFFFFFF || field.size() < 8) continue;
        *value = number_at(field, 0, 8);
        field.remove_prefix(8);
      }
    }
    next += all;
    members.push_back(std::move(m));
    return Ok{};
  }
};

// State of reading one member: stored, or deflated with zlib.
struct ZipMember::Impl {
  std::shared_ptr<const ZipFile::Impl> file;
  std::string place;
  Member member;
  // Next byte in the file; compressed bytes that were not read yet.
  std::uint64_t position = 0, compressed_left = 0;
  std::uint64_t produced = 0;  // bytes of content so far
  uLong crc = 0;
  z_stream inflater{};
  bool inflating = false;
  std::string input;

  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    if (inflating) inflateEnd(&inflater);
  }

  [[nodiscard]] Error error(std::string problem = {}) const { return file->error(place, std::move(problem)); }

  // Reads the local header and checks that the member can be read.
  Status start() {
    const std::optional<std::string> local = file->bytes(member.offset, kLocalBytes);
    if (!local || number_at(*local, 0, 4) != kLocalMagic) {
      return error()
          .found("a place in the archive where no member begins")
          .expected("an archive that was not cut off");
    }
    // The local header has its own name and extra fields, which may differ in length from those of the directory.
    position = member.offset + kLocalBytes + number_at(*local, 26, 2) + number_at(*local, 28, 2);
    compressed_left = member.compressed;
    if (position > file->size || compressed_left > file->size - position) {
      return error()
          .found(fmt::format("{} compressed bytes, more than the file has", member.compressed))
          .expected("an archive that was not cut off");
    }
    if ((member.flags & 1U) != 0) return error().found("encryption").expected("a member without a password");
    if (member.method != 0 && member.method != 8) {
      return error()
          .found(fmt::format("compression method {}", member.method))
          .expected("stored or deflated");
    }
    // A member cannot be larger than its compressed bytes can expand to. Catches forged sizes before memory is allocated.
    if (member.method == 0 ? member.size != member.compressed
                           : member.size / kMostInflation > member.compressed) {
      return error()
          .found(fmt::format("{} bytes from {} in the archive", member.size, member.compressed))
          .expected("a size that these can hold");
    }
    crc = crc32(0, nullptr, 0);
    if (member.method == 8) {
      // Negative window bits: raw deflate data without a zlib header.
      if (inflateInit2(&inflater, -15) != Z_OK) return Error{"zlib could not be initialised"}.of_machine();
      inflating = true;
    }
    return Ok{};
  }

  // Reads the next block of compressed bytes into `input`.
  Status refill() {
    constexpr std::uint64_t kBlock = 1 << 18;
    const std::uint64_t n = std::min(compressed_left, kBlock);
    std::optional<std::string> block = file->bytes(position, n);
    if (!block) return error().found("an end of the file in the middle of it").expected("a whole file");
    input = std::move(*block);
    position += n;
    compressed_left -= n;
    return Ok{};
  }

  // Writes exactly `n` bytes of content to `to`, and checks the CRC at the end of the member.
  Status take(char* to, std::size_t n) {
    std::size_t done = 0;
    if (!inflating) {
      while (done < n) {
        if (input.empty() && compressed_left == 0) break;
        if (input.empty()) STEPCAST_TRY(refill());
        const std::size_t part = std::min(n - done, input.size());
        std::memcpy(to + done, input.data(), part);
        input.erase(0, part);
        done += part;
      }
    } else {
      while (done < n) {
        if (inflater.avail_in == 0 && compressed_left > 0) {
          STEPCAST_TRY(refill());
          inflater.next_in = reinterpret_cast<Bytef*>(input.data());
          inflater.avail_in = static_cast<uInt>(input.size());
        }
        const std::size_t part = std::min<std::size_t>(n - done, std::numeric_limits<uInt>::max());
        inflater.next_out = reinterpret_cast<Bytef*>(to + done);
        inflater.avail_out = static_cast<uInt>(part);
        const int code = inflate(&inflater, Z_NO_FLUSH);
        const std::size_t made = part - inflater.avail_out;
        done += made;
        if (code == Z_STREAM_END) break;
        if (code == Z_MEM_ERROR) return Error{"no memory to decompress"}.of_machine();
        if (code != Z_OK || (made == 0 && inflater.avail_in == 0 && compressed_left == 0)) break;
      }
    }
    // Both loops end early only if the data is incomplete or damaged.
    if (done != n) {
      return error()
          .found(fmt::format("damaged data behind byte {}", produced + done))
          .expected(fmt::format("{} bytes", member.size));
    }
    for (std::size_t at = 0; at < n;) {
      const std::size_t part = std::min<std::size_t>(n - at, std::numeric_limits<uInt>::max());
      crc = crc32(crc, reinterpret_cast<const Bytef*>(to + at), static_cast<uInt>(part));
      at += part;
    }
    produced += n;
    if (produced == member.size && crc != member.crc)
      return error().found("a wrong checksum").expected("an undamaged file").advice("copy it again");
    return Ok{};
  }
};

ZipMember::ZipMember() : impl_(std::make_unique<Impl>()) {}
ZipMember::ZipMember(ZipMember&&) noexcept = default;
ZipMember& ZipMember::operator=(ZipMember&&) noexcept = default;
ZipMember::~ZipMember() = default;
std::uint64_t ZipMember::size() const { return impl_->member.size; }
std::uint64_t ZipMember::bytes_left() const { return impl_->member.size - impl_->produced; }
Status ZipMember::take(char* to, std::size_t n) { return impl_->take(to, n); }

Result<std::size_t> ZipMember::read(char* to, std::size_t capacity) {
  const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(capacity, bytes_left()));
  STEPCAST_TRY(take(to, n));
  return n;
}

// An empty archive begins with the end record, all others with a local header.
bool ZipFile::is_zip(const std::filesystem::path& file) {
  std::ifstream in{file, std::ios::binary};
  std::array<char, 4> magic{};
  in.read(magic.data(), magic.size());
  const std::uint64_t found = number_at({magic.data(), magic.size()}, 0, 4);
  return in && (found == kLocalMagic || found == kEndMagic);
}

Result<ZipFile> ZipFile::open(const std::filesystem::path& file) {
  STEPCAST_TRY(may_read(file));
  ZipFile out;
  out.impl_ = std::make_shared<Impl>();
  out.impl_->name = file.string();
  auto stream = std::make_unique<std::ifstream>(file, std::ios::binary);
  std::error_code problem;
  out.impl_->size = std::filesystem::file_size(file, problem);
  if (!*stream || problem)
    return Error::at(file.string(), "", "cannot be read").expected("a file that is there");
  out.impl_->stream = std::move(stream);
  STEPCAST_TRY(out.impl_->read_directory());
  return out;
}

// The content is kept in a string stream, so that both kinds of archives are read with the same code.
Result<ZipFile> ZipFile::from_memory(std::string content, const std::string& name) {
  ZipFile out;
  out.impl_ = std::make_shared<Impl>();
  out.impl_->name = name;
  out.impl_->size = content.size();
  out.impl_->stream = std::make_unique<std::istringstream>(std::move(content), std::ios::binary);
  STEPCAST_TRY(out.impl_->read_directory());
  return out;
}

const std::string& ZipFile::name() const { return impl_->name; }

std::vector<std::string> ZipFile::members() const {
  std::vector<std::string> names;
  for (const Member& m : impl_->members) names.push_back(m.name);
  return names;
}

Result<ZipMember> ZipFile::member(std::string_view name, std::string place) const {
  const auto found = std::ranges::find(impl_->members, name, &Member::name);
  if (found == impl_->members.end())
    return impl_->error("the archive").found(fmt::format("no {}", place)).expected("one");
  ZipMember member;
  member.impl_->file = impl_;
  member.impl_->place = std::move(place);
  member.impl_->member = *found;
  STEPCAST_TRY(member.impl_->start());
  return member;
}

}  // namespace stepcast
