#include "option_pairs.h"

#include <array>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/text.h"

namespace stepcast::cli {
namespace {

// `flag` belongs to `what`, which one of `partners` asks for.
struct Pair {
  std::string_view flag, what;
  std::array<std::string_view, 3> partners;
};

constexpr std::string_view kScenarios = "straggler scenarios", kTraining = "a training";
constexpr Pair kPairs[] = {
    {"seed", kScenarios, {"scenarios"}},
    {"with-measured", "a timeline", {"timeline"}},
    {"within", kTraining, {"train-tokens"}},
    {"gpu-hour-price", kTraining, {"train-tokens", "train-samples", "train-iterations"}},
    {"gpu-power-watts", kTraining, {"train-tokens", "train-samples", "train-iterations"}}};

const CLI::Option* option_of(const CLI::App& verb, std::string_view name) {
  return name.empty() ? nullptr : verb.get_option_no_throw("--" + std::string{name});
}

bool is_given(const CLI::Option* option) { return option != nullptr && option->count() > 0; }

Status check_partners(const CLI::App& verb) {
  for (const Pair& pair : kPairs) {
    if (!is_given(option_of(verb, pair.flag))) continue;
    std::vector<std::string> known;
    bool any = false;
    for (const std::string_view name : pair.partners) {
      const CLI::Option* partner = option_of(verb, name);
      any = any || is_given(partner);
      if (partner != nullptr) known.push_back("--" + std::string{name});
    }
    if (any || known.empty()) continue;
    return Error{fmt::format("--{} belongs to {}", pair.flag, pair.what)}.advice("add " +
                                                                                 join(known, " or "));
  }
  return Ok{};
}

Status check_format(const CLI::App& verb) {
  const CLI::Option* format = option_of(verb, "format");
  if (!is_given(format) || !is_given(option_of(verb, "json"))) return Ok{};
  const std::string said = format->as<std::string>();
  if (said == "json") return Ok{};
  return Error{fmt::format("--json and --format {} contradict each other", said)}.advice(
      "leave one of the two out");
}

// A device takes several results one behind the other, a file keeps the last.
Status check_outputs(const CLI::App& verb) {
  std::vector<std::pair<std::filesystem::path, std::string>> places;
  for (const CLI::Option* option : verb.get_options()) {
    if (option->count() == 0 || option->get_type_name() != "FILE") continue;
    const std::string file = option->as<std::string>();
    std::error_code failure;
    const bool is_device =
        std::filesystem::exists(file, failure) && !std::filesystem::is_regular_file(file, failure);
    if (is_device) continue;
    std::filesystem::path place =
        std::filesystem::weakly_canonical(std::filesystem::absolute(file, failure), failure);
    if (failure) place = file;
    for (const auto& [other, name] : places) {
      if (other == place)
        return Error::at(file, "", fmt::format("is the place of {} and of {}", name, option->get_name()))
            .advice("name two files");
    }
    places.emplace_back(std::move(place), option->get_name());
  }
  return Ok{};
}

// A file that is named twice would count twice.
Status check_places(const CLI::App& verb) {
  for (const CLI::Option* option : verb.get_options()) {
    if (!option->get_positional() || option->get_items_expected_max() < 2 || option->count() < 2) continue;
    std::set<std::filesystem::path> seen;
    for (const std::string& place : option->results()) {
      std::error_code failure;
      const std::filesystem::path real = std::filesystem::canonical(place, failure);
      if (!failure && !seen.insert(real).second) {
        return Error::at(place, "", "is named twice").advice("name it once");
      }
    }
  }
  return Ok{};
}

}  // namespace

Status check_pairs(const CLI::App& verb) {
  STEPCAST_TRY(check_partners(verb));
  STEPCAST_TRY(check_format(verb));
  STEPCAST_TRY(check_places(verb));
  return check_outputs(verb);
}

}  // namespace stepcast::cli
