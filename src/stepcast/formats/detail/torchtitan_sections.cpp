// Reads the sections of a TorchTitan config. Keys that torchtitan moved between releases are accepted in
// their old and new sections.
#include "stepcast/formats/detail/torchtitan_sections.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/json_value.h"
#include "stepcast/base/scan.h"
#include "stepcast/formats/detail/optimizer_words.h"
#include "stepcast/formats/presets.h"

namespace stepcast::detail {
namespace {

// Models of torchtitan by name and flavor, if "name-flavor" is not the name of a preset.
struct Flavor {
  std::string_view name, flavor, preset;
};
constexpr Flavor kFlavors[] = {
    {"llama3", "8B", "llama-3.1-8b"},           {"llama3", "70B", "llama-3.1-70b"},
    {"llama3", "405B", "llama-3.1-405b"},       {"llama4", "17bx16e", "llama-4-scout"},
    {"llama4", "17bx128e", "llama-4-maverick"}, {"deepseek_v3", "16B", "deepseek-v2-lite"},
    {"deepseek_v3", "236B", "deepseek-v2"},     {"deepseek_v3", "671B", "deepseek-v3"},
};

// Sections without effect on time and memory.
constexpr std::string_view kSectionsPassedOver =
    "job profiling metrics lr_scheduler checkpoint comm memory_estimation validation debug logging";

// A degree: an integer, or -1 if torchtitan chooses it. Errors: outside -1 to 1e6.
Status read_degree(ObjectReader& keys, std::string_view key, std::int64_t& out) {
  if (const JsonValue* value = keys.take(key);
      value != nullptr && value->is_number() && value->number() == -1) {
    out = -1;
    return Ok{};
  }
  STEPCAST_TRY(keys.optional(key, out));
  constexpr std::int64_t kMost = 1'000'000;
  if (out < -1 || out > kMost) return keys.wrong(key, out, "-1 to 1e6");
  return Ok{};
}

// Adds a key to `not_modelled` if it is present and not off (false, empty).
void note_if_there(ObjectReader& keys, std::string_view key, ResolvedJob& job) {
  const JsonValue* value = keys.take(key);
  if (value == nullptr || (value->is_bool() && !value->truth())) return;
  if ((value->is_array() && value->items().empty()) || (value->is_text() && value->text().empty())) return;
  job.not_modelled.push_back(keys.path_of(key));
}

// [model]: the model, unless the job has one, and converters such as float8. Errors: an unknown model.
Status read_model(ObjectReader& keys, const TorchTitanOptions& options, TorchTitanSettings& settings,
                  ResolvedJob& job) {
  std::string name = "llama3", flavor = "debugmodel";
  STEPCAST_TRY(keys.optional("name", name));
  STEPCAST_TRY(keys.optional("flavor", flavor));
  if (options.model) {
    job.model = *options.model;
  } else {
    const auto* known = std::find_if(std::begin(kFlavors), std::end(kFlavors),
                                     [&](const Flavor& f) { return f.name == name && f.flavor == flavor; });
    auto preset = find_preset(known == std::end(kFlavors) ? name + "-" + flavor : std::string{known->preset});
    if (!preset) {
      return keys
          .error("",
                 fmt::format("unknown model `{}` of flavor `{}`", name.substr(0, 60), flavor.substr(0, 60)))
          .advice("give the model by a preset or its config.json");
    }
    job.model = *std::move(preset);
    // torchtitan does not train multi-token prediction layers.
    job.model.n_multi_token_prediction_layers = 0;
  }
  if (const JsonValue* converters = keys.take("converters");
      converters != nullptr && converters->is_array()) {
    for (const JsonValue& converter : converters->items()) {
      const std::string what = converter.is_text() ? converter.text() : "";
      if (what == "float8" || what == "quantize.linear.float8") {
        settings.float8 = true;
      } else {
        job.not_modelled.push_back(fmt::format("model.converters: {}", what.substr(0, 60)));
      }
    }
  }
  keys.ignore("norm_type tokenizer_path hf_assets_path print_after_conversion tokenizer_type");
  note_if_there(keys, "use_flex_attn", job);
  note_if_there(keys, "attn_mask_type", job);
  return keys.finish();
}

// Keys of [parallelism], which older releases had in [training] and [experimental].
Status read_parallelism(ObjectReader& keys, TorchTitanSettings& s, ResolvedJob& job) {
  TorchTitanDegrees& d = s.degrees;
  STEPCAST_TRY(read_degree(keys, "data_parallel_replicate_degree", d.replicate));
  STEPCAST_TRY(read_degree(keys, "data_parallel_shard_degree", d.shard));
  STEPCAST_TRY(read_degree(keys, "data_parallel_degree", d.shard));
  STEPCAST_TRY(read_degree(keys, "tensor_parallel_degree", d.tensor));
  STEPCAST_TRY(read_degree(keys, "pipeline_parallel_degree", d.pipeline));
  STEPCAST_TRY(read_degree(keys, "context_parallel_degree", d.context));
  STEPCAST_TRY(read_degree(keys, "expert_parallel_degree", d.expert));
  STEPCAST_TRY(read_degree(keys, "expert_tensor_parallel_degree", d.expert_tensor));
  STEPCAST_TRY(keys.optional("pipeline_parallel_schedule", s.schedule));
  STEPCAST_TRY(keys.optional("pipeline_parallel_microbatch_size", s.pipeline_micro_batch));
  STEPCAST_TRY(keys.optional("pipeline_parallel_microbatches", s.pipeline_micro_batches));
  STEPCAST_TRY(keys.optional("pipeline_parallel_layers_per_stage", s.layers_per_stage));
  STEPCAST_TRY(keys.optional("fsdp_reshard_after_forward", s.reshard));
  STEPCAST_TRY(keys.optional("context_parallel_rotate_method", s.rotate));
  STEPCAST_TRY(keys.optional("enable_async_tensor_parallel", job.layout.layer.overlap.tensor_parallel));
  // Split points "layers.8" are the first layers of the stages after the first.
  if (const JsonValue* points = keys.take("pipeline_parallel_split_points");
      points != nullptr && points->is_array()) {
    for (const JsonValue& point : points->items()) {
      std::string_view text = point.is_text() ? std::string_view{point.text()} : std::string_view{};
      constexpr std::string_view kPrefix = "layers.";
      if (text.starts_with(kPrefix)) text.remove_prefix(kPrefix.size());
      const std::int64_t layer = scan<std::int64_t>(text).value_or(0);
      if (layer < 1) {
        return keys.error("pipeline_parallel_split_points").expected("names such as layers.8");
      }
      s.split_points.push_back(layer);
    }
  }
  for (const std::string_view key :
       {"disable_loss_parallel", "enable_compiled_autograd", "module_fqns_per_model_part",
        "pipeline_parallel_schedule_csv", "pipeline_parallel_first_stage_less_layers",
        "pipeline_parallel_last_stage_less_layers", "expert_parallel_comm_backend"}) {
    note_if_there(keys, key, job);
  }
  return Ok{};
}

// [training]: batches, sequence length, number types, offloading.
Status read_training(ObjectReader& keys, TorchTitanSettings& s, ResolvedJob& job) {
  STEPCAST_TRY(read_parallelism(keys, s, job));
  STEPCAST_TRY(keys.optional("batch_size", s.local_batch));
  STEPCAST_TRY(keys.optional("local_batch_size", s.local_batch));
  STEPCAST_TRY(read_degree(keys, "global_batch_size", s.global_batch));
  job.layout.batch.seq_len_tokens = 2048;  // default of torchtitan
  STEPCAST_TRY(keys.optional("seq_len", job.layout.batch.seq_len_tokens));
  STEPCAST_TRY(keys.optional("compile", s.compile));
  STEPCAST_TRY(keys.optional("mixed_precision_param", s.param_dtype));
  STEPCAST_TRY(keys.optional("mixed_precision_reduce", s.reduce_dtype));
  bool offload = false;
  STEPCAST_TRY(keys.optional("enable_cpu_offload", offload));
  job.layout.optimizer.cpu_offload = job.layout.sharding.parameter_offload = offload;
  STEPCAST_TRY(keys.optional("enable_fp8_linear", s.float8));
  double max_norm = 1;
  STEPCAST_TRY(keys.optional("max_norm", max_norm));
  job.layout.optimizer.gradient_clip = max_norm > 0;
  for (const std::string_view key : {"deterministic", "fp8_linear"}) note_if_there(keys, key, job);
  STEPCAST_TRY(keys.optional("dtype", s.dtype));
  std::int64_t steps = 1;
  STEPCAST_TRY(keys.optional("steps", steps));
  if (steps < 1) return keys.wrong("steps", steps, "1 or more");
  keys.ignore("dataset dataset_path warmup_steps gc_freq gc_debug seed data_loading tokenizer");
  return keys.finish();
}

// [optimizer]: kind and implementation. Learning rates and similar values have no effect on time.
Status read_optimizer(ObjectReader& keys, ResolvedJob& job) {
  std::string name = "AdamW", implementation = "fused";
  bool fused = true;
  STEPCAST_TRY(keys.optional("name", name));
  STEPCAST_TRY(keys.optional("implementation", implementation));
  STEPCAST_TRY(keys.optional("fused", fused));
  OptimizerSetup& optimizer = job.layout.optimizer;
  const std::optional<OptimizerKind> known = find_optimizer(kTorchTitanOptimizers, name);
  if (!known) {
    return keys.wrong("name", name, listed(kTorchTitanOptimizers));
  }
  optimizer.kind = *known;
  constexpr std::array<std::string_view, 3> kImplementations{"for-loop", "foreach", "fused"};
  if (std::ranges::find(kImplementations, implementation) == kImplementations.end()) {
    return keys.wrong("implementation", implementation, "for-loop, foreach or fused");
  }
  optimizer.implementation = implementation == "for-loop"            ? OptimizerImplementation::for_loop
                             : implementation == "foreach" || !fused ? OptimizerImplementation::foreach
                                                                     : OptimizerImplementation::fused;
  note_if_there(keys, "early_step_in_backward", job);
  keys.ignore("lr eps beta1 beta2 weight_decay foreach");
  return keys.finish();
}

// [activation_checkpoint]: kept as texts, because their meaning depends on other sections.
Status read_checkpointing(ObjectReader& keys, TorchTitanSettings& s, ResolvedJob& job) {
  STEPCAST_TRY(keys.optional("mode", s.ac_mode));
  if (const JsonValue* option = keys.take("selective_ac_option"); option != nullptr) {
    s.ac_option = option->is_text() ? option->text() : describe_value(*option);
  }
  note_if_there(keys, "per_op_sac_force_recompute_mm_shapes_by_fqns", job);
  keys.ignore("early_stop preserve_rng_state determinism_check debug");
  return keys.finish();
}

// [float8]: recipe of scaling, and which GEMMs it includes.
Status read_float8(ObjectReader& keys, TorchTitanSettings& s, ResolvedJob& job) {
  Fp8Recipe& recipe = job.layout.layer.precision.fp8;
  recipe.scaling = Fp8Scaling::dynamic;
  STEPCAST_TRY(keys.optional("enable_float8_linear", s.float8));
  STEPCAST_TRY(keys.optional("enable_fsdp_float8_all_gather", recipe.gather_weights));
  std::string name;
  STEPCAST_TRY(keys.optional("recipe_name", name));
  if (name == "rowwise" || name == "rowwise_with_gw_hp") {
    recipe.scaling = Fp8Scaling::rowwise;
    recipe.gather_activations = false;
    recipe.weight_gradients = name == "rowwise";
  } else if (!name.empty() && name != "tensorwise") {
    return keys.wrong("recipe_name", name, "tensorwise, rowwise or rowwise_with_gw_hp");
  }
  std::string scaling;
  STEPCAST_TRY(keys.optional("scaling_type_input", scaling));
  if (scaling == "delayed") recipe.scaling = Fp8Scaling::delayed;
  // All published configs exclude the output layer by its name. Other exclusions are not modelled.
  if (const JsonValue* filters = keys.take("filter_fqns"); filters != nullptr && filters->is_array()) {
    recipe.logits = std::none_of(filters->items().begin(), filters->items().end(), [](const JsonValue& f) {
      return f.is_text() && (f.text() == "output" || f.text() == "auto_filter_small_kn");
    });
    for (const JsonValue& filter : filters->items()) {
      if (filter.is_text() && filter.text() != "output") {
        job.not_modelled.push_back(fmt::format("float8.filter_fqns: {}", filter.text().substr(0, 60)));
      }
    }
  }
  note_if_there(keys, "force_recompute_fp8_weight_in_bwd", job);
  keys.ignore(
      "precompute_float8_dynamic_scale_for_fsdp scaling_type_weight scaling_type_grad_output emulate "
      "pad_inner_dim moe_fqns_prototype");
  return keys.finish();
}

// Later releases have [quantize.linear.float8] instead of [float8].
Status read_quantization(ObjectReader& root, TorchTitanSettings& s, ResolvedJob& job) {
  STEPCAST_ASSIGN(auto float8, root.section("float8"));
  if (float8) STEPCAST_TRY(read_float8(*float8, s, job));
  STEPCAST_ASSIGN(auto quantize, root.section("quantize"));
  if (!quantize) return Ok{};
  STEPCAST_ASSIGN(auto linear, quantize->section("linear"));
  if (linear) {
    STEPCAST_ASSIGN(auto inner, linear->section("float8"));
    if (inner) STEPCAST_TRY(read_float8(*inner, s, job));
    note_if_there(*linear, "mx", job);
    STEPCAST_TRY(linear->finish());
  }
  note_if_there(*quantize, "grouped_mm", job);
  return quantize->finish();
}

}  // namespace

Status read_torchtitan_sections(ObjectReader& root, const TorchTitanOptions& options,
                                TorchTitanSettings& settings, ResolvedJob& job) {
  STEPCAST_ASSIGN(auto model, root.section("model"));
  if (model) {
    STEPCAST_TRY(read_model(*model, options, settings, job));
  } else if (options.model) {
    job.model = *options.model;
  } else {
    return root.error("", "the section [model] is missing");
  }
  STEPCAST_ASSIGN(auto training, root.section("training"));
  if (training) STEPCAST_TRY(read_training(*training, settings, job));
  for (const std::string_view name : {"parallelism", "experimental"}) {
    STEPCAST_ASSIGN(auto section, root.section(name));
    if (!section) continue;
    STEPCAST_TRY(read_parallelism(*section, settings, job));
    // Until 2024, when these keys were in [experimental], a pipeline used as many micro-batches as stages.
    if (name == "experimental" && settings.degrees.pipeline > 1 && settings.pipeline_micro_batches == 0)
      settings.pipeline_micro_batches = settings.degrees.pipeline;
    section->ignore("custom_args_module custom_import custom_model_path");
    STEPCAST_TRY(section->finish());
  }
  STEPCAST_ASSIGN(auto optimizer, root.section("optimizer"));
  if (optimizer) STEPCAST_TRY(read_optimizer(*optimizer, job));
  STEPCAST_ASSIGN(auto checkpointing, root.section("activation_checkpoint"));
  if (checkpointing) STEPCAST_TRY(read_checkpointing(*checkpointing, settings, job));
  STEPCAST_TRY(read_quantization(root, settings, job));
  STEPCAST_ASSIGN(auto compile, root.section("compile"));
  if (compile) {
    STEPCAST_TRY(compile->optional("enable", settings.compile));
    std::vector<std::string> components;
    STEPCAST_TRY(compile->optional("components", components));
    for (const std::string& component : components) {
      if (component == "model" || component == "loss") continue;
      return compile->wrong("components", component, "model or loss");
    }
    compile->ignore("backend");
    STEPCAST_TRY(compile->finish());
  }
  for (const std::string_view key : {"fault_tolerance", "mx"}) note_if_there(root, key, job);
  root.ignore(kSectionsPassedOver);
  return root.finish();
}

}  // namespace stepcast::detail
