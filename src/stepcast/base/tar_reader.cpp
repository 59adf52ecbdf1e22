#include "stepcast/base/detail/tar_reader.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/scan.h"

namespace stepcast::detail {
namespace {

using namespace std::string_view_literals;

// Limit of the content of members that hold names or pax records.
constexpr std::uint64_t kLongestText = std::uint64_t{1} << 16;

// A text field of a header: up to a zero byte or `most` characters.
std::string_view text_at(std::string_view header, std::size_t at, std::size_t most) {
  const std::string_view field = header.substr(at, most);
  return field.substr(0, std::min(field.find('\0'), field.size()));
}

// A number field of a header: octal digits and blanks, or, if the top bit is set, a big-endian binary number
// (GNU, for large files). Nothing if it is invalid.
std::optional<std::uint64_t> number_in(std::string_view header, std::size_t at, std::size_t n) {
  const std::string_view field = header.substr(at, n);
  std::uint64_t value = 0;
  if ((static_cast<unsigned char>(field.front()) & 0x80U) != 0) {
    for (const char c : field.substr(field.size() - 8)) value = value << 8U | static_cast<unsigned char>(c);
    return value >> 62U == 0 ? std::optional{value} : std::nullopt;
  }
  const std::string_view digits = text_at(header, at, n);
  for (const char c : digits) {
    if (c == ' ') continue;
    if (c < '0' || c > '7') return std::nullopt;
    value = value << 3U | static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

// Whether the checksum in the header is right. It is computed with blanks in place of the checksum field.
bool has_its_checksum(std::string_view header) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kTarBlock; ++i)
    sum += i >= 148 && i < 156 ? std::uint64_t{' '} : static_cast<unsigned char>(header[i]);
  return number_in(header, 148, 8) == sum;
}

bool is_empty(std::string_view header) { return header.find_first_not_of('\0') == std::string_view::npos; }

// Records of a pax header for the next member, as lines "LENGTH KEY=VALUE". The last record of a key applies.
struct PaxSaid {
  std::optional<std::string> path;
  std::optional<std::uint64_t> size;
};

// Reads path and size from the records. Stops silently at a malformed record.
void read_pax(std::string_view text, PaxSaid& said) {
  while (!text.empty()) {
    std::string_view rest = text;
    const auto length = scan_front<std::size_t>(rest);
    if (!length || *length <= text.size() - rest.size() || *length > text.size()) return;
    std::string_view line = text.substr(0, *length);
    line.remove_prefix(text.size() - rest.size());
    text.remove_prefix(*length);
    if (line.starts_with(' ')) line.remove_prefix(1);
    if (line.ends_with('\n')) line.remove_suffix(1);
    if (line.starts_with("path="sv)) said.path = line.substr(5);
    if (line.starts_with("size="sv)) said.size = scan<std::uint64_t>(line.substr(5));
  }
}

// The member name in a header: ustar splits long names into a prefix and a name.
std::string name_in(std::string_view header) {
  const std::string_view name = text_at(header, 0, 100), prefix = text_at(header, 345, 155);
  const bool is_ustar = header.substr(257, 6) == "ustar\0"sv;  // GNU headers use the prefix field otherwise
  return is_ustar && !prefix.empty() ? fmt::format("{}/{}", prefix, name) : std::string{name};
}

}  // namespace

bool is_tar(std::string_view beginning) {
  return beginning.size() >= kTarBlock && !is_empty(beginning.substr(0, kTarBlock)) &&
         has_its_checksum(beginning.substr(0, kTarBlock));
}

// The error for an archive that ends inside a member or header.
Error TarReader::cut_off() const {
  return Error::at(source_.name(), name_.empty() ? "the archive" : fmt::format("member {}", name_))
      .found("the end of the archive in the middle of it")
      .expected("a whole archive")
      .advice("copy or download it again");
}

// The end of an archive is a block of zero bytes, or the end of the file.
Result<bool> TarReader::read_header(std::string& header) {
  STEPCAST_ASSIGN(const std::uint64_t skipped, source_.skip(left_ + padding_));
  if (skipped != left_ + padding_) return cut_off();
  left_ = padding_ = 0;
  header.resize(kTarBlock);
  std::size_t size = 0;
  while (size < kTarBlock) {
    STEPCAST_ASSIGN(const std::size_t n, source_.read(header.data() + size, kTarBlock - size));
    if (n == 0) break;
    size += n;
  }
  if (size == 0 || (size == kTarBlock && is_empty(header))) return false;
  if (size < kTarBlock) return cut_off();
  if (has_its_checksum(header)) return true;
  return Error::at(source_.name(), name_.empty() ? "its begin" : fmt::format("behind member {}", name_))
      .found("bytes that are not a tar header")
      .expected("a whole tar archive")
      .advice("copy or download it again");
}

Result<std::string> TarReader::read_text(std::uint64_t bytes) {
  if (bytes > kLongestText) {
    return Error::at(source_.name(), "the archive")
        .found(fmt::format("a name of {} bytes", bytes))
        .expected(fmt::format("at most {}", kLongestText));
  }
  std::string text(static_cast<std::size_t>(bytes), '\0');
  for (std::size_t size = 0; size < text.size();) {
    STEPCAST_ASSIGN(const std::size_t n, read(text.data() + size, text.size() - size));
    if (n == 0) break;
    size += n;
  }
  return text;
}

Result<bool> TarReader::next() {
  PaxSaid said;
  std::string header;
  for (;;) {
    STEPCAST_ASSIGN(const bool is_there, read_header(header));
    if (!is_there) return false;
    const char type = header[156];
    // Types: x and g pax records (of one member and of all), L and K long names of GNU (of members and of links).
    const bool is_text = type == 'x' || type == 'L' || type == 'g' || type == 'K';
    std::optional<std::uint64_t> size = number_in(header, 124, 12);
    // A regular header: its name and size may be overridden by preceding records.
    if (!is_text) {
      name_ = said.path.value_or(name_in(header));
      if (said.size) size = said.size;
      said = {};
    }
    if (!size || *size > std::uint64_t{1} << 62U) {
      return Error::at(source_.name(), fmt::format("member {}", name_))
          .found("a size that is not a number")
          .expected("a tar archive of ustar, pax or GNU");
    }
    left_ = *size;
    padding_ = (kTarBlock - *size % kTarBlock) % kTarBlock;
    if (type == '0' || type == '\0' || type == '7') return true;
    if (type == 'S') {
      return Error::at(source_.name(), fmt::format("member {}", name_))
          .found("a file with holes (sparse)")
          .expected("whole files")
          .advice("pack it without --sparse");
    }
    if (!is_text) continue;  // folders, links and devices have no content
    STEPCAST_ASSIGN(const std::string text, read_text(*size));
    if (type == 'x') read_pax(text, said);
    if (type == 'L') said.path = text_at(text, 0, text.size());
  }
}

Result<std::size_t> TarReader::read(char* to, std::size_t capacity) {
  if (left_ == 0) return std::size_t{0};
  STEPCAST_ASSIGN(const std::size_t n, source_.read(to, std::min<std::uint64_t>(capacity, left_)));
  if (n == 0) return cut_off();
  left_ -= n;
  return n;
}

}  // namespace stepcast::detail
