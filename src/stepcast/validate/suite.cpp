#include "stepcast/validate/suite.h"

#include <algorithm>
#include <array>

#include "stepcast/validate/collectives_suite.h"
#include "stepcast/validate/replay_suite.h"

namespace stepcast {

void TestScore::finish() {
  std::vector<Metrics> of_sets;
  std::vector<ScoredRow> all;
  extras.clear();
  double counted = 0;
  for (SetScore& set : sets) {
    if (relative) {
      set.metrics = score(set.rows);
    } else {
      set.metrics.n = set.rows.size();
    }
    of_sets.push_back(set.metrics);
    all.insert(all.end(), set.rows.begin(), set.rows.end());
    if (set.rows.empty()) continue;
    ++counted;
    for (const ExtraMetric& extra : set.extras) {
      const auto same = std::find_if(extras.begin(), extras.end(),
                                     [&](const ExtraMetric& e) { return e.name == extra.name; });
      if (same == extras.end()) {
        extras.push_back(extra);
      } else if (extra.over == ExtraMetric::Over::max) {
        same->value = std::max(same->value, extra.value);
      } else {
        same->value += extra.value;
      }
    }
  }
  for (ExtraMetric& extra : extras) {
    if (extra.over == ExtraMetric::Over::mean && counted > 0) extra.value /= counted;
  }
  if (relative) {
    overall = mean_over_sets(of_sets);
    pooled = score(all);
  } else {
    overall.n = pooled.n = all.size();
  }
}

std::span<const Suite> builtin_suites() {
  static const std::array<Suite, 2> kSuites{replay_suite(), collectives_suite()};
  return kSuites;
}

const Suite* find_suite(std::string_view name) {
  for (const Suite& suite : builtin_suites()) {
    if (suite.name == name) return &suite;
  }
  return nullptr;
}

}  // namespace stepcast
