// MLPerf's BERT on one node of 2 to 16 GPUs, rows of $STEPCAST_DATA/iterations/mlperf_bert_single_node.csv: how one stack
// scales over GPUs, their number and the batch.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"

#include "calibrate/llm_runs.h"
#include "lab/run_platforms.h"

namespace stepcast {

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
