// Scores whether command lines of the test cases of Megatron-LM are read unchanged: each is forecast, or refused because a
// setting is not modelled.
//
//   read              of every file the lines that were forecast_n, refused_n (something named is not modelled) and
//                     failed_n, and their sum's right_percent; reasons are named with the lines that have them
//   flags             flags of Megatron's argument parser, and unknown_n of them that the table of flags does not have
//   step_time         forecasts against measured medians, by GPU; ms. Test cases are small models on eight GPUs, whose
//                     steps are work of the host
//   median_of_others  the median of the other lines of that GPU instead
//   host_bound        of lines with a hidden size below 2,048 the half that constants of hosts are not fitted to, by family
//                     (dense GPT, experts, BERT: groups) and GPU; host_bound_layout_left_out: times what lines of other
//                     layouts in the half that is fitted say; and host_bound_median_of_others
//
// "shipped": nothing is fitted here.
#pragma once

#include <filesystem>

#include "stepcast/api/stepcast.h"
#include "stepcast/base/csv_rows.h"
#include "stepcast/base/result.h"

#include "lab/suite.h"

namespace stepcast {

// A row of these tables. Lines without a GPU are asked of the newer of the two that the others ran on.
[[nodiscard]] PredictRequest request_of_line(const CsvRows& rows);

// `data`: a folder with megatron_lines.csv, and megatron_lines_no_gpu_count.csv and megatron_arguments.csv where they are.
[[nodiscard]] Result<SuiteResult> validate_megatron_lines(const std::filesystem::path& data,
                                                          const SuiteOptions& options = {});

}  // namespace stepcast
