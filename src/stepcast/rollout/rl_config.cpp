#include "stepcast/rollout/rl_config.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/nearest_word.h"
#include "stepcast/base/scan.h"
#include "stepcast/base/text.h"
#include "stepcast/base/words.h"
#include "stepcast/base/yaml_document.h"
#include "stepcast/formats/launch_script.h"
#include "stepcast/formats/presets.h"
#include "stepcast/rollout/lengths.h"

namespace stepcast {
namespace {

// Values by their path, which are asked for one by one. The first that cannot be read is kept.
class RlKeys {
 public:
  RlKeys(YamlScalars values, std::string file) : values_(std::move(values)), file_(std::move(file)) {}

  // Nothing for what is null, or computed ("${mul:...}"); "${other.key}" is the value of that key.
  [[nodiscard]] std::string text(const std::string& path) {
    asked_.insert(path);
    auto found = values_.find(path);
    constexpr int kMostHops = 4;
    for (int hop = 0; hop < kMostHops && found != values_.end() && found->second.starts_with("${"); ++hop)
      found = values_.find(found->second.substr(2, found->second.find('}') - 2));
    const bool says = found != values_.end() && found->second != "null" && found->second != "None" &&
                      !found->second.starts_with("${");
    return says ? found->second : std::string{};
  }
  [[nodiscard]] bool is_on(const std::string& path, bool otherwise = false) {
    const std::string word = lower(text(path));
    return word.empty() ? otherwise : word == "true" || word == "1";
  }
  [[nodiscard]] std::optional<double> number(const std::string& path) {
    const std::string word = text(path);
    if (word.empty()) return std::nullopt;
    const std::optional<double> value = scan<double>(word);
    constexpr double kMost = 1e12;
    if (value && std::abs(*value) <= kMost) return value;
    refuse(path, word, "a number");
    return std::nullopt;
  }
  [[nodiscard]] std::optional<std::int64_t> whole(const std::string& path) {
    const std::optional<double> value = number(path);
    if (!value) return std::nullopt;
    if (*value >= 0 && *value == std::floor(*value)) return static_cast<std::int64_t>(*value);
    refuse(path, text(path), "a whole number");
    return std::nullopt;
  }
  // A degree: nothing where it is 1 or not said.
  [[nodiscard]] std::optional<std::int64_t> degree(const std::string& path) {
    const std::optional<std::int64_t> value = whole(path);
    return value.value_or(1) > 1 ? value : std::nullopt;
  }
  [[nodiscard]] std::int64_t whole_or(const std::string& path, std::int64_t otherwise) {
    return whole(path).value_or(otherwise);
  }

  void refuse(const std::string& path, const std::string& found, std::string expected) {
    if (!wrong_)
      wrong_ = Error::at(file_, path).found("`" + found.substr(0, 80) + "`").expected(std::move(expected));
  }
  [[nodiscard]] const std::optional<Error>& wrong() const { return wrong_; }

  // Keys that nobody asked for and that are spelled almost like one that acts.
  void note_slips(std::vector<std::string>& notes) const {
    const std::vector<std::string> known{asked_.begin(), asked_.end()};
    for (const auto& [path, value] : values_) {
      if (asked_.contains(path)) continue;
      if (const auto meant = nearest_word(path, known, 2))
        notes.push_back(fmt::format("left out: `{}` is not a key that is known; did you mean `{}`?",
                                    path.substr(0, 80), *meant));
    }
  }

