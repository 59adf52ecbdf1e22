// Recognises the config files of training frameworks and gives the tables that translate their keys. Three
// parts: kFrameworks with the defaults of each framework, the CSV tables with the keys, and the
// rematerialisation policies of MaxText.
#include "stepcast/formats/detail/framework_rows.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/named_members.h"
#include "stepcast/base/shipped_table.h"
#include "stepcast/base/text.h"
#include "stepcast/base/words.h"
#include "stepcast/describe/setting_groups.h"
#include "stepcast/formats/nemo_arguments.h"

namespace stepcast::detail {

namespace {

using W = ConfigWords;

// Members of ConfigWords that tables may name. A member that is missing here cannot be a target.
STEPCAST_MEMBERS(kConfigWords, &W::model, &W::rank_batch, &W::accumulation, &W::pipeline_parts, &W::precision,
                 &W::quantization, &W::expert_capacity, &W::sparse_experts, &W::recompute, &W::kept_input,
                 &W::kept_query, &W::kept_key, &W::kept_value, &W::kept_qkv, &W::kept_attention,
                 &W::kept_attention_output, &W::kept_ffn_up, &W::kept_ffn_down, &W::copies_inside,
                 &W::sharded_inside, &W::also_sharded_inside, &W::copies_outside, &W::sharded_outside,
                 &W::tensor_outside, &W::optimizer, &W::gradient_clip, &W::data, &W::adapter_rank,
                 &W::adapter_targets, &W::adapter_dropout, &W::all_linear, &W::four_bits, &W::eight_bits,
                 &W::base_bits, &W::base_method, &W::nested_scales, &W::bf16, &W::fp16, &W::adapter,
                 &W::sharding, &W::recomputes, &W::work, &W::keeps_activations);

// The member with this name, of ConfigWords or else of JobSettings; nothing if there is none, or its type
// cannot be a target.
std::optional<ConfigTarget> target_named(std::string_view name) {
  std::optional<ConfigTarget> found;
  kConfigWords.each_named([&](std::string_view word, auto member) {
    if (word == name) found = member;
  });
  if (found) return found;
  const std::optional<SettingMember> setting = setting_named(name);
  if (!setting) return std::nullopt;
  return std::visit(
      [](auto member) -> std::optional<ConfigTarget> {
        if constexpr (std::is_constructible_v<ConfigTarget, decltype(member)>) return member;
        return std::nullopt;
      },
      *setting);
}

// The kind of training of a TRL config, which does not name its trainer. A `loss_type` of KTO or SimPO decides
// first, then the first key of the table that is present, then the other loss types. Default: sft.
std::string work_of_trl(const JsonValue& root) {
  constexpr std::pair<const char*, const char*> kKeys[] = {{"num_generations", "grpo or ppo"},
                                                           {"reward_funcs", "grpo or ppo"},
                                                           {"reward_model_path", "grpo or ppo"},
                                                           {"num_ppo_epochs", "grpo or ppo"},
                                                           {"desirable_weight", "kto"},
                                                           {"center_rewards_coefficient", "reward"},
                                                           {"simpo_gamma", "simpo"},
                                                           {"max_prompt_length", "dpo"},
                                                           {"precompute_ref_log_probs", "dpo"},
                                                           {"rpo_alpha", "dpo"},
                                                           {"ref_model_init_kwargs", "dpo"}};
  const JsonValue* loss = root.find("loss_type");
  const std::string word = loss != nullptr && loss->is_text() ? lower(loss->text()) : "nll";
  if (word == "kto" || word == "apo_zero_unpaired") return "kto";
  if (word == "simpo") return "simpo";
  for (const auto& [key, work] : kKeys)
    if (root.find(key) != nullptr) return work;
  return word == "nll" || word == "dft" ? "sft" : "dpo";
}

// The kind of training of a torchtune config, from the class of its loss ("torchtune.rlhf.loss.DPOLoss").
// Empty: fine-tuning without a preference loss.
std::string work_of_loss(const JsonValue& root) {
  const JsonValue* const loss = config_value(root, "loss._component_");
  const std::string name = loss != nullptr && loss->is_text() ? lower(loss->text()) : "";
  for (const char* work : {"simpo", "dpo", "ppo", "grpo"})
    if (name.find(work) != std::string::npos) return work;
  return name.find("rso") != std::string::npos ? "dpo" : "";
}

// Frameworks in the order in which they are tried. Defaults are those of each framework; see ConfigFramework
// for the fields.
const ConfigFramework kFrameworks[] = {
    {.name = "MaxText",
     .needs = "per_device_batch_size model_name|base_num_decoder_layers",
     .rank_batch = 12,
     .sequence_tokens = 2048,
     .habits = Framework::maxtext,
     .recomputes = true,
     .batch_per_gpu = true,
     .has_mesh_axes = true,
     .has_remat_policies = true},
    {.name = "Nanotron",
     .needs = "parallelism.dp tokens.micro_batch_size model.model_config",
     .habits = Framework::megatron},
    {.name = "torchtune",
     .needs = "model._component_ batch_size",
     .habits = Framework::fsdp,
     .has_no_master_weights = true,
     .work = work_of_loss},
    {.name = "NeMo Automodel",
     .needs = "model step_scheduler",
     .adapter_targets = "*_proj",
     .habits = Framework::automodel,
     .all_linear_of_attention = true},
    // These two have the names of Megatron-LM, so they are read by nemo_arguments.h.
    {.name = "NeMo 2 or Megatron-Bridge",
     .needs = "model train|trainer !model.hidden_dim",
     .read = read_nemo_config},
    {.name = "Axolotl", .needs = "base_model", .sequence_tokens = 512, .all_linear_of_attention = true},
    {.name = "LLaMA-Factory",
     .needs = "model_name_or_path stage",
     .rank_batch = 8,
     .sequence_tokens = 2048,
     .adapter_targets = "all",
     .recomputes = true},
    {.name = "ms-swift",
     .needs = "model swift|train_type|tuner_type",
     .adapter_dropout = 0.05,
     .adapter_targets = "all-linear",
     .base_method = "",
     .recomputes = true,
     .all_linear_of_attention = true},
    {.name = "verl",
     .needs = "verl_sft|model.partial_pretrain",
     .rank_batch = 4,
     .sequence_tokens = 1024,
     .adapter_rank = 0,
     .adapter_targets = "all-linear",
     .habits = Framework::fsdp,
     .recomputes = true,
     .all_linear_of_attention = true},
    {.name = "TRL",
     .needs = "model_name_or_path dataset_name|use_peft|max_length|packing !block_size",
     .rank_batch = 8,
     .sequence_tokens = 1024,
     .adapter_rank = 16,
     .adapter_dropout = 0.05,
     .nested_scales = false,
     .work = work_of_trl},
    {.name = "Hugging Face's Trainer", .needs = "per_device_train_batch_size output_dir", .rank_batch = 8},
};

// Calls add(framework) for each framework that the row names, separated by "|". Errors: an unknown name.
template <class Add>
Status each_framework(const CsvRows& row, std::vector<ConfigFramework>& all, const Add& add) {
  const bool has_unknown = any_word(
      row.cell("frameworks"),
      [&](std::string_view name) {
        const auto framework = std::ranges::find(all, name, &ConfigFramework::name);
        if (framework != all.end()) add(*framework);
        return framework == all.end();
      },
      '|');
  if (has_unknown) return row.error("frameworks").expected("known ones");
  return Ok{};
}

// Reads framework_settings.csv: columns frameworks, key and setting. Each row maps a key to a member.
Status read_settings(std::vector<ConfigFramework>& all) {
  const std::string file = "framework_settings.csv";
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(shipped_table(file), file));
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) return Ok{};
    const std::optional<ConfigTarget> target = target_named(rows.cell("setting"));
    if (!target) return rows.error("setting").expected("a member of ConfigWords or JobSettings");
    STEPCAST_TRY(each_framework(rows, all, [&](ConfigFramework& framework) {
      framework.rows.push_back({rows.cell("key"), *target});
    }));
  }
}

