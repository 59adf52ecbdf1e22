#include "lab/run_scores.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/units.h"
#include "stepcast/workload/memory.h"

#include "lab/published_forecast.h"

namespace stepcast {

namespace {

std::string shares_text(const StageMemory& m) {
  const auto share = [&](Bytes bytes) { return bytes / m.in_allocator(); };
  return fmt::format(
      "weights {:.3f} gradients {:.3f} optimizer {:.3f} activations {:.3f} working {:.3f} reserve {:.3f}",
      share(m.weights), share(m.gradients), share(m.optimizer), share(m.activations), share(m.working),
      share(m.reserve));
}

// "recipe of another layout (differs:mbs+vp)".
bool recipe_contradicts(const LlmRun& run, std::string_view what) {
  return std::ranges::any_of(run.assumed, [&](const std::string& text) {
    return text.starts_with("recipe of another layout") && text.find(what) != std::string::npos;
  });
}

}  // namespace

TestScore score_runs_that_ran(const std::vector<PredictedRun>& runs, RunPlatforms& platforms,
                              std::vector<Skipped>& skipped) {
  TestScore result{.test = "runs_that_ran", .protocol = "shipped", .unit = "GiB", .relative = false};
  struct Counts {
    SetScore set;
    double too_big = 0, contradicted = 0, contradicted_and_too_big_with_one = 0;
  };
  std::map<std::string, Counts> sets;
  for (const PredictedRun& p : runs) {
    if (p.run->gpu.empty()) continue;
    const Result<StepModel*> model = platforms.model_for(*p.run);
    if (!model) continue;
    const auto memory =
        memory_forecast(p.run->model, p.run->layout, (*model)->pricer().platform().device.memory_size);
    if (!memory) continue;
    Counts& of = sets[p.run->set];
    ScoredRow row = scored(p);
    row.measured = memory->available.value() / kGiB;
    row.predicted = memory->peak().value() / kGiB;
    row.p10 = row.p90 = {};
    if (memory->verdict == MemoryVerdict::does_not_fit) {
      ++of.too_big;
      // What a table states of a micro-batch that the configuration of the same release contradicts may be a slip.
      const bool contradicted = recipe_contradicts(*p.run, "mbs");
      std::string why = "ran, and is said not to fit";
      if (contradicted) {
        ++of.contradicted;
        Layout one_sequence = p.run->layout;
        one_sequence.batch.micro_batch_sequences = 1;
        const auto with_one = memory_forecast(p.run->model, one_sequence, memory->available);
        const double with_one_GiB = with_one ? with_one->peak().value() / kGiB : row.predicted;
        if (with_one_GiB > row.measured) ++of.contradicted_and_too_big_with_one;
        why = fmt::format(
            "ran, and does not fit with a micro-batch that its release's recipe contradicts; with 1: {:.1f} "
            "GiB",
            with_one_GiB);
      }
      skipped.push_back(
          {fmt::format("{}: {:.1f} of {:.1f} GiB", row.row, row.predicted, row.measured), std::move(why), 1});
    }
    of.set.rows.push_back(std::move(row));
  }
  for (auto& [name, of] : sets) {
    of.set.set = name;
    const auto n = static_cast<double>(of.set.rows.size());
    of.set.extras = {
        {"fits_pct", 100 * (1 - of.too_big / n)},
        {"too_big_n", of.too_big, ExtraMetric::Over::sum},
        {"of_them_recipe_contradicts_n", of.contradicted, ExtraMetric::Over::sum},
        {"too_big_with_one_sequence_n", of.too_big - of.contradicted + of.contradicted_and_too_big_with_one,
         ExtraMetric::Over::sum}};
    result.sets.push_back(std::move(of.set));
  }
  result.finish();
  return result;
}

TestScore score_memory(const std::vector<PredictedRun>& runs) {
  TestScore result{.test = "memory", .protocol = "shipped", .unit = "GiB"};
  std::map<std::string, SetScore> sets;
  for (const PredictedRun& p : runs) {
    if (!p.run->memory_GiB) continue;
    // What the device has does not matter to what is needed.
    const Result<MemoryForecast> memory = memory_forecast(p.run->model, p.run->layout, Bytes{1});
    if (!memory) continue;
    const auto most = std::ranges::max_element(memory->stages, {}, &StageMemory::in_allocator);
    ScoredRow row = scored(p);
    row.measured = *p.run->memory_GiB;
    row.predicted = most->in_allocator().value() / kGiB;
    row.p10 = row.p90 = {};
    row.shares = shares_text(*most);
    sets[p.run->set].rows.push_back(std::move(row));
  }
  for (auto& [name, set] : sets) {
    set.set = name;
    result.sets.push_back(std::move(set));
  }
  result.finish();
  return result;
}

TestScore score_published_composition(const std::vector<PredictedRun>& runs, RunPlatforms& platforms) {
  TestScore result{.test = "published_composition", .protocol = "shipped", .unit = "ms"};
  std::map<std::string, SetScore> sets;
  std::map<std::string, double> ours;  // [set] sum of |errors|, %
  for (const PredictedRun& p : runs) {
    // Where the GPU is not stated, times say nothing.
    if (p.run->gpu.empty() || p.run->layout.layer.packed_mean_tokens > 0) continue;
    Result<StepModel*> model = platforms.model_for(*p.run);
    if (!model) continue;
    const Result<PricedStep> priced = (*model)->price(p.run->model, p.run->layout);
    if (!priced) continue;
    const Result<PublishedComponents> parts = published_components(*priced, p.run->layout);
    if (!parts) continue;
    ScoredRow row = scored(p);
    ours[p.run->set] += 100 * std::abs(row.predicted / row.measured - 1);
    row.predicted = compose_as_published(*parts).step_us() * 1e-3;
    row.p10 = row.p90 = {};
    row.shares.clear();
    sets[p.run->set].rows.push_back(std::move(row));
  }
  for (auto& [name, set] : sets) {
    set.set = name;
    set.extras.push_back({"ours_mape", ours[name] / static_cast<double>(set.rows.size())});
    result.sets.push_back(std::move(set));
  }
  result.finish();
  return result;
}

}  // namespace stepcast
