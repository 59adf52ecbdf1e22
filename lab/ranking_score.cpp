#include "lab/ranking_score.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/units.h"
#include "stepcast/plan/layout_plan.h"
#include "stepcast/plan/nearby_layouts.h"
#include "stepcast/plan/promise.h"

namespace stepcast {

namespace {

constexpr double kApartShare = 0.05;  // closer pairs of layouts have no order

// Ranks from 0; ties share the mean rank.
std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> result(values.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t j = i;
    while (j < order.size() && values[order[j]] == values[order[i]]) ++j;
    for (std::size_t k = i; k < j; ++k) result[order[k]] = 0.5 * static_cast<double>(i + j - 1);
    i = j;
  }
  return result;
}

// The best layouts of the plan are priced again with the software of the run. The plan's forecasts use the defaults of the
// framework and differ by a few percent, so its order is about right.
constexpr std::size_t kPricedAgain = 100;

struct Verdict {
  const PredictedRun* run = nullptr;
  double best_ms = 0;
  bool alike = false;
  std::string change;
  [[nodiscard]] double run_ms() const { return run->prediction.step.time.value() * 1e-3; }
  [[nodiscard]] double behind() const { return run_ms() / best_ms - 1; }
};

bool is_searched(const LlmRun& run) {
  return !run.gpu.empty() && run.model.architecture != Architecture::encoder &&
         !run.layout.layer.frozen_base && run.layout.layer.packed_mean_tokens <= 0;
}

PlanRequest request_for(const LlmRun& run, unsigned threads) {
  PlanRequest request;
  const Layout& layout = run.layout;
  request.job.transformer = run.model;
  request.job.framework = layout.software.framework;
  JobSettings& s = request.job.settings;
  s.global_batch_sequences = layout.batch.global_batch_sequences;
  s.seq_len_tokens = layout.batch.seq_len_tokens;
  constexpr std::size_t kMonth = 7;  // "2024-12"
  if (!layout.software.date.empty()) s.framework_date = layout.software.date.substr(0, kMonth);
  const DType compute = layout.layer.precision.compute;
  const bool is_narrow = compute == DType::fp8 || compute == DType::fp4;
  s.dtype = is_narrow ? layout.layer.precision.other : compute;
  request.restrictions.dtypes = std::vector{compute};
  // Frameworks that only use data parallelism: LLM Foundry and plain FSDP. Their users choose micro-batch and recomputation.
  constexpr Framework kSplitDataAlone[] = {Framework::fsdp, Framework::pytorch};
  if (std::ranges::find(kSplitDataAlone, layout.software.framework) != std::end(kSplitDataAlone)) {
    request.restrictions.tensor = request.restrictions.pipeline = request.restrictions.context = {{1}};
    request.restrictions.shardings = std::vector{DataSharding{layout.sharding.kind, 0}};
  }
  request.n_gpus = run.n_gpus;
  request.threads = threads;
  request.top = kPricedAgain;
  return request;
}

// A layout of the plan with the software settings of the run.
Layout as_run(const Layout& run, const Layout& planned) {
  Layout layout = run;
  layout.degrees = planned.degrees;
  layout.batch.micro_batch_sequences = planned.batch.micro_batch_sequences;
  const bool overlaps = run.pipeline.overlap;
  layout.pipeline = planned.pipeline;
  if (run.degrees.virtual_stages > 1) layout.pipeline.overlap = overlaps;
  if (planned.sharding.kind != run.sharding.kind ||
      planned.sharding.shard_group_size != run.sharding.shard_group_size)
    layout.sharding = planned.sharding;
  layout.layer.recompute = planned.layer.recompute;
  layout.layer.sequence_parallel = planned.layer.sequence_parallel;
  return layout;
}

// A planned layout with the settings of the run, and its forecast.
struct Candidate {
  const RankedLayout* ranked = nullptr;
  Layout layout;
  MemoryForecast memory;
};

Result<Verdict> judge(const PredictedRun& run, RunPlatforms& platforms, unsigned threads) {
  const LlmRun& measured = *run.run;
  STEPCAST_ASSIGN(StepModel * steps, platforms.model_for(measured));
  const Platform& platform = steps->platform();
  STEPCAST_ASSIGN(const LayoutPlan plan, plan_layouts(request_for(measured, threads), platform));
  if (plan.found.priced.empty()) return why_none(plan);
  Verdict verdict{&run, run.prediction.step.time.value() * 1e-3, true, {}};
  // Selects like `plan`: layouts with little memory headroom under the software of the run are used only if there are no
  // others.
  std::vector<Candidate> candidates;
  for (const RankedLayout& ranked : plan.ranking.layouts) {
    Layout layout = as_run(measured.layout, ranked.layout);
    Result<MemoryForecast> memory = memory_forecast(measured.model, layout, platform.device.memory_size);
    if (memory.ok() && memory->verdict != MemoryVerdict::does_not_fit)
      candidates.push_back({&ranked, std::move(layout), std::move(*memory)});
  }
  const auto is_tight = [](const Candidate& one) { return one.memory.verdict == MemoryVerdict::tight; };
  if (!std::ranges::all_of(candidates, is_tight)) std::erase_if(candidates, is_tight);
  for (const auto& [ranked, layout, memory] : candidates) {
    const Result<StepPrediction> step = steps->predict(measured.model, layout);
    if (!step.ok() || step->step.time.value() * 1e-3 >= verdict.best_ms) continue;
    verdict.best_ms = step->step.time.value() * 1e-3;
    const double behind_us = run.prediction.step.time.value() - step->step.time.value();
    const bool experts = measured.model.moe.has_value();
    verdict.alike =
        behind_us <=
        uncertain_difference_us(*step, run.prediction, experts ? DifferenceOf::experts : DifferenceOf::dense);
    verdict.change =
        fmt::format("{}; {:.1f} GiB headroom",
                    difference(point_of(measured.layout, platform.node.gpus_per_node), ranked->point),
                    memory.margin().value() / kGiB);
  }
  return verdict;
}

std::map<std::string, const PredictedRun*> fastest_of_families(const std::vector<PredictedRun>& runs) {
  std::map<std::string, const PredictedRun*> fastest;
  for (const PredictedRun& p : runs) {
    if (!is_searched(*p.run)) continue;
    const PredictedRun*& best = fastest[p.run->set + "|" + layout_family(*p.run)];
    if (best == nullptr || p.run->iter_time_ms < best->run->iter_time_ms) best = &p;
  }
  return fastest;
}

// A family of runs and the layout that `plan` recommends for its job.
struct PlannedFamily {
  const PredictedRun* run = nullptr;  // the fastest measured run
  Estimate forecast;
  std::string layout;
  bool holds_run = false;  // whether the searched layouts include the measured layout
  [[nodiscard]] double ratio() const { return run->run->iter_time_ms * 1e3 / forecast.time.value(); }
  [[nodiscard]] bool has_experts() const { return run->run->model.moe.has_value(); }
};

bool holds(const LayoutSpace& space, const LayoutPoint& point) {
  const auto has = [](const auto& list, const auto& value) {
    return std::ranges::find(list, value) != list.end();
  };
  return has(space.tensor, point.tensor) && has(space.pipeline, point.pipeline) &&
         has(space.context, point.context) && has(space.expert, point.expert) &&
         has(space.expert_tensor, point.expert_tensor) && has(space.micro_batch, point.micro_batch) &&
         has(space.forms, PipelineForm{point.schedule, point.virtual_stages}) &&
         has(space.shardings, point.sharding) && has(space.recomputations, point.recompute) &&
         has(space.sequence_parallel, point.sequence_parallel) && has(space.dtypes, point.dtype);
}

Result<PlannedFamily> planned(const PredictedRun& run, RunPlatforms& platforms, unsigned threads) {
  STEPCAST_ASSIGN(const Platform platform, platforms.choose(*run.run));
  PlanRequest request = request_for(*run.run, threads);
  request.refines = true;
  STEPCAST_ASSIGN(const LayoutPlan plan, plan_layouts(request, platform));
  if (plan.ranking.layouts.empty()) return why_none(plan);
  const ChosenLayout chosen = chosen_layout(plan);
  PlannedFamily family{&run, chosen.step.step, to_string(chosen.point),
                       holds(plan.space, point_of(run.run->layout, platform.node.gpus_per_node))};
  if (chosen.refinement != nullptr)
    for (const std::string& change : chosen.refinement->changes) family.layout += "; " + change;
  return family;
}

// Name of the set of a family. Runs with an older release than the newest one of their model and machine form a separate
// set, because plans are for current releases.
std::string set_of(const PlannedFamily& family, const std::vector<PlannedFamily>& all) {
  const LlmRun& run = *family.run->run;
  const bool is_old = std::ranges::any_of(all, [&](const PlannedFamily& other) {
    const LlmRun& o = *other.run->run;
    return o.set == run.set && o.model.name == run.model.name && o.gpu == run.gpu && o.dtype == run.dtype &&
           o.n_gpus == run.n_gpus && o.layout.software.version > run.layout.software.version;
  });
  return is_old ? run.set + " older release" : run.set;
}

// The prior fitted to the ratios of measured to forecast steps of families of models with experts, except those that
// `is_left_out`.
template <class LeftOut>
PromisePrior prior_without(const std::vector<PlannedFamily>& all, const LeftOut& is_left_out) {
  std::vector<double> ratios;
  for (const PlannedFamily& one : all)
    if (one.has_experts() && !is_left_out(one)) ratios.push_back(one.ratio());
  return fit_promise(ratios);
}

// `step_of` returns the time that is compared with the fastest published step.
template <class StepOf>
TestScore score_promises(std::string name, const std::vector<PlannedFamily>& all, const StepOf& step_of) {
  TestScore test{.test = std::move(name), .protocol = "shipped", .unit = "ms"};
  std::map<std::string, SetScore> sets;
  std::map<std::string, double> within;
  for (const PlannedFamily& family : all) {
    const Estimate step = step_of(family);
    ScoredRow row = scored(*family.run);
    row.predicted = step.time.value() * 1e-3;
    row.p10 = step.p10.value() * 1e-3;
    row.p90 = step.p90.value() * 1e-3;
    row.shares = family.layout;
    const double promised = row.measured / row.predicted;  // expected over measured throughput
    const std::string set = set_of(family, all);
    within[set] += promised >= 0.9 && promised <= 1.2 ? 1 : 0;
    sets[set].rows.push_back(std::move(row));
  }
  for (auto& [set, score] : sets) {
    const auto n = static_cast<double>(score.rows.size());
    score.set = set;
    score.extras = {{"within_percent", 100 * within[set] / n},
                    {"within_n", within[set], ExtraMetric::Over::sum},
                    {"families_n", n, ExtraMetric::Over::sum}};
    test.sets.push_back(std::move(score));
  }
  test.finish();
  return test;
}

SetScore score_of(std::string name, const std::vector<const Verdict*>& verdicts) {
  SetScore set{.set = std::move(name)};
  double alike = 0, near = 0, nearly = 0;
  for (const Verdict* v : verdicts) {
    constexpr double kNear = 0.02, kNearly = 0.07;
    alike += v->alike || v->behind() <= kNear ? 1 : 0;
    near += v->behind() <= kNear ? 1 : 0;
    nearly += v->behind() <= kNearly ? 1 : 0;
    ScoredRow row = scored(*v->run);
    row.measured = v->run_ms();
    row.predicted = v->best_ms;
    row.p10 = row.p90 = std::nullopt;
    row.shares = v->change.empty() ? "nothing: it is our best" : v->change;
    set.rows.push_back(std::move(row));
  }
  const auto n = static_cast<double>(verdicts.size());
  set.extras = {{"tied_or_within_2_percent", 100 * alike / n},
                {"within_2", 100 * near / n},
                {"within_7", 100 * nearly / n},
                {"families_n", n, ExtraMetric::Over::sum}};
  return set;
}

TestScore test_of(std::string name, const std::map<std::string, std::vector<const Verdict*>>& sets) {
  TestScore test{.test = std::move(name), .protocol = "shipped", .unit = "ms"};
  for (const auto& [set, members] : sets) test.sets.push_back(score_of(set, members));
  test.finish();
  return test;
}

}  // namespace

