// The table is built once, from option_table.def, on the first call of option_table(). The short names of
// sets of questions and the texts that several rows share are local to that function, since the rows name
// them.
#include "stepcast/sweep/option_table.h"

#include <algorithm>

#include "stepcast/base/text.h"
#include "stepcast/base/words.h"
#include "stepcast/platform/platform.h"
#include "stepcast/workload/framework_rule.h"

namespace stepcast {

std::string_view to_string(Question question) {
  switch (question) {
    case Question::described: return "description";
    case Question::series: return "series";
    case Question::log: return "log";
    case Question::traces: return "traces";
    case Question::recommendation: return "recommendation";
    case Question::post_training:
    case Question::plan_rl: return "post-training";
    case Question::plan: return "training";
    case Question::plan_pools: return "pools";
    case Question::plan_jobs: return "jobs";
  }
  return "";
}

bool is_laid_out(Question question) { return find_option("--tp", bit(question)) != nullptr; }

std::string Option::python_keyword() const {
  std::string word{name().substr(name().find_first_not_of('-'))};
  std::replace(word.begin(), word.end(), '-', '_');
  return word;
}

std::string Option::sweep_key() const { return key.empty() ? lower(python_keyword()) : std::string{key}; }

std::span<const Option> option_table() {
  using enum OptionHeading;
  using enum OptionKind;
  constexpr auto kDescribed = bit(Question::described), kSeries = bit(Question::series),
                 kLog = bit(Question::log), kTraces = bit(Question::traces),
                 kRecommendation = bit(Question::recommendation), kRl = bit(Question::post_training),
                 kOnePlatform = bit(Question::plan), kPlan = kOnePlatform | bit(Question::plan_pools),
                 kJobs = bit(Question::plan_jobs), kPlanRl = bit(Question::plan_rl);
  // kTraining: a described step, alone, in a series or of a log. kSteps: these and a step of reinforcement
  // learning.
  constexpr auto kTraining = kDescribed | kSeries | kLog, kSteps = kTraining | kRl;
  constexpr std::string_view kFailures =
      "interruptions of a training: default (rates of a published job), or your own CSV log (docs/runs.md)";
  constexpr std::string_view kRecovery =
      "checkpoints and recovery: interval=30m (default: the best), mode=sync|async|memory, storage=200GB/s, "
      "restart=15m, spares=8 nodes, repair=24h, elastic=yes";
  static const std::string kWhoseOverlaps = "kernels and overlaps of: " + framework_names(),
                           kWhoseSharding = "kernels, overlaps and sharding of: " + framework_names();
  static const Option kOptions[] = {
#define STEPCAST_OPTION(flags_, under_, of_, goes_to, meaning_, ...) \
  Option{.flags = flags_, .under = under_, .of = of_, .meaning = meaning_ __VA_OPT__(, ) __VA_ARGS__},
#include "stepcast/sweep/option_table.def"  // NOLINT(bugprone-suspicious-include): a list that several read
  };
  return kOptions;
}

const Option* find_option(std::string_view flag, QuestionSet questions) {
  const std::span<const Option> all = option_table();
  const auto found = std::ranges::find_if(all, [&](const Option& option) {
    return (option.of & questions) != 0 &&
           any_word(
               option.flags, [&](std::string_view one) { return one == flag; }, ',');
  });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace stepcast
