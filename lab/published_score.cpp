#include "lab/published_score.h"

#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "lab/published_composition.h"
#include "lab/run_rows.h"

namespace stepcast {

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