std::optional<double> rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> x = ranks(a), y = ranks(b);
  const double mean = (static_cast<double>(a.size()) - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  if (xx > 0 && yy > 0) return xy / std::sqrt(xx * yy);
  return std::nullopt;
}

RankingScore score_ranking(const std::vector<double>& measured, const std::vector<double>& predicted) {
  RankingScore result;
  if (measured.empty()) return result;
  result.spearman = rank_correlation(measured, predicted).value_or(0);
  const auto best = static_cast<std::size_t>(std::ranges::min_element(predicted) - predicted.begin());
  const double fastest = *std::ranges::min_element(measured);
  result.top1_regret = 100 * (measured[best] / fastest - 1);
  std::size_t in_order = 0;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    for (std::size_t j = i + 1; j < measured.size(); ++j) {
      if (std::abs(measured[i] - measured[j]) <= kApartShare * std::min(measured[i], measured[j])) continue;
      ++result.n_pairs;
      if ((measured[i] < measured[j]) == (predicted[i] < predicted[j])) ++in_order;
    }
  }
  if (result.n_pairs > 0)
    result.pairs_ordered = 100 * static_cast<double>(in_order) / static_cast<double>(result.n_pairs);
  return result;
}

std::string layout_family(const LlmRun& run) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}", run.model.name, run.gpu, run.n_gpus, run.dtype,
                     run.layout.batch.seq_len_tokens, run.framework, run.layout.batch.global_batch_sequences);
}

