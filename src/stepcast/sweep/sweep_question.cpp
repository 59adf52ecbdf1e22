#include "stepcast/sweep/sweep_question.h"

#include <cmath>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "stepcast/base/object_reader.h"
#include "stepcast/base/scan.h"
#include "stepcast/base/text.h"
#include "stepcast/base/units.h"
#include "stepcast/describe/gpu_pools.h"
#include "stepcast/plan/job_words.h"
#include "stepcast/plan/restriction_words.h"
#include "stepcast/predict/what_if.h"
#include "stepcast/sweep/option_table.h"
#include "stepcast/sweep/sweep_keys.h"

namespace stepcast {
namespace {

// The parts of `text` between separators, as strings of their own storage.
std::vector<std::string> words_between(std::string_view text, char separator) {
  const std::vector<std::string_view> words = split(text, separator);
  return {words.begin(), words.end()};
}

// Reads the settings of a point one option at a time and marks them as taken. The settings that no option
// takes are flags of Megatron-LM (flags()).
class Settings {
 public:
  explicit Settings(const SweepPoint& point) : point_(point), taken_(point.settings.size(), false) {}

  // One overload per type of member that a row can name after SWEEP. Each one reads the setting of `option`
  // into `to` and leaves `to` unchanged if the point has no such setting. Errors name the key.
  Status read(const Option& option, std::string& to) {
    const JsonValue* value = take(option);
    if (value == nullptr) return Ok{};
    if (!value->is_text()) return wrong(option, *value, "a text");
    to = value->text();
    // Names of files are resolved against the folder of the sweep file; other names stay unchanged.
    if (option.sweep == SweepValue::file && !to.empty()) to = point_.file(to);
    return Ok{};
  }
  Status read(const Option& option, std::optional<std::string>& to) {
    std::string text;
    STEPCAST_TRY(read(option, text));
    if (!text.empty()) to = text;
    return Ok{};
  }
  // Numbers above 0, and at most 1e24.
  Status read(const Option& option, std::optional<double>& to) {
    const JsonValue* value = take(option);
    if (value == nullptr) return Ok{};
    if (!value->is_number() || value->number() <= 0 || value->number() > 1e24)
      return wrong(option, *value, "a number above 0");
    to = value->number();
    return Ok{};
  }
  // Integers from 1 to 1e12, so that the conversion from double is exact.
  Status read(const Option& option, std::optional<std::int64_t>& to) {
    const JsonValue* value = take(option);
    if (value == nullptr) return Ok{};
    constexpr double kMost = 1e12;
    const bool is_whole = value->is_number() && value->number() == std::floor(value->number());
    if (!is_whole || value->number() < 1 || value->number() > kMost)
      return wrong(option, *value, "a whole number from 1 on");
    to = static_cast<std::int64_t>(value->number());
    return Ok{};
  }
  // A list in one text, as "a,b". A number is a list of one word, and `true` means "on".
  Status read(const Option& option, std::vector<std::string>& to) {
    const JsonValue* value = take(option);
    if (value == nullptr) return Ok{};
    if (value->is_number())
      to = {compact_json(*value)};
    else if (value->is_bool())
      to = {"on"};
    else
      to = words_between(value->text(), ',');
    return Ok{};
  }
  // A list of integers from 0 on, as 4 or "4,8".
  Status read(const Option& option, std::vector<std::int64_t>& to) {
    const JsonValue* value = point_.find(option.sweep_key());
    std::vector<std::string> all;
    STEPCAST_TRY(read(option, all));
    for (const std::string& word : all) {
      const std::int64_t number = scan<std::int64_t>(word).value_or(-1);
      if (number < 0) return wrong(option, *value, "whole numbers, as in 4 or \"4,8\"");
      to.push_back(number);
    }
    return Ok{};
  }

  // The settings that no option took, as words of a command line of Megatron-LM: flag, value, flag, value.
  // `true` is a flag without a value.
  [[nodiscard]] std::vector<std::string> flags() const {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      if (taken_[i]) continue;
      const auto& [key, value] = point_.settings[i];
      all.push_back(flag_of_key(key));
      if (value.is_bool()) continue;
      if (value.is_number()) all.push_back(compact_json(value));
      if (!value.is_text()) continue;
      // A text with blanks is the value of a flag that takes several words.
      std::string_view rest = value.text();
      while (!rest.empty()) {
        const std::size_t blank = rest.find(' ');
        if (blank != 0) all.emplace_back(rest.substr(0, blank));
        rest.remove_prefix(blank == std::string_view::npos ? rest.size() : blank + 1);
      }
    }
    return all;
  }

 private:
  // The value of the option's key, marked as taken. A null pointer if the point has no such setting.
  const JsonValue* take(const Option& option) {
    const std::string key = option.sweep_key();
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      if (point_.settings[i].first != key) continue;
      taken_[i] = true;
      return &point_.settings[i].second;
    }
    return nullptr;
  }
  static Error wrong(const Option& option, const JsonValue& found, std::string_view expected) {
    return Error::at("", option.sweep_key()).found(describe_value(found)).expected(std::string{expected});
  }

  const SweepPoint& point_;
  std::vector<bool> taken_;
};

// The settings of a point as given, before they are checked together: the question with the words and lists
// of layouts that have to be parsed.
struct Said : SweepQuestion, JobWords {
  std::string objective, zone_words;
  RestrictionWords lists;
  std::optional<double> memory_GiB;
};

// A pointer to the member that a row of the option table fills. The alternative decides which overload of
// Settings::read() is used; monostate: sweeps do not read this row.
using Target =
    std::variant<std::monostate, std::string*, std::optional<std::string>*, std::optional<double>*,
                 std::optional<std::int64_t>*, std::vector<std::string>*, std::vector<std::int64_t>*>;

