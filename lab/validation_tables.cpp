#include "lab/validation_tables.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "stepcast/report/cell_text.h"

namespace stepcast::detail {
namespace {

// Without a `must` there is nothing to be met, and only the aim is told.
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

// What was left out for the same reason stands on one line.
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
