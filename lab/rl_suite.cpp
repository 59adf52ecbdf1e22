// Scores forecasts of published steps of post-training (rl_steps.csv).
//
//   leave_one_configuration_out   (primary) the six RlConstants fitted to the other configurations (model, GPUs, policy and
//                                 type); all releases of a configuration are left out together; s
//   leave_one_model_out           fitted to the other models
//   tokens_per_s_per_gpu          the trivial answer: the median rate of the other configurations of the model
//   off_over_on                   off-policy over on-policy time of a model on the same number of GPUs in one release, by
//                                 the first test
//   constant_off_over_on          the trivial answer: always 0.70
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/file.h"
#include "stepcast/base/number.h"
#include "stepcast/base/statistics.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/rollout/rl_step.h"

#include "lab/suites.h"

namespace stepcast {
namespace {

// Published steps of post-training (rl_steps.csv) and the requests that describe them.
struct RlRun {
  std::string name;           // "GRPO LLAMA3.1_8B 16 off:1 fp8, Nemo RL v0.5"
  std::string model;          // as published
  std::string configuration;  // equal for a job in several releases
  std::string pair;           // equal for on- and off-policy on the same number of GPUs in one release
  bool on_policy = true;
  RlQuestion question;
  double step_s = 0;
  double tokens_per_gpu = 0;  // generated
};

struct RlRuns {
  std::vector<RlRun> runs;
  std::vector<std::string> skipped;  // with the reason
};

struct RlMeasured {
  const RlRun* run = nullptr;
  RlAnswer answer;
};

// The prior of each constant: the value assumed before any step was used, and its uncertainty, in ln.
struct Assumed {
  double RlConstants::*member;
  double value, off_by;
};
constexpr std::array kAssumed{
    Assumed{&RlConstants::decode_factor, 1.3, 0.4},   Assumed{&RlConstants::layer_us, 8, 0.5},
    Assumed{&RlConstants::training_factor, 1.3, 0.3}, Assumed{&RlConstants::colocated_s, 30, 0.5},
    Assumed{&RlConstants::handover_s, 8, 0.5},        Assumed{&RlConstants::transfer_s_per_100B, 6, 0.5}};
constexpr std::size_t kUnknowns = kAssumed.size();
using Unknowns = std::array<double, kUnknowns>;  // in ln
constexpr double kStepError = 0.15;              // in ln
constexpr double kConstantRatio = 0.70;

RlConstants constants_of(const Unknowns& ln) {
  RlConstants out;
  for (std::size_t i = 0; i < kUnknowns; ++i) out.*kAssumed[i].member = std::exp(ln[i]);
  return out;
}

double step_of(const RlMeasured& row, const RlConstants& constants) {
  double step_s = 0;
  (void)parts_of(row.answer.work, row.answer.forecast.split, constants, step_s);
  return step_s;
}

// Solves A x = b in place; A is positive definite.
Unknowns solved_normal(std::array<Unknowns, kUnknowns> a, Unknowns b) {
  for (std::size_t i = 0; i < kUnknowns; ++i) {
    for (std::size_t j = i + 1; j < kUnknowns; ++j) {
      const double factor = a[j][i] / a[i][i];
      for (std::size_t k = i; k < kUnknowns; ++k) a[j][k] -= factor * a[i][k];
      b[j] -= factor * b[i];
    }
  }
  for (std::size_t i = kUnknowns; i-- > 0;) {
    for (std::size_t k = i + 1; k < kUnknowns; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  return b;
}

// Residuals in units of their expected size: first of the steps, then of the constants.
std::vector<double> rl_residuals(const std::vector<const RlMeasured*>& rows,
                                 const std::map<std::string, int>& releases, const Unknowns& ln) {
  const RlConstants constants = constants_of(ln);
  std::vector<double> out;
  for (const RlMeasured* row : rows) {
    const double weight = 1 / std::sqrt(static_cast<double>(releases.at(row->run->configuration)));
    out.push_back(std::log(step_of(*row, constants) / row->run->step_s) / kStepError * weight);
  }
  for (std::size_t i = 0; i < kUnknowns; ++i)
    out.push_back((ln[i] - std::log(kAssumed[i].value)) / kAssumed[i].off_by);
  return out;
}

double squares_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return sum;
}

// The most likely constants for these steps: errors in ln of 15 %, all releases of a configuration together with the weight
// of one, and the priors (docs/constants.md). By Levenberg-Marquardt.
RlConstants fit_rl_constants(const std::vector<const RlMeasured*>& rows) {
  std::map<std::string, int> releases;
  for (const RlMeasured* row : rows) ++releases[row->run->configuration];
  Unknowns ln{};
  for (std::size_t i = 0; i < kUnknowns; ++i) ln[i] = std::log(kAssumed[i].value);
  std::vector<double> now = rl_residuals(rows, releases, ln);
  double damping = 1e-3;
  constexpr int kRounds = 60;
  constexpr double kStep = 1e-4;
  for (int round = 0; round < kRounds; ++round) {
    std::array<std::vector<double>, kUnknowns> slopes;
    for (std::size_t i = 0; i < kUnknowns; ++i) {
      Unknowns moved = ln;
      moved[i] += kStep;
      slopes[i] = rl_residuals(rows, releases, moved);
      for (std::size_t r = 0; r < now.size(); ++r) slopes[i][r] = (slopes[i][r] - now[r]) / kStep;
    }
    std::array<Unknowns, kUnknowns> normal{};
    Unknowns right{};
    for (std::size_t i = 0; i < kUnknowns; ++i) {
      for (std::size_t j = 0; j < kUnknowns; ++j)
        for (std::size_t r = 0; r < now.size(); ++r) normal[i][j] += slopes[i][r] * slopes[j][r];
      for (std::size_t r = 0; r < now.size(); ++r) right[i] -= slopes[i][r] * now[r];
      normal[i][i] += damping;
    }
    const Unknowns step = solved_normal(normal, right);
    Unknowns next = ln;
    for (std::size_t i = 0; i < kUnknowns; ++i) next[i] += step[i];
    std::vector<double> then = rl_residuals(rows, releases, next);
    const bool better = squares_of(then) < squares_of(now);
    damping *= better ? 0.3 : 5;
    if (!better) continue;
    ln = next;
    now = std::move(then);
  }
  return constants_of(ln);
}

using KeyOf = std::function<std::string(const RlRun&)>;

ScoredRow scored_rl_step(const RlMeasured& m, double predicted) {
  const RlForecast& f = m.answer.forecast;
  return {.row = m.run->name,
          .measured = m.run->step_s,
          .predicted = predicted,
          .p10 = predicted * f.p10_s / f.step_s,
          .p90 = predicted * f.p90_s / f.step_s,
          .shares = fmt::format("generate {:.1f} learn {:.1f} transfer {:.1f}", f.parts.generate_s(),
                                f.parts.learn_s(), f.parts.transfer_s)};
}

// Scores with one set for each model. The constants for rows with one key are fitted without them.
TestScore steps_left_out(const std::string& name, const std::vector<RlMeasured>& all, const KeyOf& key) {
  TestScore test{.test = name, .protocol = "refit", .unit = "s"};
  std::map<std::string, RlConstants> fitted;
  std::map<std::string, SetScore> sets;
  for (const RlMeasured& row : all) {
    std::vector<const RlMeasured*> others;
    for (const RlMeasured& other : all)
      if (key(*other.run) != key(*row.run)) others.push_back(&other);
    if (others.empty()) continue;
    const auto [found, is_new] = fitted.try_emplace(key(*row.run));
    if (is_new) found->second = fit_rl_constants(others);
    SetScore& set = sets[row.run->model];
    set.set = row.run->model;
    set.n_fit = others.size();
    set.rows.push_back(scored_rl_step(row, step_of(row, found->second)));
  }
  for (auto& [model, set] : sets) test.sets.push_back(std::move(set));
  test.finish();
  return test;
}

TestScore rates_of_the_model(const std::vector<RlMeasured>& all) {
  TestScore test{.test = "tokens_per_s_per_gpu", .protocol = "refit", .unit = "s"};
  std::map<std::string, SetScore> sets;
  for (const RlMeasured& row : all) {
    std::vector<double> rates;
    for (const RlMeasured& other : all)
      if (other.run->model == row.run->model && other.run->configuration != row.run->configuration)
        rates.push_back(other.run->tokens_per_gpu / other.run->step_s);
    if (rates.empty()) continue;
    SetScore& set = sets[row.run->model];
    set.set = row.run->model;
    set.n_fit = rates.size();
    set.rows.push_back({.row = row.run->name,
                        .measured = row.run->step_s,
                        .predicted = row.run->tokens_per_gpu / median(rates)});
  }
  for (auto& [model, set] : sets) test.sets.push_back(std::move(set));
  test.finish();
  return test;
}

// The ratio of every pair by the forecasts of `steps`; with `constant`, always that number.
TestScore policy_ratios(const std::string& name, const std::vector<RlMeasured>& all, const TestScore& steps,
                        double constant) {
  std::map<std::string, double> predicted;
  for (const SetScore& set : steps.sets)
    for (const ScoredRow& row : set.rows) predicted[row.row] = row.predicted;
  SetScore set{.set = "pairs", .group = {}, .n_fit = all.size()};
  double ordered = 0;
  for (const RlMeasured& on : all) {
    for (const RlMeasured& off : all) {
      if (!on.run->on_policy || off.run->on_policy || on.run->pair != off.run->pair) continue;
      const double ratio = constant > 0 ? constant : predicted[off.run->name] / predicted[on.run->name];
      const double measured = off.run->step_s / on.run->step_s;
      ordered += (ratio < 1) == (measured < 1) ? 1 : 0;
      set.rows.push_back({.row = off.run->name, .measured = measured, .predicted = ratio});
    }
  }
  set.extras = {{"pairs_ordered", 100 * ordered / std::max(1.0, static_cast<double>(set.rows.size()))}};
  TestScore test{.test = name, .protocol = "refit", .unit = "ratio"};
  if (!set.rows.empty()) test.sets.push_back(std::move(set));
  test.finish();
  return test;
}

struct PublishedName {
  std::string_view published, preset;
};
constexpr std::array kPublishedNames{
    PublishedName{"LLAMA3.1_8B", "llama-3.1-8b"}, PublishedName{"DeepSeek V3", "deepseek-v3"},
    PublishedName{"Qwen3-235B", "qwen3-235b-a22b"}, PublishedName{"Qwen3-30B3A", "qwen3-30b-a3b"},
    PublishedName{"Qwen3-32B", "qwen3-32b"}};

// Settings of the recipes of NeMo-RL: Megatron Core, sharded optimizer states, packed sequences.
Result<JobSettings> training_of(const CsvRows& rows) {
  JobSettings s;
  if (rows.cell("train_tp").empty()) return s;  // layout not stated: it is searched
  STEPCAST_ASSIGN(s.tensor, rows.extent("train_tp"));
  STEPCAST_ASSIGN(s.context, rows.extent("train_cp"));
  STEPCAST_ASSIGN(s.expert, rows.extent("train_ep"));
  STEPCAST_ASSIGN(s.pipeline, rows.extent("train_pp"));
  if (*s.expert > 1) s.expert_tensor = 1;
  if (*s.tensor > 1) s.sequence_parallel = true;
  s.distributed_optimizer = true;
  return s;
}

Result<RlRun> run_of(const CsvRows& rows, std::string_view preset) {
  RlRun run;
  run.model = std::string{rows.cell("model")};
  STEPCAST_ASSIGN(run.step_s, rows.number("step_s", 0.1));
  STEPCAST_ASSIGN(const std::int64_t n_gpus, rows.extent("n_gpus"));
  STEPCAST_ASSIGN(const std::int64_t generated, rows.extent("generated_batch_sequences"));
  STEPCAST_ASSIGN(const std::int64_t update, rows.extent("train_batch_sequences"));
  STEPCAST_ASSIGN(const std::int64_t generations, rows.extent("generations_per_prompt"));
  STEPCAST_ASSIGN(const std::int64_t mean, rows.extent("mean_sequence_tokens"));
  STEPCAST_ASSIGN(const std::int64_t most, rows.extent("max_sequence_tokens"));
  STEPCAST_ASSIGN(const std::int64_t lag, rows.extent("off_policy_steps", 0));
  run.on_policy = lag == 0;
  Job& job = run.question.job;
  job.model = std::string{preset};
  job.n_gpus = n_gpus;
  job.framework = Framework::nemo;
  STEPCAST_ASSIGN(job.settings, training_of(rows));
  if (rows.cell("train_dtype") == "fp8") job.settings.fp8 = true;
  job.settings.global_batch_sequences = update;
  RlSettings& s = run.question.settings;
  const bool dapo = rows.cell("algorithm") == "DAPO";
  // Everything generated is used for training, in updates of the training batch. This includes dynamic sampling: the prompts
  // per step in a NeMo-RL recipe are those that pass the filter.
  s.algorithm = dapo ? "dapo" : "grpo";
  s.generations = generations;
  s.prompts = generated / generations;
  s.oversampling = 1;
  s.lengths = fmt::format("mean={},max={}", mean, most);
  s.policy = run.on_policy ? "on" : fmt::format("off:{}", lag);
  s.generation_dtype = std::string{rows.cell("generation_dtype")};
  if (!run.on_policy) {
    STEPCAST_ASSIGN(s.generation_gpus, rows.extent("generation_gpus"));
  }
  STEPCAST_ASSIGN(s.generation_tensor, rows.extent("generation_tp"));
  STEPCAST_ASSIGN(s.generation_pipeline, rows.extent("generation_pp"));
  run.tokens_per_gpu = as_double(generated * mean) / as_double(n_gpus);
  run.configuration = fmt::format("{} {} {} {} {}", rows.cell("algorithm"), run.model, n_gpus, s.policy,
                                  rows.cell("generation_dtype"));
  run.name = fmt::format("{}, {}", run.configuration, rows.cell("release"));
  run.pair = fmt::format("{} {} {} {} {}", rows.cell("algorithm"), run.model, n_gpus, rows.cell("release"),
                         generated);
  return run;
}

bool looks_like_rl_runs(std::string_view text) {
  return text.substr(0, text.find('\n')).find("generated_batch_sequences") != std::string_view::npos;
}

// Errors name line and column.
Result<RlRuns> parse_rl_runs(std::string_view text, const std::string& name) {
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(text, name));
  RlRuns out;
  while (true) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) return out;
    const auto* known = std::find_if(kPublishedNames.begin(), kPublishedNames.end(),
                                     [&](const auto& n) { return n.published == rows.cell("model"); });
    if (known == kPublishedNames.end() || rows.cell("generations_per_prompt").empty()) {
      out.skipped.push_back(fmt::format("{} {}: several turns with tools, and a split that is not told",
                                        rows.cell("algorithm"), rows.cell("model")));
      continue;
    }
    STEPCAST_ASSIGN(RlRun run, run_of(rows, known->preset));
    out.runs.push_back(std::move(run));
  }
}

}  // namespace

