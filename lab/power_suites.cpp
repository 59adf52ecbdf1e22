#include "lab/power_suites.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/base/csv_rows.h"
#include "stepcast/cost/node_power.h"
#include "stepcast/platform/platform_file.h"

#include "lab/suites.h"

namespace stepcast {
namespace {

constexpr double kSlowed = 1.05;
constexpr std::array<double, 3> kMustPercent{6, 10, 4.5};  // slow-down, slow-down of slowed rows, watts

using RuleMember = double PowerLimitRule::*;
struct Searched {
  RuleMember member;
  double least, most, step;
};
constexpr Searched kSearched[] = {{&PowerLimitRule::exponent, 0.5, 5, 0.4},
                                  {&PowerLimitRule::clock_bound, 0.02, 1.5, 0.15},
                                  {&PowerLimitRule::held, 0.8, 1.15, 0.04},
                                  {&PowerLimitRule::spread, 0, 1.2, 0.25}};

double misfit(const std::vector<LimitedRun>& runs, const PowerLimitRule& rule) {
  std::array<double, 3> sum{}, n{};
  const auto add = [&](std::size_t i, double error) {
    sum[i] += error;
    n[i] += 1;
  };
  for (const LimitedRun& run : runs) {
    const DrawUnderLimit is = under_limit(rule, run.draw, run.limit_W);
    const double error = std::abs(is.slow_down / run.slow_down - 1);
    add(0, error);
    if (run.slow_down > kSlowed) add(1, error);
    add(2, std::abs(is.mean_W / run.mean_W - 1));
  }
  double all = 0;
  for (std::size_t i = 0; i < sum.size(); ++i)
    if (n[i] > 0) all += sum[i] / n[i] / kMustPercent[i];
  return all;
}

struct ReadRun {
  std::string gpu, job;
  double limit_W = 0, time_s = 0, mean_W = 0;
};

Result<std::vector<ReadRun>> read_limited(const std::filesystem::path& file) {
  std::vector<ReadRun> runs;
  STEPCAST_TRY(each_row(file, [&](const CsvRows& rows) -> Status {
    ReadRun run{.gpu = std::string{rows.cell("gpu")},
                .job = fmt::format("{} {} {} {}", rows.cell("model"), rows.cell("dataset"),
                                   rows.cell("optimizer"), rows.cell("batch_size_samples"))};
    STEPCAST_ASSIGN(run.limit_W, rows.number("power_limit_W", 1));
    STEPCAST_ASSIGN(run.time_s, rows.number("time_per_epoch_s", 1e-6));
    STEPCAST_ASSIGN(run.mean_W, rows.number("average_power_W", 1));
    runs.push_back(std::move(run));
    return Ok{};
  }));
  return runs;
}

// Rows below the top limit of their job, each with the values at the top limit.
std::vector<LimitedRun> limited_runs(const std::vector<ReadRun>& read) {
  std::map<std::string, const ReadRun*> tops;
  std::map<std::string, double> least_W;
  for (const ReadRun& run : read) {
    const ReadRun*& top = tops[run.gpu + run.job];
    if (top == nullptr || run.limit_W > top->limit_W) top = &run;
  }
  for (const auto& [job, top] : tops) {
    double& least = least_W.try_emplace(top->gpu, top->mean_W).first->second;
    least = std::min(least, top->mean_W);
  }
  std::vector<LimitedRun> runs;
  for (const ReadRun& run : read) {
    const ReadRun& top = *tops[run.gpu + run.job];
    if (run.limit_W >= top.limit_W) continue;
    runs.push_back({.gpu = run.gpu,
                    .name = fmt::format("{} {:g} W", run.job, run.limit_W),
                    .draw = {least_W[run.gpu], top.limit_W, top.mean_W},
                    .limit_W = run.limit_W,
                    .slow_down = run.time_s / top.time_s,
                    .mean_W = run.mean_W});
  }
  return runs;
}

DrawUnderLimit trivial(const LimitedRun& run) {
  return {std::max(1.0, run.draw.mean_W / run.limit_W), std::min(run.draw.mean_W, run.limit_W)};
}

using Answerer = std::function<DrawUnderLimit(const LimitedRun&)>;

// Adds scores of one GPU to the three tests: slow-down, slow-down of slowed rows, watts.
void score_limited(const std::vector<LimitedRun>& of_gpu, std::uint64_t n_fit, const Answerer& answer,
                   std::array<TestScore, 3>& tests) {
  for (TestScore& test : tests) test.sets.push_back({.set = of_gpu.front().gpu, .group = {}, .n_fit = n_fit});
  for (const LimitedRun& run : of_gpu) {
    const DrawUnderLimit is = answer(run);
    const ScoredRow row{.row = run.name, .measured = run.slow_down, .predicted = is.slow_down};
    tests[0].sets.back().rows.push_back(row);
    if (run.slow_down > kSlowed) tests[1].sets.back().rows.push_back(row);
    tests[2].sets.back().rows.push_back({.row = run.name, .measured = run.mean_W, .predicted = is.mean_W});
  }
}

std::array<TestScore, 3> three_tests(const std::string& prefix, const char* protocol) {
  return {TestScore{.test = prefix + "slow_down", .protocol = protocol, .unit = "ratio"},
          TestScore{.test = prefix + "slowed_rows", .protocol = protocol, .unit = "ratio"},
          TestScore{.test = prefix + "watts", .protocol = protocol, .unit = "W"}};
}

}  // namespace

PowerLimitRule fitted_power_limit(const std::vector<LimitedRun>& runs) {
  PowerLimitRule rule;
  double best = misfit(runs, rule), scale = 1;
  for (constexpr double kFinest = 0.02; scale > kFinest;) {
    bool better = false;
    for (const Searched& searched : kSearched) {
      for (const double sign : {1.0, -1.0}) {
        PowerLimitRule next = rule;
        double& value = next.*(searched.member);
        value += sign * scale * searched.step;
        if (value < searched.least || value > searched.most) continue;
        const double error = misfit(runs, next);
        if (error >= best - 1e-9) continue;
        best = error;
        rule = next;
        better = true;
      }
    }
    if (!better) scale /= 2;
  }
  return rule;
}

Result<SuiteResult> validate_power_limits(const std::filesystem::path& data,
                                          const SuiteOptions& /*options*/) {
  SuiteResult result{.suite = "power_limits"};
  STEPCAST_ASSIGN(const std::vector<ReadRun> read, read_limited(data / "power_limits.csv"));
  const std::vector<LimitedRun> runs = limited_runs(read);
  std::map<std::string, std::vector<LimitedRun>> by_gpu;
  for (const LimitedRun& run : runs) by_gpu[run.gpu].push_back(run);
  auto refit = three_tests("", "refit"), simple = three_tests("trivial_", "shipped"),
       shipped = three_tests("shipped_", "shipped");
  for (const auto& [gpu, of_gpu] : by_gpu) {
    std::vector<LimitedRun> others;
    for (const LimitedRun& run : runs)
      if (run.gpu != gpu) others.push_back(run);
    const PowerLimitRule rule = others.empty() ? PowerLimitRule{} : fitted_power_limit(others);
    score_limited(
        of_gpu, others.size(), [&](const LimitedRun& r) { return under_limit(rule, r.draw, r.limit_W); },
        refit);
    score_limited(of_gpu, 0, trivial, simple);
    score_limited(
        of_gpu, 0, [](const LimitedRun& r) { return under_limit({}, r.draw, r.limit_W); }, shipped);
  }
  for (auto* tests : {&refit, &simple, &shipped})
    result.add(finished({&(*tests)[0], &(*tests)[1], &(*tests)[2]}));
  result.skipped.push_back({"rows at the top limit of their training",
                            "they give time and draw without a limit", read.size() - runs.size()});
  return result;
}

namespace {

constexpr std::string_view kNodePlatform = "dgx-h100";
// On several nodes, this benchmark logs in another unit (README of the data).
constexpr std::string_view kOtherUnit = "ssd";

struct PowerSet {
  std::string maker, system, benchmark, meter;
  double n_nodes = 1, gpus_per_node = 8;
  std::vector<ScoredRow> rows;  // watts
  double rate_per_gpu = 0;      // samples/s of the last row
  double step_ms = 0;           // logged; 0: none
  std::string flags;            // of the layout
  double waiting = 0;           // share of the step
  bool described = false;       // `waiting` is from a forecast
  bool known = false;           // `waiting` is known
  [[nodiscard]] bool several() const { return n_nodes > 1; }
  [[nodiscard]] std::string name() const { return fmt::format("{} {} {}", system, benchmark, meter); }
  [[nodiscard]] double mean_watts() const {
    double sum = 0;
    for (const ScoredRow& row : rows) sum += row.measured;
    return sum / static_cast<double>(rows.size());
  }
};

std::string layout_flags_of(const CsvRows& rows) {
  std::string flags;
  const auto add = [&](std::string_view flag, std::string_view column) {
    if (!rows.cell(column).empty()) flags += fmt::format(" {} {}", flag, rows.cell(column));
  };
  add("--tensor-model-parallel-size", "tensor_parallel");
  add("--pipeline-model-parallel-size", "pipeline_parallel");
  add("--context-parallel-size", "context_parallel");
  add("--micro-batch-size", "micro_batch_sequences");
  add("--global-batch-size", "global_batch_samples");
  if (rows.cell("dtype") == "fp8") flags += " --fp8-format hybrid";
  return flags;
}

Result<std::vector<PowerSet>> read_power_sets(const std::filesystem::path& file) {
  std::vector<PowerSet> sets;
  STEPCAST_TRY(each_row(file, [&](const CsvRows& rows) -> Status {
    const auto same = [&](const PowerSet& s) {
      return s.system == rows.cell("system") && s.benchmark == rows.cell("benchmark") &&
             s.meter == rows.cell("meter");
    };
    auto set = std::ranges::find_if(sets, same);
    if (set == sets.end()) {
      PowerSet made{.maker = std::string{rows.cell("round")},
                    .system = std::string{rows.cell("system")},
                    .benchmark = std::string{rows.cell("benchmark")},
                    .meter = std::string{rows.cell("meter")},
                    .flags = layout_flags_of(rows)};
      STEPCAST_ASSIGN(made.n_nodes, rows.number("n_nodes", 1));
      STEPCAST_ASSIGN(made.gpus_per_node, rows.number("gpus_per_node", 1));
      set = sets.insert(sets.end(), std::move(made));
    }
    STEPCAST_ASSIGN(const double watts, rows.number("node_p50_W", 1));
    STEPCAST_ASSIGN(set->step_ms, rows.number("step_median_ms", 0, 0.0));
    STEPCAST_ASSIGN(set->rate_per_gpu, rows.number("samples_per_s", 0, 0.0));
    set->rate_per_gpu /= set->n_nodes * set->gpus_per_node;
    set->rows.push_back({.row = std::string{rows.cell("run")}, .measured = watts});
    return Ok{};
  }));
  return sets;
}

// The benchmark as a job; nullopt if no description covers it.
std::optional<PredictRequest> job_of_set(const PowerSet& set) {
  PredictRequest request;
  request.platform = std::string{kNodePlatform};
  request.job.n_gpus = static_cast<std::int64_t>(set.n_nodes * set.gpus_per_node);
  if (set.benchmark == "llama2_70b_lora") {
    request.job.model = "llama-2-70b";
    request.job.settings.lora_rank = 16;
    request.job.command_line = set.flags + " --seq-length 8192 --sequence-parallel";
  } else if (set.benchmark == "bert") {
    request.job.model = "bert-large";
    request.job.settings.packed_mean_tokens = 256;
    request.job.command_line = set.flags + " --seq-length 512";
  } else {
    return std::nullopt;
  }
  return request;
}

// Errors: those of the forecast.
Status find_waiting(const Session& session, std::vector<PowerSet>& sets) {
  for (PowerSet& set : sets) {
    if (const std::optional<PredictRequest> request = job_of_set(set)) {
      STEPCAST_ASSIGN(const Forecast forecast, session.predict(*request));
      const double waiting = forecast.power ? forecast.power->waiting_share : 0;
      const double busy_ms = (1 - waiting) * forecast.step_time_ms;
      // On one node the waiting of the forecast is used.
      set.waiting =
          set.several() && set.step_ms > 0 ? std::clamp(1 - busy_ms / set.step_ms, 0.0, 1.0) : waiting;
      set.described = set.known = true;
      continue;
    }
    set.known = !set.several();
    if (!set.several() || set.benchmark == kOtherUnit) continue;
    for (const PowerSet& one : sets) {
      if (one.several() || one.benchmark != set.benchmark || one.meter != set.meter) continue;
      set.waiting = std::clamp(1 - set.rate_per_gpu / one.rate_per_gpu, 0.0, 1.0);
      set.known = true;
    }
  }
  return Ok{};
}

struct NodeFit {
  double busy_W = 0;      // draw of a computing node
  double lost_share = 0;  // share of `busy_W` that waiting saves
  double mean_W[2] = {};  // of one node, of several: for jobs without a description
  std::uint64_t n = 0;    // rows
};

// The draw of busy nodes for a given saving by waiting: the mean of one-node sets.
double busy_of(const std::vector<const PowerSet*>& sets, double lost_share) {
  double sum = 0, n = 0;
  for (const PowerSet* set : sets) {
    if (set->several()) continue;
    sum += set->mean_watts() / (1 - lost_share * set->waiting);
    n += 1;
  }
  return n > 0 ? sum / n : 0;
}

// Fit without one benchmark, of one maker and meter.
NodeFit fit_nodes(const std::vector<PowerSet>& sets, std::string_view without, std::string_view meter) {
  std::vector<const PowerSet*> left;
  NodeFit fit;
  for (const PowerSet& set : sets) {
    if (set.benchmark == without || set.meter != meter || set.maker != sets.front().maker) continue;
    left.push_back(&set);
    fit.n += set.rows.size();
  }
  double best = 0;
  for (int i = 0; i <= 100; ++i) {
    const double lost = i * 0.01, busy_W = busy_of(left, lost);
    double error = 0;
    for (const PowerSet* set : left)
      if (set->known) error += std::pow(busy_W * (1 - lost * set->waiting) / set->mean_watts() - 1, 2);
    if (i > 0 && error >= best) continue;
    best = error;
    fit.lost_share = lost;
    fit.busy_W = busy_W;
  }
  double n[2] = {};
  for (const PowerSet* set : left) {
    fit.mean_W[set->several() ? 1 : 0] += set->mean_watts();
    n[set->several() ? 1 : 0] += 1;
  }
  for (int i = 0; i < 2; ++i) fit.mean_W[i] = n[i] > 0 ? fit.mean_W[i] / n[i] : 0;
  return fit;
}

double constant_of(const std::vector<PowerSet>& sets, const PowerSet& of) {
  double sum = 0, n = 0;
  for (const PowerSet& set : sets) {
    if (set.benchmark == of.benchmark || set.meter != of.meter || set.several() != of.several()) continue;
    sum += set.mean_watts();
    n += 1;
  }
  return n > 0 ? sum / n : 0;
}

class NodeScores {
 public:
  explicit NodeScores(std::string_view prefix, const char* protocol) {
    for (const char* size : {"one_node", "several_nodes"})
      tests_.push_back({.test = fmt::format("{}{}", prefix, size), .protocol = protocol, .unit = "W"});
  }
  void add(const PowerSet& set, double watts, std::uint64_t n_fit) {
    if (!(watts > 0)) return;
    SetScore score{
        .set = set.name(), .group = {}, .n_fit = n_fit, .metrics = {}, .extras = {}, .rows = set.rows};
    for (ScoredRow& row : score.rows) row.predicted = watts;
    tests_[set.several() ? 1 : 0].sets.push_back(std::move(score));
  }
  // Ratio of the means over sets, percent, stored in the first set.
  void compare_with(const NodeScores& other) {
    for (std::size_t i = 0; i < tests_.size(); ++i) {
      TestScore mine = tests_[i], others = other.tests_[i];
      mine.finish();
      others.finish();
      if (tests_[i].sets.empty() || others.overall.mape <= 0) continue;
      tests_[i].sets.front().extras.push_back(
          {"of_constant_pct", 100 * mine.overall.mape / others.overall.mape, ExtraMetric::Over::max});
    }
  }
  void into(SuiteResult& result) { result.add(finished({&tests_[0], &tests_[1]})); }

