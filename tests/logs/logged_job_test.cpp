
#include <cstddef>
#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/file.h"
#include "stepcast/logs/logged_run.h"

#include "tests/support/data.h"
#include "tests/support/paths.h"

namespace stepcast::logged_job_test {
namespace {

using ::testing::HasSubstr;

LoggedRun run_of(const std::string& seed, const Job& said = {}) {
  const auto run = read_logged_run(test::source_dir() / "fuzz" / "corpus" / "training_log" / seed, said);
  EXPECT_TRUE(run.ok()) << run.error().message();
  return *run;
}

TEST(LoggedJob, ReadsMegatronsArguments) {
  const LoggedRun run = run_of("megatron.log");
  ASSERT_TRUE(run.resolved) << run.why_no_job;
  const Transformer& model = run.resolved->model;
  const Layout& layout = run.resolved->layout;
  EXPECT_EQ(model.n_layers, 8);
  EXPECT_EQ(model.n_kv_heads, 4);
  EXPECT_EQ(model.vocab_size, 32000);
  EXPECT_TRUE(model.gated_ffn);
  EXPECT_FALSE(model.ffn_bias);
  EXPECT_FALSE(model.tied_embeddings);
  EXPECT_EQ(model.norm, NormKind::rms_norm);
  EXPECT_EQ(layout.degrees.tensor, 4);
  EXPECT_EQ(layout.degrees.data, 4);
  EXPECT_TRUE(layout.layer.sequence_parallel);
  EXPECT_EQ(layout.layer.precision.compute, DType::bf16);
  EXPECT_EQ(layout.sharding.kind, Sharding::zero1);
  EXPECT_EQ(layout.layer.recompute.kind, Recompute::selective);
  EXPECT_EQ(layout.batch.global_batch_sequences, 32);
  EXPECT_NEAR(run.log.peak_memory_GiB, 4000 / 1024.0, 1e-9);
  EXPECT_EQ(run.log.broken_lines, 0U);  // the last line breaks off before it says anything
}

TEST(LoggedJob, WhatSomebodySaysHoldsAgainstTheLog) {
  Job said;
  said.settings.seq_len_tokens = 4096;
  said.n_gpus = 32;
  const LoggedRun run = run_of("megatron.log", said);
  ASSERT_TRUE(run.resolved) << run.why_no_job;
  EXPECT_EQ(run.resolved->layout.batch.seq_len_tokens, 4096);
  EXPECT_EQ(run.resolved->layout.degrees.data, 8);
}

TEST(LoggedJob, ReadsNemosYaml) {
  const LoggedRun run = run_of("nemo1.log");
  ASSERT_TRUE(run.resolved) << run.why_no_job;
  EXPECT_EQ(run.resolved->n_gpus, 16);
  EXPECT_EQ(run.resolved->layout.degrees.tensor, 2);
  EXPECT_EQ(run.resolved->layout.degrees.data, 8);
  EXPECT_EQ(run.resolved->layout.software.framework, Framework::nemo);
  EXPECT_EQ(run.resolved->model.vocab_size, 32000);
  EXPECT_TRUE(run.resolved->model.gated_ffn);
  EXPECT_EQ(run.times.format, LogFormat::nemo);
}

TEST(LoggedJob, ReadsWhatTorchTitanSays) {
  const LoggedRun run = run_of("titan.log");
  ASSERT_TRUE(run.resolved) << run.why_no_job;
  EXPECT_EQ(run.resolved->n_gpus, 8);
  EXPECT_EQ(run.resolved->layout.degrees.tensor, 2);
  EXPECT_EQ(run.resolved->model.n_layers, 32);
  EXPECT_EQ(run.resolved->layout.batch.seq_len_tokens, 8192);
  // 4 x 8192 tokens / (4376 tokens/s x 8 GPUs)
  EXPECT_NEAR(run.times.median_ms, 1e3 * 4 * 8192 / 4376 / 8, 1e-3);
  const LoggedRun dump = run_of("titan_dump.log", {.n_gpus = 8});
  ASSERT_TRUE(dump.resolved) << dump.why_no_job;
  EXPECT_EQ(dump.resolved->layout.degrees.data, 8);
}

TEST(LoggedJob, ReadsDeepSpeedsConfigAndAModelOfHuggingFace) {
  Job said;
  said.settings.seq_len_tokens = 2048;
  const LoggedRun run = run_of("deepspeed.log", said);
  ASSERT_TRUE(run.resolved) << run.why_no_job;
  EXPECT_EQ(run.resolved->model.n_layers, 4);
  EXPECT_EQ(run.resolved->layout.sharding.kind, Sharding::zero3);
  EXPECT_EQ(run.resolved->layout.batch.global_batch_sequences, 64);
}

TEST(LoggedJob, ReadsLlmFoundrysConfiguration) {
  const LoggedRun run = run_of("composer.log", {.n_gpus = 8});
  ASSERT_TRUE(run.resolved) << run.why_no_job;
  EXPECT_EQ(run.resolved->model.hidden_size, 512);
  EXPECT_EQ(run.resolved->layout.degrees.data, 8);
  EXPECT_EQ(run.resolved->layout.sharding.kind, Sharding::zero3);
}

TEST(LoggedJob, SaysThatALogPrintsNoSettings) {
  const auto log = parse_training_log(" iteration 1/ 2 | elapsed time per iteration (ms): 5.0 |\n", "a.log");
  ASSERT_TRUE(log.ok());
  EXPECT_THAT(logged_job(*log).error().message(), HasSubstr("a.log: the log prints no settings of its run"));
}

TEST(LoggedJob, ReadsMlperfEvents) {
  // 10 steps of 200 ms between evaluations of 5 s; both ranks print the evaluations.
  const LoggedRun events = run_of("mlperf_events.log");
  EXPECT_EQ(events.times.format, LogFormat::mlperf);
  EXPECT_NEAR(events.times.median_ms, 200, 0.2);
  EXPECT_EQ(events.times.steps_per_line, 10);
  EXPECT_EQ(events.times.batch_sequences, 32U);
  EXPECT_EQ(events.log.settings.words.at("gpu"), "2xMade Node");
  // A time with every step; GPT-3 counts tokens.
  const LoggedRun steps = run_of("mlperf_steps.log");
  EXPECT_DOUBLE_EQ(steps.times.median_ms, 11000);
  EXPECT_EQ(steps.times.last_step, 30U);
}

// The rules of MLPerf make logs print benchmark, batch and system: model, GPUs and batch of the forecast.
TEST(LoggedJob, TakesTheSettingsOfMlperf) {
  const auto event = [](int time_ms, const std::string& key, const std::string& value,
                        const std::string& metadata = "") {
    return fmt::format(
        "0: :::MLLOG {{\"time_ms\": {}, \"key\": \"{}\", \"value\": {}, \"metadata\": {{{}}}}}\n",
        1'700'000'000'000 + time_ms, key, value, metadata);
  };
  std::string text = event(0, "submission_benchmark", "\"llama2_70b_lora\"") +
                     event(0, "submission_platform", "\"2xXE9680x8H200-SXM-141GB\"") +
                     event(1, "global_batch_size", "16") + event(1, "lora_rank", "16") +
                     event(1, "opt_name", "\"adamw\"") +
                     event(2, "block_start", "null", "\"samples_count\": 0");
  for (int i = 1; i <= 10; ++i)
    text += event(3000 * i, "tracked_stats", "{\"throughput\": 5.0}", fmt::format("\"step\": {}", 16 * i));
  const auto run = logged_run(parse_training_log(text, "a.log").value());
  ASSERT_TRUE(run.ok() && run->resolved) << run->why_no_job;
  EXPECT_EQ(run->job->source, "MLPerf's settings");
  EXPECT_EQ(run->job->gpu, "H200-SXM-141GB");
  EXPECT_EQ(run->job->job.model, "llama-2-70b");
  EXPECT_EQ(run->job->job.settings.lora_rank, 16);
  EXPECT_EQ(run->resolved->n_gpus, 16);
  EXPECT_EQ(run->resolved->layout.batch.global_batch_sequences, 16);
  EXPECT_EQ(run->resolved->layout.batch.seq_len_tokens, 8192);
  EXPECT_THAT(run->not_said, ::testing::Contains("layout"));
  EXPECT_NEAR(run->times.median_ms, 3200, 1);
  // Without the number of GPUs there is nothing to forecast.
  std::string without = text;
  without.replace(without.find("2xXE9680x8H200"), 14, "H200");
  EXPECT_THAT(logged_job(parse_training_log(without, "a.log").value()).error().message(),
              HasSubstr("say --gpus"));
  // A benchmark that is no transformer is refused by its name.
  text.replace(text.find("llama2_70b_lora"), 15, "dlrm_dcnv2");
  EXPECT_THAT(logged_job(parse_training_log(text, "a.log").value()).error().message(),
              HasSubstr("`dlrm_dcnv2`"));
}

TEST(LoggedJob, SaysWhatNobodySaid) {
  Job said;
  said.model = "llama-3-8b";
  said.settings.seq_len_tokens = 4096;
  const auto run = logged_run(
      parse_training_log(" iteration 1/ 2 | elapsed time per iteration (ms): 5.0 |\n", "a.log").value(),
      said);
  ASSERT_TRUE(run.ok() && run->resolved) << run->why_no_job;
  EXPECT_EQ(run->job->source, "flags");
  EXPECT_THAT(run->not_said, ::testing::Contains("layout"));
  EXPECT_THAT(run->not_said, ::testing::Contains("global batch"));
  // The lines say the batch, and be it the one that is assumed otherwise.
  const auto told = logged_run(
      parse_training_log(" iteration 1/ 2 | elapsed time per iteration (ms): 5.0 | global batch size: 1 |\n",
                         "a.log")
          .value(),
      said);
  ASSERT_TRUE(told.ok() && told->resolved) << told->why_no_job;
  EXPECT_THAT(told->not_said, ::testing::Not(::testing::Contains("global batch")));
  EXPECT_EQ(told->job->job.settings.global_batch_sequences, 1);
  EXPECT_THAT(run->not_said, ::testing::Not(::testing::Contains("sequence length")));
}

TEST(LoggedJob, ReadsPublishedMlperfLogs) {
  if (!test::measured_data()) GTEST_SKIP() << "no measured data";
  const std::filesystem::path folder = *test::measured_data() / "field" / "mlperf_logs";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "no published logs";
  std::size_t n = 0;
  for (const auto& entry : std::filesystem::directory_iterator{folder}) {
    const auto run = read_logged_run(entry.path());
    ASSERT_TRUE(run.ok()) << run.error().message();
    EXPECT_EQ(run->times.format, LogFormat::mlperf) << entry.path();
    EXPECT_GT(run->times.median_ms, 0) << entry.path();
    ++n;
  }
  EXPECT_GT(n, 0U);
}

}  // namespace
}  // namespace stepcast::logged_job_test
