#include "stepcast/report/sharding_document.h"

#include <algorithm>

#include <fmt/format.h>

#include "stepcast/base/units.h"
#include "stepcast/report/cell_text.h"
#include "stepcast/report/detail/document_parts.h"
#include "stepcast/report/fields/answer_fields.h"
#include "stepcast/report/fields/field_table.h"
#include "stepcast/report/html/charts.h"

namespace stepcast {

// The functions below list the members of the JSON, with the columns that the tables show.
constexpr AnswerHead answer_head(const ShardingComparison*) {
  return {"stepcast.shard/1", "stepcast shard --json"};
}

// The load of one rank.
void fields(auto& a, Is<DlrmRank> auto& rank) {
  a("lookup_ms", rank.lookup_us * 1e-3, "", {"lookup\nms", 3});
  a("lookup_backward_ms", rank.lookup_backward_us * 1e-3, "", {"backward\nms", 3});
  column(a, {"tables\nGiB", 2}, rank.table_bytes / kGiB);
  a("memory_GiB", rank.memory_bytes / kGiB, "", {"memory\nGiB", 2});
  a("host_memory_GiB", rank.host_bytes / kGiB, "host memory for tables, in GiB");
  a("sent_bytes", rank.sent_bytes, "bytes sent to other ranks in the forward all-to-all",
    {"sent MB", 1, 1e-6});
}

// One sharding: its step time, the load of the busiest rank, and what would have to be moved to get there.
void fields(auto& a, Is<ComparedSharding> auto& c) {
  a("name", c.plan.name, "", {"sharding<"});
  a("fits", c.step.fits);
  a("expected_step_time_ms", c.expected_us * 1e-3, "expected step time in ms, by which shardings are ranked",
    {"expected\nms", 3});
  a("step_time_ms", c.step.time.time.value() * 1e-3, "", {"step\nms", 3});
  a("step_time_p10_ms", c.step.time.p10.value() * 1e-3, "", {"p10\nms", 3});
  a("step_time_p90_ms", c.step.time.p90.value() * 1e-3, "", {"p90\nms", 3});
  column(a, {"lookups of\nbusiest ms", 3}, c.most_lookups_us() * 1e-3);
  a("lookup_imbalance", c.step.lookup_imbalance, "lookup time of the busiest rank over the mean",
    {"imbalance", 2});
  column(a, {"sent by\nbusiest MB", 1}, c.most_sent_bytes() * 1e-6);
  a("exchange_ms", c.step.exchange_us * 1e-3, "", {"exchange\nms", 3});
  column(a, {"memory\nGiB", 1}, [&] { return c.fullest().memory_bytes / kGiB; });
  a("bound_ms", c.step.bound_us * 1e-3);
  a("moved_tables", c.moved_tables, "number of tables placed differently than now (--now)");
  a("moved_bytes", c.moved_bytes, "bytes of the moved tables: weights and optimizer state");
  a("ranks", c.step.ranks);
}

// The whole comparison.
void fields(auto& a, Is<ShardingComparison> auto& all) {
  a("model", all.model.name);
  a("n_gpus", all.n_gpus);
  a("global_batch_samples", all.global_batch_samples);
  a("verdict", all.shardings.empty() ? std::string{} : all.verdict());
  a("least_step_time_ms", all.least_step_us * 1e-3,
    "lower bound of the step time with table-wise placement, in ms");
  a("shardings", all.shardings, "shardings by expected time; those that fit come first");
  a("what_to_change", all.what_to_change,
    "advice for the running plan (--now), else for the first --plan; null: none");
}

std::string sharding_json(const ShardingComparison& answer) { return answer_json(answer) + "\n"; }
std::string sharding_schema() { return answer_schema<ShardingComparison>(); }

namespace {

// The most ranks in a picture and in a terminal, and the most shardings with a picture.
constexpr std::size_t kMostRanks = 64, kMostRanksInTerminal = 32, kMostShardingsDrawn = 4;

// Times and sizes in the units of the document.
double step_ms(const ComparedSharding& c) { return c.step.time.time.value() * 1e-3; }
double p10_ms(const ComparedSharding& c) { return c.step.time.p10.value() * 1e-3; }
double p90_ms(const ComparedSharding& c) { return c.step.time.p90.value() * 1e-3; }
double rank_lookups_ms(const DlrmRank& rank) { return (rank.lookup_us + rank.lookup_backward_us) * 1e-3; }
double memory_in_gib(const DlrmRank& rank) { return rank.memory_bytes / kGiB; }

// Why a sharding does not fit into the memory of a GPU or a host; empty if it fits.
std::string problem_of(const ComparedSharding& c) {
  const DlrmRank& worst = c.fullest();
  if (c.step.fits) return {};
  return worst.memory_bytes <= c.step.available_bytes
             ? fmt::format("does not fit: tables need more than {:.0f} GiB of host memory",
                           c.step.host_available_bytes / kGiB)
             : fmt::format("does not fit: rank {} needs {:.1f} GiB of {:.1f}", c.step.worst_rank,
                           memory_in_gib(worst), c.step.available_bytes / kGiB);
}

// A picture of the lookups of every rank. The mark is the mean over ranks: a perfectly balanced sharding
// would have all ranks there.
ReportFigure lookups_figure(const ComparedSharding& c) {
  BarChart chart{.bars = {}, .unit = "ms", .limit_name = "mean of the ranks", .decimals = 2};
  double mean = 0;
  for (const DlrmRank& rank : c.step.ranks) mean += rank_lookups_ms(rank);
  mean /= static_cast<double>(std::max<std::size_t>(1, c.step.ranks.size()));
  for (std::size_t r = 0; r < c.step.ranks.size(); ++r) {
    const DlrmRank& rank = c.step.ranks[r];
    chart.bars.push_back({.label = fmt::format("rank {}", r),
                          .parts = {{"c-embedding", "lookups, forward", rank.lookup_us * 1e-3},
                                    {"c-memory", "backward and update", rank.lookup_backward_us * 1e-3}},
                          .note = fmt::format("{} ms, {}, {:.1f} GiB", ms_text(rank_lookups_ms(rank)),
                                              counted(c.tables[r], "table", "tables"), memory_in_gib(rank)),
                          .limit = mean});
  }
  return {bar_chart(chart), fmt::format("{}: {} per step. The busiest rank has {:.2f} x the mean lookup "
                                        "time; all ranks wait for it before the all-to-all.",
                                        c.plan.name, duration_text(step_ms(c)), c.step.lookup_imbalance)};
}

// A table of the ranks of one sharding.
ReportTable ranks_table(const ComparedSharding& c) {
  ReportTable table{"rank | tables"};
  table.indent = 0;
  table.most = kMostRanks;
  table.most_in_terminal = kMostRanksInTerminal;
  for (std::size_t r = 0; r < c.step.ranks.size(); ++r)
    add_row(table, {std::to_string(r), std::to_string(c.tables[r])}, c.step.ranks[r]);
  return table;
}

// A table of all shardings, best first, with samples per second and the reason if one does not fit.
ReportTable shardings_table(const ShardingComparison& all) {
  ReportTable table;
  table.indent = 0;
  table.emphasized = 0;
  for (const ComparedSharding& c : all.shardings)
    add_row(table, {}, c)
        .numbers({static_cast<double>(all.global_batch_samples) / step_ms(c) * 1e3}, 0)
        .cell(problem_of(c));
  table.add_columns("samples\nper s | <");
  return table;
}

// A picture of the step time with each sharding, and the lower bound for placements of whole tables.
ReportFigure steps_figure(const ShardingComparison& all) {
  BarChart chart{.bars = {},
                 .unit = "ms",
                 .limit_name = "lower bound of table-wise placement",
                 .decimals = 2,
                 .with_legend = false};
  for (const ComparedSharding& c : all.shardings) {
    Bar& bar = chart.bars.emplace_back(
        Bar{.label = c.plan.name,
            .parts = {{c.step.fits ? "c-accent" : "c-faint", "step", step_ms(c)}},
            .note = c.step.fits ? band_text(step_ms(c), p10_ms(c), p90_ms(c)) : "does not fit"});
    if (all.least_step_us > 0) bar.limit = all.least_step_us * 1e-3;
  }
  return {bar_chart(chart), "Dashed line: the step with evenly spread lookups and vectors."};
}

}  // namespace

ReportDocument sharding_document(const ShardingComparison& answer, const std::string& platform) {
  const double least_step_ms = answer.least_step_us * 1e-3;
  const ComparedSharding& best = answer.shardings.front();
  ReportDocument document;
  document.title = fmt::format("Shardings of {} over {} GPUs", answer.model.name, table_count(answer.n_gpus));
  document.subject = {
      fmt::format("{}; {} samples per step", platform, table_count(answer.global_batch_samples))};
  document.verdict = sentence(answer.verdict());
  const double samples_per_s = static_cast<double>(answer.global_batch_samples) / step_ms(best) * 1e3;
  document.figures = {
      {"Step time of " + best.plan.name, duration_text(step_ms(best)),
       band_text(step_ms(best), p10_ms(best), p90_ms(best)), std::string{to_string(best.step.time.source)}},
      {"Samples per second", table_number(samples_per_s, 0),
       rate_band_text(samples_per_s, step_ms(best), p10_ms(best), p90_ms(best), 0),
       std::string{to_string(best.step.time.source)}},
      {"Memory of the fullest GPU", gib(memory_in_gib(best.fullest())) + " GiB",
       fmt::format("of {:.1f}", best.step.available_bytes / kGiB), "analytic"}};
  ReportSection& steps = document.add("Step time of every sharding", {shardings_table(answer)});
  steps.opening.emplace();
  steps.add(steps_figure(answer), Shown::page);
  steps.add(TerminalText{"\n" + answer.verdict() + "\n"});
  // The bound holds for table-wise placement only; a best sharding below it splits tables.
  if (least_step_ms > 0 && best.step.fits && least_step_ms <= step_ms(best)) {
    const double percent = 100 * (1 - least_step_ms / step_ms(best));
    document.figures.push_back({"Lower bound of table-wise placement", duration_text(least_step_ms),
                                fmt::format("{:.1f} % under {}", percent, best.plan.name)});
    steps.add(ReportText{fmt::format("Lower bound for table-wise placement: {}, {:.1f} % below {}.",
                                     duration_text(least_step_ms), percent, best.plan.name),
                         0});
  }
  if (best.moved_tables > 0)
    steps.add(ReportText{fmt::format("{} moves {} of the running plan, {:.2f} GiB.", best.plan.name,
                                     counted(best.moved_tables, "table", "tables"), best.moved_bytes / kGiB),
                         0});
  detail::add_what_to_change(document, answer.what_to_change, static_cast<std::uint64_t>(answer.n_gpus));
  ReportSection& loads = document.add("Load of every rank");
  for (std::size_t i = 0; i < std::min(answer.shardings.size(), kMostShardingsDrawn); ++i)
    loads.add(lookups_figure(answer.shardings[i]), Shown::page);
  if (answer.shardings.size() > kMostShardingsDrawn)
    loads.add(ReportText{fmt::format("The first {} of {} shardings.", kMostShardingsDrawn,
                                     answer.shardings.size())},
              Shown::page);
  for (const ComparedSharding& c : answer.shardings) {
    ReportSection& ranks = document.add(fmt::format("Ranks of {}", c.plan.name), {ranks_table(c)});
    ranks.opening = fmt::format("\n{}:\n", ranks.title);
    // Only the ranks of the best sharding are shown in a terminal, and unfolded on a page.
    ranks.folded = &c != &best;
    ranks.shown = ranks.folded ? Shown::page : Shown::everywhere;
  }
  ReportTable table = shardings_table(answer);
  constexpr std::size_t kMostShardings = 8;
  table.most = kMostShardings;
  table.on_first_screen = {"sharding", "expected\nms", "step\nms",    "p10\nms",
                           "p90\nms",  "imbalance",    "memory\nGiB", ""};
  document.first_screen = FirstScreen{.blocks = {std::move(table)}};
  detail::add_what_to_change(*document.first_screen, answer.what_to_change);
  document.json = sharding_json(answer);
  return document;
}

}  // namespace stepcast
