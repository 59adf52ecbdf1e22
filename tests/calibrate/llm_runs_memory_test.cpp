// Memory forecasts of measured runs: what ran must not be forecast as too large.
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "stepcast/platform/platform_file.h"
#include "stepcast/workload/memory.h"

#include "calibrate/llm_runs.h"
#include "lab/run_platforms.h"
#include "tests/support/data.h"

namespace stepcast::llm_runs_memory_test {
namespace {

constexpr double kGiB = 1073741824.0;

std::vector<LlmRun> measured_runs() {
  Result<std::vector<LlmRun>> runs = read_llm_runs(*test::measured_data() / "iterations" / "llm_runs.csv");
  EXPECT_TRUE(runs.ok()) << runs.error().message();
  return runs.ok() ? std::move(*runs) : std::vector<LlmRun>{};
}

std::string name_of(const LlmRun& run) {
  const Layout& l = run.layout;
  return fmt::format("line {} {} {} x {} {} tp{} pp{} cp{} dp{} {} micro {} seq {} {}", run.line,
                     run.model.name, run.n_gpus, run.gpu, run.dtype, l.degrees.tensor, l.degrees.pipeline,
                     l.degrees.context, l.degrees.data, to_string(l.sharding.kind),
                     l.batch.micro_batch_sequences, l.batch.seq_len_tokens,
                     to_string(l.layer.recompute.kind));
}

TEST(MemoryOfMeasuredRuns, EveryRunFitsItsDevice) {
  SKIP_WITHOUT_DATA();
  RunPlatforms platforms;
  std::map<std::string, int> verdicts;
  for (const LlmRun& run : measured_runs()) {
    if (run.gpu.empty()) continue;  // a GPU that nobody stated has no memory to compare with
    Result<StepModel*> model = platforms.model_for(run);
    ASSERT_TRUE(model.ok()) << model.error().message();
    const Bytes available = (*model)->platform().device.memory_size;
    const Result<MemoryForecast> memory = memory_forecast(run.model, run.layout, available);
    ASSERT_TRUE(memory.ok()) << name_of(run) << ": " << memory.error().message();
    ++verdicts[std::string{to_string(memory->verdict)}];
    EXPECT_NE(memory->verdict, MemoryVerdict::does_not_fit)
        << name_of(run) << ": forecast " << memory->peak().value() / kGiB << " GiB of "
        << available.value() / kGiB;
  }
  RecordProperty("fits", verdicts["fits"]);
  RecordProperty("tight", verdicts["tight"]);
}

// TorchTitan prints the peak of the allocator; 8B rows without context parallelism.
TEST(MemoryOfMeasuredRuns, StatedPeaksOfTorchTitanWithin15Percent) {
  SKIP_WITHOUT_DATA();
  int rows = 0;
  for (const LlmRun& run : measured_runs()) {
    if (!run.memory_GiB || run.model.name.find("8b") == std::string::npos) continue;
    const Result<MemoryForecast> memory = memory_forecast(run.model, run.layout, Bytes{200 * kGiB});
    ASSERT_TRUE(memory.ok()) << name_of(run) << ": " << memory.error().message();
    const double forecast = memory->peak().value() / kGiB;
    EXPECT_NEAR(forecast / *run.memory_GiB, 1, 0.15)
        << name_of(run) << ": forecast " << forecast << " GiB, stated " << *run.memory_GiB;
    ++rows;
  }
  EXPECT_GE(rows, 8);
}

}  // namespace
}  // namespace stepcast::llm_runs_memory_test
