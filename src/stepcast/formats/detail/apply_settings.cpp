// Applies JobSettings to a model and a layout. Settings with a value change what they name; all other fields
// keep the value of the base or the framework's default. Helper functions are ordered as in the header:
// model, degrees and stages, then the other choices.
#include "stepcast/formats/detail/apply_settings.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/error_text.h"
#include "stepcast/base/number.h"
#include "stepcast/base/scan.h"
#include "stepcast/formats/detail/hybrid_layers.h"
#include "stepcast/formats/detail/megatron_flags.h"
#include "stepcast/formats/detail/tokenizer_vocabulary.h"
#include "stepcast/operation/optimizer_rule.h"
#include "stepcast/workload/layer_words.h"
#include "stepcast/workload/modules/attention_module.h"
#include "stepcast/workload/pipeline_schedule.h"

namespace stepcast::detail {
namespace {

// Copies `value` to `out` if it is given.
template <class Value, class Out>
void assign(const std::optional<Value>& value, Out& out) {
  if (value) out = *value;
}

// The kind of norm. Layer norms have biases unless the base model says otherwise.
void apply_norm(const JobSettings& s, bool has_base, Transformer& model) {
  assign(s.norm, model.norm);
  if (!has_base || s.norm) model.norm_bias = model.norm == NormKind::layer_norm;
}

// The vocabulary size: given, padded, of the base, or derived from the tokenizer, in this order. Errors: none
// of them is known.
Status apply_vocabulary(const JobSettings& s, bool has_base, Transformer& model) {
  if (s.vocab_size.value_or(0) > 0) {
    model.vocab_size = *s.vocab_size;
  } else if (s.padded_vocab_size.value_or(0) > 0) {
    model.vocab_size = *s.padded_vocab_size;
  } else if (!has_base) {
    if (!s.tokenizer && !s.tokenizer_model) {
      return Error::at("", "--vocab-size", "the vocabulary size of the tokenizer is unknown")
          .advice("add --vocab-size");
    }
    model.vocab_size =
        vocabulary_of_tokenizer(s.tokenizer.value_or(""), s.tokenizer_model.value_or("")).words;
  }
  return Ok{};
}

// Group-limited routing. Giving only the number of groups lets every token use all of them.
Status apply_expert_groups(const JobSettings& s, Transformer& model) {
  if (!model.moe) return Ok{};
  assign(s.n_expert_groups, model.moe->n_groups);
  model.moe->n_groups = std::max<std::int64_t>(1, model.moe->n_groups);
  if (s.n_expert_groups) model.moe->groups_per_token = model.moe->n_groups;
  assign(s.expert_groups_per_token, model.moe->groups_per_token);
  return Ok{};
}

// The experts of the model. Fields without a setting keep the base's value; a model without experts gets
// Megatron-LM's defaults.
Status apply_experts(const JobSettings& s, Transformer& model) {
  const std::int64_t n_experts = s.n_experts.value_or(0);
  if (n_experts == 0 && !model.moe) return Ok{};
  // Default of Megatron-LM: top-2.
  MixtureOfExperts moe = model.moe.value_or(MixtureOfExperts{.experts_per_token = 2});
  if (n_experts > 0) moe.n_experts = n_experts;
  assign(s.experts_per_token, moe.experts_per_token);
  assign(s.expert_latent_size, moe.latent_size);
  assign(s.shared_expert_gate, moe.shared_expert_gate);
  const std::int64_t width = s.expert_ffn_hidden_size.value_or(0);
  // Without a width, experts are as wide as the dense FFN.
  if (width > 0 || !model.moe) moe.expert_ffn_hidden_size = width > 0 ? width : model.ffn_hidden_size;
  if (s.shared_ffn_hidden_size.value_or(0) > 0) {
    moe.n_shared_experts = 1;
    moe.shared_ffn_hidden_size = *s.shared_ffn_hidden_size;
  }
  if (!model.moe || s.moe_layer_pattern) {
    STEPCAST_TRY(read_moe_layer_pattern(s.moe_layer_pattern.value_or(""), model.n_layers, moe));
  }
  model.moe = moe;
  return apply_expert_groups(s, model);
}

// Multi-head latent attention (MLA), with Megatron-LM's defaults for sizes that are not given. Errors: no --kv-lora-rank.
Status apply_latents(const JobSettings& s, Transformer& model) {
  if (!s.multi_latent.value_or(false)) return Ok{};
  if (s.kv_lora_rank.value_or(0) == 0) {
    return Error::at("", "--kv-lora-rank", "is needed with --multi-latent-attention");
  }
  // Head sizes without a setting have Megatron-LM's defaults.
  model.attention = attention_named("latent", {{"q_lora_rank", s.q_lora_rank.value_or(0)},
                                               {"kv_lora_rank", *s.kv_lora_rank},
                                               {"qk_nope_head_dim", s.qk_head_dim.value_or(128)},
                                               {"qk_rope_head_dim", s.qk_rope_head_dim.value_or(64)},
                                               {"v_head_dim", s.v_head_dim.value_or(128)}});
  model.head_dim = model.n_kv_heads = 0;
  model.qk_norm = false;  // the latent vectors have their own norms
  model.qkv_bias = false;
  return Ok{};
}

// Sliding window: "4095,0", "(4095, 0)" or "(-1, -1)", tokens before and after; -1 means all. Only the first
// number is used.
Status apply_window(const JobSettings& s, Transformer& model) {
  if (!s.window || s.window->empty()) return Ok{};
  std::string_view text = *s.window;
  text.remove_prefix(std::min(text.find_first_not_of("( "), text.size()));
  const std::int64_t before = scan_front<std::int64_t>(text).value_or(-2);
  if (before < -1 || before > 1'000'000'000) {
    return bad_value("--window-size", *s.window, "two numbers, such as 4095,0");
  }
  model.sliding_window_tokens = before == -1 ? 0 : before + 1;  // plus the token itself
  return Ok{};
}

// Flags with the valid degrees nearest to `asked`, for an error message: "--tp 4 --pp 2". Degrees must divide
// `n_gpus`, the tensor degree must divide the heads, and the pipeline must not have more stages than layers.
// Distance is the sum of absolute logarithms of the ratios. Unchanged degrees are not listed.
std::string nearest_degrees(const Degrees& asked, std::int64_t n_gpus, const Transformer& model) {
  const std::int64_t heads = std::max<std::int64_t>(1, model.n_heads);
  const auto far = [](std::int64_t from, std::int64_t to) {
    return std::abs(std::log(as_double(to) / as_double(from)));
  };
  Degrees best;
  double least = std::numeric_limits<double>::infinity();
  const auto each_divisor = [](std::int64_t whole, auto&& call) {
    for (std::int64_t d = 1; d <= std::min<std::int64_t>(whole, 4096); ++d)
      if (whole % d == 0) call(d);
  };
  each_divisor(n_gpus, [&](std::int64_t tensor) {
    if (heads % tensor != 0) return;
    each_divisor(n_gpus / tensor, [&](std::int64_t pipeline) {
      if (pipeline > std::max<std::int64_t>(1, model.n_layers)) return;
      // A context degree that was not requested stays 1.
      each_divisor(asked.context > 1 ? n_gpus / tensor / pipeline : 1, [&](std::int64_t context) {
        const double distance =
            far(asked.tensor, tensor) + far(asked.pipeline, pipeline) + far(asked.context, context);
        if (distance >= least) return;
        least = distance;
        best.tensor = tensor;
        best.pipeline = pipeline;
        best.context = context;
      });
    });
  });
  std::string text;
  const auto say = [&](std::string_view flag, std::int64_t from, std::int64_t to) {
    if (from != to) text += fmt::format("{}{} {}", text.empty() ? "" : " ", flag, to);
  };
  say("--tp", asked.tensor, best.tensor);
  say("--pp", asked.pipeline, best.pipeline);
  say("--cp", asked.context, best.context);
  return text;
}

// Sets the data-parallel degree: given, or the number of GPUs divided by the size of a replica. Errors: the
// replica does not divide the GPUs.
Status apply_data_parallel(const JobSettings& s, ResolvedJob& job) {
  Degrees& d = job.layout.degrees;
  const bool is_said = s.data.value_or(0) > 0;
  if (is_said) d.data = *s.data;
  const std::int64_t replica = d.tensor * d.pipeline * d.context;
  if (!job.n_gpus || is_said) return Ok{};
  if (*job.n_gpus < replica || *job.n_gpus % replica != 0) {
    return Error{fmt::format("{} GPUs are not a multiple of tensor_parallel {} x pipeline_parallel {} x "
                             "context_parallel {} = {}",
                             *job.n_gpus, d.tensor, d.pipeline, d.context, replica)}
        .advice("nearest that works: " + nearest_degrees(d, *job.n_gpus, job.model));
  }
  d.data = *job.n_gpus / replica;
  return Ok{};
}

// Advice for an error: "nearest that work: 10 or 17". The numbers of layers of the first stage (or of the
// last, if only that is given) nearest to the given one for which the remaining layers divide evenly.
// Searches downwards, then upwards.
std::string nearest_end_stage(std::int64_t n_layers, std::int64_t n_stages, std::int64_t first,
                              std::int64_t last) {
  const std::int64_t asked = first > 0 ? first : last, other = first > 0 ? last : 0;
  const std::int64_t between = n_stages - (first > 0 ? 1 : 0) - (last > 0 ? 1 : 0);
  const auto works = [&](std::int64_t n) {
    const std::int64_t rest = n_layers - n - other;
    return n >= 1 && between >= 1 && rest >= between && rest % between == 0;
  };
  std::string numbers;
  for (std::int64_t below = std::min(asked, n_layers); below >= 1; --below) {
    if (!works(below)) continue;
    numbers = std::to_string(below);
    break;
  }
  for (std::int64_t above = asked; above <= n_layers; ++above) {
    if (!works(above)) continue;
    numbers += fmt::format("{}{}", numbers.empty() ? "" : " or ", above);
    break;
  }
  return numbers.empty() ? "--pipeline-model-parallel-layout gives the layers of every stage"
                         : fmt::format("nearest that work: {}", numbers);
}

// Layers per stage if they are uneven: explicit layers of the first or last stage, or embedding and output counted
// as layers. Errors: the layers cannot be distributed so; with virtual stages, explicit layers are not supported.
Status apply_uneven_stages(const JobSettings& s, std::int64_t n_layers, Layout& layout) {
  const std::int64_t first = s.first_stage_layers.value_or(0), last = s.last_stage_layers.value_or(0);
  const bool embedding = s.count_embedding_as_layer.value_or(false);
  const bool output = s.count_output_as_layer.value_or(false);
  const bool uneven = first > 0 || last > 0;
  if (!uneven && !embedding && !output) return Ok{};
  const std::int64_t n_chunks = layout.degrees.pipeline * layout.degrees.virtual_stages;
  const auto does_not_fit = [&](std::string_view flag) {
    return Error::at(
        "", std::string{flag},
        fmt::format("{} layers cannot be distributed over {} stages like this", n_layers, n_chunks));
  };
  constexpr std::int64_t kMostChunks = 1'000'000;
  if (n_chunks > kMostChunks || n_chunks > n_layers + (embedding ? 1 : 0) + (output ? 1 : 0))
    return does_not_fit("--pipeline-model-parallel-size");
  std::vector<std::int64_t>& layers = layout.pipeline.layers_per_stage;
  if (uneven) {
    if (layout.degrees.virtual_stages > 1) {
      return Error::at("", "--decoder-first-pipeline-num-layers", "not supported with virtual stages");
    }
    const std::int64_t fixed = (first > 0 ? 1 : 0) + (last > 0 ? 1 : 0);
    const std::int64_t rest = n_layers - first - last;
    if (n_chunks <= fixed || rest < n_chunks - fixed || rest % (n_chunks - fixed) != 0) {
      const std::string_view flag =
          first > 0 ? "--decoder-first-pipeline-num-layers" : "--decoder-last-pipeline-num-layers";
      return does_not_fit(flag).advice(nearest_end_stage(n_layers, n_chunks, first, last));
    }
    layers.assign(static_cast<std::size_t>(n_chunks), rest / (n_chunks - fixed));
    if (first > 0) layers.front() = first;
    if (last > 0) layers.back() = last;
    return Ok{};
  }
  // Embedding and output each take the room of one layer in their stage.
  const std::int64_t units = n_layers + (embedding ? 1 : 0) + (output ? 1 : 0);
  if (units % n_chunks != 0) return does_not_fit("--account-for-embedding-in-pipeline-split");
  layers.assign(static_cast<std::size_t>(n_chunks), units / n_chunks);
  if (embedding) --layers.front();
  if (output) --layers.back();
  return Ok{};
}

// Layers per stage from an explicit list. Its length must be a multiple of the pipeline degree and gives the
// number of virtual stages.
Status apply_stage_layers(std::string_view flag, const std::string& text, std::vector<std::int64_t> layers,
                          Layout& layout) {
  layout.pipeline.layers_per_stage = std::move(layers);
  const auto n_chunks = static_cast<std::int64_t>(layout.pipeline.layers_per_stage.size());
  if (n_chunks % layout.degrees.pipeline != 0) {
    return bad_value(flag, text,
                     fmt::format("a multiple of {} stages, not {}", layout.degrees.pipeline, n_chunks));
  }
  layout.degrees.virtual_stages = n_chunks / layout.degrees.pipeline;
  if (layout.degrees.virtual_stages > 1) layout.pipeline.schedule = PipelineSchedule::interleaved;
  return Ok{};
}

// The pipeline: layers per stage, virtual stages and schedule. Sources in order of precedence: a layout
// string, a hybrid pattern with stages, numbers of virtual stages or layers.
Status apply_stages(const JobSettings& s, std::int64_t n_layers, Layout& layout) {
  if (s.pipeline_layout) {
    STEPCAST_ASSIGN(std::vector<std::int64_t> layers, parse_pipeline_layout(*s.pipeline_layout));
    return apply_stage_layers("--pipeline-model-parallel-layout", *s.pipeline_layout, std::move(layers),
                              layout);
  }
  if (s.hybrid_pattern && s.hybrid_pattern->find('|') != std::string::npos)
    return apply_stage_layers("--hybrid-layer-pattern", *s.hybrid_pattern,
                              layers_of_hybrid_stages(*s.hybrid_pattern), layout);
  const std::int64_t pp = layout.degrees.pipeline, per_stage = s.layers_per_virtual_stage.value_or(0);
  // V-shaped schedules have two chunks per rank.
  if (s.pipeline_schedule && is_v_shaped(*s.pipeline_schedule) && pp > 1) layout.degrees.virtual_stages = 2;
  if (s.virtual_stages.value_or(0) > 0) layout.degrees.virtual_stages = *s.virtual_stages;
  if (per_stage > 0) {
    // Embedding and output may count as layers: 126 layers + 2 are 8 stages x 8 chunks x 2 layers.
    const std::int64_t units = n_layers + (s.count_embedding_as_layer.value_or(false) ? 1 : 0) +
                               (s.count_output_as_layer.value_or(false) ? 1 : 0);
    if (units % (pp * per_stage) != 0) {
      return Error::at("", "--num-layers-per-virtual-pipeline-stage",
                       fmt::format("{} layers are not divisible by {} stages x {}", units, pp, per_stage));
    }
    layout.degrees.virtual_stages = units / (pp * per_stage);
  }
  if (layout.degrees.virtual_stages > 1) layout.pipeline.schedule = PipelineSchedule::interleaved;
  return apply_uneven_stages(s, n_layers, layout);
}

// Recomputation from the newer and older flags. The newer one has precedence over the older ones; layers and modules
// only apply to full and selective recomputation, respectively. Errors: unknown names of modules or results.
Status apply_recompute(const JobSettings& s, Recomputation& recompute) {
  if (s.recompute_attention.value_or(false)) recompute.kind = Recompute::selective;
  if (s.checkpoint_layers.value_or(false)) recompute.kind = Recompute::full;
  assign(s.recompute, recompute.kind);
  if (s.recompute_by_block && recompute.kind == Recompute::none) recompute.kind = Recompute::full;
  if (s.recompute_modules && recompute.kind != Recompute::full) {
    recompute.kind = Recompute::selective;
    STEPCAST_ASSIGN(recompute.modules, parse_recomputed_modules(*s.recompute_modules));
  }
  STEPCAST_ASSIGN(recompute.kept, parse_layer_results(s.recompute_keeps.value_or("")));
  STEPCAST_ASSIGN(recompute.kept_by_host, parse_layer_results(s.recompute_offloads.value_or("")));
  if (recompute.kind != Recompute::full || (!s.recompute_by_block && !s.recompute_layers)) return Ok{};
  const std::int64_t layers = s.recompute_layers.value_or(1);  // default of Megatron-LM
  const bool by_block = s.recompute_by_block.value_or(recompute.layers_per_stage.has_value());
  recompute.layers_per_stage = by_block ? std::optional{layers} : std::nullopt;
  recompute.chunk_layers = by_block ? 1 : layers;
  return Ok{};
}

// Choices per layer: CUDA graphs, offloading, token dispatch, overlap, LoRA adapters, packed sequences.
// Errors: unknown words, adapter settings without --lora-rank, frozen weights without adapters.
Status apply_layer_choices(const JobSettings& s, LayerChoices& layer) {
  const bool graphs =
      s.cuda_graph_layers.value_or(false) || s.cuda_graph_implementation || s.cuda_graph_scope;
  if (graphs) {
    STEPCAST_ASSIGN(layer.cuda_graphs, parse_cuda_graphs(s.cuda_graph_implementation.value_or(""),
                                                         s.cuda_graph_scope.value_or("")));
  }
  if (s.activation_offload_layers.value_or(0) > 0) {
    layer.activation_offload = true;
    layer.activation_offload_layers = *s.activation_offload_layers;
  }
  if (s.offloads_modules.value_or(false)) {
    STEPCAST_ASSIGN(layer.offloaded, parse_offloaded_modules(s.offload_modules.value_or("")));
  }
  assign(s.dispatcher, layer.dispatcher);
  // --moe-token-dispatcher-type flex leaves the implementation to a second flag.
  if (s.flex_dispatcher && s.dispatcher.value_or(TokenDispatcher::deepep) == TokenDispatcher::deepep) {
    layer.dispatcher = *s.flex_dispatcher;
  }
  assign(s.overlap_tensor_parallel, layer.overlap.tensor_parallel);
  assign(s.overlap_expert, layer.overlap.expert);
  assign(s.overlap_shared_experts, layer.overlap.shared_experts);
  assign(s.narrow_dispatch, layer.narrow_dispatch);
  assign(s.narrow_activation_inputs, layer.narrow_activation_inputs);
  assign(s.delay_weight_gradient, layer.overlap.delayed_weight_gradient);
  assign(s.overlap_sequence_parallel_weight_gradient, layer.overlap.sequence_parallel_weight_gradient);
  if (s.lora_targets) {
    STEPCAST_ASSIGN(layer.adapters, parse_adapter_targets(*s.lora_targets));
  }
  if (s.lora_rank.value_or(0) > 0) {
    layer.adapters.rank = *s.lora_rank;
    layer.frozen_base = true;
  } else if (s.lora_targets || s.lora_dropout) {
    return Error::at("", s.lora_targets ? "--lora-target-modules" : "--lora-dropout",
                     "has no effect without --lora-rank");
  }
  if (const double dropout = s.lora_dropout.value_or(0); !(dropout >= 0 && dropout < 1))
    return bad_value("--lora-dropout", fmt::format("{}", dropout), "a share from 0 to below 1");
  layer.adapters.dropout = s.lora_dropout.value_or(0) > 0;
  assign(s.frozen_base, layer.frozen_base);
  if (layer.frozen_base && layer.adapters.rank == 0) {
    return Error::at("", "--frozen-base", "leaves nothing to train").advice("add --lora-rank");
  }
  if (s.lora_base_weights) {
    STEPCAST_ASSIGN(layer.frozen_weights, parse_frozen_weights(*s.lora_base_weights));
  }
  assign(s.reference_model, layer.reference_model);
  assign(s.packed_mean_tokens, layer.packed_mean_tokens);
  assign(s.predicted_token_share, layer.predicted_token_share);
  return Ok{};
}

// Number types beyond the compute type. fp8 and fp4 replace the type of GEMMs only; fp32 elsewhere becomes bf16.
void apply_precision(const JobSettings& s, Precision& precision) {
  if (s.gradient_dtype) precision.gradients = precision.reduction = *s.gradient_dtype;
  assign(s.master_dtype, precision.master);
  assign(s.moments_dtype, precision.moments);
  assign(s.fp32_convolutions, precision.fp32_convolutions);
  if (s.fp8.value_or(false) || s.fp4.value_or(false)) {
    precision.compute = s.fp4.value_or(false) ? DType::fp4 : DType::fp8;
    if (precision.other == DType::fp32) precision.other = DType::bf16;
  }
  Fp8Recipe& recipe = precision.fp8;
  assign(s.fp8_scaling, recipe.scaling);
  assign(s.fp8_weight_gradients, recipe.weight_gradients);
  assign(s.fp8_gather_weights, recipe.gather_weights);
  assign(s.fp8_attention, recipe.attention);
  if (s.fp8_spares_end_layers.value_or(false) && precision.compute == DType::fp8) {
    recipe.first_layers = s.fp8_spared_first_layers.value_or(1);
    recipe.last_layers = s.fp8_spared_last_layers.value_or(1);
  }
}

// The attention kernel. Transformer Engine selects a fused one. Megatron-LM's legacy and local code was
// unfused, unless flash attention is requested.
Status apply_attention(const JobSettings& s, LayerChoices& layer) {
  constexpr std::string_view kImplementations[] = {"local", "transformer_engine", "inference_optimized"};
  if (const auto& named = s.transformer_implementation;
      named && std::find(std::begin(kImplementations), std::end(kImplementations), *named) ==
                   std::end(kImplementations)) {
    return bad_value("--transformer-impl", *named, "local, transformer_engine or inference_optimized");
  }
  const bool old = s.legacy_models.value_or(false) || s.checkpoint_layers.value_or(false) ||
                   s.transformer_implementation == "local";
  if (old) layer.attention = AttentionMethod::unfused;
  if (s.flash_attention.value_or(false)) layer.attention = AttentionMethod::flash;
  assign(s.attention, layer.attention);
  assign(s.context_parallel_kind, layer.context_parallel_kind);
  return Ok{};
}

// The simulated release date, "2024" or "2024-05". Dates are compared as texts. Errors: another format.
Status apply_date(const JobSettings& s, std::string& date) {
  if (!s.framework_date) return Ok{};
  const std::string_view text = *s.framework_date;
  const auto digits = [&](std::size_t from, std::size_t n) {
    return text.substr(from, n).find_first_not_of("0123456789") == std::string_view::npos;
  };
  const bool has_month =
      text.size() == 7 && text[4] == '-' && digits(5, 2) && text.substr(5) >= "01" && text.substr(5) <= "12";
  if ((text.size() != 4 && !has_month) || !digits(0, 4) || !text.starts_with("20"))
    return bad_value("--framework-date", text, "a year or a month, such as 2024 or 2024-05");
  date = text;
  return Ok{};
}

// Host time of an operator, in kernel launches, where Megatron Core runs operators eagerly. Fitted to the
// half of Megatron's test cases with an even FNV-1a hash of the name. A module of Transformer Engine runs
// more Python code than a plain one. With deterministic algorithms, PyTorch fills allocated memory.
constexpr double kOperatorLaunches = 13.7, kWithoutTransformerEngine = 0.76, kDeterministic = 1.2;

}  // namespace

double operator_launches(const JobSettings& s) {
  return kOperatorLaunches * (s.transformer_implementation == "local" ? kWithoutTransformerEngine : 1) *
         (s.deterministic.value_or(false) ? kDeterministic : 1);
}

namespace {

// Sharding of the data-parallel state. Later settings override earlier ones: older flags, `sharding`, ZeRO
// stage. Errors: a ZeRO stage above 3, a number of weight copies that does not divide the ranks.
Status apply_sharding(const JobSettings& s, std::int64_t data_ranks, ShardingChoices& sharding) {
  if (s.distributed_optimizer.value_or(false)) sharding.kind = Sharding::zero1;
  if (s.fully_sharded.value_or(false)) sharding.kind = Sharding::zero3;
  assign(s.sharding, sharding.kind);
  constexpr Sharding kStages[] = {Sharding::none, Sharding::zero1, Sharding::zero2, Sharding::zero3};
  const std::int64_t stage = s.zero_stage.value_or(0);
  if (stage > 3) return bad_value("--zero-stage", fmt::format("{}", stage), "0 to 3");
  if (stage > 0) sharding.kind = kStages[stage];
  if (s.bucket_parameters.value_or(0) > 0) sharding.bucket_parameters = *s.bucket_parameters;
  if (const std::int64_t copies = s.weight_copies.value_or(1); copies > 1) {
    if (data_ranks % copies != 0)
      return bad_value("copies of sharded weights", fmt::format("{}", copies),
                       fmt::format("a divisor of the {} data-parallel ranks", data_ranks));
    sharding.shard_group_size = data_ranks / copies;
  }
  assign(s.overlap_gradient_reduce, sharding.overlap_gradient_reduce);
  assign(s.overlap_parameter_gather, sharding.overlap_parameter_gather);
  return Ok{};
}

// Which kernels are fused.
void apply_fusion(const JobSettings& s, FusedKernels& fused) {
  assign(s.fuse_softmax, fused.softmax);
  assign(s.fuse_bias_activation, fused.bias_activation);
  assign(s.fuse_bias_dropout, fused.bias_dropout_add);
  assign(s.fuse_rotary, fused.rotary);
  assign(s.fuse_cross_entropy, fused.cross_entropy);
  assign(s.fuse_gradient_accumulation, fused.weight_gradient_accumulation);
  assign(s.fuse_permutation, fused.permutation);
}

}  // namespace

Status check_numbers(const JobSettings& settings) {
  constexpr std::int64_t kMostDegree = 1'000'000, kMost = 1'000'000'000;
  using S = JobSettings;
  // Products of these degrees must fit into 64 bits; check(Layout) does the other checks.
  constexpr std::optional<std::int64_t> S::*kDegrees[] = {&S::tensor, &S::pipeline, &S::context};
  for (const MegatronSettingFlag& flag : megatron_setting_flags()) {
    const std::optional<std::int64_t> value = with_member(flag.setting, [&](auto field) {
      using Value = typename std::remove_cvref_t<decltype(settings.*field)>::value_type;
      if constexpr (std::is_same_v<Value, std::int64_t>) {
        return settings.*field;
      } else {
        return std::optional<std::int64_t>{};
      }
    });
    if (!value) continue;
    if (*value < 0 || *value > kMost) {
      return bad_value(flag.name, fmt::format("{}", *value), "a whole number from 0 to 1e9");
    }
    const auto* const field = std::get_if<std::optional<std::int64_t> S::*>(&flag.setting);
    const bool is_degree =
        field != nullptr && std::find(std::begin(kDegrees), std::end(kDegrees), *field) != std::end(kDegrees);
    // For these, 0 means "not given".
    const bool may_be_0 = field != nullptr && (*field == &S::data || *field == &S::virtual_stages ||
                                               *field == &S::layers_per_virtual_stage);
    if ((is_degree && *value < 1) || ((is_degree || may_be_0) && *value > kMostDegree)) {
      return bad_value(flag.name, fmt::format("{}", *value), "1 to 1e6");
    }
  }
  return Ok{};
}

// The order follows dependencies: hybrid layers need the sizes, the FFN width needs the activation, experts
// need the FFN width.
Status apply_to_model(const JobSettings& s, bool has_base, Transformer& model) {
  assign(s.n_layers, model.n_layers);
  assign(s.hidden_size, model.hidden_size);
  STEPCAST_TRY(apply_hybrid_layers(s, model));
  if (s.ffn_hidden_size == 0) {
    return bad_value("--ffn-hidden-size", "0", "1 or more, or no value for four times --hidden-size");
  }
  assign(s.ffn_hidden_size, model.ffn_hidden_size);
  assign(s.n_heads, model.n_heads);
  assign(s.head_dim, model.head_dim);
  assign(s.max_position, model.max_position);
  if (s.max_position) model.unused_positions = 0;  // Megatron-LM's table has only used rows
  assign(s.n_multi_token_prediction_layers, model.n_multi_token_prediction_layers);
  assign(s.rotary_fraction, model.rotary_fraction);
  assign(s.hidden_dropout, model.hidden_dropout);
  assign(s.attention_dropout, model.attention_dropout);
  assign(s.tied_embeddings, model.tied_embeddings);
  assign(s.qk_norm, model.qk_norm);
  const bool swiglu = s.swiglu.value_or(false);
  if (!has_base || swiglu) model.gated_ffn = swiglu;
  if (swiglu) model.activation = Activation::silu;
  if (s.squared_relu.value_or(false)) model.activation = Activation::squared_relu;
  if (s.gated_gelu.value_or(false)) model.gated_ffn = true;
  if (model.ffn_hidden_size == 0) {
    // Megatron-LM keeps the parameters of an FFN constant: with three matrices two thirds of the width,
    // rounded down to a multiple of 64.
    model.ffn_hidden_size = swiglu ? 4 * model.hidden_size * 2 / 3 / 64 * 64 : 4 * model.hidden_size;
  }
  if (s.query_groups.value_or(0) > 0 && (s.grouped_query.value_or(false) || has_base)) {
    model.n_kv_heads = *s.query_groups;
  }
  if (!s.linear_bias.value_or(true)) model.qkv_bias = model.attention_output_bias = model.ffn_bias = false;
  if (s.add_qkv_bias.value_or(false)) model.qkv_bias = true;
  if (s.rotary_positions.value_or(false)) model.position = PositionEncoding::rotary;
  assign(s.position, model.position);
  // --no-position-embedding only removes learned positions.
  if (!s.learned_positions.value_or(true) && model.position == PositionEncoding::learned)
    model.position = PositionEncoding::none;
  assign(s.attention_output_gate, model.attention_output_gate);
  assign(s.attention_sinks, model.attention_sinks);
  apply_norm(s, has_base, model);
  STEPCAST_TRY(apply_vocabulary(s, has_base, model));
  STEPCAST_TRY(apply_window(s, model));
  STEPCAST_TRY(apply_experts(s, model));
  STEPCAST_TRY(apply_latents(s, model));
  STEPCAST_TRY(apply_attention_variant(s, model));
  return check(model);
}

Status apply_to_degrees(const JobSettings& s, ResolvedJob& job) {
  Layout& layout = job.layout;
  assign(s.tensor, layout.degrees.tensor);
  assign(s.pipeline, layout.degrees.pipeline);
  assign(s.context, layout.degrees.context);
  assign(s.expert, layout.degrees.expert);
  assign(s.expert_tensor, layout.degrees.expert_tensor);
  STEPCAST_TRY(apply_data_parallel(s, job));
  assign(s.micro_batch_sequences, layout.batch.micro_batch_sequences);
  assign(s.seq_len_tokens, layout.batch.seq_len_tokens);
  const std::int64_t global = s.global_batch_sequences.value_or(0);
  layout.batch.global_batch_sequences =
      global > 0 ? global : layout.batch.micro_batch_sequences * layout.degrees.data;
  return apply_stages(s, job.model.n_layers, layout);
}

Status apply_choices(const JobSettings& s, Layout& layout) {
  assign(s.sequence_parallel, layout.layer.sequence_parallel);
  if (s.expert_capacity_factor == 0.0) {
    return bad_value("--moe-expert-capacity-factor", "0, which leaves no token",
                     "a number above 0, or one below 0 for no capacity");
  }
  if (s.expert_capacity_factor.value_or(0) > 0)
    layout.layer.expert_capacity_factor = *s.expert_capacity_factor;
  assign(s.pad_experts_to_capacity, layout.layer.expert_pads_to_capacity);
  STEPCAST_TRY(apply_recompute(s, layout.layer.recompute));
  apply_precision(s, layout.layer.precision);
  STEPCAST_TRY(apply_attention(s, layout.layer));
  apply_fusion(s, layout.layer.fused);
  STEPCAST_TRY(apply_layer_choices(s, layout.layer));
  assign(s.overlap_p2p, layout.pipeline.overlap);
  assign(s.p2p_scatter_gather, layout.pipeline.p2p_scatter_gather);
  if (s.pipeline_schedule && layout.degrees.pipeline > 1) set_schedule(*s.pipeline_schedule, layout);
  STEPCAST_TRY(apply_sharding(s, layout.degrees.data * layout.degrees.context, layout.sharding));
  assign(s.optimizer, layout.optimizer.kind);
  assign(s.newton_schulz_iterations, layout.optimizer.newton_schulz_iterations);
  // Optimizers that update whole matrices divide them among the data-parallel ranks, which is at least ZeRO-1.
  const MatrixRule& matrix = rule_of(layout.optimizer.kind).matrix;
  if (matrix.owned_whole && layout.sharding.kind == Sharding::none) layout.sharding.kind = Sharding::zero1;
  assign(s.optimizer_offload, layout.optimizer.cpu_offload);
  if (s.clip_gradients) layout.optimizer.gradient_clip = *s.clip_gradients > 0;
  assign(s.log_parameter_norm, layout.optimizer.parameter_norm);
  assign(s.log_gradient_zeros, layout.optimizer.gradient_zeros);
  assign(s.vocab_divisible_by, layout.software.vocab_divisible_by);
  STEPCAST_TRY(apply_date(s, layout.software.date));
  if (s.pipeline_before_data.value_or(false)) layout.rank_order = "tp-cp-ep-pp-dp";
  return Ok{};
}

}  // namespace stepcast::detail
