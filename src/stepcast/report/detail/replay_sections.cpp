#include "stepcast/report/detail/replay_sections.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/scan.h"
#include "stepcast/report/cell_text.h"
#include "stepcast/report/detail/document_parts.h"
#include "stepcast/report/html/charts.h"
#include "stepcast/report/replay_verdict.h"

namespace stepcast::detail {
namespace {

// Rows of tables, with and without `verbose`, and the width of names.
constexpr std::size_t kRowsShown = 6, kRowsVerbose = 20, kNameWidth = 60;

// Milliseconds from microseconds.
double ms(double us) { return us * 1e-3; }
// Rates in TFLOP/s and GB/s, from FLOPs or bytes and microseconds; 0 without time.
double tflops(double flops, double us) { return us > 0 ? flops / us * 1e-6 : 0; }
double gb_per_s(double bytes, double us) { return us > 0 ? bytes / us * 1e-3 : 0; }

// A number, or "-" if it is unknown.
std::string or_dash(const std::optional<double>& value, int decimals) {
  return value ? table_number(*value, decimals) : "-";
}

// The causes with at least 5 % of `sum`: "host 71 %, late start 29 %".
std::string causes(const CulpritTimes& times, double sum) {
  std::vector<std::pair<double, std::string_view>> parts;
  for (std::size_t k = 0; k < kCulpritCount; ++k)
    parts.emplace_back(times[k], culprit_name(static_cast<Culprit>(k)));
  std::ranges::stable_sort(parts, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (const auto& [us, name] : parts) {
    if (percent(us, sum) < 5) break;
    text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", name, percent(us, sum));
  }
  return text;
}

// The name of an operator for a table.
std::string operator_name(const std::string& op) {
  return op.empty() ? "(no framework op)" : shorten(op, kNameWidth);
}

// How long every rank (row) waits for every other rank (column), summed over collectives in which that rank
// arrives last.
MatrixChart waiting_chart(const ReplayAnalysis& a) {
  MatrixChart chart{.row_title = "waits", .column_title = "for the last rank to arrive", .unit = "ms"};
  const std::size_t n = a.simulated.classes.size();
  std::vector<double> sums(n * n);
  for (const ForecastCollective& one : a.simulated.collectives) {
    for (const ForecastMember& member : one.members)
      if (member.rank_class != one.came_last)
        sums[member.rank_class * n + one.came_last] += ms(member.wait_us);
  }
  for (std::size_t c = 0; c < n; ++c) {
    const std::string rank = rank_cell(a, c).text;
    chart.rows.push_back("rank " + rank);
    chart.columns.push_back(rank);
  }
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (sums[i] > 0) chart.cells.push_back({i / n, i % n, sums[i]});
  return chart;
}

// The rates of kernels by class. Rates use only kernels with known work.
ReportTable classes_table(const AchievedRates& rates) {
  ReportTable table{"class< | ms | known\n% | TFLOP/s | GB/s | % of peak\nmemory"};
  for (const ClassRate& c : rates.classes) {
    const double rate = gb_per_s(c.bytes, c.known_us);
    const bool known = c.known_us > 0;
    table.row({std::string{to_string(c.kernel_class)}, table_number(ms(c.time_us), 3),
               table_number(percent(c.known_us, c.time_us), 1),
               known ? table_number(tflops(c.flops, c.known_us), 3) : "-",
               known ? table_number(rate, 0) : "-",
               known && rates.peak_GBps ? table_number(percent(rate, *rates.peak_GBps), 1) : "-"});
  }
  return table;
}

// The utilization of every rank.
ReportTable ranks_table(const ReplayAnalysis& a) {
  ReportTable table{"rank< | busy\n% | computing\n% | TFLOP/s\nof the step | TFLOP/s of\nknown kernels"};
  for (std::size_t c = 0; c < a.rates.ranks.size(); ++c) {
    const RankUtilization& rank = a.rates.ranks[c];
    table.row({rank_cell(a, c)})
        .numbers({percent(rank.busy_us, rank.step_us), percent(rank.computing_us, rank.step_us)}, 1)
        .numbers({tflops(rank.flops, rank.step_us), tflops(rank.flops, rank.known_us)}, 3);
  }
  return table;
}

// The utilization summed over ranks.
RankUtilization sum_over_ranks(const AchievedRates& rates) {
  RankUtilization sum;
  for (const RankUtilization& rank : rates.ranks) {
    sum.step_us += rank.step_us;
    sum.busy_us += rank.busy_us;
    sum.computing_us += rank.computing_us;
    sum.kernel_us += rank.kernel_us;
    sum.known_us += rank.known_us;
    sum.flops += rank.flops;
    sum.bytes += rank.bytes;
  }
  return sum;
}

}  // namespace

ReportCell rank_cell(const ReplayAnalysis& a, std::size_t rank_class) {
  return {fmt::format("{}", a.facts[rank_class].rank), static_cast<double>(a.facts[rank_class].rank)};
}

void add_groups(ReportDocument& document, const ReplayAnalysis& a) {
  if (a.groups.empty()) return;
  // Bandwidths are lower bounds if the times include waiting.
  const auto at_least = [](const GroupTraffic& g, const std::optional<double>& value) {
    return (g.holds_waiting && value ? ">= " : "") + or_dash(value, 2);
  };
  ReportTable table{
      "group< | operation< | ranks | n | bytes | transfer\nms | waiting,\nmean ms | "
      "bus\nGB/s | largest\nmessage | its bus\nGB/s | link\nGB/s | link<"};
  bool holds_waiting = false;
  for (const GroupTraffic& g : a.groups) {
    holds_waiting = holds_waiting || g.holds_waiting;
    table.row({shorten(g.group, 32), g.operation, fmt::format("{}", g.n_ranks), table_count(g.n),
               ReportCell{table_bytes(g.message_bytes), g.message_bytes}, table_number(ms(g.transfer_us), 3),
               g.holds_waiting ? "with it" : table_number(ms(g.wait_us), 3), at_least(g, g.bus_GBps),
               ReportCell{table_bytes(g.largest_message_bytes), g.largest_message_bytes},
               at_least(g, g.largest_bus_GBps), or_dash(g.link_GBps, 1), g.link});
  }
  if (holds_waiting)
    table.caption = ">=: some ranks of the group were not recorded; times include waiting for them.";
  document.add(
      "Collectives by process group (bus bandwidth as in nccl-tests, of the transfer without waiting)",
      {std::move(table)});
}

void add_stragglers(ReportDocument& document, const ReplayAnalysis& a) {
  const StepCulprits& found = a.culprits;
  if (found.collectives == 0) return;
  ReportTable table{
      "rank< | started\nlater ms | came last\nin | the others\nwaited ms | share\n% | itself\nwaited ms | "
      "causes of its delay<"};
  const double all = found.all_waiting_us();
  double most = 0;
  // The row of the rank that causes most waiting is shown in bold.
  for (std::size_t c = 0; c < found.ranks.size(); ++c) {
    const RankCulprits& rank = found.ranks[c];
    if (rank.caused_wait_us > most) table.emphasized = c;
    most = std::max(most, rank.caused_wait_us);
    table.row({rank_cell(a, c), table_number(a.simulated.classes[c].start_offset_ms, 3),
               fmt::format("{}", rank.came_last), table_number(ms(rank.caused_wait_us), 3),
               table_number(percent(rank.caused_wait_us, all), 1), table_number(ms(rank.waited_us), 3),
               causes(rank.caused_by_us, rank.caused_wait_us)});
  }
  ReportSection& section = document.add(
      fmt::format("Ranks that others wait for ({} collectives, {} of them ties: arrivals within {:.0f} us)",
                  found.collectives, found.ties, found.tie_us));
  if (document.has_page() && !a.simulated.collectives.empty()) {
    section.add(
        ReportFigure{matrix_chart(waiting_chart(a)),
                     "Time in ms that the rank of a row waits in collectives until the last rank, that of "
                     "the column, arrives. A column of strong colour is a rank that delays the others."});
  }
  section.add(std::move(table));
}

void add_operators(ReportDocument& document, const ReplayAnalysis& a, bool verbose) {
  if (a.operators.empty()) return;
  ReportTable table{"operator< | on< | median\nms | slowest\nms | rank | longer\nms | times | work"};
  // Operators are sorted by difference, so the first rows matter most.
  table.of = a.operators.size();
  for (const OperatorComparison& op : a.operators) {
    if (table.rows.size() == (verbose ? kRowsVerbose : kRowsShown)) break;
    const double slowest = op.times_us[op.slowest];
    table.row({operator_name(op.op), op.on_gpu ? "GPU" : "host", table_number(ms(op.median_us), 3),
               table_number(ms(slowest), 3), rank_cell(a, op.slowest), table_number(ms(op.excess_us()), 3),
               op.median_us > 0 ? fmt::format("{:.2f}x", slowest / op.median_us) : "-",
               !op.on_gpu                     ? ""
               : std::isfinite(op.work_ratio) ? fmt::format("{:.2f}x", op.work_ratio)
                                              : "only here"});
  }
  document.add(
      "Operators that differ most across ranks (work: FLOPs or bytes of the slowest rank over the median)",
      {std::move(table)});
}

void add_awaited(ReportDocument& document, const ReplayAnalysis& a, bool verbose) {
  if (a.awaited.empty()) return;
  double all = 0;
  for (const AwaitedOperator& op : a.awaited) all += op.gpu_idle_us;
  // Times are means per rank; shares are of the sum over all operators.
  const auto n = static_cast<double>(std::max<std::size_t>(1, a.ranks.size()));
  ReportTable table{"operator< | GPU idle,\nmean ms | share\n% | gaps | most on\nrank"};
  table.of = a.awaited.size();
  for (const AwaitedOperator& op : a.awaited) {
    if (table.rows.size() == (verbose ? kRowsVerbose : kRowsShown)) break;
    const auto most = std::ranges::max_element(op.ranks_us);
    table.row({operator_name(op.op), table_number(ms(op.gpu_idle_us / n), 3),
               table_number(percent(op.gpu_idle_us, all), 1), table_count(op.gaps),
               rank_cell(a, static_cast<std::size_t>(most - op.ranks_us.begin()))});
  }
  document.add(
      fmt::format("CPU operators that the GPU waits for ({} ms per rank)", table_number(ms(all / n), 3)),
      {std::move(table)});
}

void add_utilization(ReportDocument& document, const ReplayAnalysis& a, bool verbose) {
  const AchievedRates& rates = a.rates;
  const RankUtilization sum = sum_over_ranks(rates);
  if (sum.kernel_us <= 0) return;
  std::string line = fmt::format(
      "busy {:.1f} % of the step, computing {:.1f} %; FLOPs and bytes are known for {:.1f} % of the kernel "
      "time",
      percent(sum.busy_us, sum.step_us), percent(sum.computing_us, sum.step_us),
      percent(sum.known_us, sum.kernel_us));
  if (sum.known_us > 0) {
    line += fmt::format(": {} TFLOP/s over the step, {} TFLOP/s and {} GB/s in these kernels",
                        table_number(tflops(sum.flops, sum.step_us), 3),
                        table_number(tflops(sum.flops, sum.known_us), 3),
                        table_number(gb_per_s(sum.bytes, sum.known_us), 0));
  }
  ReportSection& section = document.add("Achieved rates of the GPUs", {ReportText{std::move(line)}});
  if (a.platform && (rates.peak_tflops || rates.peak_GBps)) {
    std::string peaks;
    if (rates.peak_tflops)
      peaks = fmt::format("{} TFLOP/s {}", table_number(*rates.peak_tflops, 1), rates.peak_type);
    if (rates.peak_GBps)
      peaks +=
          fmt::format("{}{} GB/s of memory", peaks.empty() ? "" : ", ", table_number(*rates.peak_GBps, 0));
    section.add(ReportText{fmt::format("peaks of {}: {}", *a.platform, peaks)});
  }
  const Shown details = verbose ? Shown::everywhere : Shown::page;
  section.add(classes_table(rates), details);
  section.add(ranks_table(a), details);
}

namespace {

// The delays that are kept as recorded, by the groups of the table: thread hand-off, busy device, work from
// before the window, other origins. In microseconds.
struct KeptDelays {
  double handoff_us = 0, busy_us = 0, left_over_us = 0, other_us = 0;
};

// Sums the kept delays of a rank by group.
KeptDelays kept_delays(const RecordedStepFacts& facts) {
  KeptDelays kept;
  for (std::size_t o = 0; o < facts.kept_delay_us.size(); ++o) {
    const double delay = facts.kept_delay_us[o];
    switch (static_cast<EdgeOrigin>(o)) {
      case EdgeOrigin::thread_handoff: kept.handoff_us += delay; break;
      case EdgeOrigin::device_busy: kept.busy_us += delay; break;
      case EdgeOrigin::recorded_offset: kept.left_over_us += delay; break;
      default: kept.other_us += delay; break;
    }
  }
  return kept;
}

// The number at the end of a name: 84 for "stream 84"; -1 if there is none.
std::int64_t trailing_number(std::string_view name) {
  const std::size_t last = name.find_last_not_of("0123456789");
  return scan<std::int64_t>(name.substr(last == std::string_view::npos ? 0 : last + 1)).value_or(-1);
}

// Sentences about work that keeps its recorded times; only for kinds that occur.
void add_kept_structure(ReportSection& section, const ReplayAnalysis& a) {
  std::uint64_t nodes = 0, overlapping = 0, starts = 0;
  for (const RecordedStepFacts& facts : a.facts) {
    nodes += facts.graph_nodes;
    overlapping += facts.overlapping_kernels;
    starts += facts.kept_starts;
  }
  const auto add = [&](std::string text) { section.add(ReportText{std::move(text)}); };
  if (nodes > 0)
    add(fmt::format("{} of graph launches keep their recorded offsets.",
                    counted(nodes, "later node", "later nodes")));
  if (overlapping > 0)
    add(
        fmt::format("{} before the previous kernel on the stream ended. The replay keeps the recorded offset "
                    "between their starts.",
                    counted(overlapping, "kernel began", "kernels began")));
  if (starts > 0)
    add(fmt::format("{} where recorded: {} for work before the trace began.",
                    counted(starts, "start or return is kept", "starts and returns are kept"),
                    starts == 1 ? "it waited" : "they waited"));
}

// One row per rank. The last columns are errors of the variants, if these were simulated.
ReportTable explained_table(const ReplayAnalysis& a) {
  const ReplayVariant* naive = a.variant("naive");
  const ReplayVariant* smallest = a.variant("smallest_handoff");
  ReportTable table{
      "rank< | waiting\nsimulated % | waiting not\nexplained % | GPU late,\nno cause % "
      "| kept: thread\nhand-off us | busy\ndevice us | left-over\nwork us | other\nus "
      "| GPU starts off by\nmedian us | p95\nus | max\nus"};
  if (smallest != nullptr) table.columns.push_back({"error, smallest\nhand-off %"});
  if (naive != nullptr) table.columns.push_back({"error of\nnaive %"});
  for (std::size_t c = 0; c < a.ranks.size(); ++c) {
    const ReplayedRank& rank = a.ranks[c];
    const RecordedStepFacts& facts = a.facts[c];
    const KeptDelays kept = kept_delays(facts);
    const double step_us = rank.step.measured_us;
    ReportRow& row = table.row({rank_cell(a, c)});
    row.numbers({percent(rank.simulated_wait_us, rank.step.simulated_us)}, 1)
        .numbers({percent(facts.unexplained_wait_us, step_us), percent(facts.gpu_late_us, step_us)}, 3)
        .numbers({kept.handoff_us, kept.busy_us, kept.left_over_us, kept.other_us}, 0)
        .numbers({rank.kernel_start.median_us, rank.kernel_start.p95_us, rank.kernel_start.max_us}, 1);
    if (smallest != nullptr) row.cell(table_signed(100 * smallest->step[c].error(), 2));
    if (naive != nullptr) row.cell(table_signed(100 * naive->step[c].error(), 1));
  }
  return table;
}

}  // namespace

std::vector<std::string> idle_causes(const std::vector<ForecastClass>& classes) {
  std::vector<std::string> causes{"cpu", "other_stream", "other_rank"};
  for (const char* rare : {"pipeline", "between_steps"}) {
    const bool any =
        std::ranges::any_of(classes, [&](const ForecastClass& c) { return time_ms(c.idle_ms, rare) > 0; });
    if (any) causes.emplace_back(rare);
  }
  causes.emplace_back("rest");
  return causes;
}

std::string idle_heading(std::string_view cause, bool first) {
  if (cause == "cpu") return first ? "idle: waits\nfor the CPU" : "for the\nCPU";
  if (cause == "other_stream") return "for another\nstream";
  if (cause == "other_rank") return "for another\nrank";
  if (cause == "pipeline") return "for another\nstage";
  if (cause == "between_steps") return "between\nsteps";
  return "rest";
}

void add_explained(ReportDocument& document, const ReplayAnalysis& a) {
  ReportSection& section =
      document.add("How much of the step is explained (per rank, share of the measured step)");
  if (a.warning) section.add(ReportText{*a.warning}, Shown::page);  // a terminal shows it at the top
  section.add(explained_table(a));
  for (const char* meaning : {"Waiting simulated: the thread that ends the step waits for a dependency.",
                              "Not explained: waiting in calls without a known dependency. The replay omits "
                              "it, so it shows as error.",
                              "GPU late: GPU work that was ready but started late for no known reason. The "
                              "replay starts it when it is ready.",
                              "Kept: recorded delays that the replay copies instead of explaining."}) {
    section.add(ReportText{meaning});
  }
  add_kept_structure(section, a);
}

void add_stream_table(ReportDocument& document, const ReplayAnalysis& a) {
  const std::vector<ForecastClass>& classes = a.simulated.classes;
  const std::vector<std::string> causes = idle_causes(classes);
  // Headings are for milliseconds; both "exposed" columns follow what they are a part of.
  ReportTable table{"rank< | stream< | tasks | compu-\ntation | transfer | exposed | copies | exposed"};
  for (std::size_t i = 0; i < causes.size(); ++i) table.columns.push_back({idle_heading(causes[i], i == 0)});
  for (std::size_t c = 0; c < classes.size(); ++c) {
    std::vector<const ForecastStream*> by_number;
    for (const ForecastStream& s : classes[c].streams) by_number.push_back(&s);
    // By number and not by name: "stream 7" comes before "stream 20".
    std::ranges::stable_sort(by_number, [](const ForecastStream* first, const ForecastStream* second) {
      return trailing_number(first->name) < trailing_number(second->name);
    });
    for (const ForecastStream* s : by_number) {
      ReportRow& row = table.row({rank_cell(a, c), s->name, table_count(s->tasks)});
      row.numbers(
          {sum_ms(s->kernels_ms), s->transfer_ms, s->exposed_comm_ms, s->memcpy_ms, s->exposed_memcpy_ms}, 3);
      for (const std::string& cause : causes) row.numbers({time_ms(s->idle_ms, cause)}, 3);
    }
  }
  document.add("Streams in the simulated step (ms)", {std::move(table)}).folded = true;
}

void add_thread_table(ReportDocument& document, const ReplayAnalysis& a) {
  ReportTable table{"rank< | thread< | busy | waits for\nGPU | for another\nthread | rest | busiest with<"};
  for (std::size_t c = 0; c < a.simulated.classes.size(); ++c) {
    for (const ForecastThread& t : a.simulated.classes[c].threads) {
      std::string busiest;
      if (!t.busy_by_op_ms.empty()) {
        const NamedTime& op = t.busy_by_op_ms.front();
        busiest = fmt::format("{} ({} ms)", op.key.empty() ? "(no op)" : shorten(op.key, 48),
                              table_number(op.time_ms, 3));
      }
      table.row({rank_cell(a, c), t.name})
          .numbers({t.busy_ms, time_ms(t.idle_ms, "gpu"), time_ms(t.idle_ms, "other_thread"),
                    time_ms(t.idle_ms, "rest")},
                   3)
          .cell(busiest);
    }
  }
  document.add("CPU threads in the simulated step (ms)", {std::move(table)}).folded = true;
}

void add_constants(ReportDocument& document, const ReplayAnalysis& a) {
  ReportTable table{"constant< | us | learned from | of | <"};
  for (const ReplayConstant& constant : a.constants) {
    table.row({constant.name, table_number(constant.value_us, 2), table_count(constant.clean),
               table_count(constant.all), constant.fallback ? "smallest value: no clean operation" : ""});
  }
  // The second table: dependencies by origin, with inferred ones in brackets.
  ReportTable edges{"rank<"};
  for (int o = 0; o < kEdgeOriginCount; ++o)
    edges.columns.push_back({std::string{to_string(static_cast<EdgeOrigin>(o))}});
  for (std::size_t c = 0; c < a.facts.size(); ++c) {
    const RecordedStepFacts& facts = a.facts[c];
    ReportRow& row = edges.row({rank_cell(a, c)});
    for (std::size_t o = 0; o < facts.edge_count.size(); ++o) {
      std::string cell = table_count(facts.edge_count[o]);
      if (facts.inferred_edge_count[o] > 0)
        cell += fmt::format(" ({})", table_count(facts.inferred_edge_count[o]));
      row.cell(std::move(cell));
    }
  }
  document.add("Constants, learned from operations that did not wait", {std::move(table)}).folded = true;
  document.add("Dependencies (in brackets: inferred, not written in the trace)", {std::move(edges)}).folded =
      true;
}

}  // namespace stepcast::detail
