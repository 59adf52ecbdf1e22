#include "option_list.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <initializer_list>
#include <set>
#include <span>
#include <string_view>
#include <system_error>
#include <type_traits>

#include <fmt/format.h>

#include "stepcast/base/output_file.h"
#include "stepcast/base/spelled_number.h"
#include "stepcast/base/text.h"
#include "stepcast/base/words.h"
#include "stepcast/platform/platform_file.h"

#include "outputs.h"

namespace stepcast::cli {

namespace {

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> all;
  any_word(text, [&](std::string_view word) {
    all.emplace_back(word);
    return false;
  });
  return all;
}

CLI::Option* declare(CLI::App& app, const std::string& names, FlagTarget target, const std::string& meaning) {
  return std::visit(
      [&](auto to) -> CLI::Option* {
        using To = decltype(to);
        if constexpr (std::is_same_v<To, std::monostate>)
          return nullptr;
        else if constexpr (std::is_same_v<To, bool*>)
          return app.add_flag(names, *to, meaning);
        else if constexpr (std::is_same_v<To, std::optional<bool>*>)
          return app.add_flag_callback(
              names, [to] { *to = true; }, meaning);
        else
          return app.add_option(names, *to, meaning);
      },
      target);
}

constexpr char kWholeOrMax[] = "INT|max", kAboveZero[] = "above zero";

void restrict_values(CLI::Option& option, const OptionValues& values) {
  if (values.with_commas) option.delimiter(',');
  if (values.one_word) option.allow_extra_args(false);
  if (values.takes_max) option.type_name(kWholeOrMax);
  if (values.above_zero) option.check(CLI::Validator{above_zero, "", kAboveZero});
  if (values.range) option.check(CLI::Range(values.range->first, values.range->second));
  if (!values.one_of.empty()) option.check(CLI::IsMember(words_of(values.one_of)));
  if (values.shows_default) option.capture_default_str();
  if (values.required) option.required();
  if (!values.needs.empty()) option.needs(std::string{values.needs});
}

// `flag` belongs to `what`, which one of the flags in `partners` selects.
struct Pair {
  std::string_view flag, what;
  std::array<std::string_view, 4> partners;
};

constexpr std::string_view kOutput = "FILE";  // value name of add_output_option()
constexpr std::string_view kScenarios = "straggler scenarios", kTraining = "a training";
constexpr Pair kPairs[] = {
    {"seed", kScenarios, {"scenarios"}},
    {"with-measured", "a timeline", {"timeline"}},
    {"within", kTraining, {"train-tokens"}},
    {"gpu-hour-price", kTraining, {"train-tokens", "train-samples", "train-iterations", "jobs"}},
    {"currency", "a price", {"gpu-hour-price", "zone", "jobs"}},
    {"failures", kTraining, {"train-tokens", "train-samples", "train-iterations"}},
    {"recovery", "interruptions", {"failures"}},
    {"gpu-power-watts", kTraining, {"train-tokens", "train-samples", "train-iterations"}},
    {"carbon-intensity", kTraining, {"train-tokens", "train-samples", "train-iterations"}},
    {"power-budget", kTraining, {"train-tokens"}}};

const CLI::Option* option_of(const CLI::App& verb, std::string_view name) {
  return name.empty() ? nullptr : verb.get_option_no_throw("--" + std::string{name});
}

bool is_given(const CLI::Option* option) { return option != nullptr && option->count() > 0; }

Status check_partners(const CLI::App& verb) {
  for (const Pair& pair : kPairs) {
    if (!is_given(option_of(verb, pair.flag))) continue;
    // For a described step, --seed is a flag of Megatron-LM without effect.
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

// A device may receive several results; a file would keep only the last one.
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

// Errors: a file that is given twice, because it would count twice. `inspect` does not count, so it is excluded.
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

// Input files among the values of a verb's flags and arguments. A platform includes the platforms that it extends,
// a folder of traces its files. Other values that are accidentally names of folders (`--gpus 8`) are ignored.
std::vector<std::filesystem::path> files_read_by(const CLI::App& verb) {
  // `calibrate` may overwrite its own platform, and checks later which of the extended platforms are protected.
  const bool calibrates = verb.get_parent() != nullptr && verb.get_parent()->get_name() == "calibrate";
  std::vector<std::filesystem::path> files;
  for (const CLI::Option* option : verb.get_options()) {
    if (option->count() == 0 || option->get_type_name() == kOutput) continue;
    if (is_any_of(*option, {"name", "document"})) continue;  // not read
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

// Existing results are replaced, unless they are inputs of the new ones.
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

void FlagList::add_table(std::span<const VerbHeading> headings, QuestionSet questions,
                         std::span<const FlagTarget> targets) {
  const std::span<const Option> all = option_table();
  for (const VerbHeading& one : headings)
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i].under == one.heading && (all[i].of & questions) != 0) add(all[i], targets[i], one.text);
}

void FlagList::add(const Option& option, FlagTarget to, const char* heading) {
  const std::string names{option.flags}, meaning{option.meaning};
  CLI::Option* declared = option.values.is_output
                              ? add_output_option(*app_, names, *std::get<std::string*>(to), meaning)
                              : declare(*app_, names, to, meaning);
  restrict_values(*declared, option.values);
  if (heading != nullptr) declared->group(heading);
  flags_.emplace_back(declared, option.of);
}

std::vector<GivenFlag> FlagList::given() const {
  std::vector<GivenFlag> all;
  for (const auto& [option, of] : flags_)
    if (option->count() > 0 && !option->get_lnames().empty())
      all.push_back({"--" + option->get_lnames().front(), of});
  return all;
}

bool FlagList::is_given(const std::string& name) const { return app_->get_option(name)->count() > 0; }

std::vector<std::string> FlagList::names() const { return flags_of(*app_); }

std::string above_zero(const std::string& text) {
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem == std::errc{} && end == text.data() + text.size() && value > 0) return {};
  return fmt::format("found {}, expected a number above 0", text.substr(0, 40));
}

std::string check_date(const std::string& text) {
  constexpr std::array<int, 12> kDays = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  std::array<int, 3> parts{0, 1, 1};
  const char* at = text.data();
  const char* end = at + text.size();
  std::size_t n = 0;
  bool good = text.size() == 4 || text.size() == 7 || text.size() == 10;
  for (; good && n < parts.size() && at != end; ++n) {
    const std::ptrdiff_t width = n == 0 ? 4 : 2;
    if (n > 0) good = *at++ == '-';
    const auto read = std::from_chars(at, at + width, parts[n]);
    good = good && read.ec == std::errc{} && read.ptr == at + width;
    at += width;
  }
  good = good && at == end && parts[0] >= 1970 && parts[1] >= 1 && parts[1] <= 12 && parts[2] >= 1 &&
         parts[2] <= kDays[static_cast<std::size_t>(parts[1] - 1)];
  if (good) return {};
  return fmt::format("found `{}`, expected a date: 2024, 2024-05 or 2024-05-31", text.substr(0, 40));
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  return flags;
}

namespace {

bool is_above_zero(CLI::Option& option) {
  try {
    return option.get_validator(kAboveZero) != nullptr;
  } catch (const CLI::OptionNotFound&) {
    return false;
  }
}

}  // namespace

void make_strict(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_expected_max() == 0) continue;  // a flag without value
    const std::string type = option->get_type_name();
    const bool whole = type.starts_with("INT") || type.starts_with("UINT");
    const bool takes_max = type == kWholeOrMax;
    const bool of_search = !takes_max && option->get_delimiter() == ',' && option->check_lname("mbs");
    const auto spell_out = [takes_max, of_search, above = is_above_zero(*option)](std::string& text) {
      if (above && text.starts_with('-')) return above_zero(text);
      if (of_search && text == "max")
        return std::string{
            "found `max`, a question about one layout, which `stepcast predict` answers; a search looks at "
            "every size: leave it out, or write a list, as in 1,2,4"};
      if (!takes_max || text != "max") return spell_out_whole(text);
      text = std::to_string(kLargest);
      return std::string{};
    };
    if (whole) option->transform(CLI::Validator{spell_out, ""});
    if (type.starts_with("FLOAT")) option->transform(CLI::Validator{spell_out_number, ""});
    if (option->check_lname("date")) option->check(check_date);
    // Validators are called in reverse order, so this one runs first.
    option->transform(CLI::Validator{[](std::string& text) {
                                       return text.empty() ? std::string{"found an empty value; is a shell "
                                                                         "variable not set?"}
                                                           : std::string{};
                                     },
                                     ""});
  }
  for (CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) make_strict(*verb);
}

