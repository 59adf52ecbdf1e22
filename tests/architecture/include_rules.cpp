#include "tests/architecture/include_rules.h"

#include <algorithm>
#include <array>
#include <optional>
#include <regex>

#include <fmt/format.h>

namespace stepcast::test {
namespace {

// Includes run one way: a room includes itself and rooms of lower tiers, never a room of its own tier.
struct Room {
  std::string_view name;
  int tier;
};
constexpr std::array kRooms{
    Room{"base", 0},                                                                      //
    Room{"operation", 1},                                                                 //
    Room{"program", 2},   Room{"platform", 2},                                            //
    Room{"trace", 3},     Room{"workload", 3},  Room{"cost", 3},    Room{"simulate", 3},  //
    Room{"rebuild", 4},   Room{"describe", 4},  Room{"run", 4},                           //
    Room{"predict", 5},   Room{"formats", 5},                                             //
    Room{"logs", 6},      Room{"sources", 6},   Room{"retrace", 6}, Room{"rollout", 6},   //
    Room{"analyze", 7},   Room{"plan", 7},                                                //
    Room{"sweep", 8},     Room{"recommend", 8},                                           //
    Room{"report", 9},    Room{"calibrate", 9},                                           //
    Room{"api", 10},                                                                      //
    Room{"lab", 11},                                                                      //
};

// Rooms that are libraries of their own, at the top of the tree: the product's library includes none of them.
constexpr std::array<std::string_view, 2> kApart{"calibrate", "lab"};
bool is_apart(std::string_view room) { return std::find(kApart.begin(), kApart.end(), room) != kApart.end(); }

// Libraries that the library's public headers must not need: users of the package would have to have them.
constexpr std::array<std::string_view, 8> kPrivateLibraries{"toml++", "isa-l", "zlib.h",    "fmt/",
                                                            "CLI/",   "gtest", "benchmark", "gmock"};

const Room* find_room(std::string_view name) {
  const auto* found =
      std::find_if(kRooms.begin(), kRooms.end(), [&](const Room& r) { return r.name == name; });
  return found == kRooms.end() ? nullptr : found;
}

// "src/stepcast/trace/x.h" -> "trace", "lab/x.h" -> "lab"; none for files of no library.
std::optional<std::string> room_of(std::string_view path) {
  constexpr std::string_view kLibrary = "src/stepcast/";
  if (const std::string top{path.substr(0, path.find('/'))}; is_apart(top)) return top;
  if (!path.starts_with(kLibrary)) return std::nullopt;
  path.remove_prefix(kLibrary.size());
  const auto slash = path.find('/');
  return slash == std::string_view::npos ? std::string{} : std::string{path.substr(0, slash)};
}

bool is_internal(std::string_view path) { return path.find("/detail/") != std::string_view::npos; }

std::string allowed_rooms(const Room& from) {
  std::string list;
  for (const Room& room : kRooms) {
    if (room.tier >= from.tier) continue;
    if (!list.empty()) list += ", ";
    list += room.name;
  }
  return list.empty() ? fmt::format("{} may include nothing but itself", from.name)
                      : fmt::format("{} may include itself and {}", from.name, list);
}

// The rule that `#include` of `target` breaks in `file`, if it breaks one.
std::optional<std::string> broken_rule(std::string_view file, std::string_view target, bool is_quoted) {
  const auto room = room_of(file);
  const bool is_public_header = room && !is_apart(*room) && file.ends_with(".h") && !is_internal(file);

  if (is_public_header) {
    for (const std::string_view library : kPrivateLibraries) {
      if (target.starts_with(library)) {
        return fmt::format("a public header must not need {}: use it in the .cpp file or below detail/",
                           target);
      }
    }
  }
  const bool is_in_product = target.starts_with("stepcast/");
  if (!is_in_product && !is_apart(target.substr(0, target.find('/')))) {
    const bool of_tool = file.starts_with("lab/program/");  // which includes the command line of the tool
    if (room && is_quoted && !of_tool) {
      return fmt::format("\"{}\" is not spelled from the include root: write \"stepcast/ROOM/FILE.h\"",
                         target);
    }
    return std::nullopt;
  }
  if (!is_quoted) return fmt::format("<{}> belongs to this project: write it in quotes", target);
  if (is_public_header && is_internal(target)) {
    return fmt::format("a public header must not include {}: detail/ is not installed", target);
  }

  const std::string target_path = is_in_product ? fmt::format("src/{}", target) : std::string{target};
  const auto target_name = room_of(target_path).value_or("");
  const Room* to = find_room(target_name);
  if (to == nullptr) return fmt::format("{} is in no known room", target);
  if (!room) {  // tests and fuzzing may include every room, the tool, its examples and benchmarks all but the laboratory
    const bool is_test =
        file.starts_with("tests/") || file.starts_with("fuzz/") || file.starts_with("examples/generate_");
    if (to->name == "lab" && !is_test)
      return fmt::format("{} is of the laboratory, which the product must not need", target);
    return std::nullopt;
  }
  const Room* from = find_room(*room);
  if (from == nullptr)
    return fmt::format("{} is in no known room; the table of rooms is in include_rules.cpp", file);
  if (from == to) return std::nullopt;
  if (is_internal(target)) return fmt::format("{} is internal to {}", target, to->name);
  if (to->tier < from->tier && (is_in_product || is_apart(from->name))) return std::nullopt;
  if (to->tier < from->tier)
    return fmt::format("{} must not include {}: it is a library of its own", from->name, to->name);
  return fmt::format("{} must not include {}: {}", from->name, to->name, allowed_rooms(*from));
}

}  // namespace

std::string Violation::message() const { return fmt::format("{}:{}: {}", file, line, rule); }

std::vector<Violation> check_includes(std::string_view file, std::string_view text) {
  static const std::regex kInclude{R"(^\s*#\s*include\s*(["<])([^">]+)[">])"};
  std::vector<Violation> violations;
  int number = 0;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string line{text.substr(0, end)};
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    std::smatch match;
    if (line.find('#') == std::string::npos || !std::regex_search(line, match, kInclude)) continue;
    if (auto rule = broken_rule(file, match[2].str(), match[1].str() == "\"")) {
      violations.push_back({std::string{file}, number, *std::move(rule)});
    }
  }
  return violations;
}

}  // namespace stepcast::test