std::vector<ExtraMetric> ranking_extras(const std::vector<const PredictedRun*>& runs) {
  std::map<std::string, std::vector<const PredictedRun*>> families;
  for (const PredictedRun* p : runs) families[layout_family(*p->run)].push_back(p);
  double spearman = 0, regret = 0, ordered = 0, n_families = 0, n_correlated = 0, n_pairs = 0;
  for (const auto& [name, family] : families) {
    std::vector<double> measured, predicted;
    std::set<std::string> layouts;
    for (const PredictedRun* p : family) {
      layouts.insert(layout_text(p->run->layout));
      measured.push_back(p->run->iter_time_ms);
      predicted.push_back(p->prediction.step.time.value() / 1e3);
    }
    if (layouts.size() < 2) continue;
    const RankingScore ranking = score_ranking(measured, predicted);
    regret += ranking.top1_regret;
    ordered += ranking.pairs_ordered * static_cast<double>(ranking.n_pairs);
    n_pairs += static_cast<double>(ranking.n_pairs);
    ++n_families;
    if (measured.size() > 2) {
      spearman += ranking.spearman;
      ++n_correlated;
    }
  }
  std::vector<ExtraMetric> extras;
  if (n_correlated > 0) extras.push_back({"spearman", spearman / n_correlated});
  if (n_families > 0) extras.push_back({"top1_regret", regret / n_families});
  if (n_pairs > 0) extras.push_back({"pairs_ordered", ordered / n_pairs});
  if (n_families > 0) {
    extras.push_back({"families_n", n_families, ExtraMetric::Over::sum});
    extras.push_back({"pairs_n", n_pairs, ExtraMetric::Over::sum});
  }
  return extras;
}

