#include "stepcast/logs/detail/step_columns.h"

#include <algorithm>
#include <iterator>

namespace stepcast::detail {
namespace {

constexpr double kSecondMs = 1e3, kMicrosecondMs = 1e-3;

struct NamedTime {
  std::string_view name;
  TimeColumn column;
};
constexpr NamedTime kTimes[] = {
    {"step_time_ms", {1}},
    {"iter_time_ms", {1}},
    {"iteration_time_ms", {1}},
    {"step_ms", {1}},
    {"ms_per_step", {1}},
    {"ms_per_iter", {1}},
    {"time_per_step_ms", {1}},
    {"time_per_iteration_ms", {1}},
    {"elapsed time per iteration (ms)", {1}},
    {"elapsed_time_per_iteration_ms", {1}},
    {"step time (ms)", {1}},
    {"iteration time (ms)", {1}},
    {"step_time_us", {kMicrosecondMs}},
    {"step_time_s", {kSecondMs}},
    {"iter_time_s", {kSecondMs}},
    {"iteration_time_s", {kSecondMs}},
    {"step_time_sec", {kSecondMs}},
    {"step_time_seconds", {kSecondMs}},  // MaxText: perf/
    {"step_time_in_seconds", {kSecondMs}},
    {"seconds_per_step", {kSecondMs}},
    {"sec_per_step", {kSecondMs}},
    {"s_per_step", {kSecondMs}},
    {"step time (s)", {kSecondMs}},
    {"iteration time (s)", {kSecondMs}},
    {"time/step (s)", {kSecondMs}},
    {"train_step_timing in s", {kSecondMs}},
    {"iteration-time", {kSecondMs}},              // Megatron
    {"time_metrics/end_to_end(s)", {kSecondMs}},  // TorchTitan
    {"timing_s/step", {kSecondMs}},               // verl
    {"perf/time_per_step", {kSecondMs}},          // verl
    {"train/time(s)", {kSecondMs}},               // verl
    {"throughput/duration", {kSecondMs}},         // levanter
    {"throughput/batches_per_sec", {kSecondMs, true}},
    {"throughput/device/bps", {kSecondMs, true}},  // OLMo-core
    {"steps_per_second", {kSecondMs, true}},
    {"steps_per_sec", {kSecondMs, true}},
    {"iterations_per_second", {kSecondMs, true}},
};
constexpr std::string_view kWithoutUnit[] = {"step_time", "iter_time", "iteration_time", "step time",
                                             "iteration time"};
constexpr std::string_view kSteps[] = {"step",  "iteration",   "iter",     "global_step", "steps",
                                       "_step", "global step", "batch_id", "iterations",  "current_steps"};
constexpr std::string_view kBatches[] = {"global_batch_size", "global_batch_sequences", "batch_size",
                                         "global batch size", "batch-size"};
constexpr std::string_view kRates[] = {"tflops_per_gpu", "tflop/s/gpu", "tflops"};
constexpr std::string_view kClocks[] = {"wall time", "_timestamp",    "_runtime",
                                        "wall_time", "relative time", "relative time (process)",
                                        "timestamp", "elapsed_time"};

bool is_called(std::string_view column, std::string_view name) {
  if (!column.ends_with(name)) return false;
  column.remove_suffix(name.size());
  return column.empty() || column.ends_with(" - ") || column.ends_with('/');
}

template <class Names>
bool is_one_of(std::string_view column, const Names& names) {
  return std::any_of(std::begin(names), std::end(names),
                     [&](std::string_view name) { return is_called(column, name); });
}

}  // namespace

std::optional<TimeColumn> time_column(std::string_view name) {
  for (const NamedTime& known : kTimes)
    if (is_called(name, known.name)) return known.column;
  return std::nullopt;
}
bool is_time_without_unit(std::string_view name) { return is_one_of(name, kWithoutUnit); }
bool is_step_column(std::string_view name) { return is_one_of(name, kSteps); }
bool is_batch_column(std::string_view name) { return is_one_of(name, kBatches); }
bool is_rate_column(std::string_view name) { return is_one_of(name, kRates); }
bool is_clock_column(std::string_view name) { return is_one_of(name, kClocks); }

}  // namespace stepcast::detail
