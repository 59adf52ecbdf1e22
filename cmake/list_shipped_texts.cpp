// list_shipped_texts OUTPUT FILE...: a source file with the hash of each JSON file; one that is not valid fails the build.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/content_hash.h"
#include "stepcast/base/json_value.h"

int main(int argc, char** argv) {
  std::vector<std::uint64_t> hashes;
  for (int i = 2; i < argc; ++i) {
    std::ifstream file{argv[i], std::ios::binary};
    const std::string text{std::istreambuf_iterator<char>{file}, {}};
    if (const auto root = stepcast::parse_json(text, argv[i]); !root) {
      fmt::print(stderr, "{}\n", root.error().message());
      return 1;
    }
    hashes.push_back(stepcast::content_hash(text));
  }
  std::ranges::sort(hashes);
  std::string list;
  for (const std::uint64_t hash : hashes) list += fmt::format("      {:#018x}ULL,\n", hash);
  std::ofstream out{argv[1], std::ios::binary};
  out << "// Made by cmake/list_shipped_texts.cpp.\n"
         "#include \"stepcast/platform/shipped_texts.h\"\n\n"
         "#include <algorithm>\n#include <array>\n#include <cstdint>\n\n"
         "#include \"stepcast/base/content_hash.h\"\n\n"
         "namespace stepcast {\n\nbool is_shipped_text(std::string_view text) {\n"
      << fmt::format("  static constexpr std::array<std::uint64_t, {}> kHashes = {{\n", hashes.size()) << list
      << "  };\n  return std::ranges::binary_search(kHashes, content_hash(text));\n}\n\n}  // namespace "
         "stepcast\n";
  return out.flush() ? 0 : 1;
}
