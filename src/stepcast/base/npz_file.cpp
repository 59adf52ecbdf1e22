#include "stepcast/base/npz_file.h"

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

#include "stepcast/base/read_scope.h"
#include "stepcast/base/scan.h"

namespace stepcast {
namespace {

constexpr std::uint64_t kMostMembers = 10'000;
constexpr std::uint64_t kMostElements = std::uint64_t{1} << 36;
// Deflate makes at most 1032 bytes of one.
constexpr std::uint64_t kMostInflation = 1032;
constexpr std::uint64_t kEndBytes = 22, kMostComment = 65535, kLocalBytes = 30, kCentralBytes = 46;
constexpr std::uint64_t kEndMagic = 0x06054b50, kEnd64Magic = 0x06064b50, kLocator64Magic = 0x07064b50,
                        kCentralMagic = 0x02014b50, kLocalMagic = 0x04034b50;

// Little-endian number of `n` bytes.
std::uint64_t number(std::string_view bytes, std::size_t at, std::size_t n) {
  std::uint64_t value = 0;
  for (std::size_t i = n; i-- > 0;) value = value << 8U | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

struct Member {
  std::string name;
  std::uint64_t flags = 0, method = 0, crc = 0, compressed = 0, size = 0, offset = 0;
};

struct ElementType {
  std::size_t bytes = 0;
  bool is_signed = false;
};

}  // namespace

struct NpzFile::Impl {
  std::string name;
  std::unique_ptr<std::istream> stream;
  std::uint64_t size = 0;
  std::vector<Member> members;

  [[nodiscard]] Error error(std::string place, std::string problem = {}) const {
    return Error::at(name, std::move(place), std::move(problem));
  }

  // Exactly so many bytes from there; nothing if the file ends before.
  std::optional<std::string> bytes(std::uint64_t at, std::uint64_t n) const {
    if (at > size || n > size - at) return std::nullopt;
    std::string out(static_cast<std::size_t>(n), '\0');
    stream->clear();
    stream->seekg(static_cast<std::streamoff>(at));
    stream->read(out.data(), static_cast<std::streamsize>(n));
    if (static_cast<std::uint64_t>(stream->gcount()) != n) return std::nullopt;
    return out;
  }

  Status read_directory() {
    const auto no_zip = [&] {
      return error("the file")
          .found("no zip archive, or one that was cut off")
          .expected("a .npz of numpy.savez or savez_compressed");
    };
    if (size < kEndBytes) return no_zip();
    const std::uint64_t tail = std::min(size, kEndBytes + kMostComment);
    const std::optional<std::string> end = bytes(size - tail, tail);
    if (!end) return no_zip();
    const std::string magic{"PK\x05\x06"};
    const std::size_t at = end->rfind(magic, end->size() - kEndBytes);
    if (at == std::string::npos) return no_zip();
    std::uint64_t count = number(*end, at + 10, 2), directory_bytes = number(*end, at + 12, 4),
                  directory = number(*end, at + 16, 4);
    const std::uint64_t place = size - tail + at;
    if (count == 0xFFFF || directory_bytes == 0xFFFFFFFF || directory == 0xFFFFFFFF) {
      const std::optional<std::string> locator = place >= 20 ? bytes(place - 20, 20) : std::nullopt;
      if (!locator || number(*locator, 0, 4) != kLocator64Magic) return no_zip();
      const std::optional<std::string> end64 = bytes(number(*locator, 8, 8), 56);
      if (!end64 || number(*end64, 0, 4) != kEnd64Magic) return no_zip();
      count = number(*end64, 32, 8);
      directory_bytes = number(*end64, 40, 8);
      directory = number(*end64, 48, 8);
    }
    if (count > kMostMembers) {
      return error("the directory")
          .found(fmt::format("{} members", count))
          .expected(fmt::format("at most {}", kMostMembers));
    }
    const std::optional<std::string> central = bytes(directory, directory_bytes);
    if (!central) return no_zip();
    std::size_t next = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (central->size() < next || central->size() - next < kCentralBytes ||
          number(*central, next, 4) != kCentralMagic) {
        return no_zip();
      }
      STEPCAST_TRY(add_member(*central, next));
    }
    return Ok{};
  }

