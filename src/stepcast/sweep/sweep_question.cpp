#include "stepcast/sweep/sweep_question.h"

#include <array>
#include <cmath>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/object_reader.h"
#include "stepcast/base/scan.h"
#include "stepcast/base/text.h"
#include "stepcast/base/units.h"
#include "stepcast/describe/dlrm_job.h"
#include "stepcast/describe/megatron.h"
#include "stepcast/describe/software_defaults.h"
#include "stepcast/operation/dtype.h"
#include "stepcast/plan/restriction_words.h"
#include "stepcast/predict/what_if.h"
#include "stepcast/rollout/rl_config.h"
#include "stepcast/sweep/sweep_keys.h"

namespace stepcast {
namespace {

std::vector<std::string> words_between(std::string_view text, char separator) {
  const std::vector<std::string_view> words = split(text, separator);
  return {words.begin(), words.end()};
}

// Takes the settings of a point one by one; what is left are flags of Megatron-LM.
class Settings {
 public:
  explicit Settings(const SweepPoint& point) : point_(point), taken_(point.settings.size(), false) {}

  [[nodiscard]] bool has(std::string_view key) const { return point_.find(key) != nullptr; }

  Status text(std::string_view key, std::string& to) {
    const JsonValue* value = take(key);
    if (value == nullptr) return Ok{};
    if (!value->is_text()) return wrong(key, *value, "a text");
    to = value->text();
    return Ok{};
  }
  // A name, or the place of a file.
  Status file(std::string_view key, std::string& to) {
    std::string said;
    STEPCAST_TRY(text(key, said));
    if (!said.empty()) to = point_.file(said);
    return Ok{};
  }
  [[nodiscard]] std::string place(const std::string& name) const { return point_.file(name); }
  Status number(std::string_view key, std::optional<double>& to) {
    const JsonValue* value = take(key);
    if (value == nullptr) return Ok{};
    if (!value->is_number() || value->number() <= 0 || value->number() > 1e24)
      return wrong(key, *value, "a number above 0");
    to = value->number();
    return Ok{};
  }
  Status whole(std::string_view key, std::optional<std::int64_t>& to) {
    const JsonValue* value = take(key);
    if (value == nullptr) return Ok{};
    constexpr double kMost = 1e12;
    const bool is_whole = value->is_number() && value->number() == std::floor(value->number());
    if (!is_whole || value->number() < 1 || value->number() > kMost)
      return wrong(key, *value, "a whole number from 1 on");
    to = static_cast<std::int64_t>(value->number());
    return Ok{};
  }
  // "a,b".
  Status words(std::string_view key, std::vector<std::string>& to) {
    const JsonValue* value = take(key);
    if (value == nullptr) return Ok{};
    if (value->is_number())
      to = {compact_json(*value)};
    else if (value->is_bool())
      to = {"on"};
    else
      to = words_between(value->text(), ',');
    return Ok{};
  }
  Status wholes(std::string_view key, std::vector<std::int64_t>& to) {
    const JsonValue* value = point_.find(key);
    std::vector<std::string> all;
    STEPCAST_TRY(words(key, all));
    for (const std::string& word : all) {
      const std::int64_t number = scan<std::int64_t>(word).value_or(-1);
      if (number < 0) return wrong(key, *value, "whole numbers, as in 4 or \"4,8\"");
      to.push_back(number);
    }
    return Ok{};
  }

  // As Megatron-LM spells them.
  Result<std::vector<std::string>> flags() const {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      if (taken_[i]) continue;
      const auto& [key, value] = point_.settings[i];
      all.push_back(flag_of_key(key));
      if (value.is_bool()) continue;
      if (value.is_number()) all.push_back(compact_json(value));
      if (!value.is_text()) continue;
      // Flags that take several words.
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
  const JsonValue* take(std::string_view key) {
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      if (point_.settings[i].first != key) continue;
      taken_[i] = true;
      return &point_.settings[i].second;
    }
    return nullptr;
  }
  static Error wrong(std::string_view key, const JsonValue& found, std::string_view expected) {
    return Error::at("", std::string{key}).found(describe_value(found)).expected(std::string{expected});
  }

