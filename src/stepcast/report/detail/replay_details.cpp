#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/report/cell_text.h"
#include "stepcast/report/detail/replay_sections.h"

namespace stepcast::detail {
namespace {

// Kept delays as they are reported: hand-off, busy device, left-over work, everything else.
struct KeptDelays {
  double handoff_us = 0, busy_us = 0, left_over_us = 0, other_us = 0;
};

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

// 84 of "stream 84"; -1 without a number at the end.
std::int64_t trailing_number(std::string_view name) {
  const std::size_t last = name.find_last_not_of("0123456789");
  const std::string_view digits = name.substr(last == std::string_view::npos ? 0 : last + 1);
  std::int64_t number = -1;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

// What keeps its recorded distances, where there is any.
void add_kept_structure(ReportSection& section, const ReplayAnalysis& a) {
  std::uint64_t nodes = 0, overlapping = 0, starts = 0;
  for (const RecordedStepFacts& facts : a.facts) {
    nodes += facts.graph_nodes;
    overlapping += facts.overlapping_kernels;
    starts += facts.kept_starts;
  }
  const auto add = [&](std::string text) { section.add(ReportText{std::move(text)}); };
  if (nodes > 0)
    add(fmt::format("{} of graph launches keep their recorded distances to each other.",
                    counted(nodes, "later node", "later nodes")));
  if (overlapping > 0)
    add(fmt::format("{} before the one ahead on the stream had ended: held by its start, as recorded.",
                    counted(overlapping, "kernel began", "kernels began")));
  if (starts > 0)
    add(fmt::format("{} where recorded: {} for work from before the file.",
                    counted(starts, "start or return is kept", "starts and returns are kept"),
                    starts == 1 ? "it waited" : "they waited"));
}

ReportTable explained_table(const ReplayAnalysis& a) {
  const ReplayVariant* naive = a.variant("naive");
  const ReplayVariant* smallest = a.variant("smallest_handoff");
  ReportTable table{
      "rank< | waiting\nsimulated % | waiting not\nexplained % | GPU late,\nno cause % "
      "| kept: thread\nhand-off us | busy\ndevice us | left-over\nwork us | other\nus "
      "| GPU starts off by\nmedian us | p95\nus | max\nus"};
  if (smallest != nullptr) table.columns.push_back({"error with least\nhand-off %"});
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
      document.add("How much of this is explained (per rank, share of the measured step)");
  if (a.warning) section.add(ReportText{*a.warning}, Shown::page);  // a terminal has it on top
  section.add(explained_table(a));
  for (const char* meaning :
       {"waiting simulated: the thread that ends the step does nothing, because a dependency holds it.",
        "not explained: waiting in calls that no dependency accounts for. It is left out, so it shows as "
        "error.",
        "GPU late: GPU work that every known dependency let start had not started. That is not explained, "
        "either: the replay starts it in time.",
        "kept: recorded delays that a dependency keeps unchanged; they count as kept, not as "
        "explained."}) {
    section.add(ReportText{meaning});
  }
  add_kept_structure(section, a);
}

void add_stream_table(ReportDocument& document, const ReplayAnalysis& a) {
  const std::vector<ForecastClass>& classes = a.simulated.classes;
  const std::vector<std::string> causes = idle_causes(classes);
  ReportTable table{"rank< | stream< | tasks | compu-\ntation | transfer | exposed | copies | exposed"};
  for (std::size_t i = 0; i < causes.size(); ++i) table.columns.push_back({idle_heading(causes[i], i == 0)});
  for (std::size_t c = 0; c < classes.size(); ++c) {
    std::vector<const ForecastStream*> by_number;
    for (const ForecastStream& s : classes[c].streams) by_number.push_back(&s);
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
               table_count(constant.all), constant.fallback ? "smallest of all: none was clean" : ""});
  }
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
  document.add("Constants, each learned from operations that did not wait", {std::move(table)}).folded = true;
  document
      .add("Dependencies (inferred ones in brackets: concluded from the trace, not written in it)",
           {std::move(edges)})
      .folded = true;
}

}  // namespace stepcast::detail
