#include "stepcast/predict/stage_pools.h"

#include <algorithm>
#include <utility>

namespace stepcast {

std::size_t pool_of_stage(std::span<const StagePool> pools, std::uint32_t stage) {
  const auto found = std::ranges::find_if(pools, [&](const StagePool& p) { return stage < p.end_stage; });
  return static_cast<std::size_t>(std::min(found, pools.end() - 1) - pools.begin());
}

Result<std::vector<PricedStep>> price_on_pools(const Transformer& model, const Layout& layout,
                                               std::span<const StagePool> pools) {
  std::vector<PricedStep> parts;
  for (const StagePool& pool : pools) {
    STEPCAST_ASSIGN(PricedStep part, pool.steps.price(model, layout));
    parts.push_back(std::move(part));
  }
  if (parts.size() < 2) return parts;
  // Each chunk and stage gets the times of its own pool.
  StepSchedule merged = parts.front().schedule;
  for (std::size_t c = 0; c < merged.chunks.size(); ++c) {
    const std::uint32_t stage =
        stage_of_chunk(layout.pipeline.schedule, merged.shape.stages, static_cast<std::uint32_t>(c));
    merged.chunks[c] = parts[pool_of_stage(pools, stage)].schedule.chunks[c];
  }
  for (std::uint32_t s = 0; s < merged.shape.stages; ++s) {
    const StepSchedule& own = parts[pool_of_stage(pools, s)].schedule;
    merged.reduce_at_end_us[s] = own.reduce_at_end_us[s];
    merged.optimizer_us[s] = own.optimizer_us[s];
    merged.gather_after_step_us[s] = own.gather_after_step_us[s];
  }
  // Times that stages share are the largest of all pools.
  double sent_us = 0, put_together_us = 0;
  for (const PricedStep& part : parts) {
    const StepSchedule& own = part.schedule;
    sent_us = std::max(sent_us, part.boundary.time_us);
    put_together_us = std::max(put_together_us, part.put_together.time_us);
    merged.embedding_reduce_us = std::max(merged.embedding_reduce_us, own.embedding_reduce_us);
    merged.fixed_us = std::max(merged.fixed_us, own.fixed_us);
  }
  merged.boundary_us = merged.boundary_wrap_us = sent_us + put_together_us;
  const auto links_of = [&](std::size_t chunk) -> const PoolLinks& {
    const std::uint32_t stage =
        stage_of_chunk(layout.pipeline.schedule, merged.shape.stages, static_cast<std::uint32_t>(chunk));
    return pools[pool_of_stage(pools, stage)].links;
  };
  // Latency between consecutive chunks, which is 0 within a zone. The list is cleared if all are 0.
  for (std::size_t c = 0; c + 1 < merged.chunks.size(); ++c)
    merged.delay_us.push_back(links_of(c).latency_us_to(links_of(c + 1)));
  if (std::ranges::all_of(merged.delay_us, [](double us) { return us == 0; })) merged.delay_us.clear();
  for (PricedStep& part : parts) part.schedule = merged;
  return parts;
}

StepPrediction predict_on_pools(std::span<const PricedStep> parts, const Layout& layout,
                                std::span<const StagePool> pools) {
  const std::uint32_t critical = pools.front().steps.critical_stage(parts.front());
  const std::size_t pool = pool_of_stage(pools, critical);
  return pools[pool].steps.predict(parts[pool], layout);
}

Result<StepPrediction> predict_on_pools(const Transformer& model, const Layout& layout,
                                        std::span<const StagePool> pools) {
  STEPCAST_ASSIGN(const std::vector<PricedStep> parts, price_on_pools(model, layout, pools));
  return predict_on_pools(parts, layout, pools);
}

}  // namespace stepcast