  // Reads the entry at `next` of the directory and goes behind it.
  Status add_member(std::string_view central, std::size_t& next) {
    const std::string_view entry = central.substr(next);
    Member m;
    m.flags = number(entry, 8, 2);
    m.method = number(entry, 10, 2);
    m.crc = number(entry, 16, 4);
    m.compressed = number(entry, 20, 4);
    m.size = number(entry, 24, 4);
    m.offset = number(entry, 42, 4);
    const std::size_t name_bytes = number(entry, 28, 2), extra_bytes = number(entry, 30, 2),
                      comment_bytes = number(entry, 32, 2);
    const std::size_t all = kCentralBytes + name_bytes + extra_bytes + comment_bytes;
    if (entry.size() < all)
      return error("the directory").found("a member that ends behind it").expected("a whole directory");
    m.name = entry.substr(kCentralBytes, name_bytes);
    std::string_view extra = entry.substr(kCentralBytes + name_bytes, extra_bytes);
    while (extra.size() >= 4) {
      const std::uint64_t id = number(extra, 0, 2);
      const std::size_t length = std::min<std::size_t>(number(extra, 2, 2), extra.size() - 4);
      std::string_view field = extra.substr(4, length);
      extra.remove_prefix(4 + length);
      if (id != 1) continue;
      for (std::uint64_t* value : {&m.size, &m.compressed, &m.offset}) {
        if (*value != 0xFFFFFFFF || field.size() < 8) continue;
        *value = number(field, 0, 8);
        field.remove_prefix(8);
      }
    }
    next += all;
    if (m.name.ends_with(".npy")) {
      m.name.resize(m.name.size() - 4);
      members.push_back(std::move(m));
    }
    return Ok{};
  }
};

struct NpzArray::Impl {
  std::shared_ptr<const NpzFile::Impl> file;
  Member member;
  ElementType type;
  std::uint64_t elements = 0, elements_left = 0;
  std::uint64_t position = 0, compressed_left = 0;  // of the file; of the member
  std::uint64_t produced = 0;                       // bytes of the member
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

  [[nodiscard]] Error error(std::string problem = {}) const {
    return file->error(fmt::format("array {}", printable(member.name)), std::move(problem));
  }
  static std::string printable(std::string_view text) { return std::string{text.substr(0, 60)}; }

  Status start() {
    const std::optional<std::string> local = file->bytes(member.offset, kLocalBytes);
    if (!local || number(*local, 0, 4) != kLocalMagic) {
      return error()
          .found("a place in the archive where no member begins")
          .expected("a .npz that was not cut off");
    }
    position = member.offset + kLocalBytes + number(*local, 26, 2) + number(*local, 28, 2);
    compressed_left = member.compressed;
    if (position > file->size || compressed_left > file->size - position) {
      return error()
          .found(fmt::format("{} compressed bytes, more than the file has", member.compressed))
          .expected("a .npz that was not cut off");
    }
    if ((member.flags & 1U) != 0) return error().found("encryption").expected("a member without a password");
    if (member.method != 0 && member.method != 8) {
      return error()
          .found(fmt::format("compression method {}", member.method))
          .expected("stored or deflated, as numpy writes");
    }
    if (member.method == 0 ? member.size != member.compressed
                           : member.size / kMostInflation > member.compressed) {
      return error()
          .found(fmt::format("{} bytes from {} in the archive", member.size, member.compressed))
          .expected("a size that these can hold");
    }
    crc = crc32(0, nullptr, 0);
    if (member.method == 8) {
      if (inflateInit2(&inflater, -15) != Z_OK) return Error{"zlib could not be initialised"}.of_machine();
      inflating = true;
    }
    return Ok{};
  }

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
      return error().found("a wrong checksum").expected("an undamaged file").advice("copy it anew");
    return Ok{};
  }

