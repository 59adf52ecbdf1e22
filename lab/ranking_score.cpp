#include "lab/ranking_score.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace stepcast {
namespace {

constexpr double kApartShare = 0.05;  // pairs of layouts closer than this have no order

// From 0; ties share the mean.
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
    if (set.extras.empty()) continue;  // one layout of each is no ranking
    // Nothing is said of how its factors were fitted here: leave_model_out says it.
    set.n_fit = protocol == "refit" ? members.size() : 0;
    for (const PredictedRun* p : members) set.rows.push_back(scored(*p));
    result.sets.push_back(std::move(set));
  }
  result.finish();
  return result;
}

}  // namespace stepcast
