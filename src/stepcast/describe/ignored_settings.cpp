#include "stepcast/describe/ignored_settings.h"

#include <utility>

#include <fmt/format.h>

#include "stepcast/base/error_text.h"
#include "stepcast/operation/optimizer_rule.h"
#include "stepcast/workload/network.h"

namespace stepcast {

std::optional<std::string_view> flag_of_experts(const JobSettings& said) {
  const std::int64_t tensor = said.expert_tensor.value_or(0);
  // Flags with a value that only means something for experts. Values that mean "off" do not count.
  const std::pair<bool, std::string_view> flags[] = {
      {said.experts_per_token.has_value(), "--moe-router-topk"},
      {said.expert_ffn_hidden_size.has_value(), "--moe-ffn-hidden-size"},
      {said.expert_capacity_factor.value_or(0) > 0, "--moe-expert-capacity-factor"},
      {tensor > 1 && tensor != said.tensor, "--expert-tensor-parallel-size"},
      {said.overlap_expert.value_or(false), "--overlap-moe-expert-parallel-comm"}};
  for (const auto& [is_said, flag] : flags) {
    if (is_said) return flag;
  }
  return std::nullopt;
}

Status refuse_flags_of_experts(const JobSettings& said, const Transformer& model) {
  const auto flag = flag_of_experts(said);
  if (!flag || model.moe) return Ok{};
  return Error::at("", std::string{*flag}, fmt::format("{} has no experts", model.name))
      .advice("leave it out");
}

Status refuse_ignored_settings(const JobSettings& said, const ResolvedJob& job) {
  STEPCAST_TRY(refuse_flags_of_experts(said, job.model));
  if (said.decoder_tokens && (!job.model.network || job.model.network->input_tokens == 0)) {
    return Error::at("", "--decoder-seq-length", fmt::format("{} reads no pairs of texts", job.model.name))
        .advice("leave it out");
  }
  if (said.pipeline_schedule && *said.pipeline_schedule != PipelineSchedule::one_f_one_b &&
      job.layout.degrees.pipeline == 1) {
    return Error::at("", "--pipeline-schedule", "there is no pipeline")
        .advice("add --pp 2 or more, or leave it out");
  }
  const Recompute recompute = job.layout.layer.recompute.kind;
  if (said.recompute_layers && recompute != Recompute::full) {
    return Error::at("", "--recompute-num-layers",
                     recompute == Recompute::selective
                         ? "selective recomputation applies to parts of all layers, not to whole layers"
                         : "nothing is recomputed")
        .advice("add --recompute-granularity full, or leave it out");
  }
  if (said.newton_schulz_iterations && *rule_of(job.layout.optimizer.kind).matrix->iterations == 0) {
    return Error::at("", "--muon-num-ns-steps",
                     fmt::format("{} has no Newton-Schulz iterations", to_string(job.layout.optimizer.kind)))
        .advice("add --optimizer muon, or leave it out");
  }
  if (said.max_position && said.seq_len_tokens && *said.seq_len_tokens > *said.max_position) {
    return bad_value("--max-position-embeddings", *said.max_position,
                     fmt::format("at least the {} tokens of --seq-length", *said.seq_len_tokens));
  }
  return Ok{};
}

}  // namespace stepcast
