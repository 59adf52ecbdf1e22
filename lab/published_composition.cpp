#include "lab/published_composition.h"

#include <algorithm>

#include <fmt/format.h>

namespace stepcast {
namespace {

struct Passes {
  double head_forward, middle_forward, tail_forward;
  double head_backward, middle_backward, tail_backward;
};

// Forwards are sent by head and middle, backwards by middle and tail; senders wait.
Passes with_transfers(const PublishedComponents& c) {
  return {c.head.forward_us + c.p2p_us, c.middle.forward_us + c.p2p_us,  c.tail.forward_us,
          c.head.backward_us,           c.middle.backward_us + c.p2p_us, c.tail.backward_us + c.p2p_us};
}

void add_update(const PublishedComponents& c, PublishedStep& step) {
  if (c.data_parallel <= 1) return;  // as published: no optimizer then
  step.all_reduce_us = c.head.all_reduce_us;
  for (const PublishedStage* stage : {&c.head, &c.middle, &c.tail})
    step.update_us = std::max(step.update_us, stage->optimizer_us + stage->all_gather_us);
}

}  // namespace

PublishedLayerSplit published_layer_split(std::int64_t n_layers, std::int64_t n_stages) {
  const std::int64_t units = n_layers + 5;
  return {(units + n_stages - 1) / n_stages - 2, units / n_stages, units / n_stages - 3};
}

PublishedStep compose_as_published(const PublishedComponents& c) {
  const Passes t = with_transfers(c);
  PublishedStep step{.longest_forward_us = std::max({t.head_forward, t.middle_forward, t.tail_forward}),
                     .longest_backward_us = std::max({t.head_backward, t.middle_backward, t.tail_backward})};
  step.passes_us = static_cast<double>(c.micro_batches - 1 + c.n_stages) *
                   (step.longest_forward_us + step.longest_backward_us);
  add_update(c, step);
  return step;
}

PublishedStep compose_as_published_exact(const PublishedComponents& c) {
  const Passes t = with_transfers(c);
  const auto middles = static_cast<double>(c.n_stages - 2);
  PublishedStep step{.longest_forward_us = std::max({t.head_forward, t.middle_forward, t.tail_forward}),
                     .longest_backward_us = std::max({t.head_backward, t.middle_backward, t.tail_backward})};
  const double forwards = t.head_forward + middles * t.middle_forward + t.tail_forward;
  const double backwards = t.head_backward + middles * t.middle_backward + t.tail_backward;
  step.passes_us =
      forwards + static_cast<double>(c.micro_batches - 1) * (t.tail_forward + t.tail_backward) + backwards;
  add_update(c, step);
  return step;
}

Result<PublishedComponents> published_components(const PricedStep& step, const Layout& layout) {
  if (layout.pipeline.schedule != PipelineSchedule::one_f_one_b && layout.degrees.pipeline > 1) {
    return Error{fmt::format("the published method has no formula for the schedule {}: use 1f1b",
                             to_string(layout.pipeline.schedule))};
  }
  if (step.layers.size() != 1) {
    return Error{
        fmt::format("the published method has no formula for layers of {} kinds: use a dense model and one "
                    "recomputation for all",
                    step.layers.size())};
  }
  std::int64_t n_layers = 0;
  for (const ChunkWork& chunk : step.work.chunks)
    for (const ChunkWork::Run& run : chunk.runs) n_layers += run.count;
  PublishedComponents c{.n_stages = step.work.stages,
                        .micro_batches = step.work.micro_batches,
                        .data_parallel = layout.degrees.data,
                        .p2p_us = step.schedule.boundary_us};
  const PublishedLayerSplit split = published_layer_split(n_layers, c.n_stages);
  if (std::min({split.head, split.middle, split.tail}) < 0) {
    return Error{fmt::format("{} layers on {} stages leave the published tail {} layers: use fewer stages",
                             n_layers, c.n_stages, split.tail)};
  }
  const PricedStep::Layer& layer = step.layers.front();
  const auto fill = [&](PublishedStage& stage, std::int64_t layers, std::size_t s) {
    const auto n = static_cast<double>(layers);
    stage.forward_us = n * layer.forward.time_us;
    stage.backward_us = n * layer.backward.time_us;
    stage.all_reduce_us = step.schedule.reduce_at_end_us[s];
    stage.all_gather_us = step.schedule.gather_after_step_us[s];
    stage.optimizer_us = step.schedule.optimizer_us[s];
  };
  const std::size_t last = step.work.stages - 1;
  fill(c.head, split.head, 0);
  fill(c.middle, split.middle, last > 1 ? 1 : 0);
  fill(c.tail, split.tail, last);
  c.head.forward_us += step.embedding.forward.time_us;
  c.head.backward_us += step.embedding.backward.time_us;
  c.tail.forward_us += step.head.forward.time_us;
  c.tail.backward_us += step.head.backward.time_us;
  return c;
}

}  // namespace stepcast
