#include "stepcast/report/sensitivity_report.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/json_writer.h"
#include "stepcast/base/version.h"
#include "stepcast/report/text_table.h"

namespace stepcast {

std::string sensitivity_text(const Sensitivity& sensitivity) {
  TextTable table{{{"which 10 % would buy most", TextTable::Align::left},
                   {"on the path ms"},
                   {"elasticity"},
                   {"saves ms"},
                   {"%"},
                   {"", TextTable::Align::left}}};
  bool switches = false;
  for (const ResourceSensitivity& one : sensitivity.resources) {
    const double percent = sensitivity.step_time_ms > 0 ? 100 * one.saved_ms / sensitivity.step_time_ms : 0;
    const char* mark = one.switches_at_once ? "**" : one.switches ? "*" : "";
    switches = switches || one.switches_at_once || one.switches;
    table.row({one.resource, table_number(one.path_ms, 3), table_number(one.elasticity, 3),
               table_number(one.saved_ms, 3), table_number(percent, 1), mark});
  }
  std::string out = "\n" + table.text(2);
  if (switches) {
    out += "\n  *  another path takes over before it is 10 % faster    ** before it is 0.1 % faster\n";
  }
  return out;
}

std::string sensitivity_json(const Sensitivity& sensitivity) {
  JsonWriter json{JsonWriter::Layout::indented};
  json.begin_object();
  json.field("schema", "stepcast.sensitivity/1").field("version", version());
  json.field("step_time_ms", sensitivity.step_time_ms);
  json.key("resources").begin_array();
  for (const ResourceSensitivity& one : sensitivity.resources) {
    json.begin_object();
    json.field("resource", one.resource).field("path_ms", one.path_ms);
    json.field("elasticity", one.elasticity).field("saved_ms_if_10_percent_faster", one.saved_ms);
    json.field("path_switches_within_0.1_percent", one.switches_at_once);
    json.field("path_switches_within_10_percent", one.switches);
    json.end_object();
  }
  json.end_array().end_object();
  return std::move(json).text();
}

}  // namespace stepcast
