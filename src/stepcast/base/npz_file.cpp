#include "stepcast/base/npz_file.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/detail/little_endian.h"
#include "stepcast/base/scan.h"

// A .npy member has a magic, a version, the length of its header, the header (a Python dictionary with the keys descr,
// fortran_order and shape) and then the elements without gaps. Only as much of Python's syntax is parsed as NumPy writes.
namespace stepcast {

using detail::number_at;

namespace {

// Largest array, and the suffix of array members.
constexpr std::uint64_t kMostElements = std::uint64_t{1} << 36;
constexpr std::string_view kSuffix = ".npy";

// Size and signedness of the elements; always little-endian integers.
struct ElementType {
  std::size_t bytes = 0;
  bool is_signed = false;
};

}  // namespace

struct NpzArray::Impl {
  std::string file, name;
  std::optional<ZipMember> member;  // always set after NpzFile::array()
  ElementType type;
  std::uint64_t elements = 0, elements_left = 0;

  [[nodiscard]] Error error(std::string problem = {}) const {
    return Error::at(file, place_of(name), std::move(problem));
  }
  // Names for errors, cut because they come from the file.
  static std::string printable(std::string_view text) { return std::string{text.substr(0, 60)}; }
  static std::string place_of(std::string_view name) { return fmt::format("array {}", printable(name)); }

  // The text after `'key':` in the header's dictionary, up to the end of the header; empty if there is no such key.
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

  // Reads the header into `type`, `elements` and `extents`. Checks that the elements fill the rest of the member.
  Status read_header(std::vector<std::int64_t>& extents) {
    std::array<char, 12> start{};
    const auto no_npy = [&] { return error().found("no .npy data").expected("an array as numpy saves it"); };
    if (member->size() < start.size()) return no_npy();
    STEPCAST_TRY(member->take(start.data(), 10));
    const std::string_view magic{start.data(), start.size()};
    if (magic.substr(0, 6) != "\x93NUMPY") return no_npy();
    std::uint64_t length = number_at(magic, 8, 2);
    // Version 1 has a length of two bytes, later versions of four.
    if (magic[6] != 1) {
      STEPCAST_TRY(member->take(start.data() + 10, 2));
      length = number_at(magic, 8, 4);
    }
    if (length > 65536 || length > member->bytes_left())
      return error().found(fmt::format("a header of {} bytes", length)).expected("at most 65536");
    std::string header(static_cast<std::size_t>(length), '\0');
    STEPCAST_TRY(member->take(header.data(), header.size()));
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
      // Checked before the multiplication, so that it cannot overflow.
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
    if (elements * type.bytes != member->bytes_left()) {
      return error()
          .found(
              fmt::format("{} bytes for {} elements of {} bytes", member->bytes_left(), elements, type.bytes))
          .expected("as many bytes as its shape says");
    }
    elements_left = elements;
    return Ok{};
  }

  // Reads a type such as '<i8' or '|u1' with its quotes.
  Status read_type(std::string_view text) {
    // The text begins with a quote, and the type ends at the next one.
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
  // Elements are converted in blocks of 32 KiB, so that arrays of any size need little memory.
  const std::size_t n = m.type.bytes, fit = block.size() / n;
  for (std::size_t done = 0; done < values.size();) {
    const std::size_t part = std::min(fit, values.size() - done);
    STEPCAST_TRY(m.member->take(block.data(), part * n));
    const std::string_view bytes{block.data(), part * n};
    for (std::size_t i = 0; i < part; ++i) {
      std::uint64_t value = number_at(bytes, i * n, n);
      const std::uint64_t sign = std::uint64_t{1} << (8 * n - 1);
      // Extends the sign of narrow signed numbers.
      if (m.type.is_signed && n < 8 && (value & sign) != 0) value |= ~(sign * 2 - 1);
      if (!m.type.is_signed && n == 8 && (value & sign) != 0)
        return m.error().found(fmt::format("{}", value)).expected("a number below 2^63");
      values[done + i] = static_cast<std::int64_t>(value);
    }
    done += part;
  }
  return Ok{};
}

Result<NpzFile> NpzFile::open(const std::filesystem::path& file) {
  STEPCAST_ASSIGN(ZipFile zip, ZipFile::open(file));
  return NpzFile{std::move(zip)};
}

Result<NpzFile> NpzFile::from_memory(std::string content, const std::string& name) {
  STEPCAST_ASSIGN(ZipFile zip, ZipFile::from_memory(std::move(content), name));
  return NpzFile{std::move(zip)};
}

const std::string& NpzFile::name() const { return zip_.name(); }

std::vector<std::string> NpzFile::arrays() const {
  std::vector<std::string> names;
  for (const std::string& member : zip_.members())
    if (member.ends_with(kSuffix)) names.push_back(member.substr(0, member.size() - kSuffix.size()));
  return names;
}

// Linear in the number of members, which is at most 10,000.
bool NpzFile::has(std::string_view array) const {
  const std::vector<std::string> all = arrays();
  return std::ranges::find(all, array) != all.end();
}

Result<NpzArray> NpzFile::array(std::string_view name) const {
  if (!has(name))
    return Error::at(this->name(), "the archive").found(fmt::format("no array {}", name)).expected("one");
  NpzArray array;
  array.impl_->file = this->name();
  array.impl_->name = name;
  STEPCAST_ASSIGN(array.impl_->member,
                  zip_.member(fmt::format("{}{}", name, kSuffix), NpzArray::Impl::place_of(name)));
  STEPCAST_TRY(array.impl_->read_header(array.shape));
  return array;
}

}  // namespace stepcast
