// Any bytes as a CSV file of measured LLM runs: an error of one line, or runs whose layouts are checked and
// whose memory is forecast without harm.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "stepcast/workload/memory.h"

#include "calibrate/llm_runs.h"
#include "lab/run_scores.h"

namespace {
void require(bool condition) {
  if (!condition) std::abort();
}
void require_sentence(const stepcast::Error& error) {
  require(!error.message().empty() && error.message().find('\n') == std::string::npos);
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stepcast;
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  (void)looks_like_llm_runs(text);
  // The table of MLPerf's BERT is turned into such rows.
  (void)looks_like_bert_runs(text);
  if (const Result<std::vector<LlmRun>> bert = parse_bert_runs(text, "fuzz"); !bert.ok()) {
    require_sentence(bert.error());
  }
  const Result<std::vector<LlmRun>> runs = parse_llm_runs(text, "fuzz");
  if (!runs.ok()) {
    require_sentence(runs.error());
    return 0;
  }
  int forecasts = 0;
  for (const LlmRun& run : *runs) {
    require(run.iter_time_ms > 0 && std::isfinite(run.iter_time_ms) && run.line >= 2 && run.n_gpus >= 1);
    require(!run.set.empty());
    const Status status = check(run.layout, run.model);
    if (!status.ok()) {
      require_sentence(status.error());
      continue;
    }
    // Thousands of layers are possible and slow.
    if (run.model.n_layers > 200 || ++forecasts > 8) continue;
    const Result<MemoryForecast> memory = memory_forecast(run.model, run.layout, Bytes{80e9});
    if (!memory.ok()) {
      require_sentence(memory.error());
      continue;
    }
    require(std::isfinite(memory->peak().value()) && memory->peak().value() > 0);
  }
  return 0;
}
