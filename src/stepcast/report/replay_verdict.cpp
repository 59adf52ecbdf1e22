#include "stepcast/report/replay_verdict.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/names.h"

namespace stepcast {
namespace {

struct Part {
  std::string_view verdict;  // what a step is called that is mostly this
  std::string_view text;     // of its share and time
  double time_ms = 0;
};

double mean_over_ranks(const std::vector<ForecastClass>& classes, const auto& time_of) {
  double sum = 0;
  for (const ForecastClass& c : classes) sum += time_of(c);
  return classes.empty() ? 0 : sum / static_cast<double>(classes.size());
}

}  // namespace

TimePair longest_step(const ReplayAnalysis& analysis) {
  TimePair longest;
  for (const ReplayedRank& rank : analysis.ranks) {
    longest.measured_us = std::max(longest.measured_us, rank.step.measured_us);
    longest.simulated_us = std::max(longest.simulated_us, rank.step.simulated_us);
  }
  return longest;
}

std::string replay_verdict(const ReplayAnalysis& analysis) {
  const std::vector<ForecastClass>& classes = analysis.simulated.classes;
  const double step_ms = mean_over_ranks(classes, [](const ForecastClass& c) { return c.window_ms; });
  const auto percent = [&](double ms) { return step_ms > 0 ? 100 * ms / step_ms : 0; };
  const double computing = mean_over_ranks(classes, [](const ForecastClass& c) { return c.computation_ms; });
  const auto idle = [&](std::string_view cause) {
    return mean_over_ranks(classes, [&](const ForecastClass& c) { return time_ms(c.idle_ms, cause); });
  };
  std::vector<Part> parts{
      {"host-bound", "idle {:.1f} % ({:.3f} ms) for the CPU", idle("cpu")},
      {"bound by other ranks", "wait {:.1f} % ({:.3f} ms) for other ranks", idle("other_rank")},
      {"bound by its pipeline", "wait {:.1f} % ({:.3f} ms) for other stages of the pipeline",
       idle("pipeline")},
      {"bound by waits between streams", "wait {:.1f} % ({:.3f} ms) for another stream of their rank",
       idle("other_stream")},
      {"bound by communication", "only communicate for {:.1f} % ({:.3f} ms)",
       mean_over_ranks(classes, [](const ForecastClass& c) { return c.exposed_comm_ms; })},
      {"bound by copies", "only copy for {:.1f} % ({:.3f} ms)",
       mean_over_ranks(classes, [](const ForecastClass& c) { return c.exposed_memcpy_ms; })},
  };
  // Gaps between kernels are small everywhere; where they are not, nothing of the above is to blame.
  const double rest = idle("rest");
  double found = computing;
  for (const Part& part : parts) found += part.time_ms;
  if (rest > found)
    parts.push_back(
        {"bound by what the traces do not show", "idle {:.1f} % ({:.3f} ms) without a cause", rest});
  const Part& largest = *std::ranges::max_element(parts, {}, &Part::time_ms);
  std::string text =
      fmt::format("{}: GPUs compute {:.1f} % of the step",
                  2 * computing >= step_ms ? "GPU-bound" : largest.verdict, percent(computing));
  if (largest.time_ms > 0)
    text += ", " + fmt::format(fmt::runtime(largest.text), percent(largest.time_ms), largest.time_ms);
  const std::vector<RankCulprits>& ranks = analysis.culprits.ranks;
  const auto worst = std::ranges::max_element(ranks, {}, &RankCulprits::caused_wait_us);
  const double all_us = analysis.culprits.all_waiting_us();
  if (worst != ranks.end() && worst->caused_wait_us > 0 && all_us > 0) {
    text += fmt::format(
        "; rank {} comes last in {} of {} collectives and causes {:.1f} % of the waiting for other ranks "
        "({:.3f} ms)",
        analysis.facts[worst->rank_class.index()].rank, worst->came_last, analysis.culprits.collectives,
        100 * worst->caused_wait_us / all_us, worst->caused_wait_us * 1e-3);
  }
  return text;
}

std::string culprit_sentence(const ReplayAnalysis& analysis) {
  const StepCulprits& found = analysis.culprits;
  std::vector<std::pair<double, Culprit>> parts;
  for (std::size_t k = 0; k < kCulpritCount; ++k) {
    const auto culprit = static_cast<Culprit>(k);
    if (found.of(culprit) >= 0.5) parts.emplace_back(found.of(culprit), culprit);
  }
  if (parts.empty()) return {};
  std::ranges::stable_sort(parts, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text = fmt::format("of the {} of {:.3f} ms: ", found.ranks.size() > 1 ? "mean step" : "step",
                                 found.step_us() * 1e-3);
  bool first = true;
  for (const auto& [us, culprit] : parts) {
    text += fmt::format("{}{} {:.3f} ms", first ? "" : ", ", culprit_name(culprit), us * 1e-3);
    first = false;
  }
  if (found.collectives > 0) text += "; waiting for another rank counts for what held that one";
  return text;
}

std::string_view culprit_name(Culprit culprit) {
  return name_of<Culprit::rest>(
      culprit, {"GPU", "host", "PCIe", "network", "data skew", "late start", "no cause found"},
      "no cause found");
}

}  // namespace stepcast