// All frameworks with the rows of both tables. framework_keys.csv lists keys without a setting: those with an
// effect that is not priced, and those without effect.
Result<std::vector<ConfigFramework>> read_frameworks() {
  std::vector<ConfigFramework> all{std::begin(kFrameworks), std::end(kFrameworks)};
  STEPCAST_TRY(read_settings(all));
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(shipped_table("framework_keys.csv"), "framework_keys.csv"));
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) return all;
    const bool priced = rows.cell("use") == "not_priced";
    if (!priced && rows.cell("use") != "passed_over")
      return rows.error("use").expected("not_priced or passed_over");
    STEPCAST_TRY(each_framework(rows, all, [&](ConfigFramework& framework) {
      (priced ? framework.not_priced : framework.passed_over) += fmt::format(" {}", rows.cell("keys"));
    }));
  }
}

// The required paths that are missing in `root`, for error messages: "a", "b or c", "no d". Empty if all
// conditions hold. See ConfigFramework::needs for the syntax.
std::string missing_keys(const JsonValue& root, std::string_view needs) {
  std::string missing;
  (void)any_word(needs, [&](std::string_view all) {
    if (all.front() == '!') {
      if (config_value(root, all.substr(1)) != nullptr) missing += "no " + std::string{all.substr(1)} + " ";
      return false;
    }
    const auto is_there = [&](std::string_view path) { return config_value(root, path) != nullptr; };
    if (!any_word(all, is_there, '|')) {
      for (const char c : all) missing += c == '|' ? std::string{" or "} : std::string{c};
      missing += ' ';
    }
    return false;
  });
  return missing.substr(0, missing.empty() ? 0 : missing.size() - 1);
}

