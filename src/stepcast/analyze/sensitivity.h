// The gain in step time if one resource were faster: kernels of a class, links, copies, the host.
//
//   const Sensitivity s = value(sensitivity({.flat = flat, .costs = costs, .times = times, ...}));
//   s.resources.front().resource, .elasticity, .saved_ms      // the resource for which 10 % save most
//
// The elasticity of a resource is the share of its work in the critical path: if all its work took 1 %
// longer, the step would take elasticity % longer, as long as the critical path does not change. If it
// changes, the gain follows from simulating the step with the changed times.
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

// The step time in microseconds if the same Program had other costs.
using StepOfCosts = std::function<Result<double>(const Costs&)>;

// The step to analyse.
struct SensitivityInput {
  const FlatProgram& flat;
  const Costs& costs;
  const TaskTimes& times;
  std::span<const double> rank_start_us;  // [rank class]
  // The options of the path to the end of the step that `step_us` measures.
  CriticalPathOptions path;
  StepOfCosts step_us;
  std::vector<bool> crosses_nodes;                     // [GroupId]; empty: no group crosses nodes
  std::function<bool(const EdgeInfo&)> is_host_delay;  // delays that a faster host shortens
  // True if every cpu_segment counts as host work. Otherwise only tasks with HostWork do.
  bool has_host_segments = false;
  // True if the step time is that of a steady series of steps, which no critical path of one step determines.
  // The share of a resource is then the difference quotient for 0.1 % faster times.
  bool in_a_row = false;
};

// One row per resource on the critical path, the largest gain first. Two or three simulations per resource.
// Errors: those of `step_us`.
[[nodiscard]] Result<Sensitivity> sensitivity(const SensitivityInput& input);

// A copy of the costs with the times of one resource multiplied by `factor`. Resources have the names of
// sensitivity().
[[nodiscard]] Costs with_resource(const SensitivityInput& input, const std::string& resource, double factor);

// The sensitivity of a step that was predicted from a description.
[[nodiscard]] Result<Sensitivity> step_sensitivity(const PredictedStep& step);

// The sensitivity of a Program that was simulated with `costs`. `crosses_nodes`, `has_host_segments`: see
// SensitivityInput.
[[nodiscard]] Result<Sensitivity> program_sensitivity(const Program& program, const Costs& costs,
                                                      const Timeline& timeline,
                                                      std::vector<bool> crosses_nodes,
                                                      bool has_host_segments = false);

// The sensitivity of a step without a Program. `step_ms(part, speed)` forecasts the step with one part of
// `--what-if` at `speed` times its speed; an empty part means no change.
[[nodiscard]] Result<Sensitivity> what_if_sensitivity(
    std::span<const std::string_view> parts,
    const std::function<Result<double>(std::string_view part, double speed)>& step_ms);

// The sensitivity of the longest step of all recorded ranks. Which links are between nodes follows from the
// number of GPUs per node of the target platform.
[[nodiscard]] Result<Sensitivity> trace_sensitivity(const TracePrediction& prediction,
                                                    const TracePredictionOptions& options,
                                                    const FlatProgram& flat, const TaskTimes& times);

// Adds a row for the batch, from the difference between the step times of two batches, at its place in the
// order.
void add_batch(Sensitivity& sensitive, double batch, double larger_batch, double step_ms,
               double larger_step_ms);

}  // namespace stepcast
