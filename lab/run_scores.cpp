#include "lab/run_scores.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/units.h"
#include "stepcast/workload/memory.h"

#include "lab/published_forecast.h"

namespace stepcast {

namespace {

std::string shares_text(const StageMemory& m) {
  const auto share = [&](Bytes bytes) { return bytes / m.in_allocator(); };
  return fmt::format(
      "weights {:.3f} gradients {:.3f} optimizer {:.3f} activations {:.3f} working {:.3f} reserve {:.3f}",
      share(m.weights), share(m.gradients), share(m.optimizer), share(m.activations), share(m.working),
      share(m.reserve));
}

}  // namespace

TestScore score_memory(const std::vector<PredictedRun>& runs) {
  TestScore result{.test = "memory", .protocol = "shipped", .unit = "GiB"};
  std::map<std::string, SetScore> sets;
  for (const PredictedRun& p : runs) {
    if (!p.run->memory_GiB) continue;
    // What the device has does not matter to what is needed.
    const Result<MemoryForecast> memory = memory_forecast(p.run->model, p.run->layout, Bytes{1});
    if (!memory) continue;
    const auto most = std::ranges::max_element(memory->stages, {}, &StageMemory::in_allocator);
    ScoredRow row = scored(p);
    row.measured = *p.run->memory_GiB;
    row.predicted = most->in_allocator().value() / kGiB;
    row.p10 = row.p90 = {};
    row.shares = shares_text(*most);
    sets[p.run->set].rows.push_back(std::move(row));
  }
  for (auto& [name, set] : sets) {
    set.set = name;
    result.sets.push_back(std::move(set));
  }
  result.finish();
  return result;
}

TestScore score_published_composition(const std::vector<PredictedRun>& runs, RunPlatforms& platforms) {
  TestScore result{.test = "published_composition", .protocol = "shipped", .unit = "ms"};
  std::map<std::string, SetScore> sets;
  std::map<std::string, double> ours;  // [set] sum of |errors|, %
  for (const PredictedRun& p : runs) {
    // Where the GPU is not stated, times say nothing.
    if (p.run->gpu.empty() || p.run->layout.layer.packed_mean_tokens > 0) continue;
    Result<StepModel*> model = platforms.model_for(*p.run);
    if (!model) continue;
    const Result<PricedStep> priced = (*model)->price(p.run->model, p.run->layout);
    if (!priced) continue;
    const Result<PublishedComponents> parts = published_components(*priced, p.run->layout);
    if (!parts) continue;
    ScoredRow row = scored(p);
    ours[p.run->set] += 100 * std::abs(row.predicted / row.measured - 1);
    row.predicted = compose_as_published(*parts).step_us() * 1e-3;
    row.p10 = row.p90 = {};
    row.shares.clear();
    sets[p.run->set].rows.push_back(std::move(row));
  }
  for (auto& [name, set] : sets) {
    set.set = name;
    set.extras.push_back({"ours_mape", ours[name] / static_cast<double>(set.rows.size())});
    result.sets.push_back(std::move(set));
  }
  result.finish();
  return result;
}

}  // namespace stepcast
