#include "lab/megatron_lines_suite.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/base/csv_rows.h"
#include "stepcast/base/statistics.h"
#include "stepcast/formats/megatron.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

// Outcomes of the lines of a file, and by GPU, forecasts with measured times.
struct MegatronLines {
  double forecast = 0, refused = 0, failed = 0;
  std::map<std::string, std::vector<ScoredRow>> steps;
  // Small models with host-bound steps.
  struct Small {
    ScoredRow row;
    std::string family, gpu, layout;
    bool fitted = false;  // the constants of hosts are fitted to this row
  };
  std::vector<Small> small;

  [[nodiscard]] double all() const { return forecast + refused + failed; }
};

// Cases with an even FNV-1a hash (64 bits) of their name, on all GPUs, fit the constants of hosts; the others are scored.
bool hosts_are_fitted_to(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash % 2 == 0;
}

std::string_view family_of(std::string_view suite) {
  return suite == "gpt" ? "dense GPT" : suite == "moe" ? "experts" : suite == "bert" ? "BERT" : "";
}

// Read from the flags, because forecasts do not repeat sizes of the model.
bool is_small(std::string_view flags) {
  constexpr std::string_view kFlag = "--hidden-size ";
  constexpr int kLarge = 2048;
  const std::size_t at = flags.find(kFlag);
  int size = kLarge;
  if (at != std::string_view::npos)
    std::from_chars(flags.data() + at + kFlag.size(), flags.data() + flags.size(), size);
  return size < kLarge;
}

// The parts of a layout that do not follow from the number of GPUs, for example "tensor_parallel 2 pipeline_parallel 4 ...".
std::string layout_of(const Forecast& forecast) {
  std::string text;
  for (const Setting& setting : forecast.layout) {
    const bool is_degree = setting.name.ends_with("_parallel") || setting.name == "virtual_stages";
    if (!is_degree || setting.name == "data_parallel" || setting.name == "sequence_parallel") continue;
    if (const double* degree = std::get_if<double>(&setting.value))
      text += fmt::format("{} {} ", setting.name, *degree);
  }
  return text;
}

Result<MegatronLines> read_lines(const fs::path& file, std::vector<Skipped>& skipped) {
  const Session session;
  MegatronLines lines;
  STEPCAST_TRY(each_row(file, [&](const CsvRows& rows) -> Status {
    const std::string name =
        fmt::format("line {} {} {} {}", rows.line(), rows.cell("suite"), rows.cell("case"), rows.cell("gpu"));
    const Result<Forecast> forecast = session.predict(request_of_line(rows));
    if (!forecast) {
      const std::string why = forecast.error().message();
      const bool is_refused = why.find("not modelled") != std::string::npos;
      (is_refused ? lines.refused : lines.failed) += 1;
      skipped.push_back({name, fmt::format("{}: {}", is_refused ? "refused" : "failed", why)});
      return Ok{};
    }
    lines.forecast += 1;
    const auto measured = rows.number("step_median_ms", 0);
    if (!measured.ok()) return Ok{};
    const ScoredRow row = scored_step(name, *measured, *forecast);
    const std::string gpu{rows.cell("gpu")}, family{family_of(rows.cell("suite"))};
    lines.steps[gpu].push_back(row);
    if (!family.empty() && is_small(rows.cell("flags")))
      lines.small.push_back({row, family, gpu, layout_of(*forecast), hosts_are_fitted_to(rows.cell("case"))});
    return Ok{};
  }));
  return lines;
}

// Every row with the median of the others as prediction.
std::vector<ScoredRow> medians_of_others(const std::vector<ScoredRow>& rows) {
  std::vector<ScoredRow> out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<double> others;
    for (std::size_t j = 0; j < rows.size(); ++j)
      if (j != i) others.push_back(rows[j].measured);
    if (others.empty()) continue;
    out.push_back({.row = rows[i].row, .measured = rows[i].measured, .predicted = upper_median(others)});
  }
  return out;
}

