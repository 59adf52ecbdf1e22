#include "stepcast/report/sharding_document.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/units.h"
#include "stepcast/report/detail/document_parts.h"
#include "stepcast/report/html/charts.h"
#include "stepcast/report/sharding_report.h"
#include "stepcast/report/text_table.h"

namespace stepcast {
namespace {

using detail::band_text;
using detail::ms_text;
using detail::percent_text;

constexpr std::size_t kMostRanks = 64, kMostShardingsDrawn = 4;

double step_ms(const ComparedSharding& c) { return c.step.time.time.value() * 1e-3; }
double p10_ms(const ComparedSharding& c) { return c.step.time.p10.value() * 1e-3; }
double p90_ms(const ComparedSharding& c) { return c.step.time.p90.value() * 1e-3; }

double rank_lookups_ms(const DlrmRank& rank) { return (rank.lookup_us + rank.lookup_backward_us) * 1e-3; }
double memory_GiB(const DlrmRank& rank) { return rank.memory_bytes / kGiB; }
double most_memory_GiB(const ComparedSharding& c) {
  double largest = 0;
  for (const DlrmRank& rank : c.step.ranks) largest = std::max(largest, memory_GiB(rank));
  return largest;
}

// Lookups of every rank, beside the mean that no rank could be below all at once.
ReportFigure lookups_figure(const ComparedSharding& c) {
  BarChart chart{.bars = {}, .unit = "ms", .limit_name = "mean of the ranks", .decimals = 2};
  double mean = 0;
  for (const DlrmRank& rank : c.step.ranks) mean += rank_lookups_ms(rank);
  mean /= static_cast<double>(std::max<std::size_t>(1, c.step.ranks.size()));
  for (std::size_t r = 0; r < std::min(c.step.ranks.size(), kMostRanks); ++r) {
    const DlrmRank& rank = c.step.ranks[r];
    chart.bars.push_back(
        {.label = fmt::format("rank {}", r),
         .parts = {{"c-embedding", "lookups, forward", rank.lookup_us * 1e-3},
                   {"c-memory", "backward and update", rank.lookup_backward_us * 1e-3}},
         .note = fmt::format("{} ms, {}, {:.1f} GiB", ms_text(rank_lookups_ms(rank)),
                             detail::plural(static_cast<std::int64_t>(c.tables[r]), "table", "tables"),
                             memory_GiB(rank)),
         .limit = mean});
  }
  return {bar_chart(chart), fmt::format("{}: {} ms a step; the busiest rank has {:.2f} times the mean. All "
                                        "wait for it before they exchange.",
                                        c.plan.name, ms_text(step_ms(c)), c.step.lookup_imbalance)};
}

ReportTable ranks_table(const ComparedSharding& c) {
  ReportTable table{{{"rank"}, {"tables"}, {"lookup ms"}, {"backward ms"}, {"memory GiB"}, {"sent MB"}}, {}};
  for (std::size_t r = 0; r < std::min(c.step.ranks.size(), kMostRanks); ++r) {
    const DlrmRank& rank = c.step.ranks[r];
    table.rows.push_back({std::to_string(r), table_count(c.tables[r]), ms_text(rank.lookup_us * 1e-3),
                          ms_text(rank.lookup_backward_us * 1e-3), table_number(memory_GiB(rank), 2),
                          table_number(rank.sent_bytes * 1e-6, 1)});
  }
  if (c.step.ranks.size() > kMostRanks)
    table.caption = fmt::format("and {} more ranks", c.step.ranks.size() - kMostRanks);
  return table;
}

}  // namespace

ReportDocument sharding_document(const ShardingComparison& answer, const std::string& platform) {
  const double least_step_ms = answer.least_step_us * 1e-3;
  const ComparedSharding& best = answer.shardings.front();
  ReportDocument document;
  document.title = fmt::format("Shardings of {} over {} GPUs", answer.model.name,
                               table_count(static_cast<std::uint64_t>(answer.n_gpus)));
  document.subject = {fmt::format("{}; {} samples per step", platform,
                                  table_count(static_cast<std::uint64_t>(answer.global_batch_samples)))};
  document.verdict = detail::sentence(answer.verdict());
  const double samples_per_s = static_cast<double>(answer.global_batch_samples) / step_ms(best) * 1e3;
  document.figures = {{"Step time of " + best.plan.name, ms_text(step_ms(best)) + " ms",
                       band_text(p10_ms(best), p90_ms(best)), std::string{to_string(best.step.time.source)}},
                      {"Samples per second", table_number(samples_per_s, 0),
                       detail::rate_band_text(samples_per_s, step_ms(best), p10_ms(best), p90_ms(best), 0),
                       std::string{to_string(best.step.time.source)}},
                      {"Memory of the fullest GPU", table_number(most_memory_GiB(best), 1) + " GiB",
                       fmt::format("of {:.1f}", best.step.available_bytes / kGiB), "analytic"}};
  if (least_step_ms > 0 && best.step.fits) {
    document.figures.push_back(
        {"No placement is below", ms_text(least_step_ms) + " ms",
         fmt::format("{} % under {}", percent_text(step_ms(best) - least_step_ms, step_ms(best)),
                     best.plan.name)});
  }
  BarChart chart{.bars = {},
                 .unit = "ms",
                 .limit_name = "no placement of whole tables is below",
                 .decimals = 2,
                 .with_legend = false};
  ReportTable table{{{"sharding", false},
                     {"step ms"},
                     {"p10"},
                     {"p90"},
                     {"lookups of the busiest ms"},
                     {"imbalance"},
                     {"exchange ms"},
                     {"sent by the busiest MB"},
                     {"memory GiB"},
                     {"", false}},
                    {}};
  table.emphasized = 0;
  for (const ComparedSharding& c : answer.shardings) {
    table.rows.push_back({c.plan.name, ms_text(step_ms(c)), ms_text(p10_ms(c)), ms_text(p90_ms(c)),
                          ms_text(c.most_lookups_us() * 1e-3), table_number(c.step.lookup_imbalance, 2),
                          ms_text(c.step.exchange_us * 1e-3), table_number(c.most_sent_bytes() * 1e-6, 1),
                          table_number(most_memory_GiB(c), 1), c.step.fits ? "" : "does not fit"});
    Bar bar{.label = c.plan.name,
            .parts = {{c.step.fits ? "c-accent" : "c-faint", "step", step_ms(c)}},
            .note = c.step.fits ? band_text(p10_ms(c), p90_ms(c)) : "does not fit"};
    if (least_step_ms > 0) bar.limit = least_step_ms;
    chart.bars.push_back(std::move(bar));
  }
  document.sections.push_back(
      {"Step time of every sharding",
       {ReportFigure{bar_chart(chart),
                     "The dashed line: the step if lookups and vectors could be spread evenly."},
        table}});
  ReportSection loads{"Load of every rank"};
  for (std::size_t i = 0; i < std::min(answer.shardings.size(), kMostShardingsDrawn); ++i)
    loads.blocks.emplace_back(lookups_figure(answer.shardings[i]));
  document.sections.push_back(std::move(loads));
  for (std::size_t i = 0; i < answer.shardings.size(); ++i) {
    document.sections.push_back({fmt::format("Ranks of {}", answer.shardings[i].plan.name),
                                 {ranks_table(answer.shardings[i])},
                                 i > 0});
  }
  document.json = sharding_json(answer);
  return document;
}

}  // namespace stepcast
