#include "stepcast/logs/detail/job_words.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "stepcast/base/json_value.h"
#include "stepcast/base/json_writer.h"
#include "stepcast/base/text.h"
#include "stepcast/logs/detail/log_text.h"
#include "stepcast/logs/detail/settings_blocks.h"

namespace stepcast::detail {

namespace {

struct Section {
  std::string_view name;
  std::vector<std::string_view> keys;
};

// What describe/torchtitan.cpp reads of each section. A dump holds many more.
const std::vector<Section>& sections() {
  static const std::vector<Section> all{
      {"model", {"name", "flavor", "converters"}},
      {"training",
       {"batch_size", "local_batch_size", "global_batch_size", "seq_len", "compile", "mixed_precision_param",
        "mixed_precision_reduce", "enable_cpu_offload", "max_norm", "enable_fp8_linear",
        "data_parallel_degree", "data_parallel_replicate_degree", "data_parallel_shard_degree",
        "tensor_parallel_degree"}},
      {"parallelism",
       {"data_parallel_replicate_degree", "data_parallel_shard_degree", "tensor_parallel_degree",
        "pipeline_parallel_degree", "context_parallel_degree", "expert_parallel_degree",
        "expert_tensor_parallel_degree", "pipeline_parallel_schedule", "pipeline_parallel_microbatch_size",
        "pipeline_parallel_layers_per_stage", "fsdp_reshard_after_forward", "context_parallel_rotate_method",
        "enable_async_tensor_parallel", "pipeline_parallel_split_points"}},
      {"experimental",
       {"pipeline_parallel_degree", "context_parallel_degree", "pipeline_parallel_schedule",
        "pipeline_parallel_microbatches", "enable_async_tensor_parallel"}},
      {"optimizer", {"name", "implementation", "fused", "early_step_in_backward"}},
      {"activation_checkpoint", {"mode", "selective_ac_option"}},
      {"float8", {"enable_float8_linear", "enable_fsdp_float8_all_gather", "recipe_name", "filter_fqns"}},
      {"compile", {"enable"}},
  };
  return all;
}

void add_value(std::string& toml, std::string_view key, const JsonValue& value) {
  if (value.is_bool()) {
    toml += fmt::format("{} = {}\n", key, value.truth());
  } else if (value.is_number()) {
    toml += fmt::format("{} = {}\n", key, value.number());
  } else if (value.is_text()) {
    toml += fmt::format("{} = ", key);
    append_json(toml, value.text());
    toml += '\n';
  } else if (value.is_array()) {
    std::string items;
    for (const JsonValue& item : value.items()) {
      if (!item.is_text()) return;
      if (!items.empty()) items += ", ";
      append_json(items, item.text());
    }
    toml += fmt::format("{} = [{}]\n", key, items);
  }
}

// Names of the dimensions of a mesh and their sizes.
std::vector<std::pair<std::string, std::int64_t>> mesh_of(std::string_view text) {
  std::vector<std::pair<std::string, std::int64_t>> mesh;
  constexpr std::size_t kMost = 16;
  const auto count = [](std::string_view digits) -> std::int64_t {
    const auto number = number_at(digits);
    constexpr double kMostGpus = 1e6;
    return number && number->value >= 1 && number->value <= kMostGpus
               ? static_cast<std::int64_t>(number->value)
               : 1;
  };
  if (text.find('=') != std::string_view::npos) {
    for (std::size_t at = text.find('='); at != std::string_view::npos && mesh.size() < kMost;
         at = text.find('=', at + 1)) {
      std::size_t from = at;
      while (from > 0 && (is_digit(text[from - 1]) || lower(text[from - 1]) != ' ')) --from;
      mesh.emplace_back(text.substr(from, at - from), count(text.substr(at + 1)));
    }
    return mesh;
  }
  const std::size_t close = text.find(']');
  if (close == std::string_view::npos) return mesh;
  for (std::size_t at = text.find('\''); at < close && mesh.size() < kMost;) {
    const std::size_t end = text.find('\'', at + 1);
    if (end == std::string_view::npos) break;
    mesh.emplace_back(text.substr(at + 1, end - at - 1), 1);
    at = text.find('\'', end + 1);
  }
  std::size_t from = text.find('[', close);
  for (auto& [name, size] : mesh) {
    if (from == std::string_view::npos || from + 1 >= text.size()) break;
    size = count(text.substr(from + 1));
    from = text.find(',', from + 1);
  }
  return mesh;
}

std::string_view at(const YamlScalars& yaml, std::string_view path) {
  const auto found = yaml.find(path);
  return found == yaml.end() || found->second == "null" ? std::string_view{}
                                                        : std::string_view{found->second};
}

std::optional<std::int64_t> whole(std::string_view text) {
  std::int64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  constexpr std::int64_t kMost = 1'000'000'000;
  if (text.empty() || read.ec != std::errc{} || read.ptr != text.data() + text.size() || value < 0 ||
      value > kMost)
    return std::nullopt;
  return value;
}

bool truth(std::string_view text) { return lower(text) == "true"; }

// NeMo's names where they are not Megatron's.
constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    {"encoder_seq_length", "seq_length"},
    {"activations_checkpoint_granularity", "recompute_granularity"},
    {"activations_checkpoint_method", "recompute_method"},
    {"activations_checkpoint_num_layers", "recompute_num_layers"},
    {"ub_tp_comm_overlap", "tp_comm_overlap"},
    {"gradient_accumulation_fusion", "gradient_accumulation_fusion"},
    {"num_moe_experts", "num_experts"},
    {"qk_layernorm", "qk_layernorm"},
    {"rotary_percentage", "rotary_percent"},
    {"moe_router_topk", "moe_router_topk"},
    {"fp8_recipe", "fp8_recipe"},
};

}  // namespace

