// Tar archives made in tests, as ustar, pax and GNU write them, with any claim about a member changed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace stepcast::test {

struct TarMember {
  std::string name, content;
  char type = '0';
  std::string prefix{};  // of ustar
};

inline std::string tar_member(const TarMember& m) {
  std::string header(512, '\0');
  const auto put = [&](std::size_t at, std::string_view text) { header.replace(at, text.size(), text); };
  put(0, std::string_view{m.name}.substr(0, 100));
  put(100, "0000644");
  put(124, fmt::format("{:011o}", m.content.size()));
  put(148, "        ");
  header[156] = m.type;
  put(257, std::string_view{"ustar\0", 6});
  put(263, "00");
  put(345, m.prefix);
  std::uint64_t sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, fmt::format("{:06o}", sum) + '\0');
  std::string content = m.content;
  content.resize((content.size() + 511) / 512 * 512);
  return header + content;
}

inline std::string tar_archive(const std::vector<TarMember>& members) {
  std::string out;
  for (const TarMember& m : members) out += tar_member(m);
  return out + std::string(1024, '\0');
}

}  // namespace stepcast::test
