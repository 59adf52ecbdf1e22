// Scores of measured runs other than step times: peak memory, the published composition, BERT of MLPerf on one node.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"

#include "calibrate/llm_runs.h"
#include "lab/run_platforms.h"
#include "lab/suite.h"

namespace stepcast {

// Peak memory of runs with a peak in their note ("memory 67.0 GiB"), by set, in GiB. Frameworks report the memory taken by
// their allocator, without the context and the buffers of the collective library (StageMemory::in_allocator). No sets if no
// run states it.
[[nodiscard]] TestScore score_memory(const std::vector<PredictedRun>& runs);
// Runs that ran should fit. By set: the share that fits by our forecast (`fits_pct`) and the number that does not
// (`too_big_n`). The latter are named in `skipped` with their forecast memory.
[[nodiscard]] TestScore score_runs_that_ran(const std::vector<PredictedRun>& runs, RunPlatforms& platforms,
                                            std::vector<Skipped>& skipped);

// Measured steps of language models against the composition of Zhang et al. (published_forecast.h) from our prices, for runs
// with a formula. `ours_mape` of a set is the error of our forecasts of the same runs.
[[nodiscard]] TestScore score_published_composition(const std::vector<PredictedRun>& runs,
                                                    RunPlatforms& platforms);

// Peaks of allocated memory stated in tables of $STEPCAST_DATA/field against forecasts, in GiB. One set for each table in
// `folder`: megatron_lines.csv, with the allocation printed by the last rank; and ab_pairs.csv, both sides of the pairs of
// Megatron Bridge with printed layout and batch, for the stage with the most memory. Settings in words instead of flags, and
// rows without a forecast, are left out.
[[nodiscard]] Result<std::vector<SetScore>> stated_peaks(const std::filesystem::path& folder);

// BERT of MLPerf on one node of 2 to 16 GPUs, rows of $STEPCAST_DATA/iterations/mlperf_bert_single_node.csv: scaling of one
// software stack over GPUs, their number and the batch.
inline constexpr std::string_view kBertNodeSet = "mlperf_bert_single_node";

// True if the file's header is that of these rows.
[[nodiscard]] bool looks_like_bert_runs(std::string_view text);

// The rows as runs of language models of the set above. Settings missing in the table are those of NVIDIA's benchmark in
// other rows: data parallel, sequences of 256 tokens on average packed by two into 512, CUDA graphs, fp8 from Hopper on and
// fp16 before. Errors name line and column, as in parse_llm_runs().
[[nodiscard]] Result<std::vector<LlmRun>> parse_bert_runs(std::string_view text, const std::string& name,
                                                          std::vector<std::string>* left_out = nullptr);

// Runs of that set, one set for each number of GPUs. Forecasts are scaled by one factor for the stack: the median over runs
// with other numbers of GPUs.
[[nodiscard]] TestScore score_bert_scaling(const std::vector<PredictedRun>& runs);

}  // namespace stepcast
