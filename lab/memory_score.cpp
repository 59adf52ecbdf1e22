#include "lab/memory_score.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/units.h"
#include "stepcast/workload/memory.h"

#include "lab/run_rows.h"

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

}  // namespace stepcast