  // The text behind `'key':` of the header's dictionary.
  [[nodiscard]] static std::string_view value_of(std::string_view header, std::string_view key) {
    for (const char quote : {'\'', '"'}) {
      const std::string quoted = fmt::format("{0}{1}{0}", quote, key);
      const std::size_t at = header.find(quoted);
      if (at == std::string_view::npos) continue;
      std::string_view rest = header.substr(at + quoted.size());
      const std::size_t first = rest.find_first_not_of(": ");
      return first == std::string_view::npos ? std::string_view{} : rest.substr(first);
    }
    return {};
  }

  Status read_header(std::vector<std::int64_t>& extents) {
    std::array<char, 12> start{};
    const auto no_npy = [&] { return error().found("no .npy data").expected("an array as numpy saves it"); };
    if (member.size < start.size()) return no_npy();
    STEPCAST_TRY(take(start.data(), 10));
    const std::string_view magic{start.data(), start.size()};
    if (magic.substr(0, 6) != "\x93NUMPY") return no_npy();
    std::uint64_t length = number(magic, 8, 2);
    if (magic[6] != 1) {
      STEPCAST_TRY(take(start.data() + 10, 2));
      length = number(magic, 8, 4);
    }
    if (length > 65536 || length > member.size - produced)
      return error().found(fmt::format("a header of {} bytes", length)).expected("at most 65536");
    std::string header(static_cast<std::size_t>(length), '\0');
    STEPCAST_TRY(take(header.data(), header.size()));
    STEPCAST_TRY(read_type(value_of(header, "descr")));
    if (value_of(header, "fortran_order").starts_with("True")) {
      return error()
          .found("columns first (fortran_order)")
          .expected("rows first")
          .advice("save numpy.ascontiguousarray(...)");
    }
    std::string_view list = value_of(header, "shape");
    if (list.empty() || list.front() != '(' || list.find(')') == std::string_view::npos) return no_npy();
    list = list.substr(1, list.find(')') - 1);
    elements = 1;
    while (!list.empty()) {
      const std::size_t comma = std::min(list.find(','), list.size());
      std::string_view word = list.substr(0, comma);
      while (word.starts_with(' ')) word.remove_prefix(1);
      while (word.ends_with(' ')) word.remove_suffix(1);
      list.remove_prefix(std::min(comma + 1, list.size()));
      if (word.empty()) continue;
      const auto said = scan<std::uint64_t>(word);
      const std::uint64_t extent = said.value_or(0);
      if (!said || extent > kMostElements || extents.size() == 8 ||
          (extent > 0 && elements > kMostElements / extent)) {
        return error()
            .found(fmt::format("the extent {}", printable(word)))
            .expected(fmt::format("at most {} elements", kMostElements));
      }
      elements *= extent;
      extents.push_back(static_cast<std::int64_t>(extent));
    }
    if (elements * type.bytes != member.size - produced) {
      return error()
          .found(fmt::format("{} bytes for {} elements of {} bytes", member.size - produced, elements,
                             type.bytes))
          .expected("as many bytes as its shape says");
    }
    elements_left = elements;
    return Ok{};
  }

  Status read_type(std::string_view text) {
    const std::size_t end = text.size() > 1 ? text.find(text.front(), 1) : std::string_view::npos;
    const std::string_view word =
        end == std::string_view::npos ? std::string_view{} : text.substr(1, end - 1);
    const bool whole = word.size() == 3 && (word[1] == 'i' || word[1] == 'u') &&
                       (word[2] == '1' || word[2] == '2' || word[2] == '4' || word[2] == '8');
    if (!whole) {
      return error()
          .found(fmt::format("elements of type `{}`", printable(word)))
          .expected("whole numbers, int32 or int64 say");
    }
    if (word[0] == '>')
      return error().found("big-endian numbers").expected("little-endian ones").advice("save .astype('<i8')");
    type = {static_cast<std::size_t>(word[2] - '0'), word[1] == 'i'};
    return Ok{};
  }
};