TestScore score_rankings(std::string test, std::string_view protocol, const std::vector<PredictedRun>& runs) {
  TestScore result{.test = std::move(test), .protocol = std::string{protocol}, .unit = "ms"};
  std::map<std::string, std::vector<const PredictedRun*>> sets;
  for (const PredictedRun& p : runs) {
    if (p.run->gpu.empty()) continue;
    sets[fmt::format("{} {} {}", p.run->set, p.run->model.name, p.run->gpu)].push_back(&p);
  }
  for (const auto& [name, members] : sets) {
    SetScore set{.set = name, .extras = ranking_extras(members)};
    if (set.extras.empty()) continue;  // families with a single layout cannot be ranked
    // The fit of factors is scored by leave_model_out.
    set.n_fit = protocol == "refit" ? members.size() : 0;
    for (const PredictedRun* p : members) set.rows.push_back(scored(*p));
    result.sets.push_back(std::move(set));
  }
  result.finish();
  return result;
}

std::vector<TestScore> score_plans(const std::vector<PredictedRun>& runs, RunPlatforms& platforms,
                                   unsigned threads, std::vector<Skipped>& skipped) {
  std::vector<PlannedFamily> all;
  for (const auto& [name, run] : fastest_of_families(runs)) {
    if (run->run->layout.software.version.empty()) continue;
    Result<PlannedFamily> family = planned(*run, platforms, threads);
    if (family.ok())
      all.push_back(std::move(*family));
    else
      skipped.push_back({"plan_against_published: " + name, family.error().message(), 1});
  }
  if (all.empty()) return {};
  const auto left_out = [&](const PlannedFamily& family, bool whole_model) {
    if (!family.has_experts()) return family.forecast;
    const PromisePrior prior = prior_without(all, [&](const PlannedFamily& other) {
      return whole_model ? other.run->run->model.name == family.run->run->model.name : &other == &family;
    });
    return promised(family.forecast, prior);
  };
  std::vector<TestScore> tests;
  tests.push_back(score_promises("plan_against_published", all,
                                 [](const PlannedFamily& family) { return family.forecast; }));
  tests.push_back(score_promises("plan_promise", all,
                                 [&](const PlannedFamily& family) { return left_out(family, false); }));
  tests.push_back(score_promises("plan_promise_without_model", all,
                                 [&](const PlannedFamily& family) { return left_out(family, true); }));
  tests.push_back(score_promises("published_recipe", all,
                                 [](const PlannedFamily& family) { return family.run->prediction.step; }));
  const auto in_space = static_cast<double>(std::ranges::count_if(all, &PlannedFamily::holds_run));
  tests.back().sets.front().extras.push_back(
      {"in_space_percent", 100 * in_space / static_cast<double>(all.size()), ExtraMetric::Over::max});
  const PromisePrior prior = prior_without(all, [](const PlannedFamily&) { return false; });
  std::vector<ExtraMetric>& extras = tests[1].sets.front().extras;
  extras.push_back({"median_of_experts", prior.median, ExtraMetric::Over::max});
  extras.push_back({"spread_of_experts", prior.spread, ExtraMetric::Over::max});
  return tests;
}

std::vector<TestScore> score_layouts_run(const std::vector<PredictedRun>& runs, RunPlatforms& platforms,
                                         unsigned threads, std::vector<Skipped>& skipped) {
  std::vector<Verdict> verdicts;
  for (const auto& [family, run] : fastest_of_families(runs)) {
    Result<Verdict> verdict = judge(*run, platforms, threads);
    if (verdict.ok())
      verdicts.push_back(std::move(*verdict));
    else
      skipped.push_back({"layouts_run: " + family, verdict.error().message(), 1});
  }
  if (verdicts.empty()) return {};
  std::map<std::string, std::vector<const Verdict*>> all, by_set;
  for (const Verdict& verdict : verdicts) {
    all["all families"].push_back(&verdict);
    by_set[verdict.run->run->set].push_back(&verdict);
  }
  return {test_of("layouts_run", all), test_of("layouts_run_by_set", by_set)};
}

}  // namespace stepcast
