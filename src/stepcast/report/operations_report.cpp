#include "stepcast/report/operations_report.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/text.h"
#include "stepcast/report/text_table.h"

namespace stepcast {
namespace {

struct OperatorRow {
  std::string name;
  std::vector<std::string> families;  // in order of appearance
  std::size_t count = 0;
  Flops flops;
  Bytes bytes;
  Microseconds time;
};

// By recorded time where there is one, then by bytes.
std::vector<OperatorRow> rows_of(const ExecutionTrace& trace, const TracedOperations& traced,
                                 const KernelTimeCoverage* coverage) {
  std::map<std::string_view, OperatorRow> by_name;
  std::int64_t last_node = -1;
  for (const TracedOperation& operation : traced.operations) {
    const std::string_view name = trace.names.text(trace.nodes[operation.node].name);
    OperatorRow& row = by_name[name];
    if (operation.node != last_node) ++row.count;
    last_node = operation.node;
    const std::string_view family = family_of(operation.operation);
    if (std::find(row.families.begin(), row.families.end(), family) == row.families.end())
      row.families.emplace_back(family);
    const Work work = work_of(operation.operation);
    row.flops += work.flops;
    row.bytes += work.bytes();
  }
  std::vector<OperatorRow> rows;
  for (auto& [name, row] : by_name) {
    row.name = name;
    if (coverage != nullptr) {
      const auto at = coverage->time_of_operator.find(row.name);
      if (at != coverage->time_of_operator.end()) row.time = at->second;
    }
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const OperatorRow& a, const OperatorRow& b) {
    return a.time != b.time ? a.time > b.time : a.bytes > b.bytes;
  });
  return rows;
}

double share(double part, double whole) { return whole > 0 ? 100 * part / whole : 100; }

double modelled_time_percent(const KernelTimeCoverage& coverage) {
  return share(coverage.modelled.value(), coverage.computation.value());
}
double modelled_operators_percent(const TracedOperations& traced) {
  return share(static_cast<double>(traced.modelled_operators),
               static_cast<double>(traced.launching_operators));
}

std::string milliseconds(Microseconds time) { return table_number(time.value() * 1e-3, 3); }

}  // namespace

std::string operations_text(const ExecutionTrace& trace, const TracedOperations& traced,
                            const KernelTimeCoverage* coverage) {
  std::string out = trace.file + "\n";
  const auto line = [&out](std::string_view label, const std::string& text) {
    fmt::format_to(std::back_inserter(out), "  {:<14}{}\n", label, text);
  };
  line("operators",
       fmt::format("{} of {} that launch GPU work have operations ({} %)",
                   table_count(traced.modelled_operators), table_count(traced.launching_operators),
                   table_number(modelled_operators_percent(traced), 2)));
  if (coverage != nullptr) {
    line("kernel time",
         fmt::format("{} of {} ms of computation belongs to them ({} %)", milliseconds(coverage->modelled),
                     milliseconds(coverage->computation), table_number(modelled_time_percent(*coverage), 2)));
    line("", fmt::format("{} ms communication and {} ms outside of the traced operators are not counted",
                         milliseconds(coverage->communication), milliseconds(coverage->unlinked)));
  }
  std::vector<TextTable::Column> columns{{"operator", TextTable::Align::left},
                                         {"operations", TextTable::Align::left},
                                         {"count"},
                                         {"GFLOP"},
                                         {"MB"}};
  if (coverage != nullptr) columns.push_back({"recorded ms"});
  TextTable table{columns};
  OperatorRow sum{.name = "all"};
  const auto add = [&](const OperatorRow& row) {
    std::vector<std::string> cells{shorten(row.name, 60), join(row.families, " + "), table_count(row.count),
                                   table_number(row.flops.value() * 1e-9, 3),
                                   table_number(row.bytes.value() * 1e-6, 3)};
    if (coverage != nullptr) cells.push_back(milliseconds(row.time));
    table.row(std::move(cells));
  };
  for (const OperatorRow& row : rows_of(trace, traced, coverage)) {
    add(row);
    sum.count += row.count;
    sum.flops += row.flops;
    sum.bytes += row.bytes;
    sum.time += row.time;
  }
  if (sum.count > 0) {
    table.rule();
    add(sum);
    out += "\n" + table.text(2);
  }
  if (!traced.unmodelled.empty()) {
    TextTable unknown{
        {{"without operations", TextTable::Align::left}, {"count"}, {"why", TextTable::Align::left}}};
    for (const auto& [name, entry] : traced.unmodelled)
      unknown.row({shorten(name, 60), table_count(entry.count), shorten(entry.why, 100)});
    out += "\n" + unknown.text(2);
  }
  if (coverage != nullptr && !coverage->unmodelled.empty()) {
    TextTable unknown{{{"kernels without operations, by operator", TextTable::Align::left}, {"ms"}}};
    for (const auto& [name, work] : coverage->unmodelled)
      unknown.row({shorten(name, 60), milliseconds(work.time)});
    out += "\n" + unknown.text(2);
  }
  return out;
}

void operations_json(const ExecutionTrace& trace, const TracedOperations& traced,
                     const KernelTimeCoverage* coverage, JsonWriter& json) {
  json.begin_object();
  json.field("file", trace.file).field("format", "execution_trace").field("schema", trace.schema);
  json.field("launching_operators", traced.launching_operators);
  json.field("modelled_operators", traced.modelled_operators);
  json.fixed_field("modelled_operators_percent", modelled_operators_percent(traced), 4);
  if (coverage != nullptr) {
    json.key("kernel_time").begin_object();
    json.fixed_field("computation_ms", coverage->computation.value() * 1e-3, 6);
    json.fixed_field("modelled_ms", coverage->modelled.value() * 1e-3, 6);
    json.fixed_field("modelled_percent", modelled_time_percent(*coverage), 4);
    json.fixed_field("communication_ms", coverage->communication.value() * 1e-3, 6);
    json.fixed_field("unlinked_ms", coverage->unlinked.value() * 1e-3, 6);
    json.end_object();
  }
  json.key("operators").begin_array();
  for (const OperatorRow& row : rows_of(trace, traced, coverage)) {
    json.begin_object().field("operator", row.name);
    json.key("families").begin_array();
    for (const std::string& family : row.families) json.value(family);
    json.end_array();
    json.field("count", row.count).field("flops", row.flops.value()).field("bytes", row.bytes.value());
    if (coverage != nullptr) json.fixed_field("recorded_ms", row.time.value() * 1e-3, 6);
    json.end_object();
  }
  json.end_array();
  json.key("unmodelled").begin_array();
  for (const auto& [name, entry] : traced.unmodelled) {
    json.begin_object().field("operator", name).field("count", entry.count).field("why", entry.why);
    json.end_object();
  }
  json.end_array();
  if (coverage != nullptr) {
    json.key("unmodelled_time").begin_array();
    for (const auto& [name, work] : coverage->unmodelled) {
      json.begin_object().field("operator", name).fixed_field("recorded_ms", work.time.value() * 1e-3, 6);
      json.end_object();
    }
    json.end_array();
  }
  json.end_object();
}

}  // namespace stepcast
