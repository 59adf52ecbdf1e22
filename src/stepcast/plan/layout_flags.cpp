#include "stepcast/plan/layout_flags.h"

#include <utility>

#include <fmt/format.h>

#include "stepcast/base/json_writer.h"
#include "stepcast/describe/setting_groups.h"
#include "stepcast/formats/megatron_writer.h"
#include "stepcast/workload/framework_rule.h"

namespace stepcast {

JobSettings complete_settings(const LayoutPoint& point, const Layout& layout,
                              const LayoutPrototypes& prototypes) {
  JobSettings s = prototypes.settings(point);
  s.tensor = point.tensor;
  s.pipeline = point.pipeline;
  if (layout.optimizer.cpu_offload) s.optimizer_offload = true;
  // Off by default where Megatron Core launches operator by operator, so it must be set.
  if (prototypes.model().moe && rule_of(layout).layers.counts_operators && layout.layer.fused.permutation)
    s.fuse_permutation = true;
  if (!layout.pipeline.layers_per_stage.empty()) {
    s.pipeline_layout = pipeline_layout_string(layout.pipeline.layers_per_stage,
                                               prototypes.model().n_multi_token_prediction_layers);
    s.virtual_stages.reset();  // contained in the string
  }
  return s;
}

JobSettings settings_beyond(const Job& asked, JobSettings complete) {
  using S = JobSettings;
  const S& said = asked.settings;
  complete.seq_len_tokens.reset();
  if (complete.dtype == DType::bf16) complete.dtype.reset();
  setting_groups::kAll.each([&](auto field) {
    if (said.*field) (complete.*field).reset();
  });
  // Different settings for the same thing: if the job gives one of a group, all of the group are left out.
  const auto leave_out_together = [&](const auto... fields) {
    if (((said.*fields).has_value() || ...)) ((complete.*fields).reset(), ...);
  };
  leave_out_together(&S::recompute, &S::recompute_attention, &S::checkpoint_layers);
  leave_out_together(&S::sharding, &S::distributed_optimizer, &S::fully_sharded, &S::zero_stage);
  return complete;
}

std::optional<std::string> megatron_text(const LayoutPoint& point, const Layout& layout,
                                         const LayoutPrototypes& prototypes) {
  const bool has_flags =
      point.schedule == PipelineSchedule::one_f_one_b || point.schedule == PipelineSchedule::interleaved;
  if (!has_flags) return std::nullopt;
  return megatron_flags_of(complete_settings(point, layout, prototypes));
}

std::optional<std::string> torchtitan_text(const Layout& layout, const Transformer& model) {
  const Degrees& d = layout.degrees;
  const bool interleaved = layout.pipeline.schedule == PipelineSchedule::interleaved;
  if (!interleaved && layout.pipeline.schedule != PipelineSchedule::one_f_one_b) return std::nullopt;
  const bool shares = d.data * d.context > 1;
  if (shares && layout.sharding.kind != Sharding::zero3) return std::nullopt;
  if (d.tensor > 1 && !layout.layer.sequence_parallel) return std::nullopt;
  const std::int64_t group = layout.shard_group();
  const std::int64_t replicate = shares ? d.data * d.context / group : 1;
  if (d.data % replicate != 0) return std::nullopt;
  std::string text = "[training]\n";
  // Sequences of a data-parallel rank per forward call: with a pipeline, all micro-batches of a step.
  const std::int64_t local = d.pipeline > 1 ? layout.batch.micro_batch_sequences * layout.micro_batches()
                                            : layout.batch.micro_batch_sequences;
  text += fmt::format("local_batch_size = {}\nglobal_batch_size = {}\nseq_len = {}\n\n[parallelism]\n", local,
                      layout.batch.global_batch_sequences, layout.batch.seq_len_tokens);
  text += fmt::format("data_parallel_replicate_degree = {}\ndata_parallel_shard_degree = {}\n", replicate,
                      d.data / replicate);
  text += fmt::format("tensor_parallel_degree = {}\ncontext_parallel_degree = {}\n", d.tensor, d.context);
  text += fmt::format("pipeline_parallel_degree = {}\n", d.pipeline);
  if (d.pipeline > 1) {
    text += fmt::format("pipeline_parallel_schedule = \"{}\"\npipeline_parallel_microbatch_size = {}\n",
                        interleaved ? "Interleaved1F1B" : "1F1B", layout.batch.micro_batch_sequences);
    std::string points;
    // A split point starts every chunk except the first.
    for (const StageChunk& chunk : stage_chunks(model, layout)) {
      if (chunk.first_layer == 0) continue;
      points += fmt::format("{}\"layers.{}\"", points.empty() ? "" : ", ", chunk.first_layer);
    }
    text += fmt::format("pipeline_parallel_split_points = [{}]\n", points);
  }
  if (d.expert > 1) text += fmt::format("expert_parallel_degree = {}\n", d.expert);
  const Recompute recompute = layout.layer.recompute.kind;
  if (recompute == Recompute::selective) return std::nullopt;
  text += fmt::format("\n[activation_checkpoint]\nmode = {}\n",
                      recompute == Recompute::full            ? "\"full\""
                      : recompute == Recompute::selective_ops ? "\"selective\"\nselective_ac_option = \"op\""
                                                              : "\"none\"");
  if (layout.layer.fused.compiled) text += "\n[compile]\nenable = true\n";
  return text;
}

std::optional<std::string> deepspeed_text(const Layout& layout) {
  // These degrees have no keys in a DeepSpeed config.
  const Degrees& d = layout.degrees;
  if (d.tensor > 1 || d.pipeline > 1 || d.context > 1) return std::nullopt;
  JsonWriter json{JsonWriter::Layout::indented};
  json.begin_object();
  json.field("train_batch_size", layout.batch.global_batch_sequences);
  json.field("train_micro_batch_size_per_gpu", layout.batch.micro_batch_sequences);
  json.field("gradient_accumulation_steps", layout.micro_batches());
  const DType type = layout.layer.precision.compute;
  if (type == DType::bf16 || type == DType::fp8)
    json.key("bf16").begin_object().field("enabled", true).end_object();
  if (type == DType::fp16) json.key("fp16").begin_object().field("enabled", true).end_object();
  json.key("zero_optimization").begin_object().field("stage", static_cast<int>(layout.sharding.kind));
  if (layout.sharding.shard_group_size > 0) json.field("mics_shard_size", layout.sharding.shard_group_size);
  json.end_object();
  json.end_object();
  return std::move(json).text() + "\n";
}

}  // namespace stepcast
