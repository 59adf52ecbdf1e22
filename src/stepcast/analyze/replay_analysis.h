// The analysis of a replay: a Forecast of the simulated step, one of the measured step, and how close they
// are. Contains values only, so the traces, the Program and its times need not be kept.
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

// The files that were read for one rank, and what they contain.
struct ReplayInput {
  std::optional<std::int32_t> rank{};
  std::optional<std::int32_t> world_size{};
  std::string profiler;                          // name of the profiler trace
  std::optional<std::string> execution_trace{};  // name of the execution trace
  std::optional<std::string> device{};
  std::uint64_t events = 0;                        // events in the profiler trace
  std::map<std::string, std::uint64_t> skipped{};  // number of events that were not used, by reason
  std::vector<SpecialStep> special_steps{};        // all special steps in the file
};

// A delay learned from operations that did not wait for anything else.
struct ReplayConstant {
  std::string name{};  // "launch delay from the call's end, cudaLaunchKernel -> kernel"
  double value_us = 0;
  std::uint32_t clean = 0;  // number of operations it was learned from
  std::uint32_t all = 0;    // operations of that kind
  bool fallback = false;    // no operation was clean: derived from others
};

// The complete result. Vectors marked [rank class] have one entry per recorded rank.
struct ReplayAnalysis {
  // One class per recorded rank in each; notes are in `simulated`.
  Forecast simulated, measured;
  std::vector<ReplayInput> inputs;  // [rank class]
  // The shapes of the recorded steps. Empty: all steps have one shape, or shapes are unknown.
  std::vector<ShapeGroup> shape_groups{};
  std::vector<ReplayedRank> ranks;       // [rank class]
  std::vector<RecordedStepFacts> facts;  // [rank class]
  // What delays the simulated step: the rank and resource it waits for, and the change that would shorten it
  // most.
  StepCulprits culprits;
  StepBinding binding{};
  std::vector<OperatorComparison> operators{};  // the operators that differ most between ranks
  std::vector<AwaitedOperator> awaited{};       // CPU operators that GPUs wait for
  std::vector<GroupTraffic> groups{};           // collectives by process group
  AchievedRates rates;
  // The platform of the peaks and links: the shipped platform with the GPU of the recording.
  std::optional<std::string> platform{};
  // A sentence about ranks that are far off their record (is_far_off), with the unexplained part of the worst
  // one.
  std::optional<std::string> warning{};
  TimePair global_window;                        // earliest step start to the last end
  ErrorSpread kernel_start;                      // over all ranks
  std::vector<CollectiveWait> collective_waits;  // by number of the collective in the Program
  // [collective of `simulated`] the longest recorded wait of a member; 0 if only one rank was recorded.
  std::vector<double> recorded_longest_wait_us;
  // [collective of `simulated`][member] recorded waiting.
  std::vector<std::vector<double>> measured_wait_us;
  std::vector<ReplayVariant> variants;
  std::vector<ReplayConstant> constants;
  // The published baseline over all ranks: the class and name of the busiest stream.
  double baseline_ms = 0;
  std::optional<std::uint32_t> baseline_class;
  std::string baseline_stream;

  // The variant with this name; a null pointer if there is none.
  [[nodiscard]] const ReplayVariant* variant(std::string_view name) const;
};

// The tasks of a replay with their simulated and measured times, for timelines. Must not outlive the Replay.
struct ReplayTimes {
  FlatProgram flat;    // refers to the Program of the Replay
  const Costs& costs;  // of the Replay
  TaskTimes simulated, measured;
};
// Error: the measured times do not match the program.
[[nodiscard]] Result<ReplayTimes> replay_times(const Replay& replay);

// The options for a critical path to the end of the step that ends last. Traces may contain work after that
// end, which the path must not lead to. `steps`: one interval per rank class.
[[nodiscard]] CriticalPathOptions to_end_of_step(const RecordedProgram& recorded, const FlatProgram& flat,
                                                 std::span<const Interval> steps);

struct ReplayAnalysisOptions {
  std::optional<double> samples_per_step{}, tokens_per_step{};  // over all ranks, if known
  const Platform* platform = nullptr;                           // the machine of the recording; null: unknown
  ForecastOptions forecast{.collectives = 0, .path_names = 0};  // all of them
};
// `binding`: the result of step_binding() for this replay. Compute it before replay_times(), because both
// need much memory.
[[nodiscard]] ReplayAnalysis analyze_replay(const TraceSet& traces, const Replay& replay,
                                            const ReplayTimes& times, StepBinding binding,
                                            const ReplayAnalysisOptions& options = {});

}  // namespace stepcast
