// How well forecasts rank the layouts of one model on one machine.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/run_platforms.h"
#include "lab/suite.h"

namespace stepcast {

// Of Spearman, ties share the mean rank; nothing where one of them is constant.
[[nodiscard]] std::optional<double> rank_correlation(const std::vector<double>& a,
                                                     const std::vector<double>& b);

struct RankingScore {
  double spearman = 0;       // rank correlation of predicted and measured time
  double top1_regret = 0;    // percent that the layout predicted fastest is slower than the fastest
  double pairs_ordered = 0;  // percent of pairs more than 5 % apart that are in order
  std::size_t n_pairs = 0;
};
[[nodiscard]] RankingScore score_ranking(const std::vector<double>& measured,
                                         const std::vector<double>& predicted);

// Runs of one model, GPU, number of GPUs, type and batch on one framework: what differs is the layout, and the release.
[[nodiscard]] std::string layout_family(const LlmRun& run);

// Over the families of these runs with at least two layouts: the mean of top1_regret and of spearman (of three layouts
// and more), and pairs_ordered of all their pairs, with how many there are.
[[nodiscard]] std::vector<ExtraMetric> ranking_extras(const std::vector<const PredictedRun*>& runs);

// The same for every model on every GPU of every set by itself.
[[nodiscard]] TestScore score_rankings(std::string test, std::string_view protocol,
                                       const std::vector<PredictedRun>& runs);

// Whether the layouts that people ran are among the best of our search: layouts that experts tuned by hand, as published
// beside their step times.
//
// Of every family of runs (ranking_score.h: model, GPUs, type, batch) the fastest measured one counts. Its layout is
// priced as it ran, and so is every layout of the search, with the software of that run: what both do alike, they do
// alike here, too. A row has our best as `predicted` and the run's layout as `measured`, both forecasts, in ms.

// "layouts_run", all families in one set, and "layouts_run_by_set". Extras, in percent of the families: `tied_or_within_2_percent`
// (the run cannot be told from our best, or its forecast is at most 2 % behind), `within_2`, `within_7`; `families_n`.
// `shares` of a row says what ours changes. What the space does not hold is left out: encoders, adapters, models whose
// GPU nobody stated, families without a layout that fits by our forecast (named in `skipped`).
[[nodiscard]] std::vector<TestScore> score_layouts_run(const std::vector<PredictedRun>& runs,
                                                       RunPlatforms& platforms, unsigned threads,
                                                       std::vector<Skipped>& skipped);

// What `plan` recommends for the job of every family whose software's releases are known, beside the fastest published
// step of the family: "plan_against_published" by its forecast; "plan_promise" by what to count on (plan/promise.h), fitted
// without the family, "plan_promise_without_model" without any of its model; and "published_recipe", the trivial answer,
// the forecast of the published layout itself. Families of an older release than the newest one of their model
// and machine are sets of their own. Above 0 less is promised than was reached. Extras: `within_percent`, the share of
// families where the published step over the promised one lies in 0.9 to 1.2, `within_n` of `families_n`; of "plan_promise"
// also what is fitted to all families.
[[nodiscard]] std::vector<TestScore> score_plans(const std::vector<PredictedRun>& runs,
                                                 RunPlatforms& platforms, unsigned threads,
                                                 std::vector<Skipped>& skipped);

}  // namespace stepcast
