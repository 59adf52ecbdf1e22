#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/report/cell_text.h"
#include "stepcast/report/detail/document_parts.h"
#include "stepcast/report/detail/replay_sections.h"
#include "stepcast/report/html/charts.h"
#include "stepcast/report/replay_verdict.h"

namespace stepcast::detail {
namespace {

constexpr std::size_t kRowsShown = 6, kRowsVerbose = 20, kNameWidth = 60;

double ms(double us) { return us * 1e-3; }
// FLOPs or bytes per microsecond as 10^12 or 10^9 of them per second.
double tflops(double flops, double us) { return us > 0 ? flops / us * 1e-6 : 0; }
double GBps(double bytes, double us) { return us > 0 ? bytes / us * 1e-3 : 0; }

std::string or_dash(const std::optional<double>& value, int decimals) {
  return value ? table_number(*value, decimals) : "-";
}

// "host 71 %, late start 29 %"
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

std::string operator_name(const std::string& op) {
  return op.empty() ? "(no framework op)" : shorten(op, kNameWidth);
}

// Whom every rank waits for, over all collectives.
MatrixChart waiting_chart(const ReplayAnalysis& a) {
  MatrixChart chart{.row_title = "waits", .column_title = "for the rank that came last", .unit = "ms"};
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

ReportTable classes_table(const AchievedRates& rates) {
  ReportTable table{"class< | ms | known\n% | TFLOP/s | GB/s | % of peak\nmemory"};
  for (const ClassRate& c : rates.classes) {
    const double rate = GBps(c.bytes, c.known_us);
    const bool known = c.known_us > 0;
    table.row({std::string{to_string(c.kernel_class)}, table_number(ms(c.time_us), 3),
               table_number(percent(c.known_us, c.time_us), 1),
               known ? table_number(tflops(c.flops, c.known_us), 3) : "-",
               known ? table_number(rate, 0) : "-",
               known && rates.peak_GBps ? table_number(percent(rate, *rates.peak_GBps), 1) : "-"});
  }
  return table;
}

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
    table.caption = ">=: ranks of the group are not here; the times hold the waiting for them.";
  document.add(
      "Collectives by process group (bus bandwidth as nccl-tests counts it; of the transfer, without "
      "waiting)",
      {std::move(table)});
}

void add_stragglers(ReportDocument& document, const ReplayAnalysis& a) {
  const StepCulprits& found = a.culprits;
  if (found.collectives == 0) return;
  ReportTable table{
      "rank< | started\nlater ms | came last\nin | the others\nwaited ms | share\n% | "
      "itself\nwaited ms | what held it meanwhile<"};
  const double all = found.all_waiting_us();
  double most = 0;
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
      fmt::format("Whom the others wait for ({} collectives, {} of them ties: arrivals within {:.0f} us)",
                  found.collectives, found.ties, found.tie_us));
  if (document.has_page() && !a.simulated.collectives.empty()) {
    section.add(ReportFigure{
        matrix_chart(waiting_chart(a)),
        "Milliseconds that the rank of a row spends inside collectives until the rank of the column, "
        "the last one, arrives. A column of strong colour is a rank that holds the others up."});
  }
  section.add(std::move(table));
}

void add_operators(ReportDocument& document, const ReplayAnalysis& a, bool verbose) {
  if (a.operators.empty()) return;
  ReportTable table{"operator< | on< | median\nms | slowest\nms | rank | longer\nms | times | work"};
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
      "Operators that differ most across ranks (work: FLOPs or bytes of the slowest rank over the median's)",
      {std::move(table)});
}

void add_awaited(ReportDocument& document, const ReplayAnalysis& a, bool verbose) {
  if (a.awaited.empty()) return;
  double all = 0;
  for (const AwaitedOperator& op : a.awaited) all += op.gpu_idle_us;
  const auto n = static_cast<double>(std::max<std::size_t>(1, a.ranks.size()));
  ReportTable table{"operator< | GPU idle,\nmean ms | share\n% | gaps | most on\nrank"};
  for (const AwaitedOperator& op : a.awaited) {
    if (table.rows.size() == (verbose ? kRowsVerbose : kRowsShown)) break;
    const auto most = std::ranges::max_element(op.ranks_us);
    table.row({operator_name(op.op), table_number(ms(op.gpu_idle_us / n), 3),
               table_number(percent(op.gpu_idle_us, all), 1), table_count(op.gaps),
               rank_cell(a, static_cast<std::size_t>(most - op.ranks_us.begin()))});
  }
  document.add(
      fmt::format("Operators of the CPU that the GPU waits for ({} ms a rank)", table_number(ms(all / n), 3)),
      {std::move(table)});
}

void add_utilization(ReportDocument& document, const ReplayAnalysis& a, bool verbose) {
  const AchievedRates& rates = a.rates;
  const RankUtilization sum = sum_over_ranks(rates);
  if (sum.kernel_us <= 0) return;
  std::string line = fmt::format(
      "busy {:.1f} % of the step, computing {:.1f} %; the work of {:.1f} % of the kernel time is known",
      percent(sum.busy_us, sum.step_us), percent(sum.computing_us, sum.step_us),
      percent(sum.known_us, sum.kernel_us));
  if (sum.known_us > 0) {
    line += fmt::format(": {} TFLOP/s of the step, {} TFLOP/s and {} GB/s of these kernels",
                        table_number(tflops(sum.flops, sum.step_us), 3),
                        table_number(tflops(sum.flops, sum.known_us), 3),
                        table_number(GBps(sum.bytes, sum.known_us), 0));
  }
  ReportSection& section = document.add("What the GPUs achieve", {ReportText{std::move(line)}});
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

}  // namespace stepcast::detail