Result<SuiteResult> validate_rl(const std::filesystem::path& data, const SuiteOptions& /*options*/) {
  std::error_code ignored;
  const std::filesystem::path file =
      std::filesystem::is_directory(data, ignored) ? data / "rl_steps.csv" : data;
  STEPCAST_ASSIGN(const std::string text, read_file(file));
  if (!looks_like_rl_runs(text))
    return Error::at(file.string(), "the header").expected("the columns of rl_steps.csv");
  STEPCAST_ASSIGN(const RlRuns runs, parse_rl_runs(text, file.string()));
  SuiteResult result{.suite = "rl"};
  for (const std::string& what : runs.skipped) result.skipped.push_back({what, "not described", 1});
  STEPCAST_ASSIGN(const Platform platform, load_platform("dgx-h100"));
  StepModel steps{platform};
  std::vector<RlMeasured> all;
  for (const RlRun& run : runs.runs) {
    Result<RlAnswer> answer = rl_step(run.question, steps);
    if (answer)
      all.push_back({&run, std::move(*answer)});
    else
      result.skipped.push_back({run.name, answer.error().message(), 1});
  }
  const TestScore by_configuration =
      steps_left_out("leave_one_configuration_out", all, [](const RlRun& run) { return run.configuration; });
  const TestScore by_model =
      steps_left_out("leave_one_model_out", all, [](const RlRun& run) { return run.model; });
  result.add(std::vector{by_configuration, by_model, rates_of_the_model(all),
                         policy_ratios("off_over_on", all, by_configuration, 0),
                         policy_ratios("constant_off_over_on", all, by_configuration, kConstantRatio)});
  return result;
}

}  // namespace stepcast