 private:
  YamlScalars values_;
  std::string file_;
  std::set<std::string> asked_;
  std::optional<Error> wrong_;
};

// What a config comes to before it is held against what was said.
struct RlConfig {
  Job job;
  RlSettings settings;
  std::string model;                                // at a hub, or a folder
  std::optional<std::int64_t> max_tokens;           // of prompt and answer
  std::optional<std::int64_t> micro_batch_answers;  // where a micro-batch counts answers, and not packed rows
  std::vector<std::string> notes;
};

// a x b, where both are numbers of GPUs.
std::optional<std::int64_t> product(std::optional<std::int64_t> a, std::optional<std::int64_t> b) {
  constexpr std::int64_t kMost = 1 << 24;
  if (!a || !b || *a > kMost || *b > kMost) return std::nullopt;
  return *a * *b;
}

void set_dtype(const std::string& word, JobSettings& s) {
  if (word == "bfloat16" || word == "bf16") s.dtype = DType::bf16;
  if (word == "float16" || word == "fp16") s.dtype = DType::fp16;
  if (word == "float32" || word == "fp32") s.dtype = DType::fp32;
}

// FSDP of PyTorch, as far as these frameworks use it: weights are sharded, and gathered in bf16.
void use_fsdp(Job& job) {
  job.framework = Framework::fsdp;
  job.settings.sharding = Sharding::zero3;
}

void read_nemo_rl_training(RlKeys& k, RlConfig& out) {
  JobSettings& s = out.job.settings;
  s.global_batch_sequences = k.whole("policy.train_global_batch_size");
  s.micro_batch_sequences = k.degree("policy.train_micro_batch_size");
  set_dtype(k.text("policy.precision"), s);
  const bool megatron = k.is_on("policy.megatron_cfg.enabled");
  const std::string cfg = megatron ? "policy.megatron_cfg." : "policy.dtensor_cfg.";
  s.tensor = k.degree(cfg + (megatron ? "tensor_model_parallel_size" : "tensor_parallel_size"));
  s.context = k.degree(cfg + "context_parallel_size");
  s.expert = k.degree(cfg + (megatron ? "expert_model_parallel_size" : "expert_parallel_size"));
  if (k.is_on(cfg + "sequence_parallel")) s.sequence_parallel = true;
  if (k.is_on(cfg + "activation_checkpointing")) s.recompute = Recompute::full;
  if (!megatron) {
    use_fsdp(out.job);
    if (k.is_on(cfg + "cpu_offload")) out.job.not_modelled.push_back(cfg + "cpu_offload");
    return;
  }
  out.job.framework = Framework::nemo;
  s.pipeline = k.degree(cfg + "pipeline_model_parallel_size");
  s.expert_tensor = s.expert ? k.whole(cfg + "expert_tensor_parallel_size") : std::nullopt;
  s.first_stage_layers = k.whole(cfg + "num_layers_in_first_pipeline_stage");
  s.last_stage_layers = k.whole(cfg + "num_layers_in_last_pipeline_stage");
  s.distributed_optimizer = k.is_on(cfg + "optimizer.use_distributed_optimizer", true);
  if (k.is_on(cfg + "fp8_cfg.enabled")) s.fp8 = true;
}

void read_nemo_rl(RlKeys& k, RlConfig& out) {
  RlSettings& r = out.settings;
  out.model = k.text("policy.model_name");
  const bool filters = k.is_on("grpo.use_dynamic_sampling");
  r.algorithm = filters ? "dapo" : "grpo";
  // What passes the filter is `num_prompts_per_step`; so many times as much is generated.
  if (filters) r.oversampling = k.number("grpo.batch_multiplier").value_or(1);
  r.prompts = k.whole("grpo.num_prompts_per_step");
  r.generations = k.whole("grpo.num_generations_per_prompt");
  out.max_tokens = k.whole("policy.max_total_sequence_length");
  const std::string vllm = "policy.generation.vllm_cfg.";
  r.generation_tensor = k.whole(vllm + "tensor_parallel_size");
  r.generation_pipeline = k.whole(vllm + "pipeline_parallel_size");
  r.generation_memory_share = k.number(vllm + "gpu_memory_utilization");
  if (k.text(vllm + "precision") == "fp8") r.generation_dtype = "fp8";
  const std::int64_t in_node = k.whole_or("cluster.gpus_per_node", 8);
  out.job.n_gpus = product(k.whole("cluster.num_nodes"), in_node);
  const bool asynchronous = k.is_on("grpo.async_grpo.enabled");
  r.policy =
      asynchronous ? fmt::format("off:{}", k.whole_or("grpo.async_grpo.max_trajectory_age_steps", 1)) : "on";
  const std::string pool = "policy.generation.colocated.";
  if (!k.is_on(pool + "enabled", true)) {
    r.generation_gpus = product(k.whole_or(pool + "resources.num_nodes", 1),
                                k.whole_or(pool + "resources.gpus_per_node", in_node));
    if (!asynchronous) {
      r.policy = "off:1";
      out.notes.emplace_back(
          "a pool that generates, and none of grpo.async_grpo: forecast as if both pools worked at once");
    }
  }
  read_nemo_rl_training(k, out);
}

void read_verl_training(RlKeys& k, RlConfig& out) {
  const std::string actor = "actor_rollout_ref.actor.";
  JobSettings& s = out.job.settings;
  // Counts prompts; each has `rollout.n` answers.
  s.global_batch_sequences =
      product(k.whole_or(actor + "ppo_mini_batch_size", 256), out.settings.generations);
  if (!k.is_on(actor + "use_dynamic_bsz"))
    out.micro_batch_answers = k.whole(actor + "ppo_micro_batch_size_per_gpu");
  s.dtype = DType::bf16;
  if (k.is_on("actor_rollout_ref.model.enable_gradient_checkpointing", true)) s.recompute = Recompute::full;
  if (k.text(actor + "strategy") != "megatron") {
    use_fsdp(out.job);
    s.context = k.degree(actor + "ulysses_sequence_parallel_size");
    for (const char* key : {"fsdp_config.param_offload", "fsdp_config.optimizer_offload"})
      if (k.is_on(actor + key)) out.job.not_modelled.push_back(actor + key);
    return;
  }
  const std::string cfg = actor + "megatron.";
  out.job.framework = Framework::megatron;
  s.distributed_optimizer = true;
  s.tensor = k.degree(cfg + "tensor_model_parallel_size");
  if (s.tensor) s.sequence_parallel = true;
  s.pipeline = k.degree(cfg + "pipeline_model_parallel_size");
  s.virtual_stages = k.degree(cfg + "virtual_pipeline_model_parallel_size");
  s.context = k.degree(cfg + "context_parallel_size");
  s.expert = k.degree(cfg + "expert_model_parallel_size");
  if (s.expert) s.expert_tensor = k.whole_or(cfg + "expert_tensor_parallel_size", 1);
}

// Where nothing is said, the values of verl/trainer/config/ppo_trainer.yaml.
void read_verl(RlKeys& k, RlConfig& out) {
  RlSettings& r = out.settings;
  out.model = k.text("actor_rollout_ref.model.path");
  const std::string estimator = k.text("algorithm.adv_estimator");
  const bool filters = k.is_on("algorithm.filter_groups.enable");
  r.algorithm = filters ? "dapo" : estimator.empty() || estimator == "gae" ? "ppo" : "grpo";
  if (r.algorithm == "grpo" && estimator != "grpo")
    out.notes.push_back(
        fmt::format("{}: priced as grpo, which has no critic either", estimator.substr(0, 40)));
  r.prompts = k.whole_or("data.train_batch_size", 1024);
  if (const auto generated = k.number("data.gen_batch_size"); filters && generated && *r.prompts > 0)
    r.oversampling = std::max(1.0, *generated / static_cast<double>(*r.prompts));
  r.generations = k.whole_or("actor_rollout_ref.rollout.n", 1);
  out.max_tokens = k.whole_or("data.max_prompt_length", 512) + k.whole_or("data.max_response_length", 512);
  const std::string rollout = "actor_rollout_ref.rollout.";
  r.generation_tensor = k.whole_or(rollout + "tensor_model_parallel_size", 2);
  r.generation_pipeline = k.whole_or(rollout + "pipeline_model_parallel_size", 1);
  r.generation_memory_share = k.number(rollout + "gpu_memory_utilization").value_or(0.5);
  if (k.text(rollout + "quantization") == "fp8") r.generation_dtype = "fp8";
  out.job.n_gpus = product(k.whole_or("trainer.nnodes", 1), k.whole_or("trainer.n_gpus_per_node", 8));
  r.policy = "on";
  // One step off policy: a pool of its own generates.
  if (!k.is_on("actor_rollout_ref.hybrid_engine", true)) {
    const auto pool = product(k.whole_or("rollout.nnodes", 1), k.whole_or("rollout.n_gpus_per_node", 8));
    r.policy = "off:1";
    r.generation_gpus = pool;
    if (out.job.n_gpus && pool) out.job.n_gpus = *out.job.n_gpus + *pool;
  }
  if (k.is_on("reward_model.enable")) r.reward_model = k.text("reward_model.model.path");
  read_verl_training(k, out);
}

// Where nothing is said, the defaults of openrlhf/cli/train_ppo_ray.py.
void read_open_rlhf(RlKeys& k, RlConfig& out) {
  RlSettings& r = out.settings;
  JobSettings& s = out.job.settings;
  out.model = k.text("pretrain");
  const std::string estimator = k.text("advantage_estimator");
  const bool filters = k.is_on("dynamic_filtering");
  r.algorithm = filters ? "dapo" : estimator.empty() || estimator == "gae" ? "ppo" : "grpo";
  r.prompts = k.whole_or("rollout_batch_size", 1024);
  r.generations = k.whole_or("n_samples_per_prompt", 1);
  const std::int64_t both = k.whole_or("prompt_max_len", 1024) + k.whole_or("generate_max_len", 1024);
  out.max_tokens = k.whole_or("max_len", both);
  s.global_batch_sequences = k.whole_or("train_batch_size", 128);
  if (!k.is_on("packing_samples")) out.micro_batch_answers = k.degree("micro_train_batch_size");
  s.dtype = DType::bf16;
  s.zero_stage = k.whole_or("zero_stage", 2);
  out.job.framework = Framework::deepspeed;
  s.tensor = k.degree("ds_tensor_parallel_size");
  s.context = k.degree("ring_attn_size");
  if (k.is_on("gradient_checkpointing")) s.recompute = Recompute::full;
  if (k.is_on("adam_offload")) s.optimizer_offload = true;
  r.generation_tensor = k.whole_or("vllm_tensor_parallel_size", 1);
  r.generation_memory_share = k.number("vllm_gpu_memory_utilization");
  const auto actor = product(k.whole_or("actor_num_nodes", 1), k.whole_or("actor_num_gpus_per_node", 8));
  const auto engines = product(k.whole("vllm_num_engines"), r.generation_tensor);
  out.job.n_gpus = actor;
  r.policy = "on";
  if (!k.is_on("colocate_all_models") && actor && engines.value_or(0) > 0) {
    r.policy = "off:1";
    r.generation_gpus = engines;
    out.job.n_gpus = *actor + *engines;
    if (!k.is_on("async_train"))
      out.notes.emplace_back(
          "a pool that generates, without --async_train: forecast as if both pools worked at once");
    if (!k.is_on("colocate_actor_ref"))
      out.notes.emplace_back("reference, critic and reward model are taken to share the GPUs of the actor");
  }
  r.reward_model = k.text("reward_pretrain");
}

// Words of a command line: "path=value" (also "++path=value"), "--name value", "--name=value", "--name".
YamlScalars values_of(const std::vector<std::string>& words) {
  YamlScalars values;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string_view word = words[i];
    const bool is_flag = word.starts_with("--");
    word.remove_prefix(std::min(word.find_first_not_of("+-"), word.size()));
    const std::size_t equals = word.find('=');
    std::string value;
    if (equals != std::string_view::npos) {
      value = word.substr(equals + 1);
    } else if (!is_flag) {
      continue;
    } else {
      const bool has_value = i + 1 < words.size() && !words[i + 1].starts_with("--");
      value = has_value ? words[++i] : "true";
    }
    for (const char quote : {'\'', '"'})
      if (value.size() > 1 && value.front() == quote && value.back() == quote)
        value = value.substr(1, value.size() - 2);
    values.insert_or_assign(std::string{word.substr(0, equals)}, std::move(value));
  }
  return values;
}

// A framework of post-training: by what its config or command line is recognised, and its reader.
struct RlFormat {
  std::string_view name;
  std::string_view section;      // that only its config has
  std::string_view key, one_of;  // or a key, and one of several together with it
  void (*read)(RlKeys& keys, RlConfig& out);
};
constexpr RlFormat kFormats[] = {
    {"verl", "actor_rollout_ref.", "", "", read_verl},
    {"NeMo-RL", "grpo.", "", "", read_nemo_rl},
    {"OpenRLHF", "", "pretrain", "rollout_batch_size vllm_num_engines actor_num_nodes", read_open_rlhf},
};

// Null: of none of them.
const RlFormat* format_of(const YamlScalars& values) {
  const auto has_section = [&](std::string_view section) {
    const auto at = values.lower_bound(section);
    return !section.empty() && at != values.end() && at->first.starts_with(section);
  };
  const auto has = [&](std::string_view key) { return values.contains(key); };
  const auto* const found = std::ranges::find_if(kFormats, [&](const RlFormat& format) {
    return has_section(format.section) ||
           (!format.key.empty() && has(format.key) && any_word(format.one_of, has));
  });
  return found == std::end(kFormats) ? nullptr : found;
}

// A file with what its `defaults` say below it; of defaults that are not here, a note.
Result<YamlScalars> config_values(const ConfigText& file, std::vector<std::string>& notes, int depth = 0) {
  STEPCAST_ASSIGN(const JsonValue root, parse_yaml(file.text, file.name));
  if (!root.is_object())
    return Error::at(file.name, "").found(std::string{root.kind_name()}).expected("keys with their values");
  YamlScalars values = yaml_scalars(root);
  const auto below = values.find("defaults");
  constexpr int kDeepest = 8;
  if (below == values.end() || !below->second.ends_with(".yaml") || depth == kDeepest) return values;
  const std::filesystem::path base = std::filesystem::path{file.name}.parent_path() / below->second;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(base, ignored)) {
    notes.push_back(
        fmt::format("{} is not here: what stands in it is not read", below->second.substr(0, 120)));
    return values;
  }
  STEPCAST_ASSIGN(const ConfigText text, read_config_text(base));
  STEPCAST_ASSIGN(YamlScalars all, config_values(text, notes, depth + 1));
  for (auto& [path, value] : values) all.insert_or_assign(path, std::move(value));
  return all;
}

