#include "trace_changes.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/text.h"
#include "stepcast/base/units.h"
#include "stepcast/report/cell_text.h"

#include "command_line.h"
#include "given_flags.h"
#include "predict_options.h"

namespace stepcast::cli {
namespace {

// A part of the step that a what-if removes.
struct TraceCause {
  std::vector<std::string> flags;
  std::string reason;
  bool is_of_host = false;
  bool is_of_overlap = false;  // cannot save more than perfect overlap
};

class TraceCauses {
 public:
  TraceCauses(const Forecast& forecast, std::string_view awaited) : f_(forecast), awaited_(awaited) {}

  [[nodiscard]] std::vector<TraceCause> all() {
    if (f_.classes.empty()) return {};
    add_late_ranks();
    add_transfers();
    add_host();
    return std::move(causes_);
  }

 private:
  void add(std::vector<std::string> flags, std::string reason, bool is_of_host = false) {
    causes_.push_back({std::move(flags), std::move(reason), is_of_host});
  }
  [[nodiscard]] double mean_ms(const auto& time_of) const {
    double sum = 0;
    for (const ForecastClass& one : f_.classes) sum += time_of(one);
    return sum / static_cast<double>(f_.classes.size());
  }
  [[nodiscard]] double idle_ms(std::string_view cause) const {
    return mean_ms([&](const ForecastClass& c) { return time_ms(c.idle_ms, cause); });
  }
  [[nodiscard]] bool is_worth_it(double ms) const { return ms >= kWorthSaying * f_.step_time_ms; }
  [[nodiscard]] std::string called(std::size_t c) const {
    const ForecastClass& one = f_.classes[c];
    return one.rank ? fmt::format("rank {}", *one.rank) : one.name;
  }

  // The traces name what the host does. Profiles of XLA and of the CUDA runtime alone do not.
  [[nodiscard]] bool has_operators() const {
    return std::ranges::any_of(f_.classes, [](const ForecastClass& one) {
      return std::ranges::any_of(one.threads, [](const ForecastThread& thread) {
        return std::ranges::any_of(thread.busy_by_op_ms, [](const NamedTime& op) { return !op.key.empty(); });
      });
    });
  }

  void add_late_ranks() {
    const std::size_t n = f_.classes.size();
    if (n < 2) return;
    const auto last = std::ranges::max_element(f_.classes, {}, &ForecastClass::start_offset_ms);
    if (is_worth_it(last->start_offset_ms))
      add({"--barrier"}, fmt::format("all ranks start the step together; {} starts {} after the first",
                                     called(static_cast<std::size_t>(last - f_.classes.begin())),
                                     duration_text(last->start_offset_ms)));
    if (!is_worth_it(idle_ms("other_rank"))) return;
    std::vector<double> caused_us(n);
    std::vector<std::size_t> times(n);
    std::size_t shared = 0;
    for (const ForecastCollective& one : f_.collectives) {
      if (one.members.size() < 2) continue;
      ++shared;
      ++times[one.came_last];
      caused_us[one.came_last] += one.total_wait_us / static_cast<double>(one.members.size() - 1);
    }
    const auto worst = static_cast<std::size_t>(std::ranges::max_element(caused_us) - caused_us.begin());
    add({"--like-median-rank"}, fmt::format("no rank is slower than the median one; the others wait {} "
                                            "for {}, last in {} of {} collectives{}",
                                            duration_text(caused_us[worst] * 1e-3), called(worst),
                                            times[worst], shared, lookups_of(worst)));
  }

  // If a rank has more lookups than the others: the table to move.
  [[nodiscard]] std::string lookups_of(std::size_t c) const {
    constexpr std::string_view kLookups = "embedding";
    const auto lookups_ms = [&](const ForecastClass& one) {
      return time_ms(one.computation_by_class_ms, kLookups);
    };
    const double more_ms = lookups_ms(f_.classes[c]) - mean_ms(lookups_ms);
    if (!is_worth_it(more_ms)) return {};
    return fmt::format("; its lookups take {} more than the mean: `stepcast shard` finds tables to move",
                       duration_text(more_ms));
  }

