#include "stepcast/report/sharding_document.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "stepcast/report/detail/document_parts.h"
#include "stepcast/report/html/charts.h"
#include "stepcast/report/text_table.h"

namespace stepcast {
namespace {

using detail::band_text;
using detail::ms_text;
using detail::percent_text;

constexpr std::size_t kMostRanks = 64, kMostDrawn = 4;

double step_ms(const ShardingCandidate& c) { return c.step.time.value() * 1e-3; }
double p10_ms(const ShardingCandidate& c) { return c.step.p10.value() * 1e-3; }
double p90_ms(const ShardingCandidate& c) { return c.step.p90.value() * 1e-3; }

double most(const ShardingCandidate& c, double ShardedRank::*value) {
  double largest = 0;
  for (const ShardedRank& rank : c.ranks) largest = std::max(largest, rank.*value);
  return largest;
}

// Lookups of every rank, beside the mean that no rank could be below all at once.
ReportFigure lookups_figure(const ShardingCandidate& c) {
  BarChart chart{.bars = {}, .unit = "ms", .limit_name = "mean of the ranks", .decimals = 2};
  double mean = 0;
  for (const ShardedRank& rank : c.ranks) mean += rank.lookup_ms + rank.lookup_backward_ms;
  mean /= static_cast<double>(std::max<std::size_t>(1, c.ranks.size()));
  for (std::size_t r = 0; r < std::min(c.ranks.size(), kMostRanks); ++r) {
    const ShardedRank& rank = c.ranks[r];
    chart.bars.push_back(
        {.label = fmt::format("rank {}", r),
         .parts = {{"c-embedding", "lookups, forward", rank.lookup_ms},
                   {"c-memory", "backward and update", rank.lookup_backward_ms}},
         .note = fmt::format("{} ms, {}, {:.1f} GiB", ms_text(rank.lookup_ms + rank.lookup_backward_ms),
                             detail::plural(static_cast<std::int64_t>(rank.tables), "table", "tables"),
                             rank.memory_GiB),
         .limit = mean});
  }
  return {bar_chart(chart), fmt::format("{}: {} ms a step; the busiest rank has {:.2f} times the mean. All "
                                        "wait for it before they exchange.",
                                        c.name, ms_text(step_ms(c)), c.lookup_imbalance)};
}

ReportTable ranks_table(const ShardingCandidate& c) {
  ReportTable table{{{"rank"}, {"tables"}, {"lookup ms"}, {"backward ms"}, {"memory GiB"}, {"sent MB"}}, {}};
  for (std::size_t r = 0; r < std::min(c.ranks.size(), kMostRanks); ++r) {
    const ShardedRank& rank = c.ranks[r];
    table.rows.push_back({std::to_string(r), table_count(rank.tables), ms_text(rank.lookup_ms),
                          ms_text(rank.lookup_backward_ms), table_number(rank.memory_GiB, 2),
                          table_number(rank.sent_MB, 1)});
  }
  if (c.ranks.size() > kMostRanks)
    table.caption = fmt::format("and {} more ranks", c.ranks.size() - kMostRanks);
  return table;
}

}  // namespace

ReportDocument sharding_document(const ShardingAnswer& answer) {
  const ShardingCandidate& best = answer.shardings.front();
  ReportDocument document;
  document.title = fmt::format("Shardings of {} over {} GPUs", answer.model,
                               table_count(static_cast<std::uint64_t>(answer.n_gpus)));
  document.subject = {fmt::format("{}; {} samples per step", answer.platform,
                                  table_count(static_cast<std::uint64_t>(answer.global_batch_samples)))};
  document.verdict = detail::sentence(answer.verdict);
  const double samples_per_s = static_cast<double>(answer.global_batch_samples) / step_ms(best) * 1e3;
  document.figures = {
      {"Step time of " + best.name, ms_text(step_ms(best)) + " ms", band_text(p10_ms(best), p90_ms(best)),
       std::string{to_string(best.step.source)}},
      {"Samples per second", table_number(samples_per_s, 0),
       detail::rate_band_text(samples_per_s, step_ms(best), p10_ms(best), p90_ms(best), 0),
       std::string{to_string(best.step.source)}},
      {"Memory of the fullest GPU", table_number(most(best, &ShardedRank::memory_GiB), 1) + " GiB",
       fmt::format("of {:.1f}", answer.memory_GiB), "analytic"}};
  if (answer.least_step_ms > 0 && best.fits) {
    document.figures.push_back(
        {"No placement is below", ms_text(answer.least_step_ms) + " ms",
         fmt::format("{} % under {}", percent_text(step_ms(best) - answer.least_step_ms, step_ms(best)),
                     best.name)});
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
  for (const ShardingCandidate& c : answer.shardings) {
    double busiest = 0;
    for (const ShardedRank& rank : c.ranks)
      busiest = std::max(busiest, rank.lookup_ms + rank.lookup_backward_ms);
    table.rows.push_back({c.name, ms_text(step_ms(c)), ms_text(p10_ms(c)), ms_text(p90_ms(c)),
                          ms_text(busiest), table_number(c.lookup_imbalance, 2), ms_text(c.exchange_ms),
                          table_number(most(c, &ShardedRank::sent_MB), 1),
                          table_number(most(c, &ShardedRank::memory_GiB), 1), c.fits ? "" : "does not fit"});
    Bar bar{.label = c.name,
            .parts = {{c.fits ? "c-accent" : "c-faint", "step", step_ms(c)}},
            .note = c.fits ? band_text(p10_ms(c), p90_ms(c)) : "does not fit"};
    if (answer.least_step_ms > 0) bar.limit = answer.least_step_ms;
    chart.bars.push_back(std::move(bar));
  }
  document.sections.push_back(
      {"Step time of every sharding",
       {ReportFigure{bar_chart(chart),
                     "The dashed line: the step if lookups and vectors could be spread evenly."},
        table}});
  ReportSection loads{"Load of every rank"};
  for (std::size_t i = 0; i < std::min(answer.shardings.size(), kMostDrawn); ++i)
    loads.blocks.emplace_back(lookups_figure(answer.shardings[i]));
  document.sections.push_back(std::move(loads));
  for (std::size_t i = 0; i < answer.shardings.size(); ++i) {
    document.sections.push_back(
        {fmt::format("Ranks of {}", answer.shardings[i].name), {ranks_table(answer.shardings[i])}, i > 0});
  }
  document.json = answer.json;
  return document;
}

}  // namespace stepcast