// The values of a config or command line, and whose they are.
struct FoundConfig {
  YamlScalars values;
  const RlFormat* format = nullptr;
  std::string name;
};

Result<FoundConfig> found_config(const Job& job, std::vector<std::string>& notes) {
  FoundConfig out;
  if (job.config) {
    out.name = job.config->name;
    STEPCAST_ASSIGN(out.values, config_values(*job.config, notes));
  } else if (job.command_line) {
    out.name = "--command-line";
    STEPCAST_ASSIGN(const std::vector<std::string> words, words_of_launch_script(*job.command_line));
    out.values = values_of(words);
    const auto config = out.values.find("config");
    std::error_code ignored;
    if (config != out.values.end() && std::filesystem::is_regular_file(config->second, ignored)) {
      STEPCAST_ASSIGN(const ConfigText text, read_config_text(config->second));
      STEPCAST_ASSIGN(YamlScalars all, config_values(text, notes));
      for (auto& [path, value] : out.values) all.insert_or_assign(path, std::move(value));
      out.values = std::move(all);
    }
  }
  out.format = format_of(out.values);
  return out;
}

// A folder with its config.json, or a name at a hub.
std::optional<std::string> model_named(const std::string& name) {
  std::error_code ignored;
  const auto at = std::filesystem::path{name} / "config.json";
  return std::filesystem::exists(at, ignored) ? at.string() : preset_of_hub_name(name);
}

