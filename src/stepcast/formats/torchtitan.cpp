// Reads TorchTitan configs. read_torchtitan_sections() collects the values; the use_...() functions combine
// them in order: degrees, pipeline, batches, recomputation, number types.
#include "stepcast/formats/torchtitan.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/error_text.h"
#include "stepcast/base/json_value.h"
#include "stepcast/base/scan.h"
#include "stepcast/base/toml_document.h"
#include "stepcast/describe/software_defaults.h"
#include "stepcast/formats/detail/apply_settings.h"
#include "stepcast/formats/detail/foreign_object.h"
#include "stepcast/formats/detail/job_format.h"
#include "stepcast/formats/detail/megatron_flags.h"
#include "stepcast/formats/detail/torchtitan_sections.h"
#include "stepcast/workload/framework_rule.h"

namespace stepcast {
namespace {

using detail::foreign_object;
using detail::TorchTitanSettings;

// Recomputation: none, full, selected operations ("op"), or full in every N-th layer.
Status use_checkpointing(const TorchTitanSettings& s, Layout& layout) {
  if (s.ac_mode == "none") return Ok{};
  if (s.ac_mode == "full") {
    layout.layer.recompute.kind = Recompute::full;
    return Ok{};
  }
  const auto wrong = [](std::string_view key, std::string_view found, std::string_view expected) {
    return bad_value(fmt::format("activation_checkpoint.{}", key), found, expected);
  };
  if (s.ac_mode != "selective") return wrong("mode", s.ac_mode, "none, full or selective");
  if (s.ac_option == "op") {
    layout.layer.recompute.kind = Recompute::selective_ops;
    return Ok{};
  }
  const auto every = scan<decltype(layout.layer.recompute.every_n_layers)>(s.ac_option);
  if (every.value_or(0) < 1) return wrong("selective_ac_option", s.ac_option, "op or a whole number");
  layout.layer.recompute.every_n_layers = *every;
  layout.layer.recompute.kind = Recompute::full;
  return Ok{};
}

// A number type of torchtitan; DType::unknown for other texts.
DType parse_precision(std::string_view text) {
  return text == "bfloat16"  ? DType::bf16
         : text == "float16" ? DType::fp16
         : text == "float32" ? DType::fp32
                             : DType::unknown;
}

// Number types. Weights are kept in `dtype`; parameters are converted to `param_dtype` for computation.
Status use_precision(const TorchTitanSettings& s, Layout& layout) {
  const DType param = parse_precision(s.param_dtype), reduce = parse_precision(s.reduce_dtype);
  if (param == DType::unknown || reduce == DType::unknown) {
    return bad_value(
        param == DType::unknown ? "training.mixed_precision_param" : "training.mixed_precision_reduce",
        (param == DType::unknown ? s.param_dtype : s.reduce_dtype), "bfloat16, float16 or float32");
  }
  const DType kept = parse_precision(s.dtype);
  if (kept == DType::unknown) {
    return bad_value("training.dtype", s.dtype, "bfloat16, float16 or float32");
  }
  // precision_for() resets the fp8 recipe that the sections have set.
  const Fp8Recipe recipe = layout.layer.precision.fp8;
  layout.layer.precision = precision_for(param);
  layout.layer.precision.loss_scaling = false;
  layout.layer.precision.gradients = DType::fp32;
  layout.layer.precision.reduction = reduce;
  layout.layer.precision.fp8 = recipe;
  if (kept != DType::fp32) {  // everything is in this type, without fp32 weights
    layout.layer.precision.master_weights = false;
    layout.layer.precision.gradients = layout.layer.precision.moments = kept;
  }
  if (s.float8) layout.layer.precision.compute = DType::fp8;
  return Ok{};
}

// Parallelism degrees. A shard degree of -1 uses all remaining GPUs. Errors: degrees that do not divide the
// GPUs, -1 without a number of GPUs.
Status use_degrees(const TorchTitanSettings& s, const TorchTitanOptions& options, ResolvedJob& job) {
  Layout& layout = job.layout;
  const detail::TorchTitanDegrees& d = s.degrees;
  const auto wrong = [](std::string_view key, std::int64_t found) {
    return bad_value(fmt::format("parallelism.{}", key), found, "1 or more");
  };
  const std::pair<std::string_view, std::int64_t> fixed[] = {{"data_parallel_replicate_degree", d.replicate},
                                                             {"tensor_parallel_degree", d.tensor},
                                                             {"pipeline_parallel_degree", d.pipeline},
                                                             {"context_parallel_degree", d.context},
                                                             {"expert_parallel_degree", d.expert}};
  for (const auto& [key, degree] : fixed) {
    if (degree < 1) return wrong(key, degree);
  }
  if (d.shard == 0) return wrong("data_parallel_shard_degree", 0);
  // Computed as double, so that large degrees cannot overflow.
  double gpus = 1;
  for (const auto& [key, degree] : fixed) gpus *= static_cast<double>(degree);
  constexpr double kMostGpus = 1e9;
  if (gpus * static_cast<double>(std::max<std::int64_t>(d.shard, 1)) > kMostGpus) {
    return Error::at("", "parallelism", "the degrees need more than 1e9 GPUs");
  }
  layout.degrees.tensor = d.tensor;
  layout.degrees.pipeline = d.pipeline;
  layout.degrees.context = d.context;
  layout.degrees.expert = d.expert;
  layout.degrees.expert_tensor = std::max<std::int64_t>(d.expert_tensor, 0);
  // Expert parallelism uses the ranks of data parallelism, so its degree is not a factor.
  const std::int64_t others = d.replicate * d.tensor * d.pipeline * d.context;
  std::int64_t shard = d.shard;
  if (shard == -1) {
    if (!options.n_gpus) {
      return Error::at("", "parallelism.data_parallel_shard_degree",
                       "-1 uses all GPUs that the other degrees leave")
          .advice("give the number of GPUs with --gpus");
    }
    if (*options.n_gpus < others || *options.n_gpus % others != 0) {
      return Error{
          fmt::format("{} GPUs are not a multiple of the other degrees, {}", *options.n_gpus, others)};
    }
    shard = *options.n_gpus / others;
  }
  job.n_gpus = options.n_gpus.value_or(shard * others);
  layout.degrees.data = d.replicate * shard;
  layout.layer.sequence_parallel = d.tensor > 1;
  // FSDP shards over data and context ranks; replicas are groups of these (HSDP).
  if (shard * d.context > 1) {
    layout.sharding.kind = Sharding::zero3;
    if (d.replicate > 1) layout.sharding.shard_group_size = shard * d.context;
  }
  // By default FSDP reshards, except in pipelines, where every micro-batch would gather the weights again.
  layout.sharding.reshard_after_forward =
      s.reshard == "always" || (s.reshard == "default" && d.pipeline == 1);
  if (s.reshard != "always" && s.reshard != "default" && s.reshard != "never") {
    return bad_value("parallelism.fsdp_reshard_after_forward", s.reshard, "default, always or never");
  }
  layout.layer.context_parallel_kind =
      s.rotate == "alltoall" ? ContextParallelKind::all_to_all : ContextParallelKind::all_gather;
  return Ok{};
}

// The pipeline: schedule, virtual stages and layers per stage. Split points have precedence over the layers per stage.
Status use_pipeline(const TorchTitanSettings& s, ResolvedJob& job) {
  Layout& layout = job.layout;
  const std::int64_t pp = layout.degrees.pipeline;
  if (pp == 1) return Ok{};
  constexpr std::pair<std::string_view, PipelineSchedule> kSchedules[] = {
      {"1F1B", PipelineSchedule::one_f_one_b},
      {"GPipe", PipelineSchedule::gpipe},
      {"Interleaved1F1B", PipelineSchedule::interleaved},
      {"ZBVZeroBubble", PipelineSchedule::zb_v}};
  const auto* known = std::find_if(std::begin(kSchedules), std::end(kSchedules),
                                   [&](const auto& entry) { return entry.first == s.schedule; });
  if (known == std::end(kSchedules)) {
    return bad_value("parallelism.pipeline_parallel_schedule", s.schedule,
                     "1F1B, GPipe, Interleaved1F1B or ZBVZeroBubble");
  }
  layout.pipeline.schedule = known->second;
  if (layout.pipeline.schedule == PipelineSchedule::interleaved || is_v_shaped(layout.pipeline.schedule))
    layout.degrees.virtual_stages = 2;  // default of torchtitan
  if (s.layers_per_stage > 0) {
    // Embedding and output count as a layer each.
    const std::int64_t n_stages = (job.model.n_layers + 2 + s.layers_per_stage - 1) / s.layers_per_stage;
    if (n_stages % pp != 0) {
      return Error::at("", "parallelism.pipeline_parallel_layers_per_stage",
                       fmt::format("gives {} stages, which do not divide among {} ranks", n_stages, pp));
    }
    layout.degrees.virtual_stages = n_stages / pp;
  }
  // Stages of torchtitan are chunks here: each rank has one or more of them.
  const std::int64_t n_chunks = pp * layout.degrees.virtual_stages;
  if (s.split_points.empty()) {
    if (n_chunks <= job.model.n_layers) {
      layout.pipeline.layers_per_stage = layers_counting_embedding_and_output(job.model.n_layers, n_chunks);
    }
    return Ok{};
  }
  if (static_cast<std::int64_t>(s.split_points.size()) % pp != pp - 1) {
    return Error::at("", "parallelism.pipeline_parallel_split_points")
        .found(fmt::format("{} points", s.split_points.size()))
        .expected(fmt::format("one less than a multiple of pipeline_parallel_degree {}", pp));
  }
  layout.degrees.virtual_stages = (static_cast<std::int64_t>(s.split_points.size()) + 1) / pp;
  // A stage has the layers from the split point before it to its own.
  std::int64_t before = 0;
  for (const std::int64_t point : s.split_points) {
    layout.pipeline.layers_per_stage.push_back(point - before);
    before = point;
  }
  layout.pipeline.layers_per_stage.push_back(job.model.n_layers - before);
  return Ok{};
}

// Batches. With a pipeline, the local batch is divided into micro-batches. Errors: it cannot be divided.
Status use_batches(const TorchTitanSettings& s, Layout& layout) {
  constexpr std::int64_t kMost = 1'000'000'000;
  if (s.local_batch < 1 || s.local_batch > kMost) {
    return bad_value("training.local_batch_size", s.local_batch, "1 to 1e9");
  }
  layout.batch.micro_batch_sequences = s.local_batch;
  layout.batch.global_batch_sequences =
      s.global_batch > 0 ? s.global_batch : s.local_batch * layout.degrees.data;
  if (layout.degrees.pipeline == 1) return Ok{};
  // Two ways to divide the local batch: a number of micro-batches, or their size.
  const std::int64_t micro =
      s.pipeline_micro_batches > 0 ? s.local_batch / s.pipeline_micro_batches : s.pipeline_micro_batch;
  if (micro < 1 || s.local_batch % micro != 0) {
    return Error::at(
        "", "parallelism.pipeline_parallel_microbatch_size",
        fmt::format("a local batch of {} is not divisible by micro-batches of {}", s.local_batch, micro));
  }
  layout.batch.micro_batch_sequences = micro;
  return Ok{};
}

// Applies settings of the job, which override the config. Errors: settings about uneven stages, which the
// config expresses differently.
Status put_over(const JobSettings& said, TorchTitanSettings& s, ResolvedJob& job) {
  using S = JobSettings;
  constexpr std::string_view kRefused[] = {
      "--num-virtual-stages-per-pipeline-rank",    "--num-layers-per-virtual-pipeline-stage",
      "--decoder-first-pipeline-num-layers",       "--decoder-last-pipeline-num-layers",
      "--account-for-embedding-in-pipeline-split", "--account-for-loss-in-pipeline-split"};
  // The flags are found by name, so that the error can show the flag.
  for (const detail::MegatronSettingFlag& flag : detail::megatron_setting_flags()) {
    if (std::find(std::begin(kRefused), std::end(kRefused), flag.name) == std::end(kRefused)) continue;
    if (detail::with_member(flag.setting, [&](auto field) { return (said.*field).has_value(); })) {
      return Error::at("", std::string{flag.name}, "cannot be applied to a TorchTitan config")
          .advice("change its section [parallelism]");
    }
  }
  STEPCAST_TRY(detail::apply_to_model(said, true, job.model));
  detail::TorchTitanDegrees& d = s.degrees;
  const std::pair<std::optional<std::int64_t> S::*, std::int64_t*> degrees[] = {
      {&S::tensor, &d.tensor},
      {&S::pipeline, &d.pipeline},
      {&S::context, &d.context},
      {&S::expert, &d.expert},
      {&S::expert_tensor, &d.expert_tensor}};
  for (const auto& [field, degree] : degrees) {
    if (said.*field) *degree = *(said.*field);
  }
  // The job gives all data-parallel ranks; the config's number of replicas stays.
  if (said.data) {
    if (d.replicate < 1 || *said.data % d.replicate != 0) {
      return bad_value("--data-parallel-size", *said.data,
                       fmt::format("a multiple of data_parallel_replicate_degree {}", d.replicate));
    }
    d.shard = *said.data / d.replicate;
  }
  // With a pipeline, the micro-batch is that of the pipeline, else the local batch.
  if (said.micro_batch_sequences) {
    (d.pipeline > 1 ? s.pipeline_micro_batch : s.local_batch) = *said.micro_batch_sequences;
    s.pipeline_micro_batches = 0;
  }
  if (said.global_batch_sequences) s.global_batch = *said.global_batch_sequences;
  if (said.seq_len_tokens) job.layout.batch.seq_len_tokens = *said.seq_len_tokens;
  if (said.dtype) {
    s.param_dtype = *said.dtype == DType::fp16   ? "float16"
                    : *said.dtype == DType::bf16 ? "bfloat16"
                                                 : "float32";
  }
  if (said.fp8) s.float8 = *said.fp8;
  return Ok{};
}

}  // namespace

Result<ResolvedJob> parse_torchtitan_config(std::string_view text, const std::string& name,
                                            const TorchTitanOptions& options) {
  STEPCAST_ASSIGN(const JsonValue document, parse_toml(text, name));
  STEPCAST_ASSIGN(ObjectReader root, foreign_object(document, "", name));
  ResolvedJob job;
  set_software_defaults(job.layout, Framework::torchtitan, DType::bf16);
  // Defaults of torchtitan for configs without the sections.
  job.layout.optimizer.kind = OptimizerKind::adamw;
  job.layout.batch.seq_len_tokens = 2048;
  TorchTitanSettings settings;
  // All errors get the name of the file.
  const auto build = [&]() -> Status {
    STEPCAST_TRY(detail::read_torchtitan_sections(root, options, settings, job));
    STEPCAST_TRY(put_over(options.said, settings, job));
    STEPCAST_TRY(use_degrees(settings, options, job));
    STEPCAST_TRY(use_pipeline(settings, job));
    STEPCAST_TRY(use_batches(settings, job.layout));
    STEPCAST_TRY(use_checkpointing(settings, job.layout));
    STEPCAST_TRY(use_precision(settings, job.layout));
    if (!settings.compile) job.layout.layer.fused = rule_of(Framework::pytorch).fused;
    STEPCAST_TRY(detail::apply_choices(options.said, job.layout));
    return check(job.layout, job.model, job.n_gpus);
  };
  Status built = build();
  if (!built.ok()) return std::move(built).error().in_file(name);
  return job;
}

namespace detail {

JobFormat torchtitan_format() {
  static constexpr JobPart kOthers[] = {JobPart::command_line, JobPart::deepspeed};
  const auto read = [](const Job& job) -> Result<ResolvedJob> {
    constexpr Framework kIts = Framework::torchtitan;
    if (job.framework.value_or(kIts) != kIts) {
      return Error::at("", "--framework", "a TorchTitan config needs the framework torchtitan")
          .found(std::string{to_string(*job.framework)})
          .advice("leave --framework out, or override settings with flags");
    }
    STEPCAST_ASSIGN(const BaseModel base, base_model(job));
    STEPCAST_TRY(check_numbers(job.settings));
    STEPCAST_ASSIGN(ResolvedJob result, parse_torchtitan_config(job.torchtitan->text, job.torchtitan->name,
                                                                {base.model, job.n_gpus, job.settings}));
    result.not_modelled.insert(result.not_modelled.end(), job.not_modelled.begin(), job.not_modelled.end());
    STEPCAST_TRY(finish(job, base, result));
    return result;
  };
  return {.flag = "--torchtitan",
          .is = [](const Job& job) { return job.torchtitan.has_value(); },
          .excludes = kOthers,
          .resolve = read};
}

}  // namespace detail
}  // namespace stepcast
