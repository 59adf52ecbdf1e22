// Scores of measured runs beside their steps: peaks of memory, the published composition, one node of MLPerf's BERT.
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

// Runs whose note says a peak ("memory 67.0 GiB"), by set, in GiB. Frameworks report what their allocator took from
// the device: without the context and without the buffers of the collective library
// (StageMemory::in_allocator). No sets where no run says it.
[[nodiscard]] TestScore score_memory(const std::vector<PredictedRun>& runs);
// Runs that ran are to fit: by set the share that does (`fits_pct`) and the number that is said not to
// (`too_big_n`). Those are named in `skipped` with what they are said to take.
[[nodiscard]] TestScore score_runs_that_ran(const std::vector<PredictedRun>& runs, RunPlatforms& platforms,
                                            std::vector<Skipped>& skipped);

// Measured steps of language models against the composition of Zhang et al. (published_forecast.h) from our prices: the
// runs that it has a formula for; `ours_mape` of a set is the error of our own forecasts of the same runs.
[[nodiscard]] TestScore score_published_composition(const std::vector<PredictedRun>& runs,
                                                    RunPlatforms& platforms);

// Peaks of allocated memory that tables of $STEPCAST_DATA/field state, against those forecast, in GiB. A set for each table of
// `folder`: megatron_lines.csv, where the last rank writes what it allocated, and ab_pairs.csv, both sides of the pairs of
// Megatron Bridge whose layout and batch are printed, the fullest stage. Settings in words, not flags, are left out, and so
// is what is not forecast.
[[nodiscard]] Result<std::vector<SetScore>> stated_peaks(const std::filesystem::path& folder);

// MLPerf's BERT on one node of 2 to 16 GPUs, rows of $STEPCAST_DATA/iterations/mlperf_bert_single_node.csv: how one stack
// scales over GPUs, their number and the batch.
inline constexpr std::string_view kBertNodeSet = "mlperf_bert_single_node";

// True if the file's header is that of these rows.
[[nodiscard]] bool looks_like_bert_runs(std::string_view text);

// The rows as runs of language models of the set above. What the table leaves open is NVIDIA's benchmark as its other
// rows have it: data parallel, sequences of 256 tokens on average that are packed two to 512, replayed from a graph, in
// fp8 from Hopper on and in fp16 before. Errors name line and column, as of parse_llm_runs().
[[nodiscard]] Result<std::vector<LlmRun>> parse_bert_runs(std::string_view text, const std::string& name,
                                                          std::vector<std::string>* left_out = nullptr);

// Runs of that set, a set for every number of GPUs, each with one factor for the stack: the median over the runs of all
// other numbers of GPUs.
[[nodiscard]] TestScore score_bert_scaling(const std::vector<PredictedRun>& runs);

}  // namespace stepcast