Status use_model(const RlConfig& config, const std::string& file, Job& job) {
  if (!job.model.empty() || job.transformer) return Ok{};
  const std::optional<std::string> model = model_named(config.model);
  if (model) job.model = *model;
  if (model) return Ok{};
  return Error::at(file, "the model")
      .found(config.model.empty() ? "nothing" : "`" + config.model.substr(0, 80) + "`")
      .expected("the name of a preset")
      .advice("give its config.json with --model");
}

// As many rows of the longest sequence as hold so many answers.
Status use_micro_batch(std::int64_t answers, const std::string& lengths, JobSettings& s) {
  STEPCAST_ASSIGN(const Lengths read, Lengths::read(lengths));
  const double rows = static_cast<double>(answers) * read.mean() / read.max();
  constexpr double kMost = 1e6;
  s.micro_batch_sequences = static_cast<std::int64_t>(std::clamp(std::round(rows), 1.0, kMost));
  return Ok{};
}

// A config states the longest sequence, and never the mean.
Status use_lengths(const RlConfig& config, const std::string& file, RlSettings& r) {
  if (!config.max_tokens) return Ok{};
  if (r.lengths.empty()) {
    return Error::at(file, "the mean length",
                     "a config says how long sequences may be, not how long they are")
        .advice(fmt::format("add --lengths mean=TOKENS,max={}", *config.max_tokens));
  }
  if (r.lengths.starts_with("mean=") && r.lengths.find("max=") == std::string::npos)
    r.lengths += fmt::format(",max={}", *config.max_tokens);
  return Ok{};
}

}  // namespace