Status check_lists(const CLI::App& app, std::span<const char* const> words) {
  const CLI::App* verb = &app;
  const CLI::Option* list = nullptr;
  for (std::string_view word : words.subspan(std::min<std::size_t>(1, words.size()))) {
    const auto verbs = verb->get_subcommands([&](const CLI::App* one) { return one->get_name() == word; });
    if (!verbs.empty()) verb = verbs.front();
    if (word.starts_with("--")) {
      const std::size_t equals = word.find('=');
      list = verb->get_option_no_throw(std::string{word.substr(0, equals)});
      if (list != nullptr && list->get_delimiter() != ',') list = nullptr;
      if (equals == std::string_view::npos) continue;
      word.remove_prefix(equals + 1);
    }
    if (list == nullptr || word.empty()) continue;
    if (word.starts_with(",") || word.ends_with(",") || word.find(",,") != std::string_view::npos)
      return Error::at("", list->get_name())
          .found(fmt::format("an empty entry in `{}`", word.substr(0, 80)))
          .advice("write each entry between commas; is a shell variable not set?");
  }
  return Ok{};
}

Status check_pairs(const CLI::App& verb) {
  STEPCAST_TRY(check_partners(verb));
  STEPCAST_TRY(check_format(verb));
  STEPCAST_TRY(check_places(verb));
  STEPCAST_TRY(check_outputs(verb));
  return check_inputs(verb);
}

}  // namespace stepcast::cli
