#include "stepcast/report/replay_verdict.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

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

bool is_tie(const ForecastCollective& collective) {
  double last = -1, before = -1;
  for (const ForecastMember& member : collective.members) {
    if (member.arrival_us > last) {
      before = std::exchange(last, member.arrival_us);
    } else {
      before = std::max(before, member.arrival_us);
    }
  }
  return collective.members.size() < 2 || last - before <= kTieUs;
}

}  // namespace

std::vector<Straggling> straggling(const ReplayAnalysis& analysis) {
  std::vector<Straggling> ranks;
  for (const RecordedStepFacts& facts : analysis.facts) ranks.push_back({.rank = facts.rank});
  for (const ForecastCollective& collective : analysis.simulated.collectives) {
    if (is_tie(collective) || collective.came_last >= ranks.size()) continue;
    Straggling& last = ranks[collective.came_last];
    ++last.came_last;
    last.caused_wait_us += collective.total_wait_us;
  }
  return ranks;
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
      {"bound by communication", "only communicate for {:.1f} % ({:.3f} ms)",
       mean_over_ranks(classes, [](const ForecastClass& c) { return c.exposed_comm_ms; })},
      {"bound by copies", "only copy for {:.1f} % ({:.3f} ms)",
       mean_over_ranks(classes, [](const ForecastClass& c) { return c.exposed_memcpy_ms; })},
  };
  const Part& largest = *std::max_element(parts.begin(), parts.end(),
                                          [](const Part& a, const Part& b) { return a.time_ms < b.time_ms; });
  std::string text =
      fmt::format("{}: GPUs compute {:.1f} % of the step",
                  2 * computing >= step_ms ? "GPU-bound" : largest.verdict, percent(computing));
  if (largest.time_ms > 0) {
    text += ", " + fmt::format(fmt::runtime(largest.text), percent(largest.time_ms), largest.time_ms);
  }
  const std::vector<Straggling> ranks = straggling(analysis);
  const auto worst = std::max_element(
      ranks.begin(), ranks.end(),
      [](const Straggling& a, const Straggling& b) { return a.caused_wait_us < b.caused_wait_us; });
  double all_us = 0;
  std::uint64_t joined = 0;
  for (const ForecastCollective& collective : analysis.simulated.collectives) {
    all_us += collective.total_wait_us;
    if (collective.members.size() > 1) ++joined;
  }
  if (worst != ranks.end() && worst->caused_wait_us > 0 && all_us > 0) {
    text += fmt::format(
        "; rank {} comes last in {} of {} collectives and causes {:.1f} % of the waiting for other ranks "
        "({:.3f} ms)",
        worst->rank, worst->came_last, joined, 100 * worst->caused_wait_us / all_us,
        worst->caused_wait_us * 1e-3);
  }
  return text;
}

}  // namespace stepcast
