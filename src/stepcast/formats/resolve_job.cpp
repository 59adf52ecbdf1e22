// Resolves a Job with settings, a Megatron-LM command line or a DeepSpeed config, with the steps that all
// formats share. Order: model, missing settings, degrees, defaults of the framework, other settings, checks.
#include "stepcast/formats/resolve_job.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/file.h"
#include "stepcast/describe/ignored_settings.h"
#include "stepcast/describe/network_presets.h"
#include "stepcast/describe/setting_groups.h"
#include "stepcast/describe/software_defaults.h"
#include "stepcast/formats/deepspeed.h"
#include "stepcast/formats/detail/apply_settings.h"
#include "stepcast/formats/detail/job_format.h"
#include "stepcast/formats/detail/tokenizer_vocabulary.h"
#include "stepcast/formats/huggingface.h"
#include "stepcast/formats/megatron.h"
#include "stepcast/formats/presets.h"
#include "stepcast/platform/platform.h"
#include "stepcast/workload/expert_load.h"
#include "stepcast/workload/framework_rule.h"
#include "stepcast/workload/network.h"

namespace stepcast {
namespace {

// The error for a missing file. Hub names such as "meta-llama/Llama-3.1-8B" look like paths; the advice then
// names the preset.
Error no_such_path(const std::string& path) {
  const std::string_view name = std::string_view{path}.substr(path.rfind('/') + 1);
  const auto network = find_network(name);
  const Result<Transformer> preset =
      network.ok() && network.value() ? Result<Transformer>{*network.value()} : find_preset(name);
  return Error::at("", "--model", fmt::format("no such file or folder: `{}`", path.substr(0, 200)))
      .advice(preset.ok() ? fmt::format("did you mean `{}`?", preset->name)
                          : "`stepcast models` lists the presets; or give its config.json");
}

// The model that the job names: given, a network, a preset or a config.json. Nothing if it names none.
// Errors: unknown names, options that do not apply to the model.
Result<std::optional<Transformer>> named_model(const Job& job, std::vector<std::string>& notes) {
  if (job.transformer) return std::optional{*job.transformer};
  const auto nothing_to_ignore = [&] {
    return Error::at("", "--ignore-key")
        .found("no config.json")
        .expected("--model with a Hugging Face config.json");
  };
  if (job.model.empty()) {
    if (!job.ignored_model_keys.empty()) return nothing_to_ignore();
    return std::optional<Transformer>{};
  }
  STEPCAST_ASSIGN(std::optional<Transformer> network,
                  find_network(job.model, {.image = job.vision.image_size,
                                           .tokens = job.settings.seq_len_tokens,
                                           .decoder_tokens = job.settings.decoder_tokens}));
  if (network) {
    if (!job.ignored_model_keys.empty()) return nothing_to_ignore();
    return network;
  }
  // A name of a preset is not looked up as a file.
  const bool is_path = job.model.find('/') != std::string::npos || job.model.ends_with(".json");
  std::error_code ignored;
  const Result<Transformer> preset = find_preset(job.model);
  const bool is_file = is_path || (!preset.ok() && std::filesystem::exists(job.model, ignored));
  // Presets with a tower accept image options.
  const bool sees = preset.ok() && preset->tower;
  if (job.vision.image_size && !is_file && !sees) {
    return Error::at("", "--image-size",
                     fmt::format("`{}` is not an image network", job.model.substr(0, 200)))
        .expected("one of ResNet, VGG, ViT or DiT: " + fmt::format("{}", fmt::join(network_names(), ", ")));
  }
  if ((job.vision.images || job.vision.text_only) && !is_file && !sees) {
    return Error::at("", job.vision.images ? "--images" : "--text-only")
        .found("no config.json")
        .expected("--model with the config.json of a vision-language model");
  }
  if (!is_file && !job.ignored_model_keys.empty()) return nothing_to_ignore();
  if (is_path && !job.model.ends_with(".json") && !std::filesystem::exists(job.model, ignored)) {
    return no_such_path(job.model);
  }
  STEPCAST_ASSIGN(Transformer model,
                  is_file ? read_huggingface_config(job.model, job.ignored_model_keys, &notes, job.vision)
                          : find_preset(job.model, job.vision, &notes));
  return std::optional{std::move(model)};
}

// Sets the sequence length if it is not given: that of the model, at most 8192 tokens.
void fill_in_length(const std::optional<Transformer>& model, JobSettings& s,
                    std::vector<std::string>& notes) {
  if (s.seq_len_tokens || !model) return;
  if (model->network) {
    s.seq_len_tokens = model->network->tokens;
    return;
  }
  // Longest sequence taken from a model without a request for it, and the length for models without a limit.
  constexpr std::int64_t kLongest = 8192, kOtherwise = 2048;
  const std::int64_t longest = s.max_position.value_or(model->longest_sequence());
  s.seq_len_tokens = longest > 0 ? std::min(longest, kLongest) : kOtherwise;
  notes.push_back(fmt::format("sequence length not given: {}", *s.seq_len_tokens));
}

// Sets the micro-batch, sequence length and number type of a short description, with notes.
void fill_in(const std::optional<Transformer>& model, bool has_deepspeed, JobSettings& s,
             std::vector<std::string>& notes) {
  if (!s.micro_batch_sequences && !has_deepspeed) {
    s.micro_batch_sequences = 1;
    notes.emplace_back("micro-batch size not given: 1");
  }
  fill_in_length(model, s, notes);
  if (!s.dtype && !s.fp8.value_or(false) && !has_deepspeed) {
    s.dtype = DType::bf16;
    notes.emplace_back("computation type not given: bf16");
  }
}

// Notes about values that follow from others or have defaults.
void note_sizes(const JobSettings& s, const Job& job, ResolvedJob& result) {
  const Layout& layout = result.layout;
  if (!result.n_gpus && !s.data && layout.world_size() == 1) result.notes.emplace_back("GPUs not given: 1");
  if (!s.global_batch_sequences && !job.deepspeed) {
    result.notes.push_back(fmt::format("global batch not given: {}, one micro-batch per data-parallel rank",
                                       layout.batch.global_batch_sequences));
  }
  if (!job.framework && !job.deepspeed && s.zero_stage.value_or(0) == 0) {
    result.notes.emplace_back(takes_images(result.model.network.get())
                                  ? "framework not given: PyTorch with DistributedDataParallel"
                                  : "framework not given: kernels and overlaps of Megatron-LM");
  } else if (job.framework && !s.framework_date) {
    result.notes.push_back(
        fmt::format("release of {} not given: the newest (--framework-date)", to_string(*job.framework)));
  }
}

// Distributes layers that the pipeline stages do not divide, if nothing else is given: as evenly as possible,
// with embedding and output counted as a layer each (Llama 3 405B: 126 layers on 16 stages are 7, 14 x 8, 7).
void deal_out_layers(ResolvedJob& job) {
  Layout& layout = job.layout;
  constexpr std::int64_t kMostChunks = 100'000;
  const std::int64_t stages = layout.degrees.pipeline, chunks = stages * layout.degrees.virtual_stages;
  if (!layout.pipeline.layers_per_stage.empty() || chunks < 2 || chunks > kMostChunks) return;
  if (job.model.n_layers % chunks == 0) return;
  layout.pipeline.layers_per_stage = layers_counting_embedding_and_output(job.model.n_layers, chunks);
  if (layout.pipeline.layers_per_stage.empty()) return;
  job.notes.push_back(fmt::format(
      "{} layers do not divide into {} stages: distributed as evenly as possible. Embedding and output "
      "count as a layer each. To change it: --pipeline-model-parallel-layout",
      job.model.n_layers, chunks));
}

// A note for batches that are probably in tokens: 4194304.
void note_batch_in_tokens(const Layout& layout, std::vector<std::string>& notes) {
  constexpr double kMostTokens = 1e9;  // per step; the largest published batches have about 1e8
  const double tokens = static_cast<double>(layout.batch.global_batch_sequences) *
                        static_cast<double>(layout.batch.seq_len_tokens);
  if (tokens < kMostTokens) return;
  notes.push_back(
      fmt::format("--gbs counts sequences, not tokens: {} of {} tokens are {:.2g} tokens per step",
                  layout.batch.global_batch_sequences, layout.batch.seq_len_tokens, tokens));
}

// DeepSpeed trains any PyTorch model. Without a command line of Megatron-LM it is assumed to be one of
// Hugging Face, with PyTorch's unfused kernels.
void use_plain_layers(const Job& job, Layout& layout, std::vector<std::string>& notes) {
  const bool is_plain = job.deepspeed || (job.framework && rule_of(*job.framework).layers.runs_plain_models);
  if (job.command_line || !is_plain) return;
  layout.layer.fused = rule_of(Framework::pytorch).fused;
  notes.emplace_back(
      "DeepSpeed: layers of Hugging Face without fused kernels; for Megatron-DeepSpeed give its "
      "--command-line");
}

// Shards weights if the given framework always does, with a note.
void shard_as_framework_does(const Job& job, const Layout& layout, JobSettings& s,
                             std::vector<std::string>& notes) {
  if (!job.framework || !rule_of(*job.framework).sharding.shards_weights() || job.command_line ||
      job.deepspeed)
    return;
  if (s.sharding || s.distributed_optimizer || s.fully_sharded || s.zero_stage) return;
  if (layout.degrees.data * layout.degrees.context < 2) return;
  s.fully_sharded = true;
  notes.push_back(
      fmt::format("sharding not given: weights, gradients and optimizer states, the default of {}",
                  to_string(*job.framework)));
}

// Recomputes what the configs of the given framework recompute, with a note.
void recompute_as_framework_does(const Job& job, JobSettings& s, std::vector<std::string>& notes) {
  if (!job.framework || job.command_line || job.deepspeed) return;
  const Recompute usual = rule_of(*job.framework).layers.recompute;
  if (usual == Recompute::none || s.recompute || s.recompute_modules || s.recompute_by_block ||
      s.recompute_layers || s.recompute_attention || s.checkpoint_layers)
    return;
  s.recompute = usual;
  notes.push_back(fmt::format("recomputation not given: {}, the default of {}", to_string(usual),
                              to_string(*job.framework)));
}

// Adds the notes of reading the model, and the keys that were ignored on request.
void note_model(const Job& job, const std::vector<std::string>& said, ResolvedJob& result) {
  result.notes.insert(result.notes.begin(), said.begin(), said.end());
  std::string keys;
  for (const std::string& key : job.ignored_model_keys) keys += (keys.empty() ? "" : ", ") + key;
  if (!keys.empty()) {
    result.notes.insert(result.notes.begin(), fmt::format("ignored key of the model's config: {}", keys));
  }
}

// The model: the base with changes, or a new one from settings. With decoder layers it becomes an encoder-decoder.
Result<Transformer> model_of(const std::optional<Transformer>& base, bool is_bert,
                             const JobSettings& settings) {
  Transformer model;
  if (base) {
    model = *base;
  } else {
    model.name = "model";
    model.hidden_dropout = model.attention_dropout = 0.1;  // defaults of Megatron-LM
    if (is_bert) {  // Megatron-LM's BERT: norms before attention and FFN
      model.architecture = Architecture::encoder;
      model.n_token_types = 2;
      model.pooler = model.mlm_head = model.head_bias = true;
    }
  }
  STEPCAST_TRY(detail::apply_to_model(settings, base.has_value(), model));
  if (!settings.decoder_layers) return model;
  if (base) return Error::at("", "--decoder-num-layers").found("`--model`").expected("one of the two");
  // Megatron-LM's T5: learned positions, biases and layer norms as in its GPT.
  return encoder_decoder({.name = "T5",
                          .encoder_layers = model.n_layers,
                          .decoder_layers = *settings.decoder_layers,
                          .hidden_size = model.hidden_size,
                          .n_heads = model.n_heads,
                          .head_dim = model.qk_head_dim(),
                          .ffn_hidden_size = model.ffn_hidden_size,
                          .vocab_size = model.vocab_size,
                          .encoder_tokens = settings.seq_len_tokens.value_or(model.max_position),
                          .decoder_tokens = settings.decoder_tokens.value_or(
                              settings.seq_len_tokens.value_or(model.max_position)),
                          .gated_ffn = model.gated_ffn,
                          .tied_embeddings = model.tied_embeddings,
                          .biases = model.ffn_bias,
                          .positions = EncoderDecoder::Positions::shared,
                          .encoder_positions = model.max_position,
                          .dropout = model.hidden_dropout});
}

// Unknown flags are ignored with a note; in strict mode they are errors.
Status note_line(bool strict, const MegatronWords& line, ResolvedJob& result) {
  if (strict && !line.unknown.empty()) return Error{line.unknown.front()};
  for (const std::string& flag : line.unknown) result.notes.push_back(fmt::format("left out: {}", flag));
  result.notes.insert(result.notes.end(), line.notes.begin(), line.notes.end());
  return Ok{};
}

// For command lines without a launcher: the smallest number of GPUs that the degrees, experts, weight copies
// and batches allow.
void take_fewest_gpus(JobSettings& s, ResolvedJob& result) {
  if (result.n_gpus || s.data) return;
  const std::int64_t tensor = s.tensor.value_or(1), context = s.context.value_or(1);
  const std::int64_t expert = s.expert.value_or(1) * s.expert_tensor.value_or(tensor);
  constexpr std::int64_t kMostRanks = 4096;  // per degree, so that the result fits into 64 bits
  if (tensor < 1 || context < 1 || expert < 1 || std::max({tensor, context, expert}) > kMostRanks) return;
  const std::int64_t micro = s.micro_batch_sequences.value_or(1),
                     global = s.global_batch_sequences.value_or(0);
  const std::int64_t copies = std::clamp<std::int64_t>(s.weight_copies.value_or(1), 1, kMostRanks);
  // The smallest multiple of the copies for which the experts divide the ranks.
  std::int64_t data = copies;
  while (data < expert * copies && (tensor * context * data) % expert != 0) data += copies;
  // No number works; check() reports the reason.
  if (micro > 0 && global > 0 && global % (micro * data) != 0) data = 1;
  s.data = data;
  result.notes.push_back(
      fmt::format("GPUs not given: {}, the fewest for these degrees. To change it: --gpus",
                  tensor * context * data * std::clamp<std::int64_t>(s.pipeline.value_or(1), 1, kMostRanks)));
}

// Reads the command line of the job. `settings` gets its settings, overridden by those of the job; other results
// go to `result`. Returns whether it trains BERT. Errors: two models, no model, an unknown number of GPUs.
Result<bool> read_command_line(const Job& job, const std::optional<Transformer>& base, JobSettings& settings,
                               ResolvedJob& result) {
  STEPCAST_ASSIGN(MegatronWords line, parse_megatron_command_line(*job.command_line));
  STEPCAST_TRY(note_line(job.strict, line, result));
  // Sizes alone may change a given model; both together describe another one.
  if (base && line.settings.n_layers && line.settings.hidden_size) {
    return Error::at("", "--model")
        .found(
            fmt::format("`{}` and a command line that describes a model itself (--num-layers, --hidden-size)",
                        base->name))
        .advice("leave one of the two out");
  }
  settings = over(line.settings, job.settings);
  result.gpus_per_node = line.gpus_per_node;
  if (result.n_gpus && line.n_gpus && *result.n_gpus != *line.n_gpus) {
    result.notes.push_back(
        fmt::format("{} GPUs as given, but the launcher has {}", *result.n_gpus, *line.n_gpus));
  }
  if (!result.n_gpus && !line.n_gpus && line.unknown_gpus) {
    return Error{*line.unknown_gpus}.advice("give the number of GPUs with --gpus");
  }
  if (!result.n_gpus) result.n_gpus = line.n_gpus;
  if (!base && ((!settings.n_layers && !settings.hybrid_pattern) || !settings.hidden_size)) {
    return Error{"the command line describes no model"}
        .expected("--num-layers, --hidden-size and --num-attention-heads, or --model with it")
        .advice("if the script includes others, give the one with these flags");
  }
  if (!settings.tokenizer && !settings.tokenizer_model)
    settings.tokenizer = "";  // a default vocabulary is assumed
  result.not_modelled.insert(result.not_modelled.begin(), line.not_modelled.begin(), line.not_modelled.end());
  return line.is_bert;
}

// Interruptions of training. Megatron-LM evaluates 100 batches by default (ValidationConfig at d98e8a6), but
// only if an interval is known.
TrainingRoutine routine_of(const JobSettings& s) {
  return {.evaluation_interval = s.evaluation_interval.value_or(0),
          .evaluation_batches = s.evaluation_batches.value_or(100),
          .save_interval = s.save_interval.value_or(0),
          .saves_asynchronously = s.saves_asynchronously.value_or(false)};
}

// Resolves settings of the job and its command line; a DeepSpeed config is applied after the command line and
// before the job's settings.
Result<ResolvedJob> resolve_settings(const Job& job, const std::optional<Transformer>& base) {
  ResolvedJob result;
  result.not_modelled = job.not_modelled;
  result.n_gpus = job.n_gpus;
  JobSettings settings = job.settings;
  bool is_bert = false;
  if (job.command_line) {
    STEPCAST_ASSIGN(is_bert, read_command_line(job, base, settings, result));
    fill_in_length(base, settings, result.notes);
  } else {
    if (!base && !settings.n_layers) {
      return Error{"no model is named"}
          .expected(
              "--model with the name of a preset or a config.json, or Megatron's flags from --num-layers on")
          .advice("`stepcast predict --help` shows an example");
    }
    fill_in(base, job.deepspeed.has_value(), settings, result.notes);
  }
  STEPCAST_TRY(detail::check_numbers(settings));
  result.routine = routine_of(settings);
  STEPCAST_ASSIGN(result.model, model_of(base, is_bert, settings));
  // Launch scripts often contain flags of experts for dense models, so this is a note and not an error.
  if (const auto flag = flag_of_experts(settings); flag && job.command_line && !result.model.moe) {
    result.notes.push_back(
        fmt::format("{} of the command line has no effect: the model has no experts", *flag));
  }
  if (job.command_line && !base) {
    if (std::string note = detail::vocabulary_note(settings, result.model); !note.empty())
      result.notes.push_back(std::move(note));
  }
  if (job.command_line) take_fewest_gpus(settings, result);
  STEPCAST_TRY(detail::apply_to_degrees(settings, result));
  // The given length is that of the input; a sample counts with the length of its output.
  if (const auto& network = result.model.network;
      network && network->input_tokens > 0 && settings.seq_len_tokens == network->input_tokens)
    result.layout.batch.seq_len_tokens = network->tokens;
  Layout& layout = result.layout;
  if (!job.command_line) deal_out_layers(result);
  if (const auto& stages = layout.pipeline.layers_per_stage;
      result.model.n_multi_token_prediction_layers > 0 && stages.size() > 2 &&
      stages[stages.size() - 2] == 0) {
    result.notes.emplace_back("extra prediction layers (MTP) are counted in the last stage");
  }
  if (!job.command_line) note_sizes(settings, job, result);
  note_batch_in_tokens(layout, result.notes);
  shard_as_framework_does(job, layout, settings, result.notes);
  recompute_as_framework_does(job, settings, result.notes);
  layout.layer.sequence_parallel = settings.sequence_parallel.value_or(false);  // the defaults depend on it
  // Image networks are trained with plain PyTorch. Encoder-decoder models also exist in Megatron-LM.
  const Framework usual = job.deepspeed                              ? Framework::deepspeed
                          : takes_images(result.model.network.get()) ? Framework::pytorch
                                                                     : Framework::megatron;
  set_software_defaults(layout, job.framework.value_or(usual), settings.dtype.value_or(DType::fp32));
  use_plain_layers(job, layout, result.notes);
  // A ZeRO stage is a term of DeepSpeed, so it selects that framework if none is given.
  if (settings.zero_stage.value_or(0) > 0 && !job.framework) {
    layout.software.framework = Framework::deepspeed;
    if (!job.command_line && !job.deepspeed) {
      result.notes.push_back(
          fmt::format("--zero-stage is a flag of DeepSpeed, so Megatron-DeepSpeed is assumed; for "
                      "Megatron-LM use --sharding zero{}",
                      *settings.zero_stage));
    }
  }
  STEPCAST_TRY(detail::apply_choices(settings, layout));
  if (const FrozenWeights kind = layout.layer.frozen_weights; kind != FrozenWeights::as_computed) {
    result.notes.push_back(fmt::format(
        "frozen weights in {} are dequantised before every GEMM{}. No such training was measured",
        to_string(kind), kind == FrozenWeights::int8 ? ", not used directly as in LLM.int8" : ""));
  }
  // Megatron Core in eager mode, whether a script, --framework or the default selects it. NeMo tunes the same layers.
  if (rule_of(layout).layers.counts_operators && !settings.legacy_models.value_or(false)) {
    layout.layer.operator_launches = detail::operator_launches(settings);
    layout.layer.fused.permutation = settings.fuse_permutation.value_or(false);
  }
  // The DeepSpeed config is applied to the resolved job, and settings of the job override it.
  if (job.deepspeed) {
    STEPCAST_ASSIGN(result,
                    parse_deepspeed_config(job.deepspeed->text, job.deepspeed->name, result, job.settings));
  }
  STEPCAST_TRY(check(result.layout, result.model, result.n_gpus));
  return result;
}

// Sets the load of the busiest rank in an expert-parallel group, from a distribution or a file with measured
// loads. Errors: a model without experts, an unknown distribution, loads that do not match the experts.
Status apply_expert_load(const JobSettings& s, ResolvedJob& job) {
  if (!s.expert_load) return Ok{};
  if (!job.model.moe) {
    return Error::at("", "--expert-load", fmt::format("{} has no experts", job.model.name))
        .advice("leave it out");
  }
  ExpertLoad load;
  std::error_code ignored;
  const bool is_file = std::filesystem::is_regular_file(*s.expert_load, ignored);
  if (is_file) {
    constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 24;
    STEPCAST_ASSIGN(const std::string text, read_file(*s.expert_load, kMostBytes));
    STEPCAST_ASSIGN(load, parse_expert_load_file(text, *s.expert_load));
  } else {
    Result<ExpertLoad> words = parse_expert_load(*s.expert_load);
    if (!words) {
      return Error::at("", "--expert-load")
          .found(fmt::format("`{}`, and no such file", s.expert_load->substr(0, 60)))
          .expected("balanced, power-law:EXPONENT (above 0, at most 4), or a file with a line per expert");
    }
    load = std::move(*words);
  }
  const MixtureOfExperts& moe = *job.model.moe;
  if (const Status status = check(load, moe.n_experts, moe.experts_per_token); !status) {
    return is_file ? Error{status.error()}.in_file(*s.expert_load) : Error{status.error()};
  }
  LayerChoices& layer = job.layout.layer;
  const Degrees& degrees = job.layout.degrees;
  // Tokens that are routed together, by the ranks that hold all experts.
  const double tokens = static_cast<double>(job.layout.batch.micro_batch_sequences) *
                        static_cast<double>(job.layout.batch.seq_len_tokens) /
                        static_cast<double>(degrees.context * degrees.tensor) *
                        static_cast<double>(degrees.expert * job.layout.expert_tensor_degree());
  layer.expert_imbalance = std::max(
      1.0, busiest_over_mean(load, moe.n_experts, degrees.expert, tokens, layer.expert_capacity_factor));
  return Ok{};
}

}  // namespace

namespace detail {

Result<BaseModel> base_model(const Job& job) {
  if (job.gpus_per_node && (*job.gpus_per_node < 1 || *job.gpus_per_node > kMostGpusPerNode)) {
    return Error{"the GPUs of a node"}
        .found(fmt::format("{}", *job.gpus_per_node))
        .expected(fmt::format("1 to {}", kMostGpusPerNode));
  }
  BaseModel base;
  STEPCAST_ASSIGN(base.model, named_model(job, base.notes));
  return base;
}

Status finish(const Job& job, const BaseModel& base, ResolvedJob& result) {
  note_model(job, base.notes, result);
  return apply_expert_load(job.settings, result);
}

JobFormat settings_format() {
  const auto read = [](const Job& job) -> Result<ResolvedJob> {
    STEPCAST_ASSIGN(const BaseModel base, base_model(job));
    STEPCAST_ASSIGN(ResolvedJob result, resolve_settings(job, base.model));
    STEPCAST_TRY(finish(job, base, result));
    return result;
  };
  return {.flag = "", .is = [](const Job&) { return true; }, .excludes = {}, .resolve = read};
}

}  // namespace detail

Result<ResolvedJob> resolve(const Job& job) {
  const detail::JobFormat& format = detail::format_of(job);
  STEPCAST_TRY(detail::check_alone(format, job));
  return format.resolve(job);
}

}  // namespace stepcast
