#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/file.h"
#include "stepcast/base/statistics.h"
#include "stepcast/cost/sustained_clock.h"
#include "stepcast/platform/device_siblings.h"
#include "stepcast/platform/platform_file.h"

#include "calibrate/iteration_fit.h"
#include "calibrate/llm_runs.h"
#include "lab/anchor_scores.h"
#include "lab/measured_check_scores.h"
#include "lab/ranking_score.h"
#include "lab/run_platforms.h"
#include "lab/run_scores.h"
#include "lab/suites.h"

namespace stepcast {
namespace {

// Packed rows of encoders come from software with more fused kernels than a description knows: absolute times are not
// scored.
bool is_packed_encoder(const LlmRun& run) {
  return run.layout.layer.packed_mean_tokens > 0 && run.model.architecture == Architecture::encoder;
}

TestScore score_runs(std::string test, const std::vector<PredictedRun>& runs, bool with_apart) {
  TestScore result{.test = std::move(test), .protocol = "shipped", .unit = "ms"};
  std::map<std::string, std::vector<const PredictedRun*>> sets;
  for (const PredictedRun& p : runs) {
    if (p.run->gpu.empty() || (p.run->apart && !with_apart) || is_packed_encoder(*p.run)) continue;
    sets[p.run->set].push_back(&p);
  }
  for (const auto& [name, members] : sets) {
    SetScore set{.set = name};
    for (const PredictedRun* p : members) set.rows.push_back(scored(*p));
    set.extras = ranking_extras(members);
    result.sets.push_back(std::move(set));
  }
  result.finish();
  return result;
}

// Times of packed encoders on other GPUs, scaled by the factor of the GPU with the most rows.
TestScore score_packed(const std::vector<PredictedRun>& runs) {
  TestScore result{.test = "packed_with_one_factor", .protocol = "refit", .unit = "ms"};
  std::map<std::string, std::map<std::string, std::vector<const PredictedRun*>>> sets;  // [set][GPU]
  for (const PredictedRun& p : runs)
    if (is_packed_encoder(*p.run) && p.run->set != kBertNodeSet) sets[p.run->set][p.run->gpu].push_back(&p);
  for (const auto& [name, gpus] : sets) {
    const auto most = std::ranges::max_element(
        gpus, [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    std::vector<double> factors;
    for (const PredictedRun* p : most->second) factors.push_back(measured_over_predicted(*p));
    const double factor = upper_median(factors);
    SetScore set{.set = name, .n_fit = factors.size()};
    for (const auto& [gpu, members] : gpus) {
      if (gpu == most->first) continue;
      for (const PredictedRun* p : members) set.rows.push_back(scaled(scored(*p), factor));
    }
    if (!set.rows.empty()) result.sets.push_back(std::move(set));
  }
  result.finish();
  return result;
}

// Runs without a stated GPU: time relative to the smallest run of the same model and framework.
TestScore score_ratios(const std::vector<PredictedRun>& runs) {
  TestScore result{.test = "scaling_ratios", .protocol = "shipped", .unit = "ratio"};
  std::map<std::string, std::map<std::string, std::vector<const PredictedRun*>>> sets;
  for (const PredictedRun& p : runs) {
    if (!p.run->gpu.empty()) continue;
    sets[p.run->set][fmt::format("{} {}", p.run->model.name, p.run->framework)].push_back(&p);
  }
  for (const auto& [name, families] : sets) {
    SetScore set{.set = name};
    for (const auto& [family, members] : families) {
      const PredictedRun* base = *std::ranges::min_element(
          members,
          [](const PredictedRun* a, const PredictedRun* b) { return a->run->n_gpus < b->run->n_gpus; });
      const double measured_base = base->run->iter_time_ms;
      const double predicted_base = base->prediction.step.time.value() / 1e3;
      for (const PredictedRun* p : members) {
        if (p == base) continue;
        ScoredRow row = scored(*p);
        row.measured /= measured_base;
        row.predicted /= predicted_base;
        if (row.p10) *row.p10 /= predicted_base;
        if (row.p90) *row.p90 /= predicted_base;
        set.rows.push_back(std::move(row));
      }
    }
    result.sets.push_back(std::move(set));
  }
  result.finish();
  return result;
}

// Fits factors to the other models of a set and applies them to the one left out, like `calibrate iterations` for a user
// with steps of other models. `predicted`: adds those forecasts too, or null.
Result<TestScore> leave_model_out(std::string test, const std::vector<LlmRun>& runs, RunPlatforms& platforms,
                                  std::vector<PredictedRun>* predicted = nullptr) {
  constexpr std::size_t kMostRows = 40;  // rows to fit on; more cost time without changing the result
  TestScore result{.test = std::move(test), .protocol = "refit", .unit = "ms"};
  std::map<std::string, std::set<std::string>> models_of_set;
  for (const LlmRun& run : runs)
    if (!run.gpu.empty()) models_of_set[run.set].insert(run.model.name);
  for (const auto& [name, models] : models_of_set) {
    if (models.size() < 2) continue;
    SetScore set{.set = name};
    for (const std::string& left_out : models) {
      std::vector<const LlmRun*> others, scored_runs;
      for (const LlmRun& run : runs) {
        if (run.set != name) continue;
        (run.model.name == left_out ? scored_runs : others).push_back(&run);
      }
      std::vector<MeasuredStep> steps;
      const std::size_t stride = (others.size() + kMostRows - 1) / kMostRows;
      for (std::size_t i = 0; i < others.size(); i += stride) {
        const LlmRun& run = *others[i];
        Result<StepModel*> model = platforms.model_for(run);
        if (!model) continue;
        steps.push_back({run.model, run.layout, &(*model)->platform(), run.iter_time_ms});
      }
      const Result<IterationFit> fit = fit_iterations(steps);
      if (!fit) continue;
      set.n_fit += fit->n;
      for (const LlmRun* run : scored_runs) {
        Result<StepModel*> model = platforms.model_for(*run);
        if (!model) continue;
        Result<StepPrediction> prediction = (*model)->with(fit->assumptions).predict(run->model, run->layout);
        if (!prediction) continue;
        const PredictedRun one{run, std::move(*prediction)};
        set.rows.push_back(scored(one));
        if (predicted != nullptr) predicted->push_back(one);
      }
    }
    result.sets.push_back(std::move(set));
  }
  result.finish();
  return result;
}

// Value of one or a few steps on an unmeasured GPU. The platform loses the kernel records of its device, factors are fitted
// to `n_given` random steps, and other steps of the set are forecast with them.
Result<TestScore> few_steps_given(const std::vector<LlmRun>& runs, const RunPlatforms& platforms,
                                  std::size_t n_given) {
  constexpr std::size_t kDraws = 20, kLeastRows = 40, kScoredPerDraw = 12;
  TestScore result{
      .test = n_given == 1 ? "one_step_given" : "three_steps_given", .protocol = "refit", .unit = "ms"};
  std::map<std::string, std::vector<const LlmRun*>> sets;  // [set and machine]
  for (const LlmRun& run : runs) {
    if (run.gpu.empty() || run.apart || run.model.moe || run.set == kBertNodeSet) continue;
    sets[fmt::format("{} {}", run.set, run.gpu)].push_back(&run);
  }
  for (auto& [name, members] : sets) {
    if (members.size() < kLeastRows) continue;
    // Machines of one set differ only in their networks: the first one is used for all.
    STEPCAST_ASSIGN(Platform platform, platforms.choose(*members.front()));
    std::erase_if(platform.models,
                  [&](const ModelRecord& record) { return record.device == platform.device.name; });
    const StepModel model{platform};
    SetScore set;
    set.set = members.front()->set + " " + members.front()->gpu;
    std::mt19937_64 random{kDraws + n_given};
    for (std::size_t draw = 0; draw < kDraws; ++draw) {
      for (std::size_t i = members.size(); i > 1; --i) std::swap(members[i - 1], members[random() % i]);
      std::vector<MeasuredStep> given;
      for (std::size_t i = 0; i < n_given; ++i)
        given.push_back({members[i]->model, members[i]->layout, &platform, members[i]->iter_time_ms});
      const Result<IterationFit> fit = fit_iterations(given);
      if (!fit) continue;
      set.n_fit = n_given;
      const StepModel fitted = model.with(fit->assumptions);
      for (std::size_t i = n_given; i < std::min(members.size(), n_given + kScoredPerDraw); ++i) {
        Result<StepPrediction> prediction = fitted.predict(members[i]->model, members[i]->layout);
        if (prediction) set.rows.push_back(scored(PredictedRun{members[i], std::move(*prediction)}));
      }
    }
    result.sets.push_back(std::move(set));
  }
  result.finish();
  return result;
}

// GPUs with tables by type that have relatives with such tables, by platform name.
constexpr std::array<std::string_view, 6> kMeasuredRelatives{
    "h100-sxm5-80gb", "h200-sxm-141gb", "b200-sxm-180gb", "gb200-186gb", "b300-sxm-270gb", "gb300-278gb"};

// Makes `platform` an unmeasured GPU: replaces its kernels and clock by those of the nearest of `relatives`, scaled by the
// figures of both if `moved`, else unchanged. False if none is related.
bool take_kernels_of_relative(Platform& platform, const std::vector<Platform>& relatives, bool moved) {
  const Platform* nearest = nullptr;
  double least = 0;
  for (const Platform& other : relatives) {
    const auto distance = sibling_distance(other.device, platform.device);
    if (!distance || platform.device.matches_name(other.device.name)) continue;
    if (nearest == nullptr || *distance < least) {
      nearest = &other;
      least = *distance;
    }
  }
  if (nearest == nullptr) return false;
  std::erase_if(platform.models, [&](const ModelRecord& record) {
    return record.device == platform.device.name || record.name == kSustainedClockKind;
  });
  for (const ModelRecord& record : nearest->models)
    if (record.name == kSustainedClockKind ||
        (record.device == nearest->device.name && record.parameters.find("regime") != nullptr))
      platform.set(record);
  KernelSibling sibling = sibling_of(nearest->device, platform.device);
  if (!moved) sibling.compute = sibling.sustained = sibling.memory = 1;
  platform.set(sibling.record());
  return true;
}

// Steps of each GPU without its own tables. `as_is_mape_pct` is the error with unchanged times of the relative.
Result<TestScore> score_gpus_left_out(const std::vector<LlmRun>& runs, const RunPlatforms& platforms) {
  TestScore result{.test = "gpu_left_out", .protocol = "refit", .unit = "ms"};
  std::vector<Platform> relatives;
  for (const std::string_view name : kMeasuredRelatives) {
    STEPCAST_ASSIGN(relatives.emplace_back(), load_platform(name));
  }
  std::map<std::string, std::vector<const LlmRun*>> groups;
  for (const LlmRun& run : runs) {
    const bool known =
        std::ranges::any_of(relatives, [&](const Platform& p) { return p.device.matches_name(run.gpu); });
    if (known && !run.apart && !is_packed_encoder(run)) groups[run.set + " " + run.gpu].push_back(&run);
  }
  for (const auto& [name, members] : groups) {
    // Machines of one set differ only in their networks: the first one is used for all.
    STEPCAST_ASSIGN(const Platform own, platforms.choose(*members.front()));
    Platform moved = own, as_is = own;
    if (!take_kernels_of_relative(moved, relatives, true) ||
        !take_kernels_of_relative(as_is, relatives, false))
      continue;
    SetScore set{.set = name, .n_fit = moved.models.size()};
    const StepModel model{moved}, unmoved{as_is};
    double off = 0;
    for (const LlmRun* run : members) {
      Result<StepPrediction> prediction = model.predict(run->model, run->layout);
      const Result<StepPrediction> other = unmoved.predict(run->model, run->layout);
      if (!prediction || !other) continue;
      off += std::abs(other->step.time.value() / 1e3 / run->iter_time_ms - 1);
      set.rows.push_back(scored(PredictedRun{run, std::move(*prediction)}));
    }
    if (set.rows.empty()) continue;
    set.extras.push_back({"as_is_mape_pct", 100 * off / static_cast<double>(set.rows.size())});
    result.sets.push_back(std::move(set));
  }
  result.finish();
  return result;
}

// Keeps a set unchanged when later tables have rows of its name: those are put in "NAME_newer".
void keep_sets_apart(const std::vector<LlmRun>& known, std::vector<LlmRun>& later) {
  std::set<std::string_view> names;
  for (const LlmRun& run : known) names.insert(run.set);
  for (LlmRun& run : later)
    if (names.contains(run.set)) run.set += "_newer";
}

// NOLINTNEXTLINE(misc-no-recursion): once
Result<std::vector<LlmRun>> read_all_runs(const std::filesystem::path& data, std::vector<Skipped>& skipped) {
  std::error_code ignored;
  std::vector<std::string> left_out;
  const auto note_rows = [&] {
    for (const std::string& problem : left_out) skipped.push_back({"a row", problem, 1});
    left_out.clear();
  };
  if (!std::filesystem::is_directory(data, ignored)) {
    STEPCAST_ASSIGN(const std::string text, read_file(data));
    Result<std::vector<LlmRun>> runs = looks_like_bert_runs(text)
                                           ? parse_bert_runs(text, data.string(), &left_out)
                                           : read_llm_runs(data, &left_out);
    if (runs) note_rows();
    return runs;
  }
  std::vector<LlmRun> runs;
  if (data.filename() == "iterations")
    for (const std::filesystem::path& later : later_folders(data)) {
      STEPCAST_ASSIGN(std::vector<LlmRun> more, read_all_runs(later, skipped));
      keep_sets_apart(runs, more);
      std::move(more.begin(), more.end(), std::back_inserter(runs));
    }
  for (const std::filesystem::path& file : csv_files_in(data)) {
    STEPCAST_ASSIGN(const std::string text, read_file(file));
    if (looks_like_bert_runs(text)) {
      STEPCAST_ASSIGN(std::vector<LlmRun> more, parse_bert_runs(text, file.filename().string(), &left_out));
      note_rows();
      std::move(more.begin(), more.end(), std::back_inserter(runs));
      continue;
    }
    if (!looks_like_llm_runs(text)) {
      if (file.filename().string().find("_recipes.csv") != std::string::npos) continue;  // read with its runs
      skipped.push_back({file.filename().string(), "not the columns of LLM runs", 1});
      continue;
    }
    STEPCAST_ASSIGN(std::vector<LlmRun> more, read_llm_runs(file, &left_out));
    note_rows();
    std::move(more.begin(), more.end(), std::back_inserter(runs));
  }
  if (runs.empty()) {
    return Error::at(data.string(), "the folder", "holds no file of LLM runs")
        .expected("a CSV file with the columns of llm_runs.csv (docs/iterations.md)");
  }
  return runs;
}

// The rows of a test with the largest errors, each with the breakdown of its prediction.
std::vector<std::string> worst_rows(const TestScore& test, std::size_t n) {
  std::vector<const ScoredRow*> rows;
  for (const SetScore& set : test.sets)
    for (const ScoredRow& row : set.rows) rows.push_back(&row);
  const auto off = [](const ScoredRow* r) { return r->predicted / r->measured - 1; };
  std::ranges::stable_sort(
      rows, [&](const ScoredRow* a, const ScoredRow* b) { return std::abs(off(a)) > std::abs(off(b)); });
  if (rows.size() > n) rows.resize(n);
  std::vector<std::string> lines;
  for (const ScoredRow* r : rows) {
    lines.push_back(fmt::format("{:+.1f} %: measured {:.0f} ms, predicted {:.0f} ms: {}: {}", 100 * off(r),
                                r->measured, r->predicted, r->row, r->shares));
  }
  return lines;
}

}  // namespace

Result<SuiteResult> validate_iterations(const std::filesystem::path& data, const SuiteOptions& options) {
  SuiteResult result{.suite = "iterations"};
  if (!options.protocol.empty() && options.protocol != "shipped" && options.protocol != "refit") {
    return Error::at("", "--protocol")
        .found(fmt::format("`{}`", options.protocol))
        .expected("shipped or refit");
  }
  STEPCAST_ASSIGN(const std::vector<LlmRun> runs, read_all_runs(data, result.skipped));
  RunPlatforms platforms{options.platforms};
  const std::vector<PredictedRun> predicted = predict_runs(runs, platforms, result.skipped);
  result.tests.push_back(score_runs("steps", predicted, true));
  result.worst = worst_rows(result.tests.front(), 10);
  result.tests.push_back(score_runs("steps_without_rows_apart", predicted, false));
  result.add(score_newest_releases(predicted));
  result.add(score_by_release(predicted));
  result.tests.push_back(score_ratios(predicted));
  TestScore memory = score_memory(predicted);
  STEPCAST_ASSIGN(std::vector<SetScore> stated, stated_peaks(data.parent_path() / "field"));
  std::move(stated.begin(), stated.end(), std::back_inserter(memory.sets));
  memory.finish();
  result.add(std::move(memory));
  result.add(score_runs_that_ran(predicted, platforms, result.skipped));
  result.add(score_published_composition(predicted, platforms));
  result.tests.push_back(score_rankings("ranking", "shipped", predicted));
  result.add(score_layouts_run(predicted, platforms, options.threads, result.skipped));
  result.add(score_plans(predicted, platforms, options.threads, result.skipped));
  result.add(score_packed(predicted));
  result.add(score_bert_scaling(predicted));
  std::vector<const LlmRun*> checked;
  for (const PredictedRun& p : predicted)
    if (!p.run->gpu.empty() && !p.run->apart && !is_packed_encoder(*p.run)) checked.push_back(p.run);
  result.add(score_measured_checks(checked, platforms));
  if (options.protocol != "shipped") {
    std::vector<PredictedRun> calibrated;
    STEPCAST_ASSIGN(TestScore refitted, leave_model_out("leave_model_out", runs, platforms, &calibrated));
    result.tests.push_back(std::move(refitted));
    result.tests.push_back(score_rankings("ranking_calibrated", "refit", calibrated));
    const std::vector<LlmRun> newest = newest_releases(runs);
    if (!newest.empty()) {
      STEPCAST_ASSIGN(TestScore of_newest,
                      leave_model_out("leave_model_out_newest_release", newest, platforms));
      result.add(std::move(of_newest));
    }
    STEPCAST_ASSIGN(TestScore left_out, score_gpus_left_out(runs, platforms));
    result.add(std::move(left_out));
    for (const std::size_t n_given : {std::size_t{1}, std::size_t{3}}) {
      STEPCAST_ASSIGN(TestScore few, few_steps_given(runs, platforms, n_given));
      result.add(std::move(few));
    }
    for (TestScore& anchored : score_anchored(runs, platforms)) result.add(std::move(anchored));
    STEPCAST_ASSIGN(std::vector<TestScore> bare, score_anchored_without_records(runs, platforms));
    for (TestScore& anchored : bare) result.add(std::move(anchored));
  }
  return result;
}

Result<std::string> published_runs_table(const std::filesystem::path& data) {
  std::vector<Skipped> skipped;
  STEPCAST_ASSIGN(const std::vector<LlmRun> runs, read_all_runs(data, skipped));
  RunPlatforms platforms;
  struct Family {
    std::vector<double> ratios;
    std::int64_t parameters = 0, min_gpus = 0, max_gpus = 0;
  };
  std::map<std::string, Family> families;  // [first columns]
  for (const PredictedRun& p : predict_runs(runs, platforms, skipped)) {
    const LlmRun& run = *p.run;
    if (run.gpu.empty() || is_packed_encoder(run)) continue;
    STEPCAST_ASSIGN(const StepModel* const steps, platforms.model_for(run));
    Family& family =
        families[fmt::format("{},{},{:d},{},{},{}", run.set, run.model.name, run.model.moe.has_value(),
                             steps->platform().device.name, to_string(run.layout.layer.precision.compute),
                             to_string(run.layout.software.framework))];
    family.parameters = std::max(family.parameters, active_parameter_count(run.model));
    family.min_gpus = family.ratios.empty() ? run.n_gpus : std::min(family.min_gpus, run.n_gpus);
    family.max_gpus = std::max(family.max_gpus, run.n_gpus);
    family.ratios.push_back(measured_over_predicted(p));
  }
  std::string table =
      "source,model,has_experts,gpu,precision,framework,parameters,min_gpus,max_gpus,runs,"
      "measured_over_forecast,min_measured_over_forecast,max_measured_over_forecast\n";
  for (auto& [columns, family] : families) {
    const auto [least, most] = std::ranges::minmax(family.ratios);
    table += fmt::format("{},{},{},{},{},{:.3f},{:.3f},{:.3f}\n", columns, family.parameters, family.min_gpus,
                         family.max_gpus, family.ratios.size(), upper_median(family.ratios), least, most);
  }
  return table;
}

}  // namespace stepcast