  void add_transfers() {
    // In the trace of a single rank, a transfer includes the wait for other ranks, which overlap cannot hide.
    const bool meets = std::ranges::any_of(
        f_.collectives, [](const ForecastCollective& one) { return one.members.size() > 1; });
    const double alone_ms = mean_ms([](const ForecastClass& c) { return c.exposed_comm_ms; });
    if (!meets || !is_worth_it(alone_ms)) return;
    add({"--overlap", "perfect"},
        fmt::format("transfers overlapped with computation; {} of the step are exposed communication",
                    duration_text(alone_ms)));
    std::size_t reductions = 0;
    double bytes = 0;
    for (const ForecastCollective& one : f_.collectives) {
      if (one.operation != to_string(CollectiveOp::all_reduce) || !one.message_bytes) continue;
      ++reductions;
      bytes += *one.message_bytes;
    }
    // Default of DistributedDataParallel.
    constexpr double kBucketMiB = 25;
    if (reductions < 2 || bytes / static_cast<double>(reductions) > kBucketMiB * kMiB) return;
    for (const char* size : {"25", "100", "400"}) {
      add({"--bucket-size-mb", size},
          fmt::format("gradients in fewer transfers; {} all-reduces move {} each", reductions,
                      table_bytes(bytes / static_cast<double>(reductions))));
      causes_.back().is_of_overlap = true;
    }
  }

  void add_host() {
    const double waiting_ms = idle_ms("cpu");
    if (!is_worth_it(waiting_ms)) return;
    const std::string longest = awaited_.empty() ? "" : fmt::format(", longest for {}", awaited_);
    add({"--what-if", "host=2x"},
        has_operators()
            ? fmt::format(
                  "the host launches twice as fast, by CUDA graphs, torch.compile or fused operators; "
                  "GPUs wait {} for it{}",
                  duration_text(waiting_ms), longest)
            : fmt::format(
                  "the host is twice as fast; its operators are not recorded, so the reason for {} of "
                  "gaps is unknown",
                  duration_text(waiting_ms)),
        /*is_of_host=*/true);
    const double blocked_ms = mean_ms([](const ForecastClass& c) {
      double most = 0;
      for (const ForecastThread& thread : c.threads) most = std::max(most, time_ms(thread.idle_ms, "gpu"));
      return most;
    });
    if (is_worth_it(blocked_ms))
      add({"--overlap", "host"},
          fmt::format(
              "no item(), synchronize() or blocking copy inside the step; threads wait {} for the GPU",
              duration_text(blocked_ms)));
  }

