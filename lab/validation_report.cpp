#include "lab/validation_report.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/version.h"
#include "stepcast/report/cell_text.h"
#include "stepcast/report/fields/answer_fields.h"

namespace stepcast::detail {
namespace {

// Without a `must` only the aim is reported.
std::string met_text(const Target& target) {
  const std::optional<bool> met = target.met(), aim_met = target.aim_met();
  if (!met) return aim_met.value_or(false) ? "no must; aim reached" : "no must; aim missed";
  if (!*met) return "no";
  return aim_met.value_or(false) ? "yes, and the aim" : "yes";
}

}  // namespace

std::pair<std::string, std::string> bounds_text(const Target& target) {
  if (target.kind == Target::Kind::between) return {fmt::format("{} to {}", target.from, target.to), ""};
  const std::string_view sign = target.kind == Target::Kind::at_most ? "<=" : ">=";
  const auto text = [&](const std::optional<double>& bound) {
    return bound ? fmt::format("{} {}", sign, *bound) : std::string{};
  };
  return {text(target.must), text(target.aim)};
}

ReportTable targets_table(const std::vector<Target>& targets) {
  ReportTable table{"what< | is | must be< | aim< | met<"};
  for (const Target& target : targets) {
    const auto [must, aim] = bounds_text(target);
    const auto cell = [](const std::string& text) { return text.empty() ? std::string{"-"} : text; };
    table.row({target.what, table_number(target.value, 2), cell(must), cell(aim), met_text(target)});
  }
  return table;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

// Joins what was left out for the same reason in one line.
std::vector<std::string> skipped_lines(const SuiteResult& result) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const Skipped& skipped : result.skipped) {
    std::vector<std::string>& what = by_reason[skipped.why];
    if (what.empty()) order.push_back(skipped.why);
    what.push_back(skipped.n > 1 ? fmt::format("{} ({})", skipped.what, skipped.n) : skipped.what);
  }
  std::vector<std::string> lines;
  for (const std::string& why : order) {
    const std::vector<std::string>& what = by_reason[why];
    constexpr std::size_t kShown = 4;
    std::string names;
    for (std::size_t i = 0; i < std::min(what.size(), kShown); ++i) names += (i > 0 ? ", " : "") + what[i];
    if (what.size() > kShown) names += fmt::format(" and {} more", what.size() - kShown);
    lines.push_back(fmt::format("{}: {}", names, why));
  }
  return lines;
}

}  // namespace stepcast::detail