bool is_rl_config(const Job& job) {
  if (!job.config && !job.command_line) return false;
  std::vector<std::string> ignored;
  const Result<FoundConfig> found = found_config(job, ignored);
  return found.ok() && found->format != nullptr;
}

Result<RlQuestion> with_rl_config(const RlQuestion& said, std::vector<std::string>& notes) {
  RlQuestion out = said;
  out.job.config.reset();
  out.job.command_line.reset();
  STEPCAST_ASSIGN(FoundConfig found, found_config(said.job, notes));
  if (found.format == nullptr) {
    return Error::at(found.name, "")
        .found("keys of no framework of post-training that is known")
        .expected("a config or command line of NeMo-RL, verl or OpenRLHF (docs/post-training.md)");
  }
  RlKeys keys{std::move(found.values), found.name};
  RlConfig config;
  found.format->read(keys, config);
  if (keys.wrong()) return *keys.wrong();
  notes.push_back(fmt::format("read as settings of {}", found.format->name));
  notes.insert(notes.end(), config.notes.begin(), config.notes.end());
  keys.note_slips(notes);
  Job& job = out.job;
  STEPCAST_TRY(use_model(config, found.name, job));
  if (!job.n_gpus) job.n_gpus = config.job.n_gpus;
  if (!job.framework) job.framework = config.job.framework;
  job.settings = over(config.job.settings, job.settings);
  job.not_modelled.insert(job.not_modelled.end(), config.job.not_modelled.begin(),
                          config.job.not_modelled.end());
  RlSettings& r = out.settings;
  const auto fill = [](auto& mine, const auto& theirs) {
    if (!mine) mine = theirs;
  };
  const auto fill_word = [](std::string& mine, const std::string& theirs) {
    if (mine.empty()) mine = theirs;
  };
  const RlSettings& c = config.settings;
  fill_word(r.algorithm, c.algorithm);
  fill_word(r.policy, c.policy);
  fill_word(r.generation_dtype, c.generation_dtype);
  if (r.reward_model.empty() && !c.reward_model.empty()) {
    const std::optional<std::string> reward = model_named(c.reward_model);
    if (!reward) notes.push_back(c.reward_model + ": not known, taken for a model as large as the policy");
    r.reward_model = reward.value_or(job.model);
  }
  fill(r.prompts, c.prompts);
  fill(r.generations, c.generations);
  fill(r.oversampling, c.oversampling);
  fill(r.generation_gpus, r.policy == c.policy ? c.generation_gpus : std::nullopt);
  fill(r.generation_tensor, c.generation_tensor);
  fill(r.generation_pipeline, c.generation_pipeline);
  fill(r.generation_memory_share, c.generation_memory_share);
  STEPCAST_TRY(use_lengths(config, found.name, r));
  if (config.micro_batch_answers && !job.settings.micro_batch_sequences)
    STEPCAST_TRY(use_micro_batch(*config.micro_batch_answers, r.lengths, job.settings));
  return out;
}

}  // namespace stepcast
