#include "lab/validation_report.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/json_writer.h"
#include "stepcast/base/version.h"
#include "stepcast/report/text_table.h"

#include "lab/validation_tables.h"

namespace stepcast {
namespace {

constexpr std::string_view kSchema = "stepcast.validate/1";

void write_metrics(JsonWriter& json, const Metrics& metrics, bool relative,
                   const std::vector<ExtraMetric>& extras) {
  json.field("n", metrics.n);
  const auto number = [&](std::string_view name, double value) {
    json.key(name);
    if (relative && metrics.n > 0) {
      json.fixed(value, 6);
    } else {
      json.null();
    }
  };
  number("mape", metrics.mape);
  number("median_ape", metrics.median_ape);
  number("gmae", metrics.gmae);
  number("p80_ape", metrics.p80_ape);
  number("p90_ape", metrics.p90_ape);
  number("max_ape", metrics.max_ape);
  number("bias", metrics.bias);
  json.field("interval_coverage", metrics.interval_coverage);
  json.field("interval_width_median", metrics.interval_width_median);
  for (const ExtraMetric& extra : extras) json.fixed_field(extra.name, extra.value, 6);
}

void write_sets(JsonWriter& json, const TestScore& test) {
  json.key("sets").begin_array();
  for (const SetScore& set : test.sets) {
    json.begin_object().field("set", set.set).field("n_fit", set.n_fit);
    write_metrics(json, set.metrics, test.relative, set.extras);
    json.end_object();
  }
  json.end_array();
}

void write_whole(JsonWriter& json, const TestScore& test) {
  json.key("overall").begin_object();
  write_metrics(json, test.overall, test.relative, test.extras);
  json.end_object();
  json.key("pooled").begin_object();
  write_metrics(json, test.pooled, test.relative, {});
  json.end_object();
}

void write_result(JsonWriter& json, const SuiteResult& result) {
  json.begin_object().field("schema", kSchema).field("suite", result.suite).field("version", version());
  json.key("tests").begin_array();
  for (const TestScore& test : result.tests) {
    json.begin_object().field("test", test.test).field("protocol", test.protocol).field("unit", test.unit);
    write_whole(json, test);
    if (!test.groups.empty()) {
      json.key("groups").begin_array();
      for (const GroupScore& group : test.groups) {
        json.begin_object().field("group", group.group).field("n_sets", group.n_sets);
        write_metrics(json, group.overall, test.relative, group.extras);
        json.end_object();
      }
      json.end_array();
    }
    write_sets(json, test);
    json.end_object();
  }
  json.end_array();
  if (!result.tests.empty()) {
    write_whole(json, result.tests.front());
    write_sets(json, result.tests.front());
  }
  if (!result.targets.empty()) {
    json.key("targets").begin_array();
    for (const Target& target : result.targets) {
      json.begin_object().field("what", target.what).fixed_field("value", target.value, 4);
      if (target.kind == Target::Kind::between) {
        json.field("from", target.from).field("to", target.to);
      } else {
        json.field("must", target.must).field("aim", target.aim);
      }
      json.field("met", target.met()).field("aim_met", target.aim_met()).end_object();
    }
    json.end_array();
  }
  if (!result.worst.empty()) {
    json.key("worst").begin_array();
    for (const std::string& line : result.worst) json.value(line);
    json.end_array();
  }
  json.key("skipped").begin_array();
  for (const Skipped& skipped : result.skipped) {
    json.begin_object()
        .field("what", skipped.what)
        .field("why", skipped.why)
        .field("n", skipped.n)
        .end_object();
  }
  json.end_array();
  json.end_object();
}

// The extra numbers of a set in the columns of the test; counts without decimals.
void add_extras(const TestScore& test, const std::vector<ExtraMetric>& extras,
                std::vector<std::string>& cells) {
  for (const ExtraMetric& wanted : test.extras) {
    const auto found = std::find_if(extras.begin(), extras.end(),
                                    [&](const ExtraMetric& e) { return e.name == wanted.name; });
    const bool is_count = wanted.over == ExtraMetric::Over::sum;
    cells.push_back(found == extras.end() ? "-" : table_number(found->value, is_count ? 0 : 3));
  }
}

// Tests with groups show intervals, too.
TextTable relative_table(const TestScore& test) {
  const bool intervals = test.overall.interval_coverage.has_value() && !test.groups.empty();
  std::vector<TextTable::Column> columns{{"set", TextTable::Align::left},
                                         {"n"},
                                         {"mean\n|error| %"},
                                         {"median\n%"},
                                         {"p90\n%"},
                                         {"max\n%"},
                                         {"bias\n%"},
                                         {"geometric\nmean %"}};
  if (intervals) {
    columns.push_back({"in p10-p90\n%"});
    columns.push_back({"median\nwidth %"});
  }
  for (const ExtraMetric& extra : test.extras) columns.push_back({extra.name});
  TextTable table{std::move(columns)};
  const auto add = [&](const std::string& name, const Metrics& m, const std::vector<ExtraMetric>& extras) {
    if (m.n == 0) {
      table.row({name, "0"});
      return;
    }
    std::vector<std::string> cells{name,
                                   table_count(m.n),
                                   table_number(m.mape, 3),
                                   table_number(m.median_ape, 3),
                                   table_number(m.p90_ape, 3),
                                   table_number(m.max_ape, 3),
                                   table_signed(m.bias, 3),
                                   table_number(m.gmae, 3)};
    if (intervals) {
      for (const auto& value : {m.interval_coverage, m.interval_width_median}) {
        cells.push_back(value ? table_number(*value, 1) : "-");
      }
    }
    add_extras(test, extras, cells);
    table.row(std::move(cells));
  };
  for (const SetScore& set : test.sets) add(set.set, set.metrics, set.extras);
  if (test.sets.size() > 1) {
    table.rule();
    for (const GroupScore& group : test.groups) {
      add(fmt::format("mean over {} sets: {}", group.n_sets, group.group), group.overall, group.extras);
    }
    add("mean over sets", test.overall, test.extras);
    add("all rows", test.pooled, test.extras);
  }
  return table;
}

TextTable absolute_table(const TestScore& test) {
  std::vector<TextTable::Column> columns{{"set", TextTable::Align::left}, {"n"}};
  for (const ExtraMetric& extra : test.extras) columns.push_back({extra.name});
  TextTable table{std::move(columns)};
  const auto add = [&](const std::string& name, std::uint64_t n, const std::vector<ExtraMetric>& extras) {
    std::vector<std::string> cells{name, table_count(n)};
    add_extras(test, extras, cells);
    table.row(std::move(cells));
  };
  for (const SetScore& set : test.sets) add(set.set, set.metrics.n, set.extras);
  if (test.sets.size() > 1) {
    table.rule();
    add("over sets", test.overall.n, test.extras);
  }
  return table;
}

TextTable table_of(const TestScore& test) {
  return test.relative ? relative_table(test) : absolute_table(test);
}

std::string heading_of(const TestScore& test) {
  return fmt::format("{} ({}; protocol: {})", test.test, test.unit, test.protocol);
}

}  // namespace

std::string validation_text(const SuiteResult& result) {
  std::string text = fmt::format("Validation suite {}\n", result.suite);
  for (const TestScore& test : result.tests) {
    text += fmt::format("\n{}\n", heading_of(test));
    text += table_of(test).text(2);
  }
  if (!result.targets.empty()) text += "\nTargets\n" + detail::targets_table(result.targets).text(2);
  if (!result.worst.empty()) text += "\nFarthest off\n";
  for (const std::string& line : result.worst) text += fmt::format("  - {}\n", line);
  const std::vector<std::string> skipped = detail::skipped_lines(result);
  if (!skipped.empty()) text += "\nNot scored\n";
  for (const std::string& line : skipped) text += fmt::format("  - {}\n", line);
  return text;
}

std::string validation_json(const SuiteResult& result) {
  JsonWriter json{JsonWriter::Layout::indented};
  write_result(json, result);
  return std::move(json).text();
}

std::string validation_json(std::span<const SuiteResult> results) {
  JsonWriter json{JsonWriter::Layout::indented};
  json.begin_object().field("schema", kSchema).field("version", version());
  json.key("suites").begin_array();
  for (const SuiteResult& result : results) write_result(json, result);
  json.end_array();
  json.end_object();
  return std::move(json).text();
}

std::string validation_rows_csv(std::span<const SuiteResult> results) {
  std::string text = "suite,test,set,row,unit,measured,predicted,p10,p90,shares\n";
  for (const SuiteResult& result : results) {
    for (const TestScore& test : result.tests) {
      for (const SetScore& set : test.sets) {
        for (const ScoredRow& row : set.rows) {
          text += fmt::format("{},{},{},{},{},{:.6f},{:.6f},{},{},{}\n", detail::csv_field(result.suite),
                              detail::csv_field(test.test), detail::csv_field(set.set),
                              detail::csv_field(row.row), test.unit, row.measured, row.predicted,
                              row.p10 ? fmt::format("{:.6f}", *row.p10) : "",
                              row.p90 ? fmt::format("{:.6f}", *row.p90) : "", detail::csv_field(row.shares));
        }
      }
    }
  }
  return text;
}

}  // namespace stepcast
