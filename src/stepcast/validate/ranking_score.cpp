#include "stepcast/validate/ranking_score.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace stepcast {
namespace {

constexpr double kApartShare = 0.05;  // pairs of layouts closer than this have no order

std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> result(values.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t j = i;
    while (j < order.size() && values[order[j]] == values[order[i]]) ++j;
    for (std::size_t k = i; k < j; ++k) result[order[k]] = 0.5 * static_cast<double>(i + j - 1);
    i = j;
  }
  return result;
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto n = static_cast<double>(a.size());
  const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / n;
  const double mean_b = std::accumulate(b.begin(), b.end(), 0.0) / n;
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean_a) * (b[i] - mean_b);
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

}  // namespace

RankingScore score_ranking(const std::vector<double>& measured, const std::vector<double>& predicted) {
  RankingScore result;
  if (measured.empty()) return result;
  result.spearman = correlation(ranks(measured), ranks(predicted));
  const auto best =
      static_cast<std::size_t>(std::min_element(predicted.begin(), predicted.end()) - predicted.begin());
  const double fastest = *std::min_element(measured.begin(), measured.end());
  result.top1_regret = 100 * (measured[best] / fastest - 1);
  std::size_t in_order = 0;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    for (std::size_t j = i + 1; j < measured.size(); ++j) {
      if (std::abs(measured[i] - measured[j]) <= kApartShare * std::min(measured[i], measured[j])) continue;
      ++result.n_pairs;
      if ((measured[i] < measured[j]) == (predicted[i] < predicted[j])) ++in_order;
    }
  }
  if (result.n_pairs > 0) {
    result.pairs_ordered = 100 * static_cast<double>(in_order) / static_cast<double>(result.n_pairs);
  }
  return result;
}

}  // namespace stepcast
