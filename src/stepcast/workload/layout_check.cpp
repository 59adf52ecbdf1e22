// check(Layout): one function per part of a layout, in the order in which users state them. Each returns the
// first violated constraint, with the nearest valid values.
#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

#include "stepcast/base/error_text.h"
#include "stepcast/operation/optimizer_rule.h"
#include "stepcast/workload/detail/divisors.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/modules/attention_module.h"
#include "stepcast/workload/modules/experts.h"
#include "stepcast/workload/modules/parameters.h"
#include "stepcast/workload/modules/state_mixer.h"
#include "stepcast/workload/network.h"
#include "stepcast/workload/placement.h"

namespace stepcast {
namespace {

using detail::nearest_divisors;
using detail::nearest_multiples;

// Starts an error about a field of the layout.
constexpr auto* broken = layout_error;

// Every number within its range, and at most 1e8 GPUs.
Status check_ranges(const Layout& layout) {
  constexpr std::int64_t kDegree = 1'000'000, kBatch = 1'000'000'000;
  const struct {
    std::string_view name;
    std::int64_t value, smallest, largest;
  } fields[] = {
      {"tensor_parallel", layout.degrees.tensor, 1, kDegree},
      {"pipeline_parallel", layout.degrees.pipeline, 1, kDegree},
      {"context_parallel", layout.degrees.context, 1, kDegree},
      {"data_parallel", layout.degrees.data, 1, kDegree},
      {"expert_parallel", layout.degrees.expert, 1, kDegree},
      {"expert_tensor_parallel", layout.degrees.expert_tensor, 0, kDegree},
      {"virtual_stages", layout.degrees.virtual_stages, 1, kDegree},
      {"micro_batch_sequences", layout.batch.micro_batch_sequences, 1, kBatch},
      {"global_batch_sequences", layout.batch.global_batch_sequences, 1, kBatch},
      {"seq_len_tokens", layout.batch.seq_len_tokens, 1, kBatch},
      {"shard_group_size", layout.sharding.shard_group_size, 0, kBatch},
      {"bucket_parameters", layout.sharding.bucket_parameters.value_or(1), 1, 1'000'000'000'000},
      {"recompute_every_n_layers", layout.layer.recompute.every_n_layers, 1, kDegree},
      {"recompute_layers_per_stage", layout.layer.recompute.layers_per_stage.value_or(0), 0, kDegree},
      {"recompute_chunk_layers", layout.layer.recompute.chunk_layers, 1, kDegree},
      {"activation_offload_layers", layout.layer.activation_offload_layers, 0, kDegree},
      {"lora_rank", layout.layer.adapters.rank, 0, kDegree},
      {"vocab_divisible_by", layout.software.vocab_divisible_by, 0, kDegree},
      {"fp8.first_layers", layout.layer.precision.fp8.first_layers, 0, kDegree},
      {"fp8.last_layers", layout.layer.precision.fp8.last_layers, 0, kDegree},
  };
  for (const auto& field : fields) {
    if (field.value >= field.smallest && field.value <= field.largest) continue;
    return bad_value(field.name, field.value,
                     fmt::format("a whole number from {} to {}", field.smallest, field.largest));
  }
  double gpus = 1;
  for (const std::int64_t degree :
       {layout.degrees.tensor, layout.degrees.pipeline, layout.degrees.context, layout.degrees.data}) {
    gpus *= static_cast<double>(degree);
  }
  constexpr double kMostGpus = 1e8;
  if (gpus > kMostGpus)
    return Error{fmt::format("the layout needs {:.3g} GPUs; at most 1e8 are possible", gpus)};
  return Ok{};
}

// Shares and means within their ranges.
Status check_fractions(const Layout& layout) {
  if (!(layout.layer.expert_imbalance >= 1) || layout.layer.expert_imbalance > 1e6) {
    return Error::at("", "expert_imbalance")
        .found(fmt::format("{}", layout.layer.expert_imbalance))
        .expected("the load of the busiest rank over the mean, 1 or more");
  }
  const LayerChoices& layer = layout.layer;
  const double packed = layer.packed_mean_tokens;
  const auto seq_len = static_cast<double>(layout.batch.seq_len_tokens);
  if (packed != 0 && (!(packed >= 1) || packed > seq_len)) {
    return Error::at("", "packed_mean_tokens")
        .found(fmt::format("{}", packed))
        .expected(
            fmt::format("mean tokens of the sequences packed into one of {}: 1 to {}", seq_len, seq_len));
  }
  if (!(layer.predicted_token_share > 0) || layer.predicted_token_share > 1) {
    return Error::at("", "predicted_token_share")
        .found(fmt::format("{}", layer.predicted_token_share))
        .expected("a fraction above 0, at most 1");
  }
  if (layout.layer.expert_capacity_factor && !(*layout.layer.expert_capacity_factor > 0)) {
    return Error::at("", "expert_capacity_factor")
        .found(fmt::format("{}", *layout.layer.expert_capacity_factor))
        .expected("a number above 0");
  }
  return Ok{};
}

// The degrees must multiply to the number of GPUs, if it is given.
Status check_world_size(const Layout& layout, std::optional<std::int64_t> n_gpus) {
  if (!n_gpus) return Ok{};
  if (*n_gpus <= 0) return bad_value("GPUs", *n_gpus, "at least 1");
  if (layout.world_size() == *n_gpus) return Ok{};
  const std::int64_t replica = layout.degrees.tensor * layout.degrees.context * layout.degrees.pipeline;
  std::string problem = fmt::format(
      "tensor_parallel {} x context_parallel {} x pipeline_parallel {} x data_parallel {} = {} GPUs, not {}",
      layout.degrees.tensor, layout.degrees.context, layout.degrees.pipeline, layout.degrees.data,
      layout.world_size(), *n_gpus);
  if (*n_gpus % replica == 0) {
    return broken("data_parallel", std::move(problem))
        .advice(fmt::format("data_parallel {} uses all", *n_gpus / replica));
  }
  return broken("GPUs", std::move(problem))
      .advice(fmt::format("a replica takes {} GPUs; nearest that work: {} GPUs", replica,
                          nearest_multiples(replica, *n_gpus)));
}

Status check_tensor_parallel(const Layout& layout, const Transformer& model);

// Networks described by their operations support data parallelism, sharding, and tensor parallelism where the
// network says how to split; all other kinds of parallelism are refused.
Status check_network(const Layout& layout, const Transformer& model) {
  if (!model.network) return Ok{};
  const auto refuse = [&](std::string_view field, std::string_view what, std::string_view advice) {
    return broken(field, fmt::format("{} is not modelled for {}", what, model.name))
        .advice(std::string{advice});
  };
  const Degrees& degrees = layout.degrees;
  if (degrees.tensor > 1 && !model.network->splits)
    return refuse("tensor_parallel", "tensor parallelism", "use data parallelism: --tp 1");
  if (degrees.context > 1) return refuse("context_parallel", "context parallelism", "use --cp 1");
  if (degrees.pipeline > 1) return refuse("pipeline_parallel", "a pipeline", "use --pp 1");
  if (degrees.expert > 1) return refuse("expert_parallel", "expert parallelism", "use --ep 1");
  if (layout.layer.sequence_parallel && degrees.tensor > 1)
    return refuse("sequence_parallel", "sequence parallelism", "leave it out");
  if (layout.layer.recompute.kind != Recompute::none)
    return refuse("recompute", "recomputation of activations", "leave it out");
  if (layout.layer.adapters.rank > 0)
    return refuse("lora_rank", "training of adapters", "train all parameters");
  const DType compute = layout.layer.precision.compute;
  if (compute == DType::fp8 || compute == DType::fp4)
    return refuse("precision", fmt::format("training in {}", to_string(compute)), "use bf16, fp16 or fp32");
  if (rule_of(layout.optimizer.kind).matrix->takes_matrices())
    return refuse("optimizer", to_string(layout.optimizer.kind), "choose adam, adamw, sgd or lamb");
  if (layout.batch.seq_len_tokens != model.network->tokens) {
    const std::int64_t input = model.network->input_tokens;
    return broken("seq_len_tokens", fmt::format("{} takes {}, not {} tokens", model.name,
                                                takes_images(model.network.get()) ? "images"
                                                : input > 0 ? fmt::format("{} tokens", input)
                                                            : "30 seconds of sound",
                                                layout.batch.seq_len_tokens))
        .advice("leave --seq out");
  }
  return Ok{};
}

// Constraints of each kind of layer in a model.
Status check_kinds_of_layers(const Layout& layout, const Transformer& model) {
  for (std::size_t k = 0; k < model.layer_kinds.size(); ++k) {
    const Transformer one = layer_model(model, k);
    STEPCAST_TRY(check_tensor_parallel(layout, one));
    if (one.cross_tokens > 0 && layout.degrees.context > 1) {
      return broken("context_parallel",
                    fmt::format("cross-attention is not modelled with context_parallel {}",
                                layout.degrees.context))
          .advice("nearest that works: context_parallel 1");
    }
    if (one.mixer == Mixer::attention && one.has_ffn) continue;
    if (layout.layer.adapters.rank > 0) {
      return broken("lora", "adapters are not modelled for layers with only one part or with a state")
          .advice("train all parameters, or choose a model with attention in every layer");
    }
  }
  const bool attends_alone = model.layer_kinds.empty() && model.mixer == Mixer::attention;
  if (!attends_alone && !model.network && rule_of(layout.optimizer.kind).matrix->takes_matrices()) {
    return broken("optimizer", fmt::format("{} is not modelled for layers of several kinds",
                                           to_string(layout.optimizer.kind)))
        .advice("choose adam, adamw, sgd or lamb");
  }
  return Ok{};
}

// Heads, feed-forward width and tokens must be divisible by the tensor-parallel degree.
Status check_tensor_parallel(const Layout& layout, const Transformer& model) {
  const std::int64_t tp = layout.degrees.tensor;
  STEPCAST_TRY(attention_of(model).check(layout, model));
  const auto not_divisible = [tp](std::string_view name, std::int64_t value) {
    return broken("tensor_parallel",
                  fmt::format("{} {} is not divisible by tensor_parallel {}", name, value, tp))
        .advice(fmt::format("nearest that work: tensor_parallel {}", nearest_divisors(value, tp)));
  };
  if (is_recurrent(model.mixer)) STEPCAST_TRY(state_mixer().check(layout, model));
  if (model.n_heads % tp != 0) return not_divisible("n_heads", model.n_heads);
  // Fewer key-value heads than ranks: each head is replicated on several ranks.
  if (model.kv_heads() % tp != 0 && tp % model.kv_heads() != 0)
    return not_divisible("n_kv_heads", model.kv_heads());
  const bool has_dense =
      model.has_ffn && model.layer_kinds.empty() && (!model.moe || model.n_moe_layers() < model.n_layers);
  if (has_dense && model.ffn_hidden_size % tp != 0)
    return not_divisible("ffn_hidden_size", model.ffn_hidden_size);
  const std::int64_t tokens = layout.batch.seq_len_tokens / layout.degrees.context;
  if (layout.layer.sequence_parallel && tokens % tp != 0)
    return not_divisible("with sequence_parallel, seq_len_tokens / context_parallel", tokens);
  return Ok{};
}

// The sequence, and for all-to-all the heads, must be divisible.
Status check_context_parallel(const Layout& layout, const Transformer& model) {
  const std::int64_t cp = layout.degrees.context;
  if (cp == 1) return Ok{};
  // A causal mask would leave rank 0 little work, so every rank takes one piece from the front and one from
  // the back.
  const bool halves = model.architecture == Architecture::decoder &&
                      layout.layer.context_parallel_kind != ContextParallelKind::all_to_all;
  const std::int64_t pieces = halves ? 2 * cp : cp;
  if (layout.batch.seq_len_tokens % pieces != 0) {
    return broken("context_parallel",
                  fmt::format("seq_len_tokens {} is not divisible by {}context_parallel {}",
                              layout.batch.seq_len_tokens, halves ? "2 x " : "", cp))
        .advice(fmt::format("nearest that work: seq_len_tokens {}",
                            nearest_multiples(pieces, layout.batch.seq_len_tokens)));
  }
  const std::int64_t heads = model.n_heads / layout.degrees.tensor;
  if (layout.layer.context_parallel_kind == ContextParallelKind::all_to_all && heads % cp != 0) {
    return broken("context_parallel",
                  fmt::format(
                      "n_heads / tensor_parallel = {} is not divisible by context_parallel {} (all to all)",
                      heads, cp))
        .advice(fmt::format("nearest that work: context_parallel {}; or ring", nearest_divisors(heads, cp)));
  }
  return Ok{};
}

// Explicit layers per stage: one entry per chunk, with the layers of the model as their sum.
Status check_uneven_stages(const Layout& layout, const Transformer& model) {
  const std::int64_t n_chunks = layout.degrees.pipeline * layout.degrees.virtual_stages;
  if (static_cast<std::int64_t>(layout.pipeline.layers_per_stage.size()) != n_chunks) {
    return Error::at("", "layers_per_stage")
        .found(fmt::format("{} entries", layout.pipeline.layers_per_stage.size()))
        .expected(fmt::format("pipeline_parallel {} x virtual_stages {} = {}", layout.degrees.pipeline,
                              layout.degrees.virtual_stages, n_chunks));
  }
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < layout.pipeline.layers_per_stage.size(); ++i) {
    const std::int64_t n = layout.pipeline.layers_per_stage[i];
    // The first and last stage may have only embedding or loss. So may the last but one if the model predicts
    // further tokens (DeepSeek-V3: `m|L`); this work is in the last stage here.
    const std::size_t behind = layout.pipeline.layers_per_stage.size() - 1 - i;
    const bool may_be_empty =
        i == 0 || behind == 0 || (behind == 1 && model.n_multi_token_prediction_layers > 0);
    if (n < (may_be_empty && n_chunks > 1 ? 0 : 1) || n > model.n_layers) {
      return bad_value("layers_per_stage", n, "at least one layer in each stage");
    }
    sum += n;
    if (sum > model.n_layers) break;
  }
  if (sum != model.n_layers) {
    sum = std::accumulate(layout.pipeline.layers_per_stage.begin(), layout.pipeline.layers_per_stage.end(),
                          std::int64_t{0});
    return Error::at("", "layers_per_stage")
        .found(fmt::format("{} layers in total", sum))
        .expected(fmt::format("n_layers {}", model.n_layers));
  }
  return Ok{};
}

// The schedule, virtual stages and layers must fit together.
Status check_pipeline(const Layout& layout, const Transformer& model) {
  const std::int64_t pp = layout.degrees.pipeline, vp = layout.degrees.virtual_stages;
  const PipelineSchedule schedule = layout.pipeline.schedule;
  if (is_v_shaped(schedule) && vp != 2) {
    return broken("virtual_stages",
                  fmt::format("virtual_stages {} with the schedule {}", vp, to_string(schedule)))
        .advice("use virtual_stages 2");
  }
  if (vp > 1 && schedule != PipelineSchedule::interleaved && !is_v_shaped(schedule)) {
    return broken("virtual_stages", fmt::format("virtual_stages {} with the schedule {}", vp,
                                                to_string(layout.pipeline.schedule)))
        .advice("use the interleaved schedule, or virtual_stages 1");
  }
  if (vp > 1 && pp == 1) {
    return broken("virtual_stages", fmt::format("virtual_stages {} without a pipeline", vp))
        .advice("use virtual_stages 1 or pipeline_parallel 2 or more");
  }
  if (!layout.pipeline.layers_per_stage.empty()) return check_uneven_stages(layout, model);
  if (pp > model.n_layers || model.n_layers % pp != 0) {
    return broken("pipeline_parallel",
                  fmt::format("n_layers {} is not divisible by pipeline_parallel {}", model.n_layers, pp))
        .advice(fmt::format("nearest that work: pipeline_parallel {}; or give the layers of every stage "
                            "(--pipeline-model-parallel-layout)",
                            nearest_divisors(model.n_layers, pp)));
  }
  const std::int64_t per_rank = model.n_layers / pp;
  if (per_rank % vp != 0) {
    return broken("virtual_stages",
                  fmt::format("{} layers per pipeline rank are not divisible by virtual_stages {}", per_rank,
                              vp))
        .advice(fmt::format("nearest that work: virtual_stages {}", nearest_divisors(per_rank, vp)));
  }
  return Ok{};
}

// Sizes of micro-batch and global batch.
Status check_batch(const Layout& layout) {
  constexpr double kMostTokens = 1e9;  // of a micro-batch; one token takes kilobytes on a GPU
  if (static_cast<double>(layout.batch.micro_batch_sequences) *
          static_cast<double>(layout.batch.seq_len_tokens) >
      kMostTokens) {
    return broken("micro_batch_sequences",
                  fmt::format("a micro-batch of {} sequences x {} tokens, too large for any GPU",
                              layout.batch.micro_batch_sequences, layout.batch.seq_len_tokens))
        .advice("--mbs and --gbs count sequences; a step may take its batch in several micro-batches");
  }
  const std::int64_t step = layout.batch.micro_batch_sequences * layout.degrees.data;
  if (layout.batch.global_batch_sequences % step != 0) {
    return broken("global_batch_sequences",
                  fmt::format("global_batch_sequences {} is not divisible by micro_batch_sequences {} x "
                              "data_parallel {} = {}",
                              layout.batch.global_batch_sequences, layout.batch.micro_batch_sequences,
                              layout.degrees.data, step))
        .advice(fmt::format("nearest that work: global_batch_sequences {}",
                            nearest_multiples(step, layout.batch.global_batch_sequences)));
  }
  // The interleaved schedule processes micro-batches in groups of pipeline_parallel.
  if (layout.degrees.virtual_stages > 1 && !is_v_shaped(layout.pipeline.schedule) &&
      layout.micro_batches() % layout.degrees.pipeline != 0) {
    return broken(
               "virtual_stages",
               fmt::format(
                   "{} micro-batches are not divisible by pipeline_parallel {}, as the interleaved schedule "
                   "needs; groups of another size are not modelled",
                   layout.micro_batches(), layout.degrees.pipeline))
        .advice(fmt::format(
            "nearest that work: global_batch_sequences {}",
            nearest_multiples(step * layout.degrees.pipeline, layout.batch.global_batch_sequences)));
  }
  return Ok{};
}

// The shard group must divide the data-parallel ranks.
Status check_sharding(const Layout& layout) {
  const std::int64_t group = layout.sharding.shard_group_size;
  if (group == 0) return Ok{};
  if (layout.sharding.kind == Sharding::none) {
    return broken("shard_group_size", fmt::format("shard_group_size {} without sharding", group))
        .advice("choose zero1, zero2 or zero3, or shard_group_size 0");
  }
  const std::int64_t ranks = layout.degrees.data * layout.degrees.context;
  if (ranks % group != 0) {
    return broken("shard_group_size",
                  fmt::format("data_parallel x context_parallel = {} is not divisible by shard_group_size {}",
                              ranks, group))
        .advice(fmt::format("nearest that work: shard_group_size {}", nearest_divisors(ranks, group)));
  }
  return Ok{};
}

// Constraints of matrix optimizers: no CPU offload, and no sharding that cuts matrices which a rank must own
// whole.
Status check_optimizer(const Layout& layout) {
  const OptimizerRule& rule = rule_of(layout.optimizer.kind);
  const MatrixRule& matrix = rule.matrix;
  if (!matrix.takes_matrices()) return Ok{};
  constexpr std::int64_t kMostIterations = 100;
  if (layout.optimizer.newton_schulz_iterations > kMostIterations) {
    return broken("optimizer",
                  fmt::format("{} Newton-Schulz iterations", layout.optimizer.newton_schulz_iterations))
        .advice("5 is usual");
  }
  if (layout.optimizer.cpu_offload) {
    return broken("optimizer", fmt::format("{} on the host: its GEMMs are not modelled", *rule.name))
        .advice("leave out the offload, or use adamw");
  }
  const Sharding sharding = layout.sharding.kind;
  if (matrix.owned_whole && (sharding == Sharding::zero2 || sharding == Sharding::zero3)) {
    return broken("optimizer", fmt::format("{} needs whole matrices on each rank, which {} splits",
                                           *rule.name, to_string(sharding)))
        .advice("use zero1 or no sharding, or an optimizer that gathers matrices: muon or soap");
  }
  return Ok{};
}

// Quantised weights must be frozen, and are not supported with fp8 or fp4 GEMMs.
Status check_frozen_weights(const LayerChoices& layer) {
  if (layer.frozen_weights == FrozenWeights::as_computed) return Ok{};
  if (!layer.frozen_base)
    return broken("lora_base_weights",
                  fmt::format("weights in {} cannot be trained", to_string(layer.frozen_weights)))
        .advice("train adapters: --lora-rank 16");
  const DType compute = layer.precision.compute;
  if (compute != DType::fp8 && compute != DType::fp4) return Ok{};
  return broken("lora_base_weights", fmt::format("GEMMs in {} of frozen weights in {} are not modelled",
                                                 to_string(compute), to_string(layer.frozen_weights)))
      .advice("use --bf16, or leave --lora-base-weights out");
}

// The compute type must be one of the supported types.
Status check_precision(const Precision& precision) {
  constexpr std::array kCompute{DType::fp32, DType::tf32, DType::fp16, DType::bf16, DType::fp8, DType::fp4};
  for (const DType dtype : kCompute)
    if (precision.compute == dtype) return Ok{};
  return Error::at("", "precision")
      .found(std::string{to_string(precision.compute)})
      .expected("fp32, tf32, fp16, bf16, fp8 or fp4");
}

}  // namespace

