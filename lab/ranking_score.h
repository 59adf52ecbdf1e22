// How well forecasts rank the layouts of one model on one machine.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace stepcast
