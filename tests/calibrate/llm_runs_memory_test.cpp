// Memory forecasts of measured runs: what ran must not be forecast as too large.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/base/csv_rows.h"
#include "stepcast/base/file.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/workload/memory.h"

#include "calibrate/llm_runs.h"
#include "lab/run_platforms.h"
#include "lab/run_scores.h"
#include "lab/suite.h"
#include "tests/support/data.h"

namespace stepcast::llm_runs_memory_test {
namespace {

constexpr double kGiB = 1073741824.0;

// Of every table of runs, the newer ones, too.
std::vector<LlmRun> measured_runs() {
  const std::filesystem::path first = *test::measured_data() / "iterations";
  std::vector<std::filesystem::path> folders = later_folders(first);
  folders.insert(folders.begin(), first);
  std::vector<LlmRun> runs;
  for (const std::filesystem::path& folder : folders) {
    for (const std::filesystem::path& file : csv_files_in(folder)) {
      const Result<std::string> text = read_file(file);
      if (!text || (!looks_like_llm_runs(*text) && !looks_like_bert_runs(*text))) continue;
      std::vector<std::string> left_out;
      Result<std::vector<LlmRun>> read = looks_like_bert_runs(*text)
                                             ? parse_bert_runs(*text, file.filename().string(), &left_out)
                                             : read_llm_runs(file, &left_out);
      EXPECT_TRUE(read.ok()) << read.error().message();
      if (read) runs.insert(runs.end(), read->begin(), read->end());
    }
  }
  return runs;
}

// Its release's configuration has another micro-batch than the table.
bool is_contradicted(const LlmRun& run) {
  return std::ranges::any_of(run.assumed, [](const std::string& text) {
    return text.starts_with("recipe of another layout") && text.find("mbs") != std::string::npos;
  });
}

std::string name_of(const LlmRun& run) {
  const Layout& l = run.layout;
  return fmt::format("line {} {} {} x {} {} tp{} pp{} cp{} dp{} {} micro {} seq {} {}", run.line,
                     run.model.name, run.n_gpus, run.gpu, run.dtype, l.degrees.tensor, l.degrees.pipeline,
                     l.degrees.context, l.degrees.data, to_string(l.sharding.kind),
                     l.batch.micro_batch_sequences, l.batch.seq_len_tokens,
                     to_string(l.layer.recompute.kind));
}

// Two rows do not, with a micro-batch that the configuration of their release contradicts: with one sequence they do.
TEST(MemoryOfMeasuredRuns, EveryRunFitsItsDevice) {
  SKIP_WITHOUT_DATA();
  RunPlatforms platforms;
  int n = 0, contradicted = 0;
  for (LlmRun& run : measured_runs()) {
    if (run.gpu.empty()) continue;  // a GPU that nobody stated has no memory to compare with
    Result<StepModel*> model = platforms.model_for(run);
    ASSERT_TRUE(model.ok()) << model.error().message();
    const Bytes available = (*model)->platform().device.memory_size;
    Result<MemoryForecast> memory = memory_forecast(run.model, run.layout, available);
    ASSERT_TRUE(memory.ok()) << name_of(run) << ": " << memory.error().message();
    ++n;
    if (memory->verdict == MemoryVerdict::does_not_fit && is_contradicted(run)) {
      ++contradicted;
      run.layout.batch.micro_batch_sequences = 1;
      memory = memory_forecast(run.model, run.layout, available);
      ASSERT_TRUE(memory.ok()) << name_of(run) << ": " << memory.error().message();
    }
    EXPECT_NE(memory->verdict, MemoryVerdict::does_not_fit)
        << name_of(run) << ": forecast " << memory->peak().value() / kGiB << " GiB of "
        << available.value() / kGiB;
  }
  EXPECT_GE(n, 600);
  EXPECT_LE(contradicted, 2);
}

// Adapters on all products, as in the benchmark files that the rows name.
TEST(MemoryOfMeasuredRuns, StepsWithAdaptersFit) {
  SKIP_WITHOUT_DATA();
  const Session session;
  int n = 0;
  const Status walked = each_row(
      *test::measured_data() / "newer" / "iterations" / "lora_steps.csv", [&](const CsvRows& rows) -> Status {
        PredictRequest request{.job = {.model = "qwen2.5-32b", .framework = Framework::automodel},
                               .platform = "dgx-h100"};
        request.open_layout = OpenLayout::as_said;
        if (rows.cell("model") == "Llama3 8B") request.job.model = "llama-3-8b";
        STEPCAST_ASSIGN(request.job.n_gpus, rows.extent("n_gpus"));
        JobSettings& s = request.job.settings;
        STEPCAST_TRY(read_sizes(rows, {{"global_batch_sequences", &s.global_batch_sequences},
                                       {"micro_batch_sequences", &s.micro_batch_sequences},
                                       {"seq_len_tokens", &s.seq_len_tokens},
                                       {"tensor_parallel", &s.tensor},
                                       {"pipeline_parallel", &s.pipeline},
                                       {"config_lora_rank", &s.lora_rank}}));
        if (*s.pipeline > 1) STEPCAST_TRY(read_sizes(rows, {{"virtual_stages", &s.virtual_stages}}));
        if (rows.cell("fsdp_size") == "1") s.sharding = Sharding::none;
        s.lora_targets = "linear_qkv linear_proj linear_fc1 linear_fc2";
        s.recompute = rows.cell("config_recompute") == "true" ? Recompute::full : Recompute::none;
        s.dtype = DType::bf16;
        STEPCAST_ASSIGN(const Forecast forecast, session.predict(request));
        EXPECT_TRUE(forecast.fits()) << "line " << rows.line() << ": " << forecast.memory->peak_memory_GiB;
        STEPCAST_ASSIGN(const double measured_s, rows.number("step_s", 0));
        RecordProperty(fmt::format("line {}", rows.line()),
                       fmt::format("{:.3f}", forecast.step_time_ms * 1e-3 / measured_s));
        ++n;
        return Ok{};
      });
  EXPECT_TRUE(walked.ok()) << walked.error().message();
  EXPECT_GE(n, 7);
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
