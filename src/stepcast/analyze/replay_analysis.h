// A replay analysed: the simulated and the measured step as one Forecast each, and how close they are. Values
// only: the traces, the Program and its times need not be kept.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/analyze/achieved_rates.h"
#include "stepcast/analyze/culprits.h"
#include "stepcast/analyze/forecast.h"
#include "stepcast/analyze/make_forecast.h"
#include "stepcast/analyze/operator_times.h"
#include "stepcast/analyze/step_binding.h"
#include "stepcast/base/result.h"
#include "stepcast/predict/replay.h"
#include "stepcast/sources/trace_set.h"

namespace stepcast {

// What was read of one rank.
struct ReplayInput {
  std::optional<std::int32_t> rank{};
  std::optional<std::int32_t> world_size{};
  std::string profiler;                          // file
  std::optional<std::string> execution_trace{};  // file
  std::optional<std::string> device{};
  std::uint64_t events = 0;
  std::map<std::string, std::uint64_t> skipped{};  // events by reason
  std::vector<SpecialStep> special_steps{};        // of the whole file
};

// A delay learned from operations that did not wait.
struct ReplayConstant {
  std::string name{};  // "launch delay from the call's end, cudaLaunchKernel -> kernel"
  double value_us = 0;
  std::uint32_t clean = 0;  // operations it was learned from
  std::uint32_t all = 0;    // operations of that kind
  bool fallback = false;    // none was clean
};

struct ReplayAnalysis {
  // One class per recorded rank each; notes stand in `simulated`.
  Forecast simulated, measured;
  std::vector<ReplayInput> inputs;         // [rank class]
  std::vector<ShapeGroup> shape_groups{};  // of the steps of the files; empty: one shape, or it is not known
  std::vector<ReplayedRank> ranks;         // [rank class]
  std::vector<RecordedStepFacts> facts;    // [rank class]
  // What holds the simulated step back: who and what it waits for, and what would shorten it.
  StepCulprits culprits;
  StepBinding binding{};
  std::vector<OperatorComparison> operators{};  // that differ most across ranks
  std::vector<AwaitedOperator> awaited{};       // CPU operators that GPUs wait for
  std::vector<GroupTraffic> groups{};           // collectives by process group
  AchievedRates rates;
  // The platform that peaks and links are of: the shipped one with the GPU that recorded.
  std::optional<std::string> platform{};
  // One sentence where ranks are far off their record (is_far_off), with what is not explained of the worst.
  std::optional<std::string> warning{};
  TimePair global_window;                        // earliest step start to the last end
  ErrorSpread kernel_start;                      // of all ranks
  std::vector<CollectiveWait> collective_waits;  // by number in the Program
  // [collective of `simulated`]: longest recorded wait of a member; 0 for a rank alone.
  std::vector<double> recorded_longest_wait_us;
  // [collective of `simulated`][member]: waiting as recorded.
  std::vector<std::vector<double>> measured_wait_us;
  std::vector<ReplayVariant> variants;
  std::vector<ReplayConstant> constants;
  // The published baseline over all ranks: whose stream is the busiest.
  double baseline_ms = 0;
  std::optional<std::uint32_t> baseline_class;
  std::string baseline_stream;

  [[nodiscard]] const ReplayVariant* variant(std::string_view name) const;  // null if there is none
};

// Tasks of a replay with their simulated and measured times, for time lines.
struct ReplayTimes {
  FlatProgram flat;    // refers to the Replay's Program
  const Costs& costs;  // those of the Replay, as the next two
  TaskTimes simulated, measured;
};
[[nodiscard]] Result<ReplayTimes> replay_times(const Replay& replay);

// A critical path to the last end of a step, not of what the traces hold after it. [rank class]
[[nodiscard]] CriticalPathOptions to_end_of_step(const RecordedProgram& recorded, const FlatProgram& flat,
                                                 std::span<const Interval> steps);

struct ReplayAnalysisOptions {
  std::optional<double> samples_per_step{}, tokens_per_step{};  // of all ranks, where known
  const Platform* platform = nullptr;                           // the machine that recorded; null: not known
  ForecastOptions forecast{.collectives = 0, .path_names = 0};  // all of them
};
// `binding`: step_binding() of the replay, which takes as much memory again and is best asked for before its tasks are listed.
[[nodiscard]] ReplayAnalysis analyze_replay(const TraceSet& traces, const Replay& replay,
                                            const ReplayTimes& times, StepBinding binding,
                                            const ReplayAnalysisOptions& options = {});

}  // namespace stepcast
