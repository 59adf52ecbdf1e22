#include "lab/target.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/file.h"

#include "lab/suite.h"

namespace stepcast {
namespace {

// The rest of `text` after `prefix`; nullopt if it does not begin with it.
std::optional<std::string_view> after(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  return text.substr(prefix.size());
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::optional<double> number_of(std::string_view text) {
  text = trimmed(text);
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

struct Bound {
  Target::Kind kind = Target::Kind::at_most;
  double value = 0, to = 0;
};

std::optional<Bound> bound_of(std::string_view text) {
  if (const auto most = after(text, "<=")) {
    if (const auto value = number_of(*most)) return Bound{Target::Kind::at_most, *value, 0};
  } else if (const auto least = after(text, ">=")) {
    if (const auto value = number_of(*least)) return Bound{Target::Kind::at_least, *value, 0};
  } else if (const std::size_t to = text.find(" to "); to != std::string_view::npos) {
    const auto low = number_of(text.substr(0, to)), high = number_of(text.substr(to + 4));
    if (low && high && *low <= *high) return Bound{Target::Kind::between, *low, *high};
  }
  return std::nullopt;
}

bool holds(double value, const Bound& bound) {
  switch (bound.kind) {
    case Target::Kind::at_most: return value <= bound.value;
    case Target::Kind::at_least: return value >= bound.value;
    case Target::Kind::between: return value >= bound.value && value <= bound.to;
  }
  return false;
}

// "mape <= 11": the name of a metric and its bound.
struct Condition {
  std::string_view metric;
  Bound bound;
};
std::optional<Condition> condition_of(std::string_view text) {
  const std::size_t space = text.find(' ');
  if (space == 0 || space == std::string_view::npos) return std::nullopt;
  const auto bound = bound_of(trimmed(text.substr(space)));
  if (!bound) return std::nullopt;
  return Condition{text.substr(0, space), *bound};
}

constexpr std::string_view kSet = "set ", kGroup = "group ", kLargestOfGroup = "largest set of group ",
                           kMeanOfGroups = "mean of groups ", kShareOfSets = "share of sets";

bool is_known_of(std::string_view of) {
  for (const std::string_view whole : {"overall", "rows", "largest set", "smallest set", "largest group",
                                       "smallest group", "share of sets"}) {
    if (of == whole) return true;
  }
  for (const std::string_view prefix : {kSet, kGroup, kLargestOfGroup, kMeanOfGroups})
    if (const auto name = after(of, prefix); name && !name->empty()) return true;
  return false;
}

std::optional<double> metric_of(const Metrics& metrics, const std::vector<ExtraMetric>& extras,
                                std::string_view name) {
  if (name == "interval_coverage") return metrics.interval_coverage;
  if (name == "interval_width_median") return metrics.interval_width_median;
  if (name == "interval_score") return metrics.interval_score;
  if (name == "interval_score_of_best") return metrics.interval_score_of_best;
  for (const auto& [key, member] :
       {std::pair{"mape", &Metrics::mape}, std::pair{"median_ape", &Metrics::median_ape},
        std::pair{"gmae", &Metrics::gmae}, std::pair{"p80_ape", &Metrics::p80_ape},
        std::pair{"p90_ape", &Metrics::p90_ape}, std::pair{"max_ape", &Metrics::max_ape},
        std::pair{"bias", &Metrics::bias}}) {
    if (name == key) return metrics.n > 0 ? std::optional{metrics.*member} : std::nullopt;
  }
  for (const ExtraMetric& extra : extras)
    if (extra.name == name) return extra.value;
  return std::nullopt;
}

template <class Named>
std::vector<double> values_of(const std::vector<Named>& all, std::string_view metric, auto&& wanted,
                              auto&& metrics_of) {
  std::vector<double> values;
  for (const Named& one : all) {
    if (!wanted(one)) continue;
    if (const auto value = metric_of(metrics_of(one), one.extras, metric)) values.push_back(*value);
  }
  return values;
}

std::vector<double> values_of_sets(const TestScore& test, std::string_view metric, auto&& wanted) {
  return values_of(test.sets, metric, wanted, [](const SetScore& s) -> const Metrics& { return s.metrics; });
}
std::vector<double> values_of_groups(const TestScore& test, std::string_view metric, auto&& wanted) {
  return values_of(test.groups, metric, wanted,
                   [](const GroupScore& g) -> const Metrics& { return g.overall; });
}

std::optional<double> largest(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  return *std::ranges::max_element(values);
}
std::optional<double> smallest(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  return *std::ranges::min_element(values);
}

std::optional<double> mean_of_groups(const TestScore& test, std::string_view names, std::string_view metric) {
  double sum = 0, n = 0;
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(';'), names.size());
    const std::string_view name = trimmed(names.substr(0, end));
    names.remove_prefix(std::min(end + 1, names.size()));
    const auto one =
        largest(values_of_groups(test, metric, [&](const GroupScore& group) { return group.group == name; }));
    if (!one) return std::nullopt;
    sum += *one;
    n += 1;
  }
  return n > 0 ? std::optional{sum / n} : std::nullopt;
}

std::optional<double> share_of_sets(const TestScore& test, std::string_view metric) {
  const auto condition = condition_of(metric);
  if (!condition) return std::nullopt;
  const std::vector<double> values =
      values_of_sets(test, condition->metric, [](const SetScore&) { return true; });
  if (values.empty()) return std::nullopt;
  const auto n = std::ranges::count_if(values, [&](double value) { return holds(value, condition->bound); });
  return 100 * static_cast<double>(n) / static_cast<double>(values.size());
}

std::optional<double> value_in(const TestScore& test, std::string_view of, std::string_view metric) {
  const auto any = [](const auto&) { return true; };
  if (of == "overall") return metric_of(test.overall, test.extras, metric);
  if (of == "rows") return metric_of(test.pooled, {}, metric);
  if (of == "largest set") return largest(values_of_sets(test, metric, any));
  if (of == "smallest set") return smallest(values_of_sets(test, metric, any));
  if (of == "largest group") return largest(values_of_groups(test, metric, any));
  if (of == "smallest group") return smallest(values_of_groups(test, metric, any));
  if (of == kShareOfSets) return share_of_sets(test, metric);
  if (const auto names = after(of, kMeanOfGroups)) return mean_of_groups(test, *names, metric);
  if (const auto name = after(of, kLargestOfGroup))
    return largest(values_of_sets(test, metric, [&](const SetScore& s) { return s.group == *name; }));
  if (const auto name = after(of, kGroup))
    return largest(values_of_groups(test, metric, [&](const GroupScore& g) { return g.group == *name; }));
  if (const auto name = after(of, kSet))
    return largest(values_of_sets(test, metric, [&](const SetScore& s) { return s.set == *name; }));
  return std::nullopt;
}

std::string words_of(std::string_view metric) {
  for (const auto& [key, words] :
       {std::pair{"mape", "mean |error| %"}, std::pair{"median_ape", "median |error| %"},
        std::pair{"gmae", "geometric mean |error| %"}, std::pair{"p80_ape", "80th percentile of |error| %"},
        std::pair{"p90_ape", "90th percentile of |error| %"}, std::pair{"max_ape", "largest |error| %"},
        std::pair{"bias", "bias %"}, std::pair{"interval_coverage", "% between p10 and p90"},
        std::pair{"interval_width_median", "median width of p10 to p90 %"},
        std::pair{"interval_score", "interval score %"},
        std::pair{"interval_score_of_best", "interval score over that of the best single width"}}) {
    if (metric == key) return words;
  }
  return std::string{metric};
}

std::string what_of(const TargetRow& row) {
  if (row.of == kShareOfSets) {
    const std::size_t space = row.metric.find(' ');
    return fmt::format("{}: % of sets with {}{}", row.test, words_of(row.metric.substr(0, space)),
                       row.metric.substr(space));
  }
  const std::string test = row.test == "*" ? "all tests" : row.test;
  const std::string of = row.of == "overall" ? "" : row.of == "rows" ? ", all rows" : ", " + row.of;
  return fmt::format("{}{}: {}", test, of, words_of(row.metric));
}

constexpr std::string_view kColumns[] = {"suite", "test", "of", "metric", "must", "aim"};

Result<Bound> bound_in(const CsvRows& rows, std::string_view column) {
  const auto bound = bound_of(rows.cell(column));
  if (!bound) return rows.error(column).expected("\"<= X\", \">= X\" or \"X to Y\"");
  return *bound;
}

Result<TargetRow> row_of(const CsvRows& rows) {
  for (const char* column : {"suite", "test", "of", "metric"})
    if (rows.cell(column).empty()) return rows.error(column).expected("a name");
  TargetRow row{.suite = std::string{rows.cell("suite")},
                .test = std::string{rows.cell("test")},
                .of = std::string{rows.cell("of")},
                .metric = std::string{rows.cell("metric")}};
  if (!is_known_of(row.of)) {
    return rows.error("of").expected(
        "overall, rows, set NAME, group NAME, largest set, smallest set, largest group, smallest group, "
        "largest set of group NAME, mean of groups NAME; NAME or share of sets");
  }
  if (row.of == kShareOfSets && !condition_of(row.metric))
    return rows.error("metric").expected("a metric and its bound, such as \"mape <= 11\"");
  const bool has_must = !rows.cell("must").empty(), has_aim = !rows.cell("aim").empty();
  if (!has_must && !has_aim) return rows.error("must").expected("a bound here or as aim");
  if (has_must) {
    STEPCAST_ASSIGN(const Bound must, bound_in(rows, "must"));
    row.target.kind = must.kind;
    if (must.kind == Target::Kind::between) {
      row.target.from = must.value;
      row.target.to = must.to;
    } else {
      row.target.must = must.value;
    }
  }
  if (has_aim) {
    STEPCAST_ASSIGN(const Bound aim, bound_in(rows, "aim"));
    if (aim.kind == Target::Kind::between || (has_must && aim.kind != row.target.kind))
      return rows.error("aim").expected("one bound, to the same side as what must be");
    row.target.kind = aim.kind;
    row.target.aim = aim.value;
  }
  return row;
}

}  // namespace

std::optional<bool> Target::met() const {
  if (kind == Kind::between) return value >= from && value <= to;
  if (!must) return std::nullopt;
  return kind == Kind::at_most ? value <= *must : value >= *must;
}

std::optional<bool> Target::aim_met() const {
  if (!aim) return std::nullopt;
  return kind == Kind::at_most ? value <= *aim : value >= *aim;
}

Result<std::vector<TargetRow>> parse_targets(std::string_view text, const std::string& name) {
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(text, name));
  STEPCAST_TRY(rows.check_names());
  for (const std::string_view column : kColumns) {
    if (!rows.has(column)) {
      return Error::at(name, "line 1", fmt::format("no column '{}'", column))
          .expected(fmt::format("{}", fmt::join(kColumns, ",")));
    }
  }
  std::vector<TargetRow> targets;
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) return targets;
    STEPCAST_ASSIGN(TargetRow row, row_of(rows));
    targets.push_back(std::move(row));
  }
}

Result<std::vector<TargetRow>> read_targets(const std::filesystem::path& file) {
  STEPCAST_ASSIGN(const std::string text, read_file(file));
  return parse_targets(text, file.string());
}

std::optional<double> target_value(const SuiteResult& result, const TargetRow& row) {
  std::optional<double> sum;
  for (const TestScore& test : result.tests) {
    if (row.test == "*") {
      if (const auto value = value_in(test, row.of, row.metric)) sum = sum.value_or(0) + *value;
    } else if (test.test == row.test) {
      return value_in(test, row.of, row.metric);
    }
  }
  return sum;
}

std::vector<Target> targets_of(const SuiteResult& result, std::span<const TargetRow> rows) {
  std::vector<Target> targets;
  for (const TargetRow& row : rows) {
    if (row.suite != result.suite) continue;
    const auto value = target_value(result, row);
    if (!value) continue;
    Target target = row.target;
    target.what = what_of(row);
    target.value = *value;
    targets.push_back(std::move(target));
  }
  return targets;
}

}  // namespace stepcast