 private:
  std::vector<TestScore> tests_;
};

}  // namespace

Result<SuiteResult> validate_node_power(const std::filesystem::path& data, const SuiteOptions& /*options*/) {
  SuiteResult result{.suite = "node_power"};
  STEPCAST_ASSIGN(std::vector<PowerSet> sets, read_power_sets(data / "node_power.csv"));
  if (sets.empty()) return result;
  STEPCAST_TRY(find_waiting(Session{}, sets));
  STEPCAST_ASSIGN(const Platform platform, load_platform(std::string{kNodePlatform}));
  const std::optional<NodePower> ships = NodePower::of(platform);
  NodeScores refit{"", "refit"}, constant{"constant_", "shipped"}, limit{"limit_", "shipped"},
      shipped{"shipped_", "shipped"};
  for (const PowerSet& set : sets) {
    const NodeFit fit = fit_nodes(sets, set.benchmark, set.meter);
    const double by_form = fit.busy_W * (1 - fit.lost_share * set.waiting);
    refit.add(set, set.described ? by_form : fit.mean_W[set.several() ? 1 : 0], fit.n);
    constant.add(set, constant_of(sets, set), 0);
    if (!ships) continue;
    limit.add(set, ships->gpu_top_W * set.gpus_per_node, 0);
    if (set.meter == "AC" && set.known)
      shipped.add(set, ships->node_watts(set.gpus_per_node, set.waiting), 0);
    if (!set.described)
      result.skipped.push_back(
          {"waiting of " + set.name(), "not described: draws what the others of its size do"});
  }
  refit.compare_with(constant);
  for (NodeScores* scores : {&refit, &constant, &limit, &shipped}) scores->into(result);
  return result;
}

}  // namespace stepcast
