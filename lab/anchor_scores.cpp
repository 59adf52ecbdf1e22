#include "lab/anchor_scores.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/statistics.h"
#include "stepcast/predict/anchor.h"

namespace stepcast {
namespace {

constexpr std::size_t kFewest = 4;  // least runs of a set
constexpr std::size_t kDraws = 40;  // random choices of several anchors
constexpr double kTenth = 1.2815515655446004;

// A run in the form of an Anchor.
struct Member {
  ScoredRow row;
  AnchorTraits traits;
  double error = 0;  // ln of measured over forecast
};
using Sets = std::map<std::string, std::vector<Member>>;

void add(const LlmRun& run, const StepModel& model, Sets& sets) {
  Result<StepPrediction> prediction = model.predict(run.model, run.layout);
  if (!prediction) return;
  const AnchorTraits traits = traits_of(run.model, run.layout, *prediction);
  ScoredRow row = scored(PredictedRun{&run, std::move(*prediction)});
  const double error = std::log(row.measured / row.predicted);
  sets[fmt::format("{} {}", run.set, run.gpu)].push_back({std::move(row), traits, error});
}

// The given runs of each draw: [draw][given].
std::vector<std::vector<std::size_t>> draws_of(std::size_t n, std::size_t n_given) {
  std::vector<std::vector<std::size_t>> draws;
  if (n_given == 1) {
    for (std::size_t i = 0; i < n; ++i) draws.push_back({i});
    return draws;
  }
  std::mt19937_64 random{kDraws + n_given};
  std::vector<std::size_t> order(n);
  for (std::size_t i = 0; i < n; ++i) order[i] = i;
  for (std::size_t draw = 0; draw < kDraws; ++draw) {
    for (std::size_t i = n; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
    draws.emplace_back(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n_given));
  }
  return draws;
}

SetScore score_set(const std::string& name, const std::vector<Member>& members, std::size_t n_given) {
  SetScore set{.set = name, .n_fit = n_given};
  double none = 0, factor = 0;
  for (const std::vector<std::size_t>& given : draws_of(members.size(), n_given)) {
    std::vector<AnchorTraits> traits;
    std::vector<double> errors;
    for (const std::size_t i : given) {
      traits.push_back(members[i].traits);
      errors.push_back(members[i].error);
    }
    const Anchor anchor{std::move(traits), errors};
    const double middle = upper_median(errors);
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (std::ranges::find(given, i) != given.end()) continue;
      const Member& member = members[i];
      const AnchoredStep said = anchor.at(member.traits);
      ScoredRow row = member.row;
      none += 100 * std::abs(std::exp(-member.error) - 1);
      factor += 100 * std::abs(std::exp(middle - member.error) - 1);
      row.predicted *= said.factor();
      row.p10 = row.predicted * std::exp(-kTenth * said.log_sd);
      row.p90 = row.predicted * std::exp(kTenth * said.log_sd);
      set.rows.push_back(std::move(row));
    }
  }
  const auto n = static_cast<double>(set.rows.size());
  set.extras = {{"none_mape", none / n}, {"factor_mape", factor / n}};
  return set;
}

TestScore score_sets(std::string test, const Sets& sets, std::size_t fewest, std::size_t n_given) {
  TestScore result{.test = std::move(test), .protocol = "refit", .unit = "ms"};
  for (const auto& [name, members] : sets)
    if (members.size() >= fewest) result.sets.push_back(score_set(name, members, n_given));
  result.finish();
  return result;
}

}  // namespace

std::vector<TestScore> score_anchored(const std::vector<LlmRun>& runs, RunPlatforms& platforms) {
  Sets sets;
  for (const LlmRun& run : runs) {
    if (run.gpu.empty()) continue;
    if (Result<StepModel*> model = platforms.model_for(run)) add(run, **model, sets);
  }
  return {score_sets("anchored_on_one", sets, kFewest, 1), score_sets("anchored_on_three", sets, kFewest, 3)};
}

Result<std::vector<TestScore>> score_anchored_without_records(const std::vector<LlmRun>& runs,
                                                              const RunPlatforms& platforms) {
  constexpr std::size_t kLeastRows = 40;
  Sets sets;
  std::deque<Platform> bare;  // of every set, without kernel records; StepModels refer to them
  std::map<std::string, StepModel> models;
  for (const LlmRun& run : runs) {
    if (run.gpu.empty() || run.apart || run.model.moe) continue;
    const std::string key = fmt::format("{} {}", run.set, run.gpu);
    auto found = models.find(key);
    if (found == models.end()) {
      Result<Platform> platform = platforms.choose(run);
      if (!platform) continue;  // other tests name the error
      std::erase_if(platform->models,
                    [&](const ModelRecord& record) { return record.device == platform->device.name; });
      bare.push_back(std::move(*platform));
      found = models.emplace(key, StepModel{bare.back()}).first;
    }
    add(run, found->second, sets);
  }
  return std::vector<TestScore>{score_sets("unmeasured_gpu_anchored_on_one", sets, kLeastRows, 1),
                                score_sets("unmeasured_gpu_anchored_on_three", sets, kLeastRows, 3)};
}

}  // namespace stepcast
