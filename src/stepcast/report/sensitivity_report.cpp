// The section on sensitivity, shown in a terminal if a flag asked for it. The table has one row per resource;
// the picture leaves out resources that save less than 0.5 % of what the best one saves.
#include <algorithm>
#include <utility>

#include "stepcast/report/cell_text.h"
#include "stepcast/report/fields/answer_fields.h"
#include "stepcast/report/fields/field_table.h"
#include "stepcast/report/forecast_document.h"
#include "stepcast/report/html/charts.h"

namespace stepcast {

void add_sensitivity(ReportDocument& document, const Sensitivity& sensitivity, Shown on) {
  if (sensitivity.resources.empty()) return;
  ReportTable table;
  BarChart chart{.bars = {}, .unit = "ms", .with_legend = false};
  double most = 0;
  for (const ResourceSensitivity& one : sensitivity.resources) most = std::max(most, one.saved_ms);
  chart.decimals = most >= 100 ? 1 : most >= 1 ? 2 : 3;
  bool switches = false;
  for (const ResourceSensitivity& one : sensitivity.resources) {
    const double percent = sensitivity.step_time_ms > 0 ? 100 * one.saved_ms / sensitivity.step_time_ms : 0;
    switches = switches || one.switches_at_once || one.switches;
    // Marks: "**" another path becomes critical within 0.1 %, "*" within 10 %.
    add_row(table, {}, one).numbers({percent}, 1).cell(one.switches_at_once ? "**" : one.switches ? "*" : "");
    if (one.saved_ms > 5e-3 * most) {
      chart.bars.push_back(
          {one.resource, {{"c-accent", "saved", one.saved_ms}}, table_number(percent, 1) + " %", {}});
    }
  }
  table.add_columns("% | <");
  ReportSection& section = document.add("Time saved by a 10 % faster resource");
  section.shown = on;
  section.is_asked = is_shown(on, Shown::terminal);
  section.opening = "\n";
  if (document.has_page()) section.add(ReportFigure{bar_chart(chart), ""});
  section.add(std::move(table));
  if (switches) {
    section.add(TerminalText{"\n"});
    section.add(ReportText{
        "*  another path becomes critical before it is 10 % faster    ** before it is 0.1 % faster"});
  }
  section.add(ReportText{"Elasticity: relative change of the step over the relative change of the resource's "
                         "times. Each resource is simulated 10 % faster, all else unchanged."},
              Shown::page);
}

STEPCAST_ANSWER(sensitivity, Sensitivity, "stepcast.sensitivity/1", "stepcast predict --sensitivity --json")

}  // namespace stepcast
