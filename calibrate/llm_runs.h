// Measured training steps of language models, one per row of a CSV file with the header of
// $STEPCAST_DATA/iterations/llm_runs.csv.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

struct LlmRun {
  std::string set;  // who measured it
  std::string platform, gpu, framework, dtype, note;
  Transformer model;
  Layout layout;
  std::int64_t n_gpus = 1, gpus_per_node = 0;  // 0: not stated
  std::optional<double> inter_node_bandwidth_Gbps;
  double iter_time_ms = 0;
  std::optional<double> memory_GiB;  // peak, if the note states it
  std::uint32_t line = 0;
  std::vector<std::string> assumed;           // fields that the row leaves open, with the assumed values
  bool embedding_and_loss_as_layers = false;  // each counts as a layer when layers are dealt out to stages
  // Known to behave unlike the rest: row-wise float8 with plain tensor parallelism, context parallelism >= 4.
  bool apart = false;
};

// A second table with further columns of runs. Its column `run_line` is the line of the run (the header is line 1).
struct RunRecipes {
  std::string text, name;
};

// Errors name line and column: a missing column, an invalid number or word, a step without time, no rows, a recipe without a run.
// With `left_out`, unreadable rows are skipped and their errors stored there; only a file without a valid row is an error. The
// recipes of NAME_runs.csv are read from NAME_recipes.csv in the same folder, if it exists.
[[nodiscard]] Result<std::vector<LlmRun>> read_llm_runs(const std::filesystem::path& path,
                                                        std::vector<std::string>* left_out = nullptr);
[[nodiscard]] Result<std::vector<LlmRun>> parse_llm_runs(std::string_view text, const std::string& name,
                                                         const RunRecipes* recipes = nullptr,
                                                         std::vector<std::string>* left_out = nullptr);

// True if the file's header is that of LLM runs.
[[nodiscard]] bool looks_like_llm_runs(std::string_view text);

}  // namespace stepcast