// The targets of all rows, in the order of option_table().
std::vector<Target> targets_of(Said& said) {
  return {
#define STEPCAST_OPTION(flags, heading, questions, goes_to, ...) Target{goes_to},
#define SWEEP(member) &said.member
#include "stepcast/sweep/option_table.def"  // NOLINT(bugprone-suspicious-include): a list that several read
  };
}

// Reads all settings that have a member for this mode. Settings without a member stay in `settings` and are
// passed on as flags of Megatron-LM.
Status read_all(Settings& settings, SweepMode mode, Said& said) {
  const std::span<const Option> options = option_table();
  const std::vector<Target> targets = targets_of(said);
  for (std::size_t i = 0; i < options.size(); ++i) {
    if ((options[i].of & questions_of(mode)) == 0) continue;
    STEPCAST_TRY(std::visit(
        [&](auto to) -> Status {
          if constexpr (std::is_same_v<decltype(to), std::monostate>)
            return Ok{};
          else
            return settings.read(options[i], *to);
        },
        targets[i]));
  }
  return Ok{};
}

// Checks `pools` and `zones` ("64xh100@east+64xa100@west"; zones separated by blanks). A single pool without
// a power limit is the same as a platform with a number of GPUs, so it becomes one. Errors: zones without
// pools, pools together with gpus, nodes or platform, a price that is given twice.
Status check_pools(const SweepPoint& point, Said& said) {
  if (said.pools.empty())
    return said.zone_words.empty() ? Status{Ok{}} : Error{"zones are those of pools"}.advice("add pools");
  for (const char* key : {"gpus", "nodes", "platform"})
    if (point.find(key) != nullptr)
      return Error{fmt::format("pools and {} say the same thing", key)}.advice("leave one of the two out");
  for (std::string& zone : words_between(said.zone_words, ' '))
    if (!zone.empty()) said.zones.push_back(std::move(zone));
  STEPCAST_ASSIGN(const Cluster cluster, parse_cluster(said.pools, said.zones));
  if (cluster.pools.size() > 1 || cluster.pools.front().power_limit_W) return Ok{};
  const GpuPool& pool = cluster.pools.front();
  said.platform = point.file(pool.platform);
  said.n_gpus = pool.n_gpus;
  said.pools.clear();
  said.zones.clear();
  const GpuZone* zone = cluster.zone_of(pool);
  if (zone == nullptr || !zone->price_per_gpu_hour) return Ok{};
  if (said.budget.price_per_gpu_hour)
    return Error{"gpu_hour_price and prices of zones say the same thing"}.advice("leave one of the two out");
  said.budget.price_per_gpu_hour = zone->price_per_gpu_hour;
  return Ok{};
}

// Completes a question of mode predict. Errors: settings that contradict each other, flags that Megatron-LM
// rejects.
Status take_predict(const SweepPoint& point, const Settings& settings, Said& said) {
  Job& job = said.job;
  if (said.nodes && said.n_gpus)
    return Error{"nodes and gpus say the same thing"}.advice("leave one of the two out");
  STEPCAST_TRY(check_pools(point, said));
  if (!said.budget.recovery.empty() && said.budget.failures.empty())
    return Error{"recovery belongs to interruptions"}.advice("add failures = \"default\"");
  const RestrictionWords& lists = said.lists;
  said.words = {.schedule = join(lists.schedules, ","),
                .sharding = join(lists.shardings, ","),
                .sequence_parallel = join(lists.sequence_parallel, ","),
                .recompute = join(lists.recomputations, ",")};
  STEPCAST_ASSIGN(job, job_in_words(said, settings.flags(), job));
  job.n_gpus = said.n_gpus;
  job.gpus_per_node = said.gpus_per_node;
  return Ok{};
}

// Completes a question of mode plan. Errors: no number of GPUs, restrictions that cannot be parsed.
Status take_plan(const Settings& settings, Said& said) {
  PlanRequest& plan = said.plan;
  STEPCAST_ASSIGN(plan.restrictions, restrictions_of(said.lists));
  if (said.memory_GiB) plan.memory_bytes = *said.memory_GiB * kGiB;
  if (!said.objective.empty()) {
    STEPCAST_ASSIGN(plan.objective, parse_objective(said.objective));
  }
  said.dtypes = said.lists.dtypes;
  STEPCAST_ASSIGN(said.job, job_in_words(said, settings.flags(), said.job));
  if (!said.n_gpus) return Error::at("", "gpus").found("nothing").expected("how many GPUs in total");
  plan.job = said.job;
  plan.n_gpus = *said.n_gpus;
  // The shards and points of a sweep run in parallel already, so each search uses one thread.
  plan.threads = 1;
  plan.refines = true;
  return apply_what_if(said.what_if, plan.assumptions);
}

}  // namespace

Result<SweepQuestion> question_of(const SweepPoint& point) {
  Settings settings{point};
  Said said;
  STEPCAST_TRY(read_all(settings, point.mode, said));
  STEPCAST_TRY(point.mode == SweepMode::plan ? take_plan(settings, said)
                                             : take_predict(point, settings, said));
  // Prices, power and failures have an effect only if the length of the training is given.
  const TrainingBudget& budget = said.budget;
  if (!budget.tokens && !budget.samples && !budget.iterations) {
    for (const char* key : {"gpu_hour_price", "gpu_power_watts", "failures"})
      if (point.find(key) != nullptr)
        return Error{fmt::format("{} belongs to a training", key)}.advice("add train_tokens");
  }
  return SweepQuestion{std::move(said)};
}

}  // namespace stepcast
