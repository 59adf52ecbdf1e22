// How well forecasts rank the layouts of one model on one machine.
#pragma once

#include <cstddef>
#include <vector>

namespace stepcast {

struct RankingScore {
  double spearman = 0;       // rank correlation of predicted and measured time
  double top1_regret = 0;    // percent that the layout predicted fastest is slower than the fastest
  double pairs_ordered = 0;  // percent of pairs more than 5 % apart that are in order
  std::size_t n_pairs = 0;
};
[[nodiscard]] RankingScore score_ranking(const std::vector<double>& measured,
                                         const std::vector<double>& predicted);

}  // namespace stepcast