// The scored half of the small lines, by family and GPU: the forecast; the forecast times the median of measured over
// forecast of lines of other layouts in the other half; and the median of the others.
std::vector<TestScore> score_small(const std::vector<MegatronLines::Small>& lines) {
  TestScore shipped{.test = "host_bound", .protocol = "shipped", .unit = "ms"};
  TestScore left_out{.test = "host_bound_layout_left_out", .protocol = "refit", .unit = "ms"};
  TestScore others{.test = "host_bound_median_of_others", .protocol = "refit", .unit = "ms"};
  std::map<std::pair<std::string, std::string>, std::array<SetScore, 2>>
      sets;  // as forecast, times the factor
  for (const MegatronLines::Small& line : lines) {
    auto& [as_is, refitted] = sets[{line.family, line.gpu}];
    if (line.fitted) {
      ++as_is.n_fit;
      continue;
    }
    std::vector<double> factors;
    for (const MegatronLines::Small& other : lines)
      if (other.fitted && other.layout != line.layout)
        factors.push_back(other.row.measured / other.row.predicted);
    as_is.rows.push_back(line.row);
    if (factors.empty()) continue;
    refitted.n_fit = factors.size();
    refitted.rows.push_back(scaled(line.row, upper_median(factors)));
  }
  for (auto& [of, both] : sets) {
    const auto add = [&](TestScore& test, SetScore set) {
      set.set = of.first + " " + of.second;
      set.group = of.first;
      if (!set.rows.empty()) test.sets.push_back(std::move(set));
    };
    const std::vector<ScoredRow>& rows = both[0].rows;
    add(others, {.n_fit = rows.size(), .rows = medians_of_others(rows)});
    add(shipped, std::move(both[0]));
    add(left_out, std::move(both[1]));
  }
  return finished({&shipped, &left_out, &others});
}

std::vector<ExtraMetric> counts_of(const MegatronLines& lines) {
  using Over = ExtraMetric::Over;
  return {{"forecast_n", lines.forecast, Over::sum},
          {"refused_n", lines.refused, Over::sum},
          {"failed_n", lines.failed, Over::sum},
          {"right_percent", 100 * (lines.forecast + lines.refused) / lines.all()}};
}

Result<TestScore> score_flags(const fs::path& file, std::vector<Skipped>& skipped) {
  TestScore test{.test = "flags", .protocol = "shipped", .unit = "flags", .relative = false};
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return test;
  SetScore set{.set = "parser"};
  double unknown = 0;
  STEPCAST_TRY(each_row(file, [&](const CsvRows& rows) -> Status {
    for (std::string_view rest = rows.cell("flags"); !rest.empty();) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      const std::string flag{rest.substr(0, end)};
      rest.remove_prefix(std::min(end + 1, rest.size()));
      set.rows.push_back({.row = flag});
      if (use_of_megatron_flag(flag)) continue;
      unknown += 1;
      skipped.push_back({flag, "failed: a flag of the parser that the table does not have"});
    }
    return Ok{};
  }));
  set.extras = {{"unknown_n", unknown, ExtraMetric::Over::sum}};
  test.sets.push_back(std::move(set));
  test.finish();
  return test;
}

}  // namespace

PredictRequest request_of_line(const CsvRows& rows) {
  PredictRequest request;
  request.job.command_line = std::string{rows.cell("flags")};
  request.platform = rows.cell("gpu") == "A100" ? "dgx-a100" : "dgx-h100";
  if (const auto n = rows.extent("n_gpus"); n.ok()) request.job.n_gpus = *n;
  return request;
}

Result<SuiteResult> validate_megatron_lines(const fs::path& data, const SuiteOptions& /*options*/) {
  SuiteResult result{.suite = "megatron_lines"};
  TestScore read{.test = "read", .protocol = "shipped", .unit = "lines", .relative = false};
  TestScore steps{.test = "step_time", .protocol = "shipped", .unit = "ms"};
  TestScore others{.test = "median_of_others", .protocol = "refit", .unit = "ms"};
  std::vector<MegatronLines::Small> small;
  for (const std::string_view name : {"megatron_lines", "megatron_lines_no_gpu_count"}) {
    const fs::path file = data / fmt::format("{}.csv", name);
    std::error_code ignored;
    if (!read.sets.empty() && !fs::exists(file, ignored)) continue;
    STEPCAST_ASSIGN(const MegatronLines lines, read_lines(file, result.skipped));
    if (lines.all() == 0) continue;
    SetScore set{.set = std::string{name}, .extras = counts_of(lines)};
    set.rows.resize(static_cast<std::size_t>(lines.all()));
    read.sets.push_back(std::move(set));
    for (const auto& [gpu, rows] : lines.steps) {
      steps.sets.push_back({.set = gpu, .rows = rows});
      others.sets.push_back({.set = gpu, .n_fit = rows.size() - 1, .rows = medians_of_others(rows)});
    }
    small.insert(small.end(), lines.small.begin(), lines.small.end());
  }
  STEPCAST_ASSIGN(TestScore flags, score_flags(data / "megatron_arguments.csv", result.skipped));
  result.add(finished({&read, &steps, &others}));
  result.add(score_small(small));
  result.add(std::move(flags));
  return result;
}

}  // namespace stepcast
