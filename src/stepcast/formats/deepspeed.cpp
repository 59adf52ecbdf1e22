// Reads a DeepSpeed config on top of a base layout. The sections are read one by one: model parallelism and
// data-parallel degree first, because batches depend on them, then batches, ZeRO, number types, optimizer and
// checkpointing. Every key must be known: read, listed as not modelled, or listed as harmless.
#include "stepcast/formats/deepspeed.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/json_value.h"
#include "stepcast/base/words.h"
#include "stepcast/formats/detail/apply_settings.h"
#include "stepcast/formats/detail/foreign_object.h"
#include "stepcast/formats/detail/optimizer_words.h"

namespace stepcast {
namespace {

using detail::foreign_object;

// ObjectReader::optional(), except that the text "auto" counts as a missing key.
template <class Value>
Status read_unless_auto(ObjectReader& keys, std::string_view key, Value& out) {
  if (const JsonValue* value = keys.take(key);
      value != nullptr && value->is_text() && value->text() == "auto") {
    return Ok{};
  }
  return keys.optional(key, out);
}

// Marks these keys as read, and adds those that are present and switched on to `job.not_modelled`. A key is
// off if it is false, 0, or an object with "enabled": false. `names` are separated by blanks.
void note_if_there(ObjectReader& keys, std::string_view names, ResolvedJob& job) {
  (void)any_word(names, [&](std::string_view name) {
    const JsonValue* value = keys.take(name);
    if (value == nullptr || (value->is_bool() && !value->truth()) ||
        (value->is_number() && value->number() == 0))
      return false;
    const JsonValue* enabled = value->find("enabled");
    if (enabled == nullptr || !enabled->is_bool() || enabled->truth())
      job.not_modelled.push_back(keys.path_of(name));
    return false;
  });
}

// Reads a section such as "offload_optimizer": {"device": "cpu", ...}. `out`: whether it offloads. NVMe is
// treated like the CPU and noted as not modelled.
Status read_offload(ObjectReader& keys, std::string_view key, bool& out, ResolvedJob& job) {
  STEPCAST_ASSIGN(auto section, keys.section(key));
  if (!section) return Ok{};
  std::string device = "none";
  STEPCAST_TRY(read_unless_auto(*section, "device", device));
  if (device != "none" && device != "cpu" && device != "nvme") {
    return section->wrong("device", device, "none, cpu or nvme");
  }
  out = device != "none";
  if (device == "nvme") job.not_modelled.push_back(fmt::format("{}: nvme", section->path_of("device")));
  note_if_there(*section, "ratio", job);
  section->ignore(
      "pin_memory nvme_path buffer_count buffer_size fast_init max_in_cpu pipeline_read pipeline_write "
      "pipeline");
  return section->finish();
}

// Keys of zero_optimization that change time or memory and that no model covers; below, keys without such an effect.
constexpr std::string_view kZeroNotModelled =
    "zero_hpz_partition_size zero_quantized_weights zero_quantized_gradients "
    "zero_quantized_nontrainable_weights mics_hierarchical_params_gather round_robin_gradients "
    "zeropp_loco_param offload_states";

constexpr std::string_view kZeroHarmless =
    "contiguous_gradients reduce_scatter allgather_partitions allgather_bucket_size "
    "stage3_prefetch_bucket_size stage3_param_persistence_threshold stage3_max_live_parameters "
    "stage3_max_reuse_distance sub_group_size stage3_gather_16bit_weights_on_model_save "
    "stage3_gather_fp16_weights_on_model_save param_persistence_threshold prefetch_bucket_size "
    "max_live_parameters max_reuse_distance load_from_fp32_weights elastic_checkpoint grad_hooks "
    "ignore_unused_parameters legacy_stage1 memory_efficient_linear "
    "stage3_model_persistence_threshold";

// Reads zero_optimization: the ZeRO stage, offloading, overlap and bucket size. A missing section means stage
// 0. Errors: a stage above 3, a bucket size outside 1 to 1e12 elements.
Status read_zero(ObjectReader& root, ResolvedJob& job) {
  Layout& layout = job.layout;
  layout.sharding.kind = Sharding::none;
  STEPCAST_ASSIGN(auto zero, root.section("zero_optimization"));
  if (!zero) return Ok{};
  std::int64_t stage = 0;
  STEPCAST_TRY(read_unless_auto(*zero, "stage", stage));
  if (stage > 3) return zero->wrong("stage", stage, "0 to 3");
  constexpr std::array<Sharding, 4> kStages{Sharding::none, Sharding::zero1, Sharding::zero2,
                                            Sharding::zero3};
  layout.sharding.kind = kStages[static_cast<std::size_t>(stage)];
  STEPCAST_TRY(read_offload(*zero, "offload_optimizer", layout.optimizer.cpu_offload, job));
  STEPCAST_TRY(read_offload(*zero, "offload_param", layout.sharding.parameter_offload, job));
  // The older key for offload_optimizer.
  bool old_offload = false;
  STEPCAST_TRY(read_unless_auto(*zero, "cpu_offload", old_offload));
  layout.optimizer.cpu_offload = layout.optimizer.cpu_offload || old_offload;
  bool overlap = stage == 3;  // default of DeepSpeed: only in stage 3
  STEPCAST_TRY(read_unless_auto(*zero, "overlap_comm", overlap));
  layout.sharding.overlap_gradient_reduce = layout.sharding.overlap_parameter_gather = overlap;
  double bucket = 5e8;  // default of DeepSpeed, in elements
  STEPCAST_TRY(read_unless_auto(*zero, "reduce_bucket_size", bucket));
  constexpr double kMostElements = 1e12;
  if (!(bucket >= 1 && bucket <= kMostElements)) {
    return zero->error("reduce_bucket_size").found(fmt::format("{}", bucket)).expected("1 to 1e12 elements");
  }
  layout.sharding.bucket_parameters = static_cast<std::int64_t>(bucket);
  // MiCS shards the weights over groups of this size.
  std::int64_t shard_group = 0;
  STEPCAST_TRY(read_unless_auto(*zero, "mics_shard_size", shard_group));
  if (stage == 3) layout.sharding.shard_group_size = shard_group;
  note_if_there(*zero, kZeroNotModelled, job);
  zero->ignore(kZeroHarmless);
  return zero->finish();
}

// A section that switches a number type. `open` means "auto": the caller of DeepSpeed decides, such as the
// Trainer of Hugging Face.
struct Enabled {
  bool on = false;  // default of DeepSpeed, even if the section exists without the key
  bool open = false;
};

// Reads the section `key`, "fp16" or "bf16". Keys about loss scaling have no effect on time.
Result<Enabled> read_enabled(ObjectReader& root, std::string_view key) {
  STEPCAST_ASSIGN(auto section, root.section(key));
  Enabled enabled;
  if (!section) return enabled;
  const JsonValue* value = section->take("enabled");
  enabled.open = value != nullptr && value->is_text() && value->text() == "auto";
  STEPCAST_TRY(read_unless_auto(*section, "enabled", enabled.on));
  section->ignore(
      "loss_scale loss_scale_window initial_scale_power hysteresis min_loss_scale auto_cast "
      "consecutive_hysteresis fp16_master_weights_and_grads type check_grad_overflow");
  STEPCAST_TRY(section->finish());
  return enabled;
}

// A number type under `key`, or `otherwise` if the key is missing. Errors: types other than fp16, bf16 and fp32.
Result<DType> read_dtype(ObjectReader& keys, std::string_view key, DType otherwise) {
  std::string text;
  STEPCAST_TRY(read_unless_auto(keys, key, text));
  if (text.empty()) return otherwise;
  const DType dtype = parse_dtype(text);
  if (dtype == DType::fp16 || dtype == DType::bf16 || dtype == DType::fp32) return dtype;
  return keys.wrong(key, text, "fp16, bf16 or fp32");
}

// Reads the type of the computation and the types of gradients and their reduction. The settings `said` have
// precedence. With "auto" everywhere, bf16 is preferred to fp16, with a note.
Status read_precision(ObjectReader& root, const JobSettings& said, ResolvedJob& job) {
  STEPCAST_ASSIGN(const Enabled fp16, read_enabled(root, "fp16"));
  STEPCAST_ASSIGN(Enabled bf16, read_enabled(root, "bf16"));
  // The older name of the bf16 section.
  STEPCAST_ASSIGN(const Enabled old_bf16, read_enabled(root, "bfloat16"));
  bf16.on = bf16.on || old_bf16.on;
  bf16.open = bf16.open || old_bf16.open;
  if (fp16.on && bf16.on && !said.dtype) {
    return root.error("bf16", "enabled together with fp16").advice("choose one");
  }
  const bool takes_bf16 = bf16.on || (bf16.open && !fp16.on);
  const bool takes_fp16 = !takes_bf16 && (fp16.on || fp16.open);
  const DType compute = said.dtype.value_or(takes_bf16   ? DType::bf16
                                            : takes_fp16 ? DType::fp16
                                                         : DType::fp32);
  if (!said.dtype && !fp16.on && !bf16.on && (takes_bf16 || takes_fp16)) {
    job.notes.push_back(fmt::format("computation type is \"auto\": {} is assumed", to_string(compute)));
  }
  Precision precision = precision_for(compute);
  // ZeRO-2 and ZeRO-3 store gradients in the type of the weights. Reductions also use that type by default.
  const bool shards_gradients =
      job.layout.sharding.kind == Sharding::zero2 || job.layout.sharding.kind == Sharding::zero3;
  if (compute == DType::bf16) {
    precision.reduction = DType::bf16;
    if (shards_gradients) precision.gradients = DType::bf16;
  }
  STEPCAST_ASSIGN(precision.reduction, read_dtype(root, "communication_data_type", precision.reduction));
  bool fp32_reduction = false;
  STEPCAST_TRY(read_unless_auto(root, "fp32_allreduce", fp32_reduction));
  if (fp32_reduction) precision.reduction = DType::fp32;
  STEPCAST_ASSIGN(auto types, root.section("data_types"));
  if (types) {
    STEPCAST_ASSIGN(precision.gradients, read_dtype(*types, "grad_accum_dtype", precision.gradients));
    STEPCAST_TRY(types->finish());
  }
  job.layout.layer.precision = precision;
  return Ok{};
}

// Reads gradient clipping and the kind of optimizer. Without an optimizer section, the optimizer of the base stays.
Status read_optimizer(ObjectReader& root, ResolvedJob& job) {
  OptimizerSetup& setup = job.layout.optimizer;
  double clip = 0;  // default of DeepSpeed: no clipping
  STEPCAST_TRY(read_unless_auto(root, "gradient_clipping", clip));
  if (clip < 0)
    return root.error("gradient_clipping").found(fmt::format("{:g}", clip)).expected("0, for none, or more");
  setup.gradient_clip = clip > 0;
  STEPCAST_ASSIGN(auto section, root.section("optimizer"));
  if (!section) return Ok{};
  std::string type = "AdamW";
  STEPCAST_TRY(read_unless_auto(*section, "type", type));
  const std::optional<OptimizerKind> known = detail::find_optimizer(detail::kDeepSpeedOptimizers, type);
  if (!known) {
    return section->wrong("type", type, detail::listed(detail::kDeepSpeedOptimizers));
  }
  setup.kind = *known;
  section->ignore("params legacy_fusion");
  return section->finish();
}

// This section configures DeepSpeed's activation checkpointing, which recomputes whole layers. Its presence
// enables full recomputation.
Status read_checkpointing(ObjectReader& root, ResolvedJob& job) {
  STEPCAST_ASSIGN(auto section, root.section("activation_checkpointing"));
  if (!section) return Ok{};
  job.layout.layer.recompute.kind = Recompute::full;
  STEPCAST_TRY(read_unless_auto(*section, "cpu_checkpointing", job.layout.layer.activation_offload));
  note_if_there(*section, "partition_activations", job);
  section->ignore(
      "contiguous_memory_optimization number_checkpoints synchronize_checkpoint_boundary profile");
  return section->finish();
}

// Reads the three batch keys. Any two of them imply the third: global = micro x accumulation steps x
// data-parallel ranks. Errors: keys that contradict this, zeros, batches above 1e9 sequences.
Status read_batches(ObjectReader& root, const JobSettings& said, ResolvedJob& job) {
  Layout& layout = job.layout;
  std::int64_t global = 0, micro = 0, steps = 0;
  STEPCAST_TRY(read_unless_auto(root, "train_batch_size", global));
  STEPCAST_TRY(read_unless_auto(root, "train_micro_batch_size_per_gpu", micro));
  STEPCAST_TRY(read_unless_auto(root, "gradient_accumulation_steps", steps));
  for (const auto& [key, value] :
       {std::pair{"train_batch_size", global}, std::pair{"train_micro_batch_size_per_gpu", micro},
        std::pair{"gradient_accumulation_steps", steps}}) {
    const JsonValue* given = root.take(key);
    if (given != nullptr && given->is_number() && value == 0)
      return root.error(key).found("0").expected("1 or more");
  }
  constexpr std::int64_t kMost = 1'000'000'000;
  const std::int64_t dp = layout.degrees.data;
  if (global > kMost || micro > kMost || steps > kMost) return root.error("", "a batch above 1e9 sequences");
  if (said.micro_batch_sequences || said.global_batch_sequences) {
    // The number of accumulation steps then follows from the batches. A batch size of the file still applies
    // if only the other one is given in the settings.
    steps = 0;
    micro = said.micro_batch_sequences.value_or(micro);
    global = said.global_batch_sequences.value_or(global);
  }
  if (global == 0 && micro == 0) {  // both remain those of the base
    job.notes.push_back(fmt::format("micro-batch size not given: {}", layout.batch.micro_batch_sequences));
    if (steps > 0) layout.batch.global_batch_sequences = layout.batch.micro_batch_sequences * steps * dp;
    return Ok{};
  }
  const double product = static_cast<double>(std::max<std::int64_t>(micro, 1)) *
                         static_cast<double>(std::max<std::int64_t>(steps, 1)) * static_cast<double>(dp);
  if (product > static_cast<double>(kMost)) return root.error("", "a batch above 1e9 sequences");
  if (micro == 0) {
    const std::int64_t rest = dp * std::max<std::int64_t>(steps, 1);
    if (global % rest != 0) {
      return root.wrong("train_batch_size", global,
                        fmt::format("a multiple of {} data-parallel ranks x {} accumulation steps", dp,
                                    std::max<std::int64_t>(steps, 1)));
    }
    micro = global / rest;
  }
  if (global == 0) global = micro * std::max<std::int64_t>(steps, 1) * dp;
  if (steps > 0 && global != micro * steps * dp) {
    return root.wrong(
        "train_batch_size", global,
        fmt::format("train_micro_batch_size_per_gpu {} x gradient_accumulation_steps {} x {} data-parallel "
                    "ranks = {}",
                    micro, steps, dp, micro * steps * dp));
  }
  layout.batch.micro_batch_sequences = micro;
  layout.batch.global_batch_sequences = global;
  return Ok{};
}

// Root keys that change time or memory and that no model covers; below, root keys without such an effect.
constexpr std::string_view kRootNotModelled =
    "amp sparse_gradients sparse_attention compression_training curriculum_learning data_efficiency "
    "elasticity hybrid_engine progressive_layer_drop eigenvalue quantize_training torch_autocast";

constexpr std::string_view kRootHarmless =
    "steps_per_print wall_clock_breakdown dump_state memory_breakdown tensorboard wandb csv_monitor "
    "comet monitor_config flops_profiler comms_logger zero_allow_untested_optimizer "
    "zero_force_ds_cpu_optimizer autotuning checkpoint aio scheduler prescale_gradients "
    "gradient_predivide_factor disable_allgather dataloader_drop_last load_universal_checkpoint "
    "seq_parallel_communication_data_type compile timers nebula";

// Reads the whole document into `job`. Order matters: degrees, then batches, then everything else.
Status read_root(ObjectReader& root, const JobSettings& said, ResolvedJob& job) {
  Layout& layout = job.layout;
  if (layout.software.framework == Framework::unknown) layout.software.framework = Framework::deepspeed;
  STEPCAST_ASSIGN(auto tensor, root.section("tensor_parallel"));
  if (tensor) {
    STEPCAST_TRY(read_unless_auto(*tensor, "autotp_size", layout.degrees.tensor));
    STEPCAST_TRY(read_unless_auto(*tensor, "tp_size", layout.degrees.tensor));
    STEPCAST_TRY(tensor->finish());
  }
  if (said.tensor) layout.degrees.tensor = *said.tensor;
  std::int64_t sequence = layout.degrees.context;  // sequence parallelism of DeepSpeed-Ulysses
  STEPCAST_TRY(read_unless_auto(root, "sequence_parallel_size", sequence));
  if (sequence != layout.degrees.context && !said.context) {
    layout.degrees.context = sequence;
    layout.layer.context_parallel_kind = ContextParallelKind::all_to_all;
  }
  constexpr std::int64_t kMostRanks = 1'000'000;
  for (const std::int64_t degree : {layout.degrees.tensor, layout.degrees.pipeline, layout.degrees.context}) {
    if (degree < 1 || degree > kMostRanks)
      return root.error("", "a degree of parallelism that is not 1 to 1e6");
  }
  if (layout.degrees.data < 1 || layout.degrees.data > kMostRanks)
    return root.error("", "data_parallel is not 1 to 1e6");
  const std::int64_t replica = layout.degrees.tensor * layout.degrees.pipeline * layout.degrees.context;
  // The data-parallel degree follows from the number of GPUs.
  if (job.n_gpus) {
    if (*job.n_gpus < replica || *job.n_gpus % replica != 0) {
      return Error{fmt::format("{} GPUs are not a multiple of the {} of a replica", *job.n_gpus, replica)};
    }
    layout.degrees.data = *job.n_gpus / replica;
  }
  STEPCAST_TRY(read_batches(root, said, job));
  STEPCAST_TRY(read_zero(root, job));
  STEPCAST_TRY(read_precision(root, said, job));
  STEPCAST_TRY(read_optimizer(root, job));
  STEPCAST_TRY(read_checkpointing(root, job));
  note_if_there(root, kRootNotModelled, job);
  root.ignore(kRootHarmless);
  return root.finish();
}

}  // namespace

Result<ResolvedJob> parse_deepspeed_config(std::string_view text, const std::string& name,
                                           const ResolvedJob& base, const JobSettings& said) {
  STEPCAST_ASSIGN(const JsonValue document, parse_json(text, name));
  STEPCAST_ASSIGN(ObjectReader root, foreign_object(document, "", name));
  ResolvedJob job = base;
  Status read = read_root(root, said, job);
  if (!read.ok()) return std::move(read).error().in_file(name);
  STEPCAST_TRY(detail::apply_choices(said, job.layout));
  return job;
}

}  // namespace stepcast
