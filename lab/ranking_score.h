// Scores how well forecasts rank the layouts of one model on one machine.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/run_platforms.h"
#include "lab/suite.h"

namespace stepcast {

// Spearman's rank correlation; ties share the mean rank. nullopt if one of them is constant.
[[nodiscard]] std::optional<double> rank_correlation(const std::vector<double>& a,
                                                     const std::vector<double>& b);

struct RankingScore {
  double spearman = 0;       // rank correlation of predicted and measured time
  double top1_regret = 0;    // slow-down of the layout predicted fastest over the fastest, percent
  double pairs_ordered = 0;  // percent of pairs with more than 5 % difference that are in the right order
  std::size_t n_pairs = 0;
};
[[nodiscard]] RankingScore score_ranking(const std::vector<double>& measured,
                                         const std::vector<double>& predicted);

// Key of runs with the same model, GPU, number of GPUs, type, batch and framework. Such runs differ in layout and release.
[[nodiscard]] std::string layout_family(const LlmRun& run);

// Over the families of these runs with at least two layouts: the mean of top1_regret, the mean of spearman (three or more
// layouts), and pairs_ordered of all their pairs, with the number of pairs.
[[nodiscard]] std::vector<ExtraMetric> ranking_extras(const std::vector<const PredictedRun*>& runs);

// The same for every model on every GPU of every set separately.
[[nodiscard]] TestScore score_rankings(std::string test, std::string_view protocol,
                                       const std::vector<PredictedRun>& runs);

// Scores whether published layouts, which experts tuned by hand, are among the best of our search.
//
// The fastest measured run of every family (ranking_score.h: model, GPUs, type, batch) is used. Its layout and all layouts
// of the search are priced with the software settings of the run, so that common settings are equal. A row has our best
// layout as `predicted` and the layout of the run as `measured`, both forecasts, in ms.

// "layouts_run", all families in one set, and "layouts_run_by_set". Extras, in percent of the families:
// `tied_or_within_2_percent` (the run ties with our best, or its forecast is at most 2 % slower), `within_2`, `within_7`;
// `families_n`. `shares` of a row lists the changes in our layout. Left out are jobs outside the search space: encoders,
// LoRA, models without a stated GPU, and families without a layout that fits by our forecast (named in `skipped`).
[[nodiscard]] std::vector<TestScore> score_layouts_run(const std::vector<PredictedRun>& runs,
                                                       RunPlatforms& platforms, unsigned threads,
                                                       std::vector<Skipped>& skipped);

// Scores the layouts that `plan` recommends for every family with known software releases, against the fastest published
// step of the family. Tests: "plan_against_published" by the forecast; "plan_promise" by the expected step of plan,
// fitted without the family; "plan_promise_without_model", fitted without any family of its model; "published_recipe", the
// trivial answer, the forecast of the published layout. Families with an older release than the newest one of their model
// and machine are separate sets. An error above 0 means that the expected step is slower than the published one. Extras:
// `within_percent`, the share of families with published over expected step in 0.9 to 1.2, `within_n` of `families_n`; for
// "plan_promise" also the numbers fitted to all families.
[[nodiscard]] std::vector<TestScore> score_plans(const std::vector<PredictedRun>& runs,
                                                 RunPlatforms& platforms, unsigned threads,
                                                 std::vector<Skipped>& skipped);

}  // namespace stepcast
