#include "calibrate/detail/llm_run_checks.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "stepcast/base/nearest_word.h"
#include "stepcast/base/text.h"
#include "stepcast/workload/framework_rule.h"

namespace stepcast::detail {
namespace {

// Rejects misspelt names of frameworks ("megatorn"). "JAX" and lists of the components of a submission count as other
// software.
Status check_framework(const CsvRows& rows) {
  const std::string_view text = rows.cell("framework");
  if (text.find_first_of(" ,;/") != std::string::npos || parse_framework(text) != Framework::unknown)
    return Ok{};
  const std::string name = lower(text);
  const std::size_t letters = std::min(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz"), name.size());
  const std::string_view word = std::string_view{name}.substr(0, letters);
  if (word == "torch" || word == "pytorch") return Ok{};  // a version of PyTorch
  const auto meant = nearest_word(word, {"megatron", "nemo", "torchtitan", "fsdp", "deepspeed", "libai"});
  if (!meant) return Ok{};
  return rows.error("framework")
      .found(fmt::format("`{}`", text))
      .advice(fmt::format("did you mean {}?", *meant));
}

Status check_norm(const CsvRows& rows) {
  const std::string name = spelling_core(rows.cell("norm"));
  if (name.empty() || name == "layernorm" || name == "rmsnorm") return Ok{};
  return rows.error("norm").found(fmt::format("`{}`", rows.cell("norm"))).expected("layernorm or rmsnorm");
}

// Checks that redundant columns of a row agree.
Status check_counts(const CsvRows& rows, const LlmRun& run) {
  const Degrees& degrees = run.layout.degrees;
  if (rows.cell("data_parallel").empty()) return Ok{};
  const double ranks = static_cast<double>(degrees.tensor) * static_cast<double>(degrees.pipeline) *
                       static_cast<double>(degrees.context) * static_cast<double>(degrees.data);
  if (ranks != static_cast<double>(run.n_gpus)) {
    return rows.error("n_gpus")
        .found(fmt::format("{}", run.n_gpus))
        .expected(
            fmt::format("{:.0f}, the product of tensor_parallel, pipeline_parallel, context_parallel and "
                        "data_parallel",
                        ranks));
  }
  STEPCAST_ASSIGN(const std::int64_t accumulated, rows.extent("grad_accum", 0, 0));
  const Batch& batch = run.layout.batch;
  if (accumulated == 0 || batch.micro_batch_sequences == 0) return Ok{};
  const double sequences = static_cast<double>(batch.micro_batch_sequences) *
                           static_cast<double>(accumulated) * static_cast<double>(degrees.data);
  if (sequences == static_cast<double>(batch.global_batch_sequences)) return Ok{};
  return rows.error("grad_accum")
      .found(fmt::format("{}", accumulated))
      .expected(
          fmt::format("global_batch_sequences, {}, as micro_batch_sequences times data_parallel times it, "
                      "which is {:.0f}",
                      batch.global_batch_sequences, sequences));
}

}  // namespace

Status check_run(const CsvRows& rows, const LlmRun& run) {
  STEPCAST_TRY(check_framework(rows));
  STEPCAST_TRY(check_norm(rows));
  return check_counts(rows, run);
}

}  // namespace stepcast::detail