NpzArray::NpzArray() : impl_(std::make_unique<Impl>()) {}
NpzArray::NpzArray(NpzArray&&) noexcept = default;
NpzArray& NpzArray::operator=(NpzArray&&) noexcept = default;
NpzArray::~NpzArray() = default;
std::uint64_t NpzArray::count() const { return impl_->elements; }

Status NpzArray::read(std::span<std::int64_t> values) {
  Impl& m = *impl_;
  if (values.size() > m.elements_left) {
    return m.error()
        .found(fmt::format("{} elements", m.elements))
        .expected(fmt::format("{} more than that", values.size() - m.elements_left));
  }
  m.elements_left -= values.size();
  std::array<char, 1 << 15> block{};
  const std::size_t n = m.type.bytes, fit = block.size() / n;
  for (std::size_t done = 0; done < values.size();) {
    const std::size_t part = std::min(fit, values.size() - done);
    STEPCAST_TRY(m.take(block.data(), part * n));
    const std::string_view bytes{block.data(), part * n};
    for (std::size_t i = 0; i < part; ++i) {
      std::uint64_t value = number(bytes, i * n, n);
      const std::uint64_t sign = std::uint64_t{1} << (8 * n - 1);
      if (m.type.is_signed && n < 8 && (value & sign) != 0) value |= ~(sign * 2 - 1);
      if (!m.type.is_signed && n == 8 && (value & sign) != 0)
        return m.error().found(fmt::format("{}", value)).expected("a number below 2^63");
      values[done + i] = static_cast<std::int64_t>(value);
    }
    done += part;
  }
  return Ok{};
}

bool NpzFile::is_zip(const std::filesystem::path& file) {
  std::ifstream in{file, std::ios::binary};
  std::array<char, 4> magic{};
  in.read(magic.data(), magic.size());
  const std::uint64_t found = number({magic.data(), magic.size()}, 0, 4);
  return in && (found == kLocalMagic || found == kEndMagic);
}

Result<NpzFile> NpzFile::open(const std::filesystem::path& file) {
  STEPCAST_TRY(may_read(file));
  NpzFile out;
  out.impl_ = std::make_shared<Impl>();
  out.impl_->name = file.string();
  auto stream = std::make_unique<std::ifstream>(file, std::ios::binary);
  std::error_code problem;
  out.impl_->size = std::filesystem::file_size(file, problem);
  if (!*stream || problem)
    return Error::at(file.string(), "", "cannot be read").expected("a .npz file that is there");
  out.impl_->stream = std::move(stream);
  STEPCAST_TRY(out.impl_->read_directory());
  return out;
}

Result<NpzFile> NpzFile::from_memory(std::string content, const std::string& name) {
  NpzFile out;
  out.impl_ = std::make_shared<Impl>();
  out.impl_->name = name;
  out.impl_->size = content.size();
  out.impl_->stream = std::make_unique<std::istringstream>(std::move(content), std::ios::binary);
  STEPCAST_TRY(out.impl_->read_directory());
  return out;
}

const std::string& NpzFile::name() const { return impl_->name; }

std::vector<std::string> NpzFile::arrays() const {
  std::vector<std::string> names;
  for (const Member& m : impl_->members) names.push_back(m.name);
  return names;
}

bool NpzFile::has(std::string_view array) const {
  return std::any_of(impl_->members.begin(), impl_->members.end(),
                     [&](const Member& m) { return m.name == array; });
}

Result<NpzArray> NpzFile::array(std::string_view name) const {
  const auto found = std::find_if(impl_->members.begin(), impl_->members.end(),
                                  [&](const Member& m) { return m.name == name; });
  if (found == impl_->members.end())
    return impl_->error("the archive").found(fmt::format("no array {}", name)).expected("one");
  NpzArray array;
  array.impl_->file = impl_;
  array.impl_->member = *found;
  STEPCAST_TRY(array.impl_->start());
  STEPCAST_TRY(array.impl_->read_header(array.shape));
  return array;
}

}  // namespace stepcast
