// Builds the Forecast of a recommendation model from its predicted step.
#include "stepcast/recommend/dlrm_forecast.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/analyze/flat_program.h"
#include "stepcast/analyze/sensitivity.h"
#include "stepcast/analyze/step_forecast.h"
#include "stepcast/analyze/task_times.h"
#include "stepcast/base/duration_text.h"
#include "stepcast/base/interval.h"
#include "stepcast/base/units.h"

namespace stepcast {

// Parameters include the tables. Memory is that of the fullest rank.
Forecast dlrm_forecast(const DlrmStepModel& steps, const DlrmStep& step, const Platform& platform,
                       const ShardingPlan& plan, const ForecastOptions& options) {
  const Dlrm& model = steps.model();
  const DlrmTraining& training = steps.training();
  Forecast asked;
  asked.kind = "dlrm";
  asked.model = model.name;
  double parameters = model.dense_parameters();
  for (const EmbeddingTable& t : model.tables)
    parameters += static_cast<double>(t.rows) * static_cast<double>(t.dim);
  asked.parameters = static_cast<std::uint64_t>(parameters);
  asked.platform = platform.name;
  asked.gpu = platform.device.name;
  asked.n_gpus = static_cast<std::uint64_t>(steps.n_ranks());
  asked.layout = {{"stack", std::string{to_string(training.stack)}},
                  {"sharding", plan.name.empty() ? "hybrid" : plan.name},
                  {"tables", static_cast<double>(model.tables.size())},
                  {"global_batch_samples", static_cast<double>(training.global_batch)},
                  {"dtype", std::string{to_string(training.dtype)}},
                  {"table_optimizer", std::string{to_string(training.table_optimizer)}}};
  asked.coverage = forecast_coverage(steps.coverage());
  asked.throughput.samples_per_step = static_cast<double>(training.global_batch);
  asked.throughput.model_flops = model.flops_per_sample() * static_cast<double>(training.global_batch);
  asked.throughput.hardware_flops = asked.throughput.model_flops;
  if (const auto peak = platform.device.peak(training.dtype))
    asked.throughput.peak_tflops_per_gpu = peak->value() * 1e-12;
  const DlrmRank& worst = step.ranks[static_cast<std::size_t>(step.worst_rank)];
  ForecastMemory memory;
  memory.peak_memory_GiB = worst.memory_bytes / kGiB;
  memory.available_GiB = step.available_bytes / kGiB;
  memory.margin_GiB = memory.available_GiB - memory.peak_memory_GiB;
  memory.worst_stage = 0;
  memory.verdict = !step.fits                                        ? "does_not_fit"
                   : memory.margin_GiB < 0.05 * memory.available_GiB ? "tight"
                                                                     : "fits";
  memory.stages.push_back({.weights_GiB = worst.table_bytes / kGiB,
                           .working_GiB = (worst.memory_bytes - worst.table_bytes) / kGiB,
                           .total_GiB = worst.memory_bytes / kGiB});
  asked.memory = memory;
  if (memory.margin_GiB < 0) {
    asked.notes.push_back(fmt::format("rank {} needs {:.1f} GiB, but has {:.1f}", step.worst_rank,
                                      memory.peak_memory_GiB, memory.available_GiB));
  } else if (!step.fits) {
    asked.notes.push_back(fmt::format("the tables in host memory need more than the {:.0f} GiB of a node",
                                      step.host_available_bytes / kGiB));
  }
  asked.notes.push_back(fmt::format("Lower bound at peak rates: {}", duration_text(step.bound_us * 1e-3)));
  const FlatProgram flat{steps.program()};
  const TaskTimes times = TaskTimes::simulated(flat, steps.timeline());
  const std::vector<Interval> windows(flat.class_count(), Interval{0, steps.timeline().end_us()});
  const std::vector<double> starts(flat.class_count(), 0.0);
  return make_forecast(
      {.flat = flat, .costs = steps.costs(), .times = times, .windows = windows, .rank_start_us = starts},
      step.time, std::move(asked), options);
}

Result<Sensitivity> dlrm_sensitivity(const DlrmStepModel& steps) {
  return program_sensitivity(
      steps.program(), steps.costs(), steps.timeline(),
      std::vector<bool>(steps.program().groups().size(), steps.n_ranks() > steps.gpus_per_node()),
      /*has_host_segments=*/true);
}

}  // namespace stepcast