// A rematerialisation policy of MaxText: results of a layer that are kept, and those that the CPU keeps. The
// words are those of workload/layer_words.h.
struct Policy {
  std::string_view name, keeps, offloads;
};
constexpr std::string_view kQkv = "qkv", kAttention = "qkv attention_output",
                           kProducts = "qkv attention_output ffn_up ffn_down",
                           kAll = "qkv attention attention_output ffn_up ffn_down";
constexpr Policy kPolicies[] = {{"full", "", ""},
                                {"minimal", kProducts, ""},
                                {"minimal_with_context", kAll, ""},
                                {"minimal_flash", kAll, ""},
                                {"minimal_with_context_and_quantization", kAll, ""},
                                {"save_dot_with_context_except_mlp", "qkv attention attention_output", ""},
                                {"save_dot_except_mlp", kAttention, ""},
                                {"save_dot_except_mlpwi", "qkv attention_output ffn_down", ""},
                                {"save_qkv_proj", kQkv, ""},
                                {"save_out_proj", "attention_output", ""},
                                {"qkv_proj_offloaded", kQkv, kQkv},
                                {"minimal_offloaded", kProducts, kProducts}};

// The policy "custom": each result has a key with "device", "offload" or "remat". Queries, keys and values
// count as kept only if all three are.
void use_custom_policy(ConfigWords& words) {
  JobSettings& s = words.settings;
  s.recompute_keeps = s.recompute_offloads = "";
  std::string& qkv = words.kept_qkv;
  const auto is_kept = [](const std::string& where) { return where == "device" || where == "offload"; };
  if (is_kept(words.kept_query) && is_kept(words.kept_key) && is_kept(words.kept_value))
    qkv = words.kept_query;
  const std::pair<std::string_view, const std::string*> results[] = {
      {"input", &words.kept_input},         {"qkv", &qkv},
      {"attention", &words.kept_attention}, {"attention_output", &words.kept_attention_output},
      {"ffn_up", &words.kept_ffn_up},       {"ffn_down", &words.kept_ffn_down}};
  for (const auto& [result, where] : results) {
    if (is_kept(*where)) *s.recompute_keeps += std::string{result} + " ";
    if (*where == "offload") *s.recompute_offloads += std::string{result} + " ";
  }
}

}  // namespace

