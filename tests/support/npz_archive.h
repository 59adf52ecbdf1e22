// .npz archives made in tests, stored or deflated, with any claim about them changed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <zlib.h>

namespace stepcast::test {

// `bytes` beyond eight are zero.
inline std::string little_endian(std::uint64_t value, std::size_t bytes) {
  std::string out;
  for (; bytes > 0; --bytes, value >>= 8U) out += static_cast<char>(value & 0xFFU);
  return out;
}

// As numpy.save writes whole numbers; `descr` "<i8" and `values` go together.
inline std::string npy(const std::vector<std::int64_t>& values, const std::string& shape,
                       const std::string& descr = "<i8", const std::string& fortran = "False") {
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", descr, fortran, shape);
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string out = "\x93NUMPY\x01";
  out += '\0';
  out += little_endian(header.size(), 2) + header;
  const auto width = static_cast<std::size_t>(descr.back() - '0');
  for (const std::int64_t value : values) out += little_endian(static_cast<std::uint64_t>(value), width);
  return out;
}

struct ZipMember {
  std::string name, content;
  bool deflated = false;
  std::uint32_t flags = 0;
  std::uint64_t claimed_size = 0;  // 0: as it is
  bool wrong_crc = false;
};

inline std::string zip_archive(const std::vector<ZipMember>& members) {
  std::string out, directory;
  for (const ZipMember& m : members) {
    std::string data = m.content;
    if (m.deflated) {
      z_stream z{};
      deflateInit2(&z, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
      data.assign(deflateBound(&z, m.content.size()), '\0');
      std::string copy = m.content;
      z.next_in = reinterpret_cast<Bytef*>(copy.data());
      z.avail_in = static_cast<uInt>(copy.size());
      z.next_out = reinterpret_cast<Bytef*>(data.data());
      z.avail_out = static_cast<uInt>(data.size());
      deflate(&z, Z_FINISH);
      data.resize(z.total_out);
      deflateEnd(&z);
    }
    std::string copy = m.content;
    const uLong crc = crc32(0, reinterpret_cast<Bytef*>(copy.data()), static_cast<uInt>(copy.size())) ^
                      (m.wrong_crc ? 1U : 0U);
    const std::string common = little_endian(20, 2) + little_endian(m.flags, 2) +
                               little_endian(m.deflated ? 8 : 0, 2) + little_endian(0, 4) +
                               little_endian(crc, 4) + little_endian(data.size(), 4) +
                               little_endian(m.claimed_size > 0 ? m.claimed_size : m.content.size(), 4) +
                               little_endian(m.name.size(), 2) + little_endian(0, 2);
    directory += "PK\x01\x02" + little_endian(20, 2) + common + little_endian(0, 2 + 2 + 2 + 4) +
                 little_endian(out.size(), 4) + m.name;
    out += "PK\x03\x04" + common + m.name + data;
  }
  const std::size_t at = out.size();
  return out + directory + "PK\x05\x06" + little_endian(0, 4) + little_endian(members.size(), 2) +
         little_endian(members.size(), 2) + little_endian(directory.size(), 4) + little_endian(at, 4) +
         little_endian(0, 2);
}

}  // namespace stepcast::test
