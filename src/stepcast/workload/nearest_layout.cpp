#include "stepcast/workload/nearest_layout.h"

#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/workload/memory.h"

namespace stepcast {
namespace {

std::string joined(std::string_view a, std::string_view b) {
  return fmt::format("{}{}{}", a, a.empty() ? "" : ", ", b);
}

// `base` as it is, with sharded optimizer states, and with full recomputation on top.
void add_with_less_memory(const Layout& base, const std::string& change, std::vector<NearestLayout>& all) {
  if (!change.empty()) all.push_back({base, change});
  Layout sharded = base;
  std::string with_shards = change;
  if (sharded.sharding.kind == Sharding::none) {
    sharded.sharding.kind = Sharding::zero1;
    with_shards = joined(change, "the distributed optimizer");
    all.push_back({sharded, with_shards});
  }
  Layout recomputed = sharded;
  recomputed.layer.recompute.kind = Recompute::full;
  all.push_back({recomputed, joined(with_shards, "full recomputation")});
}

}  // namespace

std::optional<NearestLayout> nearest_layout_that_fits(const Transformer& model, const Layout& layout,
                                                      Bytes memory) {
  std::vector<NearestLayout> changes;
  add_with_less_memory(layout, "", changes);
  for (const std::int64_t more : {2, 4, 8, 16}) {
    for (const bool tensor : {true, false}) {
      if (layout.degrees.data % more != 0) continue;
      Layout larger = layout;
      larger.degrees.data /= more;
      std::int64_t& degree = tensor ? larger.degrees.tensor : larger.degrees.pipeline;
      degree *= more;
      add_with_less_memory(
          larger, fmt::format("{} {}", tensor ? "tensor_parallel" : "pipeline_parallel", degree), changes);
    }
  }
  for (NearestLayout& change : changes) {
    if (!check(change.layout, model)) continue;
    const Result<MemoryForecast> forecast = memory_forecast(model, change.layout, memory);
    if (forecast && forecast->verdict != MemoryVerdict::does_not_fit) return std::move(change);
  }
  return std::nullopt;
}

}  // namespace stepcast