std::span<const ConfigFramework> config_frameworks() {
  static const std::vector<ConfigFramework> kAll = as_shipped(read_frameworks());
  return kAll;
}

const JsonValue* config_value(const JsonValue& root, std::string_view path) {
  const JsonValue* at = &root;
  (void)any_word(
      path, [&](std::string_view key) { return (at = at->find(key)) == nullptr; }, '.');
  return at;
}

// If no framework matches, the error should help: it recognises common files that are not training configs,
// or names the framework with the most matching keys and what is missing.
Result<const ConfigFramework*> framework_of(const JsonValue& root, const std::string& file) {
  const ConfigFramework* nearest = nullptr;
  std::ptrdiff_t most = 0;
  for (const ConfigFramework& framework : config_frameworks()) {
    if (missing_keys(root, framework.needs).empty()) return &framework;
    const auto hits = std::count_if(framework.rows.begin(), framework.rows.end(), [&](const ConfigRow& row) {
      return config_value(root, row.path) != nullptr;
    });
    if (hits > most) {
      most = hits;
      nearest = &framework;
    }
  }
  Error error = Error::at(file, "");
  // Files that are recognised and rejected: keys as in ConfigFramework::needs, what the file is, and what to do.
  struct Other {
    std::string_view keys, what, advice;
  };
  constexpr Other kOthers[] = {
      {"pipe_parallel_size|pipe-parallel-size|model_parallel_size|model-parallel-size",
       "a config of GPT-NeoX",
       "give its sizes and degrees as flags of Megatron-LM with --framework neox, and its DeepSpeed keys "
       "with "
       "--deepspeed"},
      {"train_micro_batch_size_per_gpu|zero_optimization|train_batch_size", "a DeepSpeed config",
       "give it with --deepspeed, together with a model"},
      {"distributed_type|compute_environment",
       "a config of Hugging Face's accelerate, which has no model and no batch",
       "give the arguments of the script, or --model, --gpus, --mbs, --gbs and --framework fsdp"},
      {"apiVersion", "a manifest of Kubernetes", "give the command that it runs with --command-line"},
      {"services", "a file of Docker Compose", "give the command that it runs with --command-line"},
      {"max_seq_len model.d_model", "a config of LLM Foundry",
       "give its sizes as flags of Megatron-LM with --framework fsdp"},
      {"model.hidden_dim", "a config of Levanter", "give its model with --model, and --framework maxtext"},
      {"policy.model_name cluster", "a config of NeMo-RL without generation (sft, dpo, rm, distillation)",
       "give its model with --model and its degrees as flags"},
      {"resources run", "a task of SkyPilot", "give the command that it runs with --command-line"},
      {"num_hidden_layers|model_type", "a model's config.json", "give it with --model"}};
  for (const Other& other : kOthers)
    if (missing_keys(root, other.keys).empty())
      return std::move(error).found(std::string{other.what}).advice(std::string{other.advice});
  if (nearest != nullptr) {
    return std::move(error)
        .found(fmt::format("keys of {}", nearest->name))
        .expected(missing_keys(root, nearest->needs) + " together with them");
  }
  return std::move(error)
      .found("keys of no known framework")
      .expected(
          "a config of NeMo 2, Megatron-Bridge, NeMo Automodel, Axolotl, LLaMA-Factory, TRL, ms-swift, "
          "Hugging "
          "Face's Trainer, Nanotron, torchtune or MaxText (docs/models.md)");
}

bool use_remat_policy(const std::string& name, ConfigWords& words) {
  JobSettings& s = words.settings;
  s.recompute = Recompute::full;
  if (name == "custom") {
    use_custom_policy(words);
    return true;
  }
  const auto* const known = std::ranges::find(kPolicies, name, &Policy::name);
  if (known == std::end(kPolicies)) return false;
  s.recompute_keeps = std::string{known->keeps};
  s.recompute_offloads = std::string{known->offloads};
  return true;
}

}  // namespace stepcast::detail
