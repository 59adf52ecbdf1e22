// What a step meets on a shared cluster, and how it is spread over pools of GPUs.
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/report/cell_text.h"
#include "stepcast/report/detail/document_parts.h"

namespace stepcast::detail {
namespace {

void add_network(ReportDocument& document, const ForecastNetwork& network) {
  std::string text = "Network:";
  for (const ForecastTier& t : network.tiers) {
    text += fmt::format("\n  {} nodes below a switch, {:g}:1: {:.0f} % of what its uplinks pass is asked for",
                        table_count(t.nodes), t.oversubscription, 100 * t.load);
  }
  if (network.background_load > 0)
    text += fmt::format("\n  other jobs ask for {:.0f} % of every uplink", 100 * network.background_load);
  ReportSection& section = document.add("Shared links", {ReportText{text, 0}});
  section.opening = "\n";
  ReportTable table{"transfers between nodes< | times as long | together with own groups"};
  for (const ForecastSharedKind& kind : network.kinds)
    table.row({kind.group, fmt::format("{:.2f}", kind.alone), fmt::format("{:.2f}", kind.slowdown)});
  if (!table.rows.empty()) section.add(std::move(table));
  if (network.kinds.empty()) return;
  section.add(ReportText{fmt::format("  {} sweep{} of the schedule, {:.2g} % left to change", network.sweeps,
                                     network.sweeps == 1 ? "" : "s", 100 * network.residual),
                         0});
}

void add_pools(ReportDocument& document, const std::vector<ForecastPool>& pools) {
  ReportTable table{"pool< | holds< | layers of a stage< | micro-batches | GiB | of | busy %"};
  for (const ForecastPool& p : pools) {
    std::vector<std::string> layers;
    for (std::size_t i = 0, n = 0; i < p.layers.size(); i += n) {
      for (n = 1; i + n < p.layers.size() && p.layers[i + n] == p.layers[i];) ++n;
      layers.push_back(n == 1 ? fmt::format("{}", p.layers[i]) : fmt::format("{} x {}", n, p.layers[i]));
    }
    table.row({fmt::format("{} x {}{}", p.n_gpus, p.platform, p.zone.empty() ? "" : " in " + p.zone), p.holds,
               fmt::format("{}", fmt::join(layers, ", ")),
               p.micro_batches ? fmt::format("{}", *p.micro_batches) : std::string{},
               fmt::format("{:.1f}", p.peak_memory_GiB), fmt::format("{:.1f}", p.available_GiB),
               fmt::format("{:.1f}", 100 * p.busy_share)});
  }
  ReportSection& section = document.add("Pools of GPUs", {std::move(table)});
  section.opening = "\n";
}

}  // namespace

void add_pool_layouts(ReportDocument& document, const std::vector<ForecastPoolLayout>& layouts) {
  if (layouts.empty()) return;
  ReportTable table{
      "#< | layout< | pools hold< | layers, or micro-batches of a replica< | step ms | p10 ms | p90 ms | "
      "tokens/s | GiB spare"};
  for (const ForecastPoolLayout& l : layouts)
    table.row({fmt::format("{}", table.rows.size() + 1), l.layout, l.over, l.shares,
               table_number(l.step_time_ms, 1), table_number(l.step_time_p10_ms, 1),
               table_number(l.step_time_p90_ms, 1), table_number(l.tokens_per_s, 0),
               fmt::format("{:.1f}", l.spare_GiB)});
  ReportSection& section = document.add("Layouts tried", {std::move(table)});
  section.opening = "Layouts over the pools, the fastest that fit first\n\n";
  section.add(ReportText{fmt::format("Megatron-LM: {}\n", layouts.front().flags), 0});
}

void add_cluster_sections(ReportDocument& document, const Forecast& forecast) {
  if (forecast.network) add_network(document, *forecast.network);
  if (!forecast.pools.empty()) add_pools(document, forecast.pools);
}

}  // namespace stepcast::detail
