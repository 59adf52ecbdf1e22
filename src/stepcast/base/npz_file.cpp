#include "stepcast/base/npz_file.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <istream>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <minizip/unzip.h>
#include <zlib.h>

#include "stepcast/base/read_scope.h"
#include "stepcast/base/scan.h"

namespace stepcast {
namespace {

constexpr std::uint64_t kMostMembers = 10'000;
constexpr std::uint64_t kMostElements = std::uint64_t{1} << 36;
// Deflate makes at most 1032 bytes of one.
constexpr std::uint64_t kMostInflation = 1032;
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30U;  // bytes that minizip is asked for

// Little-endian number of `n` bytes.
std::uint64_t number(std::string_view bytes, std::size_t at, std::size_t n) {
  std::uint64_t value = 0;
  for (std::size_t i = n; i-- > 0;) value = value << 8U | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

struct Member {
  std::string name;
  unz64_file_pos place{};
};

// How minizip reads a stream, which its owner opens and closes.
std::istream& stream_of(voidpf stream) { return *static_cast<std::istream*>(stream); }

voidpf same_stream(voidpf stream, const void* /*name*/, int /*mode*/) { return stream; }
uLong read_stream(voidpf /*file*/, voidpf stream, void* to, uLong n) {
  stream_of(stream).read(static_cast<char*>(to), static_cast<std::streamsize>(n));
  return static_cast<uLong>(stream_of(stream).gcount());
}
ZPOS64_T place_in_stream(voidpf /*file*/, voidpf stream) {
  stream_of(stream).clear();
  return static_cast<ZPOS64_T>(stream_of(stream).tellg());
}
long go_in_stream(voidpf /*file*/, voidpf stream, ZPOS64_T offset, int from) {
  constexpr std::array kFrom{std::ios::beg, std::ios::cur, std::ios::end};
  stream_of(stream).clear();
  stream_of(stream).seekg(static_cast<std::streamoff>(offset), kFrom.at(static_cast<std::size_t>(from)));
  return stream_of(stream) ? 0 : -1;
}
int keep_stream(voidpf /*file*/, voidpf /*stream*/) { return 0; }
// After a read that met the end of the file, too: minizip would take what is missing for zeros.
int stream_failed(voidpf /*file*/, voidpf stream) { return stream_of(stream) ? 0 : 1; }

class ZipReader {
 public:
  explicit ZipReader(std::unique_ptr<std::istream> stream) : stream_(std::move(stream)) {
    zlib_filefunc64_def calls{};
    calls.zopen64_file = same_stream;
    calls.zread_file = read_stream;
    calls.ztell64_file = place_in_stream;
    calls.zseek64_file = go_in_stream;
    calls.zclose_file = keep_stream;
    calls.zerror_file = stream_failed;
    calls.opaque = stream_.get();
    zip_ = unzOpen2_64("", &calls);
  }
  ZipReader(const ZipReader&) = delete;
  ZipReader& operator=(const ZipReader&) = delete;
  ~ZipReader() {
    if (zip_ != nullptr) unzClose(zip_);
  }
  [[nodiscard]] unzFile get() const { return zip_; }  // null: no zip archive

 private:
  std::unique_ptr<std::istream> stream_;
  unzFile zip_ = nullptr;
};

struct ElementType {
  std::size_t bytes = 0;
  bool is_signed = false;
};

}  // namespace

struct NpzFile::Impl {
  std::string name;
  std::optional<std::string> content;  // nothing: it is in the file
  std::uint64_t size = 0;
  std::vector<Member> members;

  [[nodiscard]] Error error(std::string place, std::string problem = {}) const {
    return Error::at(name, std::move(place), std::move(problem));
  }
  [[nodiscard]] std::unique_ptr<std::istream> stream() const {
    if (content) return std::make_unique<std::istringstream>(*content, std::ios::binary);
    return std::make_unique<std::ifstream>(name, std::ios::binary);
  }

  Status read_directory() {
    const auto no_zip = [&] {
      return error("the file")
          .found("no zip archive, or one that was cut off")
          .expected("a .npz of numpy.savez or savez_compressed");
    };
    const ZipReader zip{stream()};
    unz_global_info64 all{};
    if (zip.get() == nullptr || unzGetGlobalInfo64(zip.get(), &all) != UNZ_OK) return no_zip();
    if (all.number_entry > kMostMembers) {
      return error("the directory")
          .found(fmt::format("{} members", all.number_entry))
          .expected(fmt::format("at most {}", kMostMembers));
    }
    for (ZPOS64_T i = 0; i < all.number_entry; ++i) {
      std::array<char, 256> text{};
      Member m;
      if ((i == 0 ? unzGoToFirstFile(zip.get()) : unzGoToNextFile(zip.get())) != UNZ_OK ||
          unzGetCurrentFileInfo64(zip.get(), nullptr, text.data(), text.size() - 1, nullptr, 0, nullptr, 0) !=
              UNZ_OK ||
          unzGetFilePos64(zip.get(), &m.place) != UNZ_OK)
        return no_zip();
      m.name = text.data();
      if (!m.name.ends_with(".npy")) continue;
      m.name.resize(m.name.size() - 4);
      members.push_back(std::move(m));
    }
    return Ok{};
  }
};

struct NpzArray::Impl {
  Impl(std::shared_ptr<const NpzFile::Impl> of, Member which)
      : file(std::move(of)), member(std::move(which)), zip(file->stream()) {}

