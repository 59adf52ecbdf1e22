// Scores whether command lines of the test cases of Megatron-LM are read unchanged: each is forecast, or refused because a
// setting is not modelled.
//
//   read              of every file the number of lines forecast_n, refused_n (a named setting is not modelled) and failed_n,
//                     and right_percent of the sum; reasons are named with their lines
//   flags             flags in Megatron's argument parser, and unknown_n: those missing in the table of flags
//   step_time         forecasts against measured medians, by GPU; ms. Test cases are small, host-bound models on eight GPUs
//   median_of_others  trivial answer: the median of the other lines of that GPU
//   host_bound        lines with a hidden size below 2,048, the half to which constants of hosts are not fitted, by family
//                     (dense GPT, experts, BERT: groups) and GPU; host_bound_layout_left_out: scaled by the factor of lines
//                     of other layouts in the fitted half; and host_bound_median_of_others
//
// "shipped": nothing is fitted here.
#pragma once

#include <filesystem>

#include "stepcast/api/stepcast.h"
#include "stepcast/base/csv_rows.h"
#include "stepcast/base/result.h"

#include "lab/suite.h"

namespace stepcast {

// The request of a row of these tables. Lines without a GPU use the newer of the two GPUs that the others ran on.
[[nodiscard]] PredictRequest request_of_line(const CsvRows& rows);

// `data`: a folder with megatron_lines.csv, and optionally megatron_lines_no_gpu_count.csv and megatron_arguments.csv.
[[nodiscard]] Result<SuiteResult> validate_megatron_lines(const std::filesystem::path& data,
                                                          const SuiteOptions& options = {});

}  // namespace stepcast