Result<std::string> torchtitan_toml(std::string_view dump, const std::string& file) {
  STEPCAST_ASSIGN(const JsonValue config, parse_json(python_to_json(dump), file + ": TorchTitan's config"));
  std::string toml;
  for (const Section& section : sections()) {
    const JsonValue* found = config.find(section.name);
    if (section.name == "float8" && found == nullptr) {
      const JsonValue* quantize = config.find("quantize");
      const JsonValue* linear = quantize == nullptr ? nullptr : quantize->find("linear");
      found = linear == nullptr ? nullptr : linear->find("float8");
    }
    if (found == nullptr || !found->is_object()) continue;
    toml += fmt::format("[{}]\n", section.name);
    for (const std::string_view key : section.keys)
      if (const JsonValue* value = found->find(key)) add_value(toml, key, *value);
  }
  return toml;
}

std::string torchtitan_toml_of_words(const std::map<std::string, std::string, std::less<>>& words) {
  const auto word = [&](std::string_view name) {
    const auto found = words.find(name);
    return found == words.end() ? std::string{} : found->second;
  };
  const std::string model = word("titan_model");
  const std::size_t blank = model.find(' ');
  std::string toml = "[model]\nname = ";
  append_json(toml, model.substr(0, blank));
  toml += "\nflavor = ";
  append_json(toml, blank == std::string::npos ? "" : model.substr(blank + 1));
  toml += "\n[training]\n";
  const auto number = [&](std::string_view key, std::string_view name) {
    if (const std::string value = word(name); !value.empty()) toml += fmt::format("{} = {}\n", key, value);
  };
  number("local_batch_size", "titan_local_batch");
  number("global_batch_size", "titan_global_batch");
  number("seq_len", "titan_seq_len");
  toml += "[parallelism]\n";
  constexpr std::pair<std::string_view, std::string_view> kDegrees[] = {
      {"dp_replicate", "data_parallel_replicate_degree"},
      {"dp_shard", "data_parallel_shard_degree"},
      {"tp", "tensor_parallel_degree"},
      {"pp", "pipeline_parallel_degree"},
      {"cp", "context_parallel_degree"},
      {"ep", "expert_parallel_degree"},
      {"etp", "expert_tensor_parallel_degree"},
      {"dp", "data_parallel_shard_degree"}};
  bool sharded = false;
  for (const auto& [name, size] : mesh_of(word("titan_mesh"))) {
    for (const auto& [dimension, key] : kDegrees) {
      if (dimension != name || (sharded && key == "data_parallel_shard_degree")) continue;
      sharded = sharded || key == "data_parallel_shard_degree";
      toml += fmt::format("{} = {}\n", key, size);
    }
  }
  if (!sharded) toml += "data_parallel_shard_degree = 1\n";
  const std::string recompute = word("titan_recompute");
  toml += fmt::format("[activation_checkpoint]\nmode = \"{}\"\n",
                      recompute == "full" || recompute == "selective" ? recompute : "none");
  if (recompute == "selective") toml += "selective_ac_option = \"op\"\n";
  if (!word("titan_compile").empty()) toml += "[compile]\nenable = true\n";
  if (const std::string recipe = word("titan_float8"); !recipe.empty())
    toml += fmt::format(
        "[float8]\nenable_float8_linear = true\nrecipe_name = \"{}\"\nfilter_fqns = [\"output\"]\n", recipe);
  return toml;
}

std::optional<std::int64_t> torchtitan_gpus(std::string_view mesh) {
  std::int64_t gpus = 1;
  bool any = false;
  constexpr std::int64_t kMost = 10'000'000;
  for (const auto& [name, size] : mesh_of(mesh)) {
    if (name == "ep" || name == "etp") continue;  // experts are spread over ranks of the others
    any = true;
    if (gpus > kMost / size) return std::nullopt;
    gpus *= size;
  }
  if (!any) return std::nullopt;
  return gpus;
}

