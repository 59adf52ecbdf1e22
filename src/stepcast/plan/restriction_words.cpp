#include "stepcast/plan/restriction_words.h"

#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "stepcast/plan/layout_plan.h"
#include "stepcast/plan/layout_point.h"
#include "stepcast/workload/framework_rule.h"

namespace stepcast {
namespace {

using Words = std::vector<std::string>;

// A word of the command line and its value.
template <class Value>
struct Word {
  std::string_view word;
  Value value;
};

// The values of the given words; empty if none is given. Error: an unknown word, with all known ones.
template <class Value, std::size_t n>
Result<std::optional<std::vector<Value>>> chosen(std::string_view flag, const Words& given,
                                                 const Word<Value> (&known)[n]) {
  if (given.empty()) return std::optional<std::vector<Value>>{};
  std::vector<Value> values;
  std::string all;
  for (const Word<Value>& k : known) all += fmt::format("{}{}", all.empty() ? "" : ", ", k.word);
  for (const std::string& word : given) {
    bool found = false;
    for (const Word<Value>& k : known) {
      if (k.word != word) continue;
      values.push_back(k.value);
      found = true;
    }
    if (!found)
      return Error::at("", std::string{flag}).found(fmt::format("`{}`", word.substr(0, 40))).expected(all);
  }
  return std::optional{std::move(values)};
}

}  // namespace

Result<LayoutRestrictions> restrictions_of(const RestrictionWords& words) {
  LayoutRestrictions list;
  const auto set = [](std::optional<std::vector<std::int64_t>>& to, const std::vector<std::int64_t>& given) {
    if (!given.empty()) to = given;
  };
  set(list.tensor, words.tensor);
  set(list.pipeline, words.pipeline);
  set(list.context, words.context);
  set(list.expert, words.expert);
  set(list.expert_tensor, words.expert_tensor);
  set(list.micro_batch, words.micro_batch);
  set(list.virtual_stages, words.virtual_stages);
  static constexpr Word<Recompute> kRecompute[] = {
      {"none", Recompute::none}, {"selective", Recompute::selective}, {"full", Recompute::full}};
  static constexpr Word<bool> kSwitch[] = {{"on", true}, {"off", false}};
  static constexpr Word<DType> kTypes[] = {{"bf16", DType::bf16},
                                           {"fp16", DType::fp16},
                                           {"fp32", DType::fp32},
                                           {"fp8", DType::fp8},
                                           {"fp4", DType::fp4}};
  static constexpr Word<PipelineSchedule> kSchedules[] = {{"1f1b", PipelineSchedule::one_f_one_b},
                                                          {"interleaved", PipelineSchedule::interleaved},
                                                          {"zero-bubble", PipelineSchedule::zero_bubble_h1},
                                                          {"zb-v", PipelineSchedule::zb_v},
                                                          {"v-half", PipelineSchedule::v_half},
                                                          {"v-min", PipelineSchedule::v_min},
                                                          {"dualpipe", PipelineSchedule::dual_pipe}};
  STEPCAST_ASSIGN(list.recomputations, chosen("--recompute", words.recomputations, kRecompute));
  STEPCAST_ASSIGN(list.sequence_parallel, chosen("--sp", words.sequence_parallel, kSwitch));
  STEPCAST_ASSIGN(list.dtypes, chosen("--dtype", words.dtypes, kTypes));
  STEPCAST_ASSIGN(list.schedules, chosen("--schedules", words.schedules, kSchedules));
  if (!words.shardings.empty()) {
    list.shardings.emplace();
    for (const std::string& word : words.shardings) {
      STEPCAST_ASSIGN(const DataSharding sharding, parse_data_sharding(word));
      list.shardings->push_back(sharding);
    }
  }
  return list;
}

namespace {

// Error: the framework does not support the sharding. `said` is the text of the user.
Status check_sharding(Framework framework, std::string_view flag, const std::string& said,
                      const DataSharding& sharding) {
  const ShardingKinds& kinds = rule_of(framework).sharding.kinds;
  if (kinds.has(sharding.kind, sharding.nodes > 0)) return Ok{};
  return Error::at("", std::string{flag})
      .found(fmt::format("`{}`, which {} does not have", said, to_string(framework)))
      .expected(fmt::format("{}{}", flag == "--sharding" ? "" : "--sharding ", kinds.words()));
}

}  // namespace

Status check_sharding(Framework framework, const std::string& word) {
  STEPCAST_ASSIGN(const DataSharding sharding, parse_data_sharding(word));
  return check_sharding(framework, "--sharding", word, sharding);
}

Status check_sharding(Framework framework, const JobSettings& flags) {
  if (flags.distributed_optimizer.value_or(false))
    STEPCAST_TRY(check_sharding(framework, "--use-distributed-optimizer", "zero1", {Sharding::zero1, 0}));
  constexpr Sharding kStages[] = {Sharding::none, Sharding::zero1, Sharding::zero2, Sharding::zero3};
  const std::int64_t stage = flags.zero_stage.value_or(0);
  if (stage < 0 || stage > 3) return Ok{};  // apply_settings() reports it
  return check_sharding(framework, "--zero-stage", fmt::format("{}", stage), {kStages[stage], 0});
}

// The words are parsed like lists of one element and checked against the flags for contradictions.
Status apply(const LayoutWords& words, const JobSettings& flags, JobSettings& to) {
  RestrictionWords lists;
  const auto put = [](const std::string& word, std::vector<std::string>& list) {
    if (!word.empty()) list = {word};
  };
  put(words.schedule, lists.schedules);
  put(words.sharding, lists.shardings);
  put(words.sequence_parallel, lists.sequence_parallel);
  put(words.recompute, lists.recomputations);
  STEPCAST_ASSIGN(const LayoutRestrictions chosen, restrictions_of(lists));
  if (const auto both = restricted(flags, chosen); !both) return both.error();
  if (chosen.schedules) to.pipeline_schedule = chosen.schedules->front();
  if (chosen.sequence_parallel) to.sequence_parallel = chosen.sequence_parallel->front();
  if (chosen.recomputations) to.recompute = chosen.recomputations->front();
  if (!chosen.shardings) return Ok{};
  const DataSharding& sharding = chosen.shardings->front();
  if (sharding.nodes > 0) {
    return Error::at("", "--sharding")
        .found(fmt::format("`{}`", words.sharding))
        .expected("none, zero1, zero2 or zero3 (fsdp)")
        .advice(
            "`--sharding zero3 --num-distributed-optimizer-instances N` keeps N copies; `stepcast plan` "
            "compares "
            "hybrid sharding");
  }
  set_sharding(sharding.kind, to);
  return Ok{};
}

}  // namespace stepcast
