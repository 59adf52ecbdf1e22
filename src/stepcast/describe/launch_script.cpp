#include "stepcast/describe/launch_script.h"

#include <algorithm>
#include <system_error>

#include "stepcast/base/file.h"
#include "stepcast/describe/detail/shell/script.h"

namespace stepcast {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 20;
constexpr int kDeepestSource = 4;

// What `source "$DIR/../env.sh"` and `. $(dirname $0)/../env.sh` read, as seen from the folder of the script; nothing of
// other lines.
std::string sourced_file(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  if (!line.starts_with("source ") && !line.starts_with(". ")) return {};
  line.remove_prefix(line.find(' ') + 1);
  std::string path{line};
  std::erase_if(path, [](char c) { return c == '"' || c == '\'' || c == '\r'; });
  if (path.starts_with("$("))
    path.erase(0, path.rfind(')') + 1);
  else if (path.starts_with('$'))
    path.erase(0, std::min(path.find('/'), path.size()));
  if (path.size() < line.size()) path.erase(0, path.find_first_not_of('/'));
  path.resize(std::min(path.find_first_of(" ;&|"), path.size()));
  return path.find_first_of("$`") == std::string::npos ? path : std::string{};
}

Result<std::string> with_sources(const std::filesystem::path& file, int depth) {
  STEPCAST_ASSIGN(const std::string text, read_file(file, kMostBytes));
  std::string out;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const std::filesystem::path other = file.parent_path() / sourced_file(line);
    std::error_code ignored;
    if (depth < kDeepestSource && std::filesystem::is_regular_file(other, ignored)) {
      STEPCAST_ASSIGN(const std::string inner, with_sources(other, depth + 1));
      out += inner;
      if (out.size() > kMostBytes)
        return Error::at(file.string(), "", "reads files that read each other without end");
      continue;
    }
    out += std::string{line} + "\n";
  }
  return out;
}

}  // namespace

Result<std::string> read_launch_script(const std::filesystem::path& file) { return with_sources(file, 0); }

Result<std::vector<std::string>> words_of_launch_script(std::string_view script) {
  return detail::launch_words(script);
}

}  // namespace stepcast