std::vector<std::pair<std::string, std::string>> megatron_arguments_of(const YamlScalars& yaml,
                                                                       std::optional<std::int64_t>& n_gpus) {
  std::vector<std::pair<std::string, std::string>> arguments;
  const auto add = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) arguments.emplace_back(name, value);
  };
  if (at(yaml, "model.num_layers").empty()) return arguments;
  for (const auto& [path, value] : yaml) {
    std::string_view key = path;
    if (value == "null") continue;
    const std::string_view section = key.substr(0, key.find('.'));
    if (section != "model" && section != "train") continue;
    key.remove_prefix(section.size() + 1);
    if (key.find('.') != std::string_view::npos) continue;
    const auto* const other =
        std::find_if(std::begin(kNames), std::end(kNames), [&](const auto& n) { return n.first == key; });
    const std::string name{other == std::end(kNames) ? key : other->second};
    const bool is_truth = lower(value) == "true" || lower(value) == "false";
    arguments.emplace_back(name, is_truth ? (truth(value) ? "True" : "False") : value);
  }
  // NeMo 1's own words.
  const std::string activation{at(yaml, "model.activation")};
  if (activation.find("swiglu") != std::string::npos || truth(at(yaml, "model.gated_linear_unit")))
    add("swiglu", "True");
  const std::string norm = lower(at(yaml, "model.normalization"));
  if (norm == "rmsnorm") add("normalization", "RMSNorm");
  if (norm.starts_with("layernorm")) add("normalization", "LayerNorm");
  if (lower(at(yaml, "model.share_embeddings_and_output_weights")) == "false")
    add("untie_embeddings_and_output_weights", "True");
  if (lower(at(yaml, "model.bias")) == "false") add("add_bias_linear", "False");
  if (!at(yaml, "model.num_query_groups").empty()) add("group_query_attention", "True");
  const std::string precision =
      lower(std::string{at(yaml, "trainer.precision")} + std::string{at(yaml, "mixed_precision")});
  if (precision.starts_with("bf16")) add("bf16", "True");
  if (precision.starts_with("16")) add("fp16", "True");
  if (truth(at(yaml, "model.fp8"))) add("fp8", truth(at(yaml, "model.fp8_e4m3")) ? "e4m3" : "hybrid");
  if (at(yaml, "model.optim.name") == "distributed_fused_adam" ||
      truth(at(yaml, "optimizer.use_distributed_optimizer")) ||
      truth(at(yaml, "ddp.use_distributed_optimizer")))
    add("use_distributed_optimizer", "True");
  for (const std::string_view key : {"overlap_grad_reduce", "overlap_param_gather"})
    if (truth(at(yaml, "ddp." + std::string{key}))) add(key, "True");
  if (truth(at(yaml, "model.optim.overlap_grad_sync"))) add("overlap_grad_reduce", "True");
  if (truth(at(yaml, "model.optim.overlap_param_sync"))) add("overlap_param_gather", "True");
  if (at(yaml, "model.seq_length").empty() && at(yaml, "model.encoder_seq_length").empty())
    add("seq_length", at(yaml, "dataset.sequence_length"));
  if (at(yaml, "model.max_position_embeddings").empty()) {
    for (const char* length : {"model.seq_length", "model.encoder_seq_length", "dataset.sequence_length"}) {
      if (at(yaml, length).empty()) continue;
      add("max_position_embeddings", at(yaml, length));
      break;
    }
  }
  const auto devices = whole(at(yaml, "trainer.devices")), nodes = whole(at(yaml, "trainer.num_nodes"));
  constexpr std::int64_t kMost = 1'000'000;
  if (devices && nodes && *devices > 0 && *nodes > 0 && *devices < kMost && *nodes < kMost)
    n_gpus = *devices * *nodes;
  return arguments;
}

std::optional<Job> foundry_job(const YamlScalars& yaml) {
  const auto layers = whole(at(yaml, "model.n_layers")), hidden = whole(at(yaml, "model.d_model")),
             heads = whole(at(yaml, "model.n_heads"));
  if (!layers || !hidden || !heads) return std::nullopt;
  Job job;
  job.framework = Framework::fsdp;
  JobSettings& s = job.settings;
  s.n_layers = layers;
  s.hidden_size = hidden;
  s.n_heads = heads;
  if (const auto ratio = whole(at(yaml, "model.expansion_ratio")); ratio && *ratio > 0 && *ratio < 1000)
    s.ffn_hidden_size = *ratio * *hidden;
  s.vocab_size = whole(at(yaml, "model.vocab_size"));
  s.max_position = s.seq_len_tokens = whole(at(yaml, "max_seq_len"));
  s.global_batch_sequences = whole(at(yaml, "global_train_batch_size"));
  s.micro_batch_sequences = whole(at(yaml, "device_train_microbatch_size"));
  if (truth(at(yaml, "model.no_bias"))) s.linear_bias = false;
  if (truth(at(yaml, "model.attn_config.alibi"))) s.position = PositionEncoding::alibi;
  const std::string precision = lower(at(yaml, "precision"));
  s.dtype = precision.find("fp16") != std::string::npos   ? DType::fp16
            : precision.find("fp32") != std::string::npos ? DType::fp32
                                                          : DType::bf16;
  const std::string sharding{at(yaml, "fsdp_config.sharding_strategy")};
  s.sharding = sharding == "SHARD_GRAD_OP" ? Sharding::zero2
               : sharding == "NO_SHARD"    ? Sharding::none
                                           : Sharding::zero3;
  if (truth(at(yaml, "fsdp_config.activation_checkpointing"))) s.recompute = Recompute::full;
  return job;
}

}  // namespace stepcast::detail