  const Forecast& f_;
  std::string_view awaited_;
  std::vector<TraceCause> causes_;
};

// The words with the flags of a change. Nothing if they contain such a flag already.
std::optional<std::vector<std::string>> words_with(const Flags& asked, const TraceCause& cause) {
  const std::string& flag = cause.flags.front();
  Flags all = asked;
  const auto said = std::ranges::find(all, flag, &Flag::name);
  if (said == all.end()) {
    all.push_back({flag, {cause.flags.begin() + 1, cause.flags.end()}});
    return words_of(all);
  }
  const std::string& more = cause.flags.back();
  const std::string values = "," + join(said->values, ",");
  if (flag != "--what-if" || values.find("," + more.substr(0, more.find('=') + 1)) != std::string::npos)
    return std::nullopt;
  said->values = {values.substr(1) + "," + more};
  return words_of(all);
}

double half_band(const StepTime& step) { return step.step_time_p90_ms - step.step_time_ms; }

ForecastAction action_of(const TraceCause& cause, const StepTime& asked, const StepTime& then,
                         std::uint64_t n_gpus) {
  ForecastAction action;
  action.change = join(cause.flags, " ");
  action.reason = cause.reason;
  action.step_time_ms = action.promised_step_time_ms = then.step_time_ms;
  action.saved_ms = asked.step_time_ms - then.step_time_ms;
  action.saved_percent = 100 * action.saved_ms / asked.step_time_ms;
  // The errors are combined as if they were independent, which gives the wider band.
  const double uncertain_ms = std::hypot(half_band(asked), half_band(then));
  action.saved_p10_ms = action.saved_ms - uncertain_ms;
  action.saved_p90_ms = action.saved_ms + uncertain_ms;
  // The profiler slows the host. Without it, the step may not wait for the host at all.
  if (cause.is_of_host) action.saved_p10_ms = std::min(action.saved_p10_ms, 0.0);
  action.certainty = cause.is_of_host ? "uncertain" : "clear";
  action.n_gpus = n_gpus;
  return action;
}

ForecastAdvice advice_of(std::vector<ForecastAction> found, const StepTime& asked, std::size_t tried,
                         const std::string& problem) {
  std::ranges::stable_sort(found, {}, &ForecastAction::step_time_ms);
  ForecastAdvice advice;
  for (ForecastAction& one : found) {
    const auto says_the_same = [&](const ForecastAction& other) { return other.reason == one.reason; };
    if (advice.actions.size() < kMostActions && std::ranges::none_of(advice.actions, says_the_same))
      advice.actions.push_back(std::move(one));
  }
  if (!advice.actions.empty()) {
    const ForecastAction& first = advice.actions.front();
    advice.sentence =
        fmt::format("With `{0}` the step takes {1} less ({3:.1f} % of {2}).", first.change,
                    duration_text(first.saved_ms), duration_text(asked.step_time_ms), first.saved_percent);
  } else if (!problem.empty()) {
    advice.sentence = sentence(problem) + ".";
  } else {
    advice.sentence =
        tried == 0 ? "Nothing to gain: waiting, transfers and the host take less than 1 % of the step each."
                   : "Nothing to gain: no tried change of the recorded step saves at least 1 % and more than "
                     "its uncertainty.";
  }
  return advice;
}

}  // namespace

std::optional<ForecastAdvice> what_to_change(std::span<const std::string> words,
                                             const RecordedAnswer& answer) {
  Flags given = flags_in(words, Question::traces);
  std::erase_if(given, [](const Flag& flag) { return is_of_output(flag, Question::traces); });
  const auto step_of = [&](const std::vector<std::string>& asked) -> Result<StepTime> {
    STEPCAST_ASSIGN(const PredictTraceRequest request, trace_request_in_words(asked));
    return answer.session.step_time(request, answer.step);
  };
  const Result<StepTime> asked = step_of(words_of(given));
  if (!asked || !(asked->step_time_ms > 0)) return std::nullopt;
  std::vector<ForecastAction> found;
  std::string problem;
  std::size_t tried = 0;
  for (const TraceCause& cause : TraceCauses{answer.forecast, answer.awaited}.all()) {
    std::optional<std::vector<std::string>> changed = words_with(given, cause);
    const bool overlap_saves =
        std::ranges::find(found, "--overlap perfect", &ForecastAction::change) != found.end();
    if (!changed || (cause.is_of_overlap && !overlap_saves)) continue;
    const Result<StepTime> then = step_of(*changed);
    if (!then) {
      if (tried == 0) problem = then.error().message();
      continue;
    }
    ++tried;
    problem.clear();
    ForecastAction action = action_of(cause, *asked, *then, answer.forecast.n_gpus);
    const double least_ms =
        std::max(kWorthSaying * asked->step_time_ms, std::hypot(half_band(*asked), half_band(*then)));
    if (action.saved_ms <= least_ms) continue;
    changed->insert(changed->begin(), "predict");
    action.command = command_of(*changed);
    found.push_back(std::move(action));
  }
  return advice_of(std::move(found), *asked, tried, problem);
}

}  // namespace stepcast::cli
