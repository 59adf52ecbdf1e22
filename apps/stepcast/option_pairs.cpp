#include "option_pairs.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/output_file.h"
#include "stepcast/base/text.h"
#include "stepcast/platform/platform_file.h"

#include "outputs.h"

namespace stepcast::cli {
namespace {

// `flag` belongs to `what`, which one of `partners` asks for.
struct Pair {
  std::string_view flag, what;
  std::array<std::string_view, 3> partners;
};

constexpr std::string_view kOutput = "FILE";  // of add_output_option()
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
    // Beside a described step it is Megatron-LM's, and changes nothing.
    if (pair.flag == "seed" && !is_given(option_of(verb, "trace")) && option_of(verb, "trace") != nullptr)
      continue;
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
    if (option->count() == 0 || option->get_type_name() != kOutput) continue;
    const std::string file = option->as<std::string>();
    std::error_code failure;
    const bool is_device =
        std::filesystem::exists(file, failure) && !std::filesystem::is_regular_file(file, failure);
    if (is_device) continue;
    std::filesystem::path place =
        std::filesystem::weakly_canonical(std::filesystem::absolute(file, failure), failure);
    if (failure) place = file;
    for (const auto& [other, name] : places)
      if (other == place)
        return Error::at(file, "", fmt::format("is the place of {} and of {}", name, option->get_name()))
            .advice("name two files");
    places.emplace_back(std::move(place), option->get_name());
  }
  return Ok{};
}

// A file that is named twice would count twice; `inspect` counts nothing.
Status check_places(const CLI::App& verb) {
  if (verb.get_name() == "inspect") return Ok{};
  for (const CLI::Option* option : verb.get_options()) {
    if (!option->get_positional() || option->get_items_expected_max() < 2 || option->count() < 2) continue;
    std::set<std::filesystem::path> seen;
    for (const std::string& place : option->results()) {
      std::error_code failure;
      const std::filesystem::path real = std::filesystem::canonical(place, failure);
      if (!failure && !seen.insert(real).second)
        return Error::at(place, "", "is named twice").advice("name it once");
    }
  }
  return Ok{};
}

bool is_any_of(const CLI::Option& option, std::initializer_list<const char*> names) {
  return std::ranges::any_of(names, [&](const char* name) { return option.check_lname(name); });
}

bool is_file(const std::filesystem::path& place) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(place, ignored);
}

// Files that stand behind the flags of a verb and between them. A platform stands for those that it extends, a folder of
// traces for what is in it. Other words that happen to be the name of a folder, as in `--gpus 8`, mean none.
std::vector<std::filesystem::path> files_read_by(const CLI::App& verb) {
  // `calibrate` may write over its own platform, and says itself which of those that this extends it may not.
  const bool calibrates = verb.get_parent() != nullptr && verb.get_parent()->get_name() == "calibrate";
  std::vector<std::filesystem::path> files;
  for (const CLI::Option* option : verb.get_options()) {
    if (option->count() == 0 || option->get_type_name() == kOutput) continue;
    if (is_any_of(*option, {"name", "document"})) continue;  // read by nobody
    const bool is_platform = is_any_of(*option, {"platform", "links-of", "recorded-on", "rank-platform"});
    if (calibrates && is_platform) continue;
    for (const std::string& word : option->results()) {
      const std::string value = word.substr(word.find('=') + 1);  // RANK=FILE
      for (const std::string& place : {word, value})
        if (is_file(place)) files.emplace_back(place);
      if (is_platform) {
        if (const Result<Platform> platform = load_platform(value))
          files.insert(files.end(), platform->files.begin(), platform->files.end());
      } else if (is_any_of(*option, {"trace", "second-trace"})) {
        const std::vector<std::filesystem::path> inside =
            input_files(std::vector<std::filesystem::path>{word});
        files.insert(files.end(), inside.begin(), inside.end());
      }
    }
  }
  return files;
}

// Results that are there already are replaced, unless they are read to make the new ones.
Status check_inputs(const CLI::App& verb) {
  std::vector<std::filesystem::path> results;
  for (const CLI::Option* option : verb.get_options()) {
    if (option->count() == 0) continue;
    const std::string place = option->as<std::string>();
    if (option->get_type_name() == kOutput && is_file(place)) results.emplace_back(place);
    if (!option->check_lname("chakra")) continue;
    std::error_code failure;
    for (std::filesystem::directory_iterator entry{place, failure}, end; !failure && entry != end;
         entry.increment(failure)) {
      const std::filesystem::path name = entry->path().filename();
      const bool is_written =
          name == "comm_groups.json" || (name.native().starts_with("step.") && name.extension() == ".et");
      if (is_written && is_file(entry->path())) results.push_back(entry->path());
    }
  }
  if (results.empty()) return Ok{};
  const std::vector<std::filesystem::path> inputs = files_read_by(verb);
  for (const std::filesystem::path& result : results) STEPCAST_TRY(OutputFile::at(result, inputs));
  return Ok{};
}

}  // namespace

Status check_pairs(const CLI::App& verb) {
  STEPCAST_TRY(check_partners(verb));
  STEPCAST_TRY(check_format(verb));
  STEPCAST_TRY(check_places(verb));
  STEPCAST_TRY(check_outputs(verb));
  return check_inputs(verb);
}

}  // namespace stepcast::cli