  const SweepPoint& point_;
  std::vector<bool> taken_;
};

// fp8 and fp4 are products on top of what is left in 16 bits.
Status set_type(const std::string& word, JobSettings& to) {
  if (word.empty()) return Ok{};
  const std::optional<DType> type = parse_dtype(word);
  if (word != "bf16" && word != "fp16" && word != "fp32" && word != "fp8" && word != "fp4") {
    return Error::at("", "dtype")
        .found(fmt::format("`{}`", word.substr(0, 40)))
        .expected("bf16, fp16, fp32, fp8 or fp4");
  }
  to.fp8 = word == "fp8";
  to.fp4 = word == "fp4";
  to.dtype = word == "fp8" || word == "fp4" ? DType::bf16 : type;
  return Ok{};
}

Status read_configs(Settings& settings, Job& job) {
  std::string command_line, torchtitan, deepspeed, config;
  STEPCAST_TRY(settings.file("command_line", command_line));
  STEPCAST_TRY(settings.file("torchtitan", torchtitan));
  STEPCAST_TRY(settings.file("deepspeed", deepspeed));
  STEPCAST_TRY(settings.file("config", config));
  if (!command_line.empty()) {
    job.command_line = command_line;
    std::error_code ignored;
    if (command_line.find(' ') == std::string::npos &&
        std::filesystem::is_regular_file(command_line, ignored)) {
      STEPCAST_ASSIGN(ConfigText script, read_config_text(command_line));
      job.command_line = std::move(script.text);
    }
  }
  if (!torchtitan.empty()) {
    STEPCAST_ASSIGN(job.torchtitan, read_config_text(torchtitan));
  }
  if (!deepspeed.empty()) {
    STEPCAST_ASSIGN(job.deepspeed, read_config_text(deepspeed));
  }
  if (!config.empty()) {
    STEPCAST_ASSIGN(job.config, read_config_text(config));
  }
  return Ok{};
}

// A step of post-training where `rl` or the config or command line says so.
Status read_rl(Settings& settings, SweepQuestion& question) {
  RlSettings r;
  std::string lengths;
  STEPCAST_TRY(settings.text("rl", r.algorithm));
  STEPCAST_TRY(settings.whole("prompts", r.prompts));
  STEPCAST_TRY(settings.whole("generations", r.generations));
  STEPCAST_TRY(settings.text("lengths", lengths));
  r.lengths = lengths.find('=') == std::string::npos && !lengths.empty() ? settings.place(lengths) : lengths;
  STEPCAST_TRY(settings.whole("prompt_tokens", r.prompt_tokens));
  STEPCAST_TRY(settings.number("oversampling", r.oversampling));
  STEPCAST_TRY(settings.text("policy", r.policy));
  STEPCAST_TRY(settings.whole("generation_gpus", r.generation_gpus));
  STEPCAST_TRY(settings.whole("generation_tp", r.generation_tensor));
  STEPCAST_TRY(settings.whole("generation_pp", r.generation_pipeline));
  STEPCAST_TRY(settings.text("generation_dtype", r.generation_dtype));
  STEPCAST_TRY(settings.number("generation_memory", r.generation_memory_share));
  STEPCAST_TRY(settings.file("reward_model", r.reward_model));
  const bool says = r.prompts || r.generations || !lengths.empty() || !r.policy.empty();
  if (!r.algorithm.empty() || is_rl_config(question.job)) {
    question.post_training = std::move(r);
  } else if (says) {
    return Error::at("", "prompts, generations, lengths, policy", "belong to steps of post-training")
        .advice("add rl = \"grpo\"");
  }
  return Ok{};
}

Status read_flags(const Settings& settings, Job& job, const LayoutWords& layout = {}) {
  STEPCAST_ASSIGN(const std::vector<std::string> flags, settings.flags());
  STEPCAST_ASSIGN(MegatronWords words, parse_megatron_flags(flags));
  STEPCAST_TRY(apply(layout, words.settings, job.settings));
  job.settings = over(words.settings, job.settings);
  job.not_modelled = std::move(words.not_modelled);
  return Ok{};
}

// "64xh100@east+64xa100@west", and its zones with blanks between them.
Status read_pools(Settings& settings, SweepQuestion& question) {
  std::string zones;
  STEPCAST_TRY(settings.text("pools", question.pools));
  STEPCAST_TRY(settings.text("zones", zones));
  if (question.pools.empty())
    return zones.empty() ? Status{Ok{}} : Error{"zones are those of pools"}.advice("add pools");
  for (const char* key : {"gpus", "nodes", "platform"})
    if (settings.has(key))
      return Error{fmt::format("pools and {} say the same thing", key)}.advice("leave one of the two out");
  for (std::string& zone : words_between(zones, ' '))
    if (!zone.empty()) question.zones.push_back(std::move(zone));
  return Ok{};
}

Status read_predict(Settings& settings, SweepQuestion& question) {
  Job& job = question.job;
  std::string dtype, expert_load;
  STEPCAST_TRY(settings.text("dtype", dtype));
  STEPCAST_TRY(set_type(dtype, job.settings));
  STEPCAST_TRY(settings.file("expert_load", expert_load));
  if (!expert_load.empty()) job.settings.expert_load = expert_load;
  STEPCAST_TRY(settings.whole("lora_rank", job.settings.lora_rank));
  STEPCAST_TRY(settings.number("packed_mean_tokens", job.settings.packed_mean_tokens));
  STEPCAST_TRY(settings.whole("nodes", question.nodes));
  if (question.nodes && question.n_gpus)
    return Error{"nodes and gpus say the same thing"}.advice("leave one of the two out");
  STEPCAST_TRY(read_pools(settings, question));
  STEPCAST_TRY(settings.file("failures", question.budget.failures));
  STEPCAST_TRY(settings.words("recovery", question.budget.recovery));
  if (!question.budget.recovery.empty() && question.budget.failures.empty())
    return Error{"recovery belongs to interruptions"}.advice("add failures = \"default\"");
  STEPCAST_TRY(settings.number("train_samples", question.budget.samples));
  STEPCAST_TRY(settings.number("train_iterations", question.budget.iterations));
  STEPCAST_TRY(settings.number("gpu_power_watts", question.budget.power_per_gpu_W));
  STEPCAST_TRY(read_configs(settings, job));
  STEPCAST_TRY(read_rl(settings, question));
  constexpr std::array<std::string_view, 5> kOfDlrmAlone{"tables", "indices", "plan", "batch", "links_of"};
  const bool is_dlrm = is_dlrm_job(job.model);
  for (const std::string_view key : kOfDlrmAlone)
    if (settings.has(key) && !is_dlrm)
      return Error::at("", std::string{key}, "belongs to recommendation models");
  STEPCAST_TRY(settings.file("tables", question.tables));
  STEPCAST_TRY(settings.file("indices", question.indices));
  STEPCAST_TRY(settings.file("plan", question.sharding_plan));
  STEPCAST_TRY(settings.file("links_of", question.links_of));
  STEPCAST_TRY(settings.whole("batch", question.batch_per_rank));
  LayoutWords layout;
  for (const auto& [key, word] :
       {std::pair{"schedules", &layout.schedule}, std::pair{"sharding", &layout.sharding},
        std::pair{"recompute", &layout.recompute}, std::pair{"sp", &layout.sequence_parallel}}) {
    std::vector<std::string> words;
    STEPCAST_TRY(settings.words(key, words));
    *word = join(words, ",");
  }
  STEPCAST_TRY(read_flags(settings, job, layout));
  job.n_gpus = question.n_gpus;
  job.gpus_per_node = question.gpus_per_node;
  return Ok{};
}

Status read_plan(Settings& settings, SweepQuestion& question) {
  PlanRequest& plan = question.plan;
  RestrictionWords lists;
  STEPCAST_TRY(settings.wholes("tp", lists.tensor));
  STEPCAST_TRY(settings.wholes("pp", lists.pipeline));
  STEPCAST_TRY(settings.wholes("vp", lists.virtual_stages));
  STEPCAST_TRY(settings.wholes("cp", lists.context));
  STEPCAST_TRY(settings.wholes("ep", lists.expert));
  STEPCAST_TRY(settings.wholes("etp", lists.expert_tensor));
  STEPCAST_TRY(settings.wholes("mbs", lists.micro_batch));
  STEPCAST_TRY(settings.words("schedules", lists.schedules));
  STEPCAST_TRY(settings.words("sharding", lists.shardings));
  STEPCAST_TRY(settings.words("recompute", lists.recomputations));
  STEPCAST_TRY(settings.words("sp", lists.sequence_parallel));
  STEPCAST_TRY(settings.words("dtype", lists.dtypes));
  STEPCAST_ASSIGN(plan.restrictions, restrictions_of(lists));
  std::optional<double> memory_GiB;
  STEPCAST_TRY(settings.number("max_memory_gib", memory_GiB));
  if (memory_GiB) plan.memory_bytes = *memory_GiB * kGiB;
  std::string objective;
  STEPCAST_TRY(settings.text("objective", objective));
  if (!objective.empty()) {
    STEPCAST_ASSIGN(plan.objective, parse_objective(objective));
  }
  STEPCAST_TRY(read_flags(settings, question.job));
  for (const std::string& word : lists.dtypes) {
    if (word == "fp16" || word == "fp32" || word == "bf16") {
      question.job.settings.dtype = parse_dtype(word);
      break;
    }
  }
  if (!question.n_gpus) return Error::at("", "gpus").found("nothing").expected("how many GPUs in all");
  plan.job = question.job;
  plan.n_gpus = *question.n_gpus;
  plan.threads = 1;  // points run side by side
  plan.top = 1;
  return apply_what_if(question.what_if, plan.assumptions);
}

}  // namespace

Result<SweepQuestion> question_of(const SweepPoint& point) {
  Settings settings{point};
  SweepQuestion question;
  STEPCAST_TRY(settings.file("model", question.job.model));
  STEPCAST_TRY(settings.words("ignore_key", question.job.ignored_model_keys));
  STEPCAST_TRY(settings.file("platform", question.platform));
  STEPCAST_TRY(settings.whole("gpus", question.n_gpus));
  STEPCAST_TRY(settings.whole("gpus_per_node", question.gpus_per_node));
  STEPCAST_TRY(settings.words("what_if", question.what_if));
  STEPCAST_TRY(settings.number("train_tokens", question.budget.tokens));
  STEPCAST_TRY(settings.number("gpu_hour_price", question.budget.price_per_gpu_hour));
  std::string framework;
  STEPCAST_TRY(settings.text("framework", framework));
  if (!framework.empty()) {
    question.job.framework = parse_framework(framework);
    if (question.job.framework == Framework::unknown) {
      return Error::at("", "framework")
          .found(fmt::format("`{}`", framework.substr(0, 40)))
          .expected("megatron, nemo, torchtitan, fsdp, deepspeed, neox, pytorch, libai or maxtext");
    }
  }
  STEPCAST_TRY(point.mode == SweepMode::plan ? read_plan(settings, question)
                                             : read_predict(settings, question));
  const TrainingBudget& budget = question.budget;
  if (!budget.tokens && !budget.samples && !budget.iterations) {
    for (const char* key : {"gpu_hour_price", "gpu_power_watts", "failures"})
      if (settings.has(key))
        return Error{fmt::format("{} belongs to a training", key)}.advice("add train_tokens");
  }
  return question;
}

}  // namespace stepcast
