// What a step would gain if one resource were faster: kernels of a class, links, copies, the host.
//
//   const Sensitivity s = value(sensitivity({.flat = flat, .costs = costs, .times = times, ...}));
//   s.resources.front().resource, .elasticity, .saved_ms      // the one of which 10 % buy most
//
// Elasticity is the share of the step that lies on the critical path as work of the resource: if all of its work took
// 1 % longer, the step would take so many hundredths of a percent longer, as long as the path stays where it is. Where
// it does not, the simulated step of the changed times says what is left.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/analyze/critical_path.h"
#include "stepcast/analyze/flat_program.h"
#include "stepcast/analyze/forecast.h"
#include "stepcast/analyze/task_times.h"
#include "stepcast/base/result.h"
#include "stepcast/predict/predicted_step.h"
#include "stepcast/program/program.h"
#include "stepcast/retrace/trace_prediction.h"
#include "stepcast/simulate/engine.h"

namespace stepcast {

// Time of the step with other times of the same Program, in us.
using StepOfCosts = std::function<Result<double>(const Costs&)>;

struct SensitivityInput {
  const FlatProgram& flat;
  const Costs& costs;
  const TaskTimes& times;
  std::span<const double> rank_start_us;  // [rank class]
  CriticalPathOptions path;               // to the end of the step whose length `step_us` gives
  StepOfCosts step_us;
  std::vector<bool> crosses_nodes;                     // [GroupId]; empty: no group does
  std::function<bool(const EdgeInfo&)> is_host_delay;  // delays that a faster host shortens
  bool has_host_segments = false;  // stretches of the host are its work, whoever priced them
  // Where no path of one step sets it but a row of steps: what 0.1 % of a resource saves is its share.
  bool in_a_row = false;
};

// Errors: those of `step_us`.
[[nodiscard]] Result<Sensitivity> sensitivity(const SensitivityInput& input);

// The same Costs with the times of one resource, as sensitivity() names it, scaled.
[[nodiscard]] Costs with_resource(const SensitivityInput& input, const std::string& resource, double factor);

// Sensitivities of steps that were predicted: of a described one, and of recorded ranks.
[[nodiscard]] Result<Sensitivity> step_sensitivity(const PredictedStep& step);

// Of a Program that was simulated with `costs`. `crosses_nodes` and `has_host_segments`: see SensitivityInput.
[[nodiscard]] Result<Sensitivity> program_sensitivity(const Program& program, const Costs& costs,
                                                      const Timeline& timeline,
                                                      std::vector<bool> crosses_nodes,
                                                      bool has_host_segments = false);

// Of a step that is no Program: `step_ms` forecasts it with one part, as `--what-if` calls it, so many times as fast; with an
// empty part as it is.
[[nodiscard]] Result<Sensitivity> what_if_sensitivity(
    std::span<const std::string_view> parts,
    const std::function<Result<double>(std::string_view part, double speed)>& step_ms);

// Of the longest step of all ranks; links between nodes are those of a platform with so many GPUs in a node.
[[nodiscard]] Result<Sensitivity> trace_sensitivity(const TracePrediction& prediction,
                                                    const TracePredictionOptions& options,
                                                    const FlatProgram& flat, const TaskTimes& times);

// Adds the row of the batch, by the difference between the steps of two batches.
void add_batch(Sensitivity& sensitive, double batch, double larger_batch, double step_ms,
               double larger_step_ms);

}  // namespace stepcast