namespace stepcast {
namespace {

void metrics(auto& a, const Metrics& m, bool relative, const std::vector<ExtraMetric>& extras) {
  const auto known = [&](double value) {
    return fixed<6>(relative && m.n > 0 ? std::optional{value} : std::nullopt);
  };
  a("n", m.n, "rows");
  a("mape", known(m.mape), "percent");
  a("median_ape", known(m.median_ape));
  a("gmae", known(m.gmae));
  a("p80_ape", known(m.p80_ape));
  a("p90_ape", known(m.p90_ape));
  a("max_ape", known(m.max_ape));
  a("bias", known(m.bias), "(predicted - measured) / measured, mean");
  a("interval_coverage", m.interval_coverage, "percent between p10 and p90");
  a("interval_width_median", m.interval_width_median, "percent");
  a("interval_score", m.interval_score, "percent: width, and ten times what lies outside");
  a("interval_score_of_best", m.interval_score_of_best, "over that of the best single width");
  for (const ExtraMetric& extra : extras) a(extra.name, fixed<6>(extra.value));
}

// Writes the scores of a test: overall, pooled rows, and sets.
void scores(auto& a, const TestScore& test, bool given, std::string_view meaning) {
  a("overall",
    given_if(given, Object{[&](auto& o) { metrics(o, test.overall, test.relative, test.extras); }}), meaning);
  a("pooled", given_if(given, Object{[&](auto& o) { metrics(o, test.pooled, test.relative, {}); }}), meaning);
}
void sets(auto& a, const TestScore& test, bool given, std::string_view meaning) {
  a("sets",
    given_if(given, Each{test.sets,
                         [&](auto& o, const SetScore& set) {
                           o("set", set.set);
                           o("n_fit", set.n_fit, "rows that something was fitted to");
                           metrics(o, set.metrics, test.relative, set.extras);
                         }}),
    meaning);
}

}  // namespace

constexpr std::string_view schema_name(const SuiteResult*) { return "suite"; }

void fields(auto& a, Is<SuiteResult> auto& result) {
  a("schema", Constant{"stepcast.validate/1"});
  a("suite", result.suite);
  a("version", version(), "of stepcast");
  a("tests", Each{result.tests, [](auto& o, const TestScore& test) {
                    o("test", test.test);
                    o("protocol", test.protocol);
                    o("unit", test.unit, "of the rows");
                    scores(o, test, true, "");
                    o("groups", given_if(!test.groups.empty(),
                                         Each{test.groups, [&](auto& g, const GroupScore& group) {
                                                g("group", group.group);
                                                g("n_sets", group.n_sets);
                                                metrics(g, group.overall, test.relative, group.extras);
                                              }}));
                    sets(o, test, true, "");
                  }});
  const bool any = !result.tests.empty();
  scores(a, at_or_none(result.tests, 0), any, "of the primary test");
  sets(a, at_or_none(result.tests, 0), any, "of the primary test");
  a("targets", given_if(!result.targets.empty(), Each{result.targets, [](auto& o, const Target& target) {
                                                        const bool between =
                                                            target.kind == Target::Kind::between;
                                                        o("what", target.what);
                                                        o("value", fixed<4>(target.value));
                                                        o("from", given_if(between, target.from));
                                                        o("to", given_if(between, target.to));
                                                        o("must", given_if(!between, target.must));
                                                        o("aim", given_if(!between, target.aim));
                                                        o("met", target.met(), "null: there is no must");
                                                        o("aim_met", target.aim_met());
                                                      }}));
  a("worst", given_if(!result.worst.empty(), result.worst));
  a("skipped", Each{result.skipped, [](auto& o, const Skipped& skipped) {
                      o("what", skipped.what);
                      o("why", skipped.why);
                      o("n", skipped.n);
                    }});
}

// Several suites at once.
struct AllSuites {
  std::span<const SuiteResult> suites;
};
constexpr std::string_view schema_name(const AllSuites*) { return "all"; }

void fields(auto& a, Is<AllSuites> auto& all) {
  a("schema", Constant{"stepcast.validate/1"});
  a("version", version(), "of stepcast");
  a("suites", all.suites);
}

namespace {

// Adds the extras of a set to the columns of the test; counts have no decimals.
void add_extras(const TestScore& test, const std::vector<ExtraMetric>& extras, ReportRow& row) {
  for (const ExtraMetric& wanted : test.extras) {
    const auto found = std::ranges::find(extras, wanted.name, &ExtraMetric::name);
    const bool is_count = wanted.over == ExtraMetric::Over::sum;
    row.cell(found == extras.end() ? "-" : table_number(found->value, is_count ? 0 : 3));
  }
}

// Tests with groups show intervals, too.
ReportTable relative_table(const TestScore& test) {
  const bool intervals = test.overall.interval_coverage.has_value() && !test.groups.empty();
  ReportTable table{"set< | n | mean\n|error| % | median\n% | p90\n% | max\n% | bias\n% | geometric\nmean %"};
  if (intervals)
    table.columns.insert(table.columns.end(), {{"in p10-p90\n%"}, {"median\nwidth %"}, {"score\nover best"}});
  for (const ExtraMetric& extra : test.extras) table.columns.push_back({extra.name});
  const auto add = [&](const std::string& name, const Metrics& m, const std::vector<ExtraMetric>& extras) {
    ReportRow& row = table.row({name, table_count(m.n)});
    if (m.n == 0) return;
    row.numbers({m.mape, m.median_ape, m.p90_ape, m.max_ape}, 3).cell(table_signed(m.bias, 3));
    row.numbers({m.gmae}, 3);
    if (intervals)
      for (const auto& value : {m.interval_coverage, m.interval_width_median})
        row.cell(value ? table_number(*value, 1) : "-");
    if (intervals) row.cell(m.interval_score_of_best ? table_number(*m.interval_score_of_best, 2) : "-");
    add_extras(test, extras, row);
  };
  for (const SetScore& set : test.sets) add(set.set, set.metrics, set.extras);
  if (test.sets.size() > 1) {
    table.rule();
    for (const GroupScore& group : test.groups)
      add(fmt::format("mean over {} sets: {}", group.n_sets, group.group), group.overall, group.extras);
    add("mean over sets", test.overall, test.extras);
    add("all rows", test.pooled, test.extras);
  }
  return table;
}

ReportTable absolute_table(const TestScore& test) {
  ReportTable table{"set< | n"};
  for (const ExtraMetric& extra : test.extras) table.columns.push_back({extra.name});
  const auto add = [&](const std::string& name, std::uint64_t n, const std::vector<ExtraMetric>& extras) {
    add_extras(test, extras, table.row({name, table_count(n)}));
  };
  for (const SetScore& set : test.sets) add(set.set, set.metrics.n, set.extras);
  if (test.sets.size() > 1) {
    table.rule();
    add("over sets", test.overall.n, test.extras);
  }
  return table;
}

}  // namespace

std::string validation_text(const SuiteResult& result) {
  ReportDocument document{.title = "Validation suite " + result.suite};
  for (const TestScore& test : result.tests) {
    document.add(fmt::format("{} ({}; protocol: {})", test.test, test.unit, test.protocol),
                 {test.relative ? relative_table(test) : absolute_table(test)});
  }
  document.add("Targets", {detail::targets_table(result.targets)});
  document.add("Farthest off", {ReportList{result.worst}});
  document.add("Not scored", {ReportList{detail::skipped_lines(result)}});
  return document.title + "\n" + report_text(document);
}

std::string validation_json(const SuiteResult& result) { return answer_json(result); }

std::string validation_json(std::span<const SuiteResult> results) { return answer_json(AllSuites{results}); }

std::string validation_schema() {
  detail::SchemaDefinitions definitions;
  detail::FieldSchema schema{definitions};
  schema("answer", std::variant<SuiteResult, AllSuites>{});
  JsonValue root = JsonValue::object(), defs = JsonValue::object();
  root.add("$schema", JsonValue{"https://json-schema.org/draft/2020-12/schema"});
  root.add("$id", detail::schema_id("stepcast.validate/1"));
  root.add("title", JsonValue{"stepcast validate --json: one suite, or all"});
  root.add("anyOf", *schema.properties.find("answer")->find("anyOf"));
  for (auto& [name, definition] : definitions) defs.add(name, std::move(definition));
  return pretty_json(root.add("$defs", std::move(defs)));
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
