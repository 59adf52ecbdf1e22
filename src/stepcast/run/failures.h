// What interrupts a job on many GPUs, and how often: rates by cause, from a published job or from a log of interruptions.
//
//   STEPCAST_ASSIGN(const FailureRates rates, read_failures("default"));    // or the name of a log
//   rates.causes[0].name, rates.causes[0].mean_time_h                       "gpu", hours of one GPU between two of them
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"

namespace stepcast {

// What fails: there is one switch for each two nodes of 8 GPUs, as in the published job.
enum class FailureUnit : std::uint8_t { gpu, node, rack_switch };

struct FailureCause {
  std::string name{};
  FailureUnit unit = FailureUnit::gpu;
  double mean_time_h = 0;            // of one unit
  double events = 0;                 // in the log
  std::optional<double> downtime_s;  // mean until training goes on; nothing: Recovery says it
  double nodes_lost = 0;             // that need repair, for each interruption
  double gpu_hours = 0;              // that the log covers; 0: no log
  // Of the Gamma posterior: its part of 0.5 for all causes (Jeffreys), 0 where the log ends with an interruption.
  double prior_events = 0;
  double downtime_error = 0;  // standard error of the log's mean downtime over it
  double of_gpus = 1;         // the share of the job's GPUs that it strikes: those of one pool
  double gpus_per_node = 0;   // of these; 0: as the job has
};

struct FailureRates {
  std::string source{};  // "default", or the file
  std::vector<FailureCause> causes{};
};

// 419 unexpected interruptions of 16,384 H100 in 54 days (Llama 3, arXiv 2407.21783, table 5).
[[nodiscard]] FailureRates default_failures();

// CSV with a row for each interruption: time_h (since the job began, ascending), n_gpus (of the job up to then), cause (a
// word), and, where known, downtime_min (until it trains again) and nodes_lost (0 where left out). A last row with the
// cause `end` says when the log ended without one. Rates count GPU-hours between the rows. Errors name line and column.
[[nodiscard]] Result<FailureRates> parse_failure_log(std::string_view text, const std::string& name);

// "default", or a file of that form.
[[nodiscard]] Result<FailureRates> read_failures(const std::string& word);

}  // namespace stepcast