Status check(const Layout& layout, const Transformer& model, std::optional<std::int64_t> n_gpus) {
  STEPCAST_TRY(check(model));
  STEPCAST_TRY(check_ranges(layout));
  STEPCAST_TRY(check_fractions(layout));
  STEPCAST_TRY(check_network(layout, model));
  STEPCAST_TRY(check_tensor_parallel(layout, model));
  STEPCAST_TRY(check_kinds_of_layers(layout, model));
  STEPCAST_TRY(check_pipeline(layout, model));
  STEPCAST_TRY(check_context_parallel(layout, model));
  STEPCAST_TRY(experts().check(layout, model));
  STEPCAST_TRY(check_world_size(layout, n_gpus));
  STEPCAST_TRY(check_batch(layout));
  STEPCAST_TRY(check_sharding(layout));
  STEPCAST_TRY(check_optimizer(layout));
  STEPCAST_TRY(check_precision(layout.layer.precision));
  STEPCAST_TRY(check_frozen_weights(layout.layer));
  STEPCAST_TRY(check_rank_order(layout));
  if (layout.layer.adapters.rank > model.hidden_size) {
    return broken("lora_rank", fmt::format("adapters of rank {} on matrices of width {}",
                                           layout.layer.adapters.rank, model.hidden_size))
        .advice("--lora-rank is usually 8 to 256");
  }
  const std::int64_t longest = model.longest_sequence();
  if (model.position == PositionEncoding::learned && layout.batch.seq_len_tokens > longest) {
    return broken("seq_len_tokens", fmt::format("seq_len_tokens {} is above the {} learned positions",
                                                layout.batch.seq_len_tokens, longest))
        .advice(fmt::format("use at most {}, or set max_position", longest));
  }
  return Ok{};
}

}  // namespace stepcast
