#include "stepcast/report/replay_verdict.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/names.h"
#include "stepcast/base/text.h"
#include "stepcast/report/cell_text.h"

namespace stepcast {
namespace {

// One possible statement about what GPUs do instead of computing.
struct Part {
  std::string_view text;  // format string with two arguments: share in percent and duration
  double time_ms = 0;
};

// The mean over rank classes of a time that `time_of` selects.
double mean_over_ranks(const std::vector<ForecastClass>& classes, const auto& time_of) {
  double sum = 0;
  for (const ForecastClass& c : classes) sum += time_of(c);
  return classes.empty() ? 0 : sum / static_cast<double>(classes.size());
}

// The resource in a sentence: "the host would save".
std::string_view subject_of(StepResource resource) {
  return name_of<StepResource::communication>(resource, {"GPUs", "host", "transfers"});
}

// The gains by resource: "twice as fast, the host would save 38.2 % of the step (3.820 ms), the GPUs 4.0 %".
std::string gains_text(const StepBinding& binding) {
  // Smaller gains would print as 0.0 %.
  constexpr double kShownPercent = 0.05;
  std::string text;
  for (const ResourceGain& gain : binding.gains) {
    const double share = binding.step_us > 0 ? 100 * gain.saved_us / binding.step_us : 0;
    if (share < kShownPercent) break;
    text += text.empty() ? fmt::format("a 2x speed-up of the {} would save {:.1f} % of the step ({})",
                                       subject_of(gain.resource), share, duration_text(gain.saved_us * 1e-3))
                         : fmt::format(", of the {} {:.1f} %", subject_of(gain.resource), share);
  }
  return text.empty() ? "no faster host, GPU or link would shorten it" : text;
}

// A clause that limits the verdict; empty if none is needed. It is needed if many times were impossible and
// had to be repaired, or if much GPU work has no launch in the files: a replay cannot move such work, so the
// gain from a faster host or GPU is unknown.
std::string reservation(std::span<const RecordedStepFacts> facts) {
  // Fraction of the GPU time without a launch.
  constexpr double kReservedFrom = 0.1;
  double all = 0, unlaunched = 0, repaired = 0;
  for (const RecordedStepFacts& of : facts) {
    repaired = std::max(repaired, of.repaired_share);
    all += of.gpu_work_us;
    unlaunched += of.unlaunched_us;
  }
  if (repaired > kMuchRepaired) {
    return fmt::format(
        "The bottleneck is uncertain: {:.2g} % of the recorded time was inconsistent and is removed. The "
        "traces show a step that is ",
        100 * repaired);
  }
  if (all <= 0 || unlaunched < kReservedFrom * all) return {};
  return fmt::format(
      "The bottleneck is uncertain: {:.0f} % of the GPU time has no launch in the traces. The traces show a "
      "step that is ",
      100 * unlaunched / all);
}

// The other ranks that cause much of the waiting: ", rank 3 causes 31.0 %, rank 5 causes 12.2 %".
std::string others_that_cause(const ReplayAnalysis& analysis, const RankCulprits* worst) {
  // Fraction of all waiting.
  constexpr double kGoodPart = 0.1;
  const double all_us = analysis.culprits.all_waiting_us();
  std::vector<const RankCulprits*> causes;
  for (const RankCulprits& rank : analysis.culprits.ranks)
    if (&rank != worst && rank.caused_wait_us > kGoodPart * all_us) causes.push_back(&rank);
  std::ranges::stable_sort(causes, std::ranges::greater{}, &RankCulprits::caused_wait_us);
  std::vector<std::string> shares;
  for (const RankCulprits* rank : causes) {
    shares.push_back(fmt::format("rank {} causes {:.1f} %", analysis.facts[rank->rank_class.index()].rank,
                                 100 * rank->caused_wait_us / all_us));
  }
  if (shares.empty()) return {};
  return (worst != nullptr ? ", " : "; in the others ") + join(shares);
}

// The rank that the others wait for. If the clocks of the ranks are too inaccurate to tell, a clause about
// that.
std::string waiting_sentence(const ReplayAnalysis& analysis) {
  const StepCulprits& culprits = analysis.culprits;
  const double all_us = culprits.all_waiting_us();
  if (const RankCulprits* worst = culprits.worst()) {
    return fmt::format(
               "; rank {} comes last in {} of {} collectives and causes {:.1f} % of the waiting for other "
               "ranks "
               "({})",
               analysis.facts[worst->rank_class.index()].rank, worst->came_last, culprits.collectives,
               100 * worst->caused_wait_us / all_us, duration_text(worst->caused_wait_us * 1e-3)) +
           others_that_cause(analysis, worst);
  }
  if (all_us <= 0 || culprits.ties == 0) return {};
  return fmt::format(
             "; the last rank is unknown in {1} of {2} collectives: their last two arrivals are within "
             "{0:.0f} us, the clock error between ranks",
             culprits.tie_us, culprits.ties, culprits.collectives) +
         others_that_cause(analysis, nullptr);
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
  const std::array parts{
      Part{"idle {:.1f} % ({}) for the CPU", idle("cpu")},
      Part{"wait {:.1f} % ({}) for other ranks", idle("other_rank")},
      Part{"wait {:.1f} % ({}) for other stages of the pipeline", idle("pipeline")},
      Part{"wait {:.1f} % ({}) for another stream of their rank", idle("other_stream")},
      Part{"only communicate for {:.1f} % ({})",
           mean_over_ranks(classes, [](const ForecastClass& c) { return c.exposed_comm_ms; })},
      Part{"only copy for {:.1f} % ({})",
           mean_over_ranks(classes, [](const ForecastClass& c) { return c.exposed_memcpy_ms; })},
      Part{"idle {:.1f} % ({}) without a cause", idle("rest")},
  };
  // Only the largest part is mentioned.
  const Part& largest = *std::max_element(parts.begin(), parts.end(),
                                          [](const Part& a, const Part& b) { return a.time_ms < b.time_ms; });
  std::string text =
      fmt::format("{}{}: {}; GPUs compute {:.1f} % of the step", reservation(analysis.facts),
                  analysis.binding.bound_by(), gains_text(analysis.binding), percent(computing));
  if (largest.time_ms > 0)
    text += ", " +
            fmt::format(fmt::runtime(largest.text), percent(largest.time_ms), duration_text(largest.time_ms));
  return text + waiting_sentence(analysis);
}

std::string culprit_sentence(const ReplayAnalysis& analysis) {
  const StepCulprits& found = analysis.culprits;
  std::vector<std::pair<double, Culprit>> parts;
  for (std::size_t k = 0; k < kCulpritCount; ++k) {
    const auto culprit = static_cast<Culprit>(k);
    // Culprits below half a microsecond are left out.
    if (found.of(culprit) >= 0.5) parts.emplace_back(found.of(culprit), culprit);
  }
  if (parts.empty()) return {};
  std::ranges::stable_sort(parts, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text = fmt::format("of the {} of {}: ", found.ranks.size() > 1 ? "mean step" : "step",
                                 duration_text(found.step_us() * 1e-3));
  bool first = true;
  for (const auto& [us, culprit] : parts) {
    text += fmt::format("{}{} {}", first ? "" : ", ", culprit_name(culprit), duration_text(us * 1e-3));
    first = false;
  }
  if (found.collectives > 0) text += "; waiting is charged to the cause of the other rank's delay";
  constexpr double kMuchWithoutCause = 0.05;  // fraction of the step
  if (found.of(Culprit::rest) > kMuchWithoutCause * found.step_us())
    text += "; no cause found: the next GPU work was launched, and the traces do not show why it was late";
  return text;
}

std::string_view culprit_name(Culprit culprit) {
  return name_of<Culprit::rest>(
      culprit, {"GPU", "host", "PCIe", "network", "data skew", "late start", "no cause found"},
      "no cause found");
}

}  // namespace stepcast
