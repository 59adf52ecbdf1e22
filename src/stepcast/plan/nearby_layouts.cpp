#include "stepcast/plan/nearby_layouts.h"

#include <algorithm>

#include "stepcast/describe/setting_groups.h"
#include "stepcast/formats/megatron.h"
#include "stepcast/formats/resolve_job.h"
#include "stepcast/predict/step_model.h"

namespace stepcast {

Result<RunningLayout> read_running_layout(const std::filesystem::path& file, const Job& given) {
  STEPCAST_ASSIGN(ConfigText text, read_config_text(file));
  if (text.text.find_first_not_of(" \t\r\n") == std::string::npos) {
    return Error::at(file.string(), "")
        .found("nothing")
        .expected("a launch script of Megatron-LM, a TorchTitan (.toml) or DeepSpeed (.json) config");
  }
  RunningLayout running;
  Job as_is = given;
  const std::string kind = file.extension().string();
  if (kind == ".toml")
    as_is.torchtitan = text;
  else if (kind == ".json")
    as_is.deepspeed = text;
  else
    as_is.command_line = text.text;
  STEPCAST_ASSIGN(const ResolvedJob resolved, resolve(as_is));
  running.layout = resolved.layout;
  running.model = resolved.model;
  running.n_gpus = resolved.n_gpus;
  running.job = given;
  running.job.transformer = resolved.model;
  running.job.framework = resolved.layout.software.framework;
  if (as_is.command_line) {
    STEPCAST_ASSIGN(const MegatronWords words, parse_megatron_command_line(text.text));
    running.job.settings = over(words.settings, given.settings);
    running.job.not_modelled = words.not_modelled;
    running.job.not_modelled.insert(running.job.not_modelled.end(), words.unknown.begin(),
                                    words.unknown.end());
  }
  JobSettings& s = running.job.settings;
  // The file already determined the model, so settings of its dimensions are removed.
  s.n_layers.reset();
  setting_groups::kOfDegrees.each([&](auto member) { (s.*member).reset(); });
  const Precision& precision = resolved.layout.layer.precision;
  const bool narrow = precision.compute == DType::fp8 || precision.compute == DType::fp4;
  s.dtype = narrow ? precision.other : precision.compute;
  s.global_batch_sequences = resolved.layout.batch.global_batch_sequences;
  s.seq_len_tokens = resolved.layout.batch.seq_len_tokens;
  // Overlap flags are not searched and stay unchanged.
  s.overlap_gradient_reduce = resolved.layout.sharding.overlap_gradient_reduce;
  s.overlap_parameter_gather = resolved.layout.sharding.overlap_parameter_gather;
  // Searched settings: those of the file are dropped, and only those given in addition restrict the search.
  const auto as_given = [&](auto member) { s.*member = given.settings.*member; };
  setting_groups::kSearched.each(as_given);
  setting_groups::kOfSearched.each(as_given);
  return running;
}

LayoutPoint point_of(const Layout& layout, std::int64_t gpus_per_node) {
  const auto narrow = [](std::int64_t n) {
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(n, 0, 1'000'000));
  };
  const Degrees& d = layout.degrees;
  LayoutPoint p;
  p.tensor = narrow(d.tensor);
  p.pipeline = narrow(d.pipeline);
  p.context = narrow(d.context);
  p.data = narrow(d.data);
  p.expert = narrow(d.expert);
  p.expert_tensor = d.expert_tensor == d.tensor ? 0 : narrow(d.expert_tensor);
  p.micro_batch = narrow(layout.batch.micro_batch_sequences);
  p.virtual_stages = narrow(d.virtual_stages);
  p.schedule = layout.pipeline.schedule;
  p.sharding.kind = layout.sharding.kind;
  if (layout.sharding.shard_group_size > 0 && layout.sharding.shard_group_size < d.data * d.context) {
    p.sharding.nodes =
        narrow(std::max<std::int64_t>(1, layout.sharding.shard_group_size * d.tensor / gpus_per_node));
  }
  p.recompute = layout.layer.recompute.kind;
  p.sequence_parallel = layout.layer.sequence_parallel;
  p.dtype = layout.layer.precision.compute;
  return p;
}

std::vector<NearbyLayout> nearby_layouts(const std::vector<PricedLayout>& priced, const LayoutPoint& from) {
  constexpr int kMostChanges = 3;
  std::vector<NearbyLayout> all;
  for (int changes = 1; changes <= kMostChanges; ++changes) {
    const auto best = std::ranges::find_if(
        priced, [&](const PricedLayout& layout) { return n_changes(from, layout.point) <= changes; });
    if (best == priced.end() || (!all.empty() && best->point == all.back().layout.point)) continue;
    all.push_back({n_changes(from, best->point), *best});
  }
  if (!priced.empty() && (all.empty() || all.back().layout.point != priced.front().point))
    all.push_back({n_changes(from, priced.front().point), priced.front()});
  return all;
}

LayoutNow layout_now(const RunningLayout& running, const LayoutPlan& plan, const Platform& platform) {
  LayoutNow now;
  now.point = point_of(running.layout, platform.node.gpus_per_node);
  StepModel steps{platform, plan.assumptions};
  const Result<StepPrediction> step = steps.predict(running.model, running.layout);
  if (!step.ok()) {
    now.why_not = step.error().message();
    return now;
  }
  now.step_us = step->step.time.value();
  for (const NearbyLayout& n : nearby_layouts(plan.found.priced, now.point))
    if (n.layout.step_us < now.step_us) now.nearby.push_back(n);
  return now;
}

}  // namespace stepcast