  std::shared_ptr<const NpzFile::Impl> file;
  Member member;
  ZipReader zip;  // of its own: arrays are read side by side
  unz_file_info64 info{};
  ElementType type;
  std::uint64_t elements = 0, elements_left = 0;
  std::uint64_t produced = 0;  // bytes of the member

  [[nodiscard]] Error error(std::string problem = {}) const {
    return file->error(fmt::format("array {}", printable(member.name)), std::move(problem));
  }
  static std::string printable(std::string_view text) { return std::string{text.substr(0, 60)}; }

  Status start() {
    const auto cut_off = [&](std::string found) {
      return error().found(std::move(found)).expected("a .npz that was not cut off");
    };
    if (zip.get() == nullptr || unzGoToFilePos64(zip.get(), &member.place) != UNZ_OK ||
        unzGetCurrentFileInfo64(zip.get(), &info, nullptr, 0, nullptr, 0, nullptr, 0) != UNZ_OK)
      return cut_off("no member at its place in the directory");
    if (info.compressed_size > file->size)
      return cut_off(fmt::format("{} compressed bytes, more than the file has", info.compressed_size));
    if ((info.flag & 1U) != 0) return error().found("encryption").expected("a member without a password");
    if (info.compression_method != 0 && info.compression_method != Z_DEFLATED) {
      return error()
          .found(fmt::format("compression method {}", info.compression_method))
          .expected("stored or deflated, as numpy writes");
    }
    if (info.compression_method == 0 ? info.uncompressed_size != info.compressed_size
                                     : info.uncompressed_size / kMostInflation > info.compressed_size) {
      return error()
          .found(fmt::format("{} bytes from {} in the archive", info.uncompressed_size, info.compressed_size))
          .expected("a size that these can hold");
    }
    if (unzOpenCurrentFile(zip.get()) != UNZ_OK)
      return cut_off("a place in the archive where no such member begins");
    return Ok{};
  }

  Status take(char* to, std::size_t n) {
    std::size_t done = 0;
    while (done < n) {
      const int got =
          unzReadCurrentFile(zip.get(), to + done, static_cast<unsigned>(std::min(n - done, kMostAtOnce)));
      if (got <= 0) break;
      done += static_cast<std::size_t>(got);
    }
    if (done != n) {
      return error()
          .found(fmt::format("damaged data behind byte {}", produced + done))
          .expected(fmt::format("{} bytes", info.uncompressed_size));
    }
    produced += n;
    if (produced == info.uncompressed_size && unzCloseCurrentFile(zip.get()) == UNZ_CRCERROR)
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
    if (info.uncompressed_size < start.size()) return no_npy();
    STEPCAST_TRY(take(start.data(), 10));
    const std::string_view magic{start.data(), start.size()};
    if (magic.substr(0, 6) != "\x93NUMPY") return no_npy();
    std::uint64_t length = number(magic, 8, 2);
    if (magic[6] != 1) {
      STEPCAST_TRY(take(start.data() + 10, 2));
      length = number(magic, 8, 4);
    }
    if (length > 65536 || length > info.uncompressed_size - produced)
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
    if (elements * type.bytes != info.uncompressed_size - produced) {
      return error()
          .found(fmt::format("{} bytes for {} elements of {} bytes", info.uncompressed_size - produced,
                             elements, type.bytes))
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

NpzArray::NpzArray(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
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
  const std::string_view found{magic.data(), magic.size()};
  return in && (found == "PK\3\4" || found == "PK\5\6");
}

Result<NpzFile> NpzFile::open(const std::filesystem::path& file) {
  STEPCAST_TRY(may_read(file));
  NpzFile out;
  out.impl_ = std::make_shared<Impl>();
  out.impl_->name = file.string();
  std::error_code problem;
  out.impl_->size = std::filesystem::file_size(file, problem);
  if (problem || !std::ifstream{file})
    return Error::at(file.string(), "", "cannot be read").expected("a .npz file that is there");
  STEPCAST_TRY(out.impl_->read_directory());
  return out;
}

Result<NpzFile> NpzFile::from_memory(std::string content, const std::string& name) {
  NpzFile out;
  out.impl_ = std::make_shared<Impl>();
  out.impl_->name = name;
  out.impl_->size = content.size();
  out.impl_->content = std::move(content);
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
  NpzArray array{std::make_unique<NpzArray::Impl>(impl_, *found)};
  STEPCAST_TRY(array.impl_->start());
  STEPCAST_TRY(array.impl_->read_header(array.shape));
  return array;
}

}  // namespace stepcast
