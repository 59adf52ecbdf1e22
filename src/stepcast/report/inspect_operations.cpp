#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/text.h"
#include "stepcast/report/detail/inspect_text.h"
#include "stepcast/report/inspect_answer.h"
#include "stepcast/report/text_table.h"

namespace stepcast {
namespace {

using OperatorRow = InspectedOperations::Operator;

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

std::string milliseconds(Microseconds time) { return table_number(time.value() * 1e-3, 3); }

std::string operators_table(const InspectedOperations& o) {
  std::vector<TextTable::Column> columns{{"operator", TextTable::Align::left},
                                         {"operations", TextTable::Align::left},
                                         {"count"},
                                         {"GFLOP"},
                                         {"MB"}};
  if (o.times) columns.push_back({"recorded ms"});
  TextTable table{columns};
  OperatorRow sum{.name = "all"};
  const auto add = [&](const OperatorRow& row) {
    std::vector<std::string> cells{shorten(row.name, 60), join(row.families, " + "), table_count(row.count),
                                   table_number(row.flops.value() * 1e-9, 3),
                                   table_number(row.bytes.value() * 1e-6, 3)};
    if (o.times) cells.push_back(milliseconds(row.time));
    table.row(std::move(cells));
  };
  for (const OperatorRow& row : o.operators) {
    add(row);
    sum.count += row.count;
    sum.flops += row.flops;
    sum.bytes += row.bytes;
    sum.time += row.time;
  }
  if (sum.count == 0) return {};
  table.rule();
  add(sum);
  return "\n" + table.text(2);
}

}  // namespace

double InspectedOperations::modelled_operators_percent() const {
  return share(static_cast<double>(modelled_operators), static_cast<double>(launching_operators));
}
double InspectedOperations::modelled_time_percent() const {
  return times ? share(times->modelled.value(), times->computation.value()) : 100;
}

InspectedOperations inspected(const ExecutionTrace& trace, const TracedOperations& traced,
                              std::optional<KernelTimeCoverage> times) {
  return {.file = trace.file,
          .schema = trace.schema,
          .launching_operators = traced.launching_operators,
          .modelled_operators = traced.modelled_operators,
          .operators = rows_of(trace, traced, times ? &*times : nullptr),
          .unmodelled = traced.unmodelled,
          .times = std::move(times)};
}

std::string detail::inspect_text(const InspectedOperations& o) {
  std::string out = o.file + "\n";
  const auto line = [&out](std::string_view label, const std::string& text) {
    fmt::format_to(std::back_inserter(out), "  {:<14}{}\n", label, text);
  };
  line("operators",
       fmt::format("{} of {} that launch GPU work have operations ({} %)", table_count(o.modelled_operators),
                   table_count(o.launching_operators), table_number(o.modelled_operators_percent(), 2)));
  if (o.times) {
    line("kernel time",
         fmt::format("{} of {} ms of computation belongs to them ({} %)", milliseconds(o.times->modelled),
                     milliseconds(o.times->computation), table_number(o.modelled_time_percent(), 2)));
    line("", fmt::format("{} ms communication and {} ms outside of the traced operators are not counted",
                         milliseconds(o.times->communication), milliseconds(o.times->unlinked)));
  }
  out += operators_table(o);
  if (!o.unmodelled.empty()) {
    TextTable unknown{
        {{"without operations", TextTable::Align::left}, {"count"}, {"why", TextTable::Align::left}}};
    for (const auto& [name, entry] : o.unmodelled)
      unknown.row({shorten(name, 60), table_count(entry.count), shorten(entry.why, 100)});
    out += "\n" + unknown.text(2);
  }
  if (o.times && !o.times->unmodelled.empty()) {
    TextTable unknown{{{"kernels without operations, by operator", TextTable::Align::left}, {"ms"}}};
    for (const auto& [name, work] : o.times->unmodelled)
      unknown.row({shorten(name, 60), milliseconds(work.time)});
    out += "\n" + unknown.text(2);
  }
  return out;
}

}  // namespace stepcast
