// list_shipped_texts OUTPUT FILE...: a source file with the hash of each JSON file and the places of its long values; one that
// is not valid fails the build.
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/content_hash.h"
#include "stepcast/base/json_value.h"

int main(int argc, char** argv) {
  std::map<std::uint64_t, std::vector<stepcast::JsonStretch>> texts;
  for (int i = 2; i < argc; ++i) {
    std::ifstream file{argv[i], std::ios::binary};
    const std::string text{std::istreambuf_iterator<char>{file}, {}};
    auto values = stepcast::long_json_values(text, argv[i]);
    if (!values) {
      fmt::print(stderr, "{}\n", values.error().message());
      return 1;
    }
    texts[stepcast::content_hash(text)] = *std::move(values);
  }
  std::string list, places;
  std::size_t first = 0;
  for (const auto& [hash, values] : texts) {
    list += fmt::format("    {{{:#018x}ULL, {}, {}}},\n", hash, first, values.size());
    first += values.size();
    for (const stepcast::JsonStretch& v : values)
      places += fmt::format("{{{},{},{}}},", v.begin, v.size, v.lines);
    places += '\n';
  }
  std::ofstream out{argv[1], std::ios::binary};
  out << "// Made by cmake/list_shipped_texts.cpp.\n"
         "#include \"stepcast/platform/shipped_texts.h\"\n\n"
         "#include <algorithm>\n#include <cstdint>\n#include <iterator>\n\n"
         "#include \"stepcast/base/content_hash.h\"\n\n"
         "namespace stepcast {\nnamespace {\n\n"
         "struct Text {\n  std::uint64_t hash;\n  std::uint32_t first, count;\n};\n"
         "constexpr Text kTexts[] = {\n"
      << list << "};\nconstexpr JsonStretch kPlaces[] = {\n"
      << places
      << "};\n\n}  // namespace\n\n"
         "std::optional<std::span<const JsonStretch>> shipped_text(std::string_view text) {\n"
         "  const std::uint64_t hash = content_hash(text);\n"
         "  const Text* found = std::ranges::lower_bound(kTexts, hash, {}, &Text::hash);\n"
         "  if (found == std::end(kTexts) || found->hash != hash) return std::nullopt;\n"
         "  return std::span{kPlaces}.subspan(found->first, found->count);\n}\n\n}  // namespace stepcast\n";
  return out.flush() ? 0 : 1;
}
