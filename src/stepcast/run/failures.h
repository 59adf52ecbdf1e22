// Failure rates of a job by cause: from a published job or from the user's log of interruptions.
//
//   STEPCAST_ASSIGN(const FailureRates rates, read_failures("default"));    // or the name of a log
//   rates.causes[0].name, rates.causes[0].mean_time_h      "gpu", mean hours of one GPU between two failures
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"

namespace stepcast {

// The unit that fails. There is one switch per two nodes of 8 GPUs, as in the published job.
enum class FailureUnit : std::uint8_t { gpu, node, rack_switch };

// Rate and consequences of one cause.
struct FailureCause {
  std::string name{};
  FailureUnit unit = FailureUnit::gpu;
  double mean_time_h = 0;            // mean time between failures of one unit
  double events = 0;                 // number of interruptions in the log
  std::optional<double> downtime_s;  // mean until training continues; empty: from Recovery
  double nodes_lost = 0;             // nodes that need repair per interruption
  double gpu_hours = 0;              // covered by the log; 0: no log
  // Prior events of the Gamma posterior: 0.5 for all causes together (Jeffreys prior); 0 if the log ends with an interruption.
  double prior_events = 0;
  double downtime_error = 0;  // standard error of the mean downtime, relative to the mean
  double of_gpus = 1;         // share of the GPUs of the job that this cause affects: those of one pool
  double gpus_per_node = 0;   // in that pool; 0: as in the job
};

// All causes of interruptions.
struct FailureRates {
  std::string source{};  // "default", or the name of the file
  std::vector<FailureCause> causes{};
};

// Rates of a published job: 419 unexpected interruptions of 16,384 H100 in 54 days (Llama 3, arXiv 2407.21783, table 5).
[[nodiscard]] FailureRates default_failures();

// Parses a CSV log with one row per interruption. Columns: time_h (since the start of the job, ascending), n_gpus (of the job
// until then), cause (one word); optional downtime_min (until training continues) and nodes_lost (default 0). A last row with
// the cause `end` gives the end of a log that does not end with an interruption. Rates use the GPU-hours between the rows.
// Errors name line and column.
[[nodiscard]] Result<FailureRates> parse_failure_log(std::string_view text, const std::string& name);

// Reads "default" or a log file.
[[nodiscard]] Result<FailureRates> read_failures(const std::string& word);

}  // namespace stepcast
