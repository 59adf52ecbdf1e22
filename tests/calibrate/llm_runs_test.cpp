#include "calibrate/llm_runs.h"

#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/formats/presets.h"

#include "tests/support/fails_with.h"

namespace stepcast::llm_runs_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A made-up run of a GPT on 16 GPUs; `changes` replaces cells, an empty value empties them.
std::string one_run(const std::map<std::string, std::string>& changes = {}) {
  std::vector<std::pair<std::string, std::string>> cells = {{"set", "made"},
                                                            {"model", "gpt-1b"},
                                                            {"hidden_size", "2048"},
                                                            {"ffn_hidden_size", "8192"},
                                                            {"n_layers", "24"},
                                                            {"n_heads", "16"},
                                                            {"n_kv_heads", "16"},
                                                            {"vocab_size", "50257"},
                                                            {"gated_ffn", "0"},
                                                            {"norm", "layernorm"},
                                                            {"seq_len_tokens", "1024"},
                                                            {"architecture", "gpt"},
                                                            {"n_experts", ""},
                                                            {"moe_top_k", ""},
                                                            {"moe_ffn_hidden_size", ""},
                                                            {"n_dense_layers", ""},
                                                            {"platform", "dgx-a100"},
                                                            {"gpu", "A100-SXM4-80GB"},
                                                            {"gpus_per_node", "8"},
                                                            {"n_gpus", "16"},
                                                            {"inter_node_bandwidth_Gbps", "800"},
                                                            {"dtype", "bf16"},
                                                            {"framework", "Megatron-LM"},
                                                            {"tensor_parallel", "2"},
                                                            {"pipeline_parallel", "2"},
                                                            {"virtual_stages", "1"},
                                                            {"data_parallel", "4"},
                                                            {"sharding", "zero1"},
                                                            {"sequence_parallel", "1"},
                                                            {"micro_batch_sequences", "2"},
                                                            {"global_batch_sequences", "64"},
                                                            {"recompute", "full"},
                                                            {"attention", "flash"},
                                                            {"pipeline_schedule", "1f1b"},
                                                            {"iter_time_ms", "1500.5"},
                                                            {"note", "made up"}};
  std::string header, row;
  for (const auto& [name, value] : cells) {
    const auto change = changes.find(name);
    header += (header.empty() ? "" : ",") + name;
    row += (row.empty() ? "" : ",") + (change == changes.end() ? value : change->second);
  }
  return header + "\n" + row + "\n";
}

LlmRun read(const std::map<std::string, std::string>& changes = {}) {
  const Result<std::vector<LlmRun>> runs = parse_llm_runs(one_run(changes), "runs.csv");
  EXPECT_TRUE(runs.ok()) << runs.error().message();
  return runs.ok() && runs->size() == 1 ? runs->front() : LlmRun{};
}

std::string message(const std::map<std::string, std::string>& changes) {
  const Result<std::vector<LlmRun>> runs = parse_llm_runs(one_run(changes), "runs.csv");
  return runs.ok() ? "no error" : runs.error().message();
}

TEST(LlmRuns, ReadsARow) {
  const LlmRun run = read();
  EXPECT_EQ(run.set, "made");
  EXPECT_EQ(run.line, 2U);
  EXPECT_DOUBLE_EQ(run.iter_time_ms, 1500.5);
  EXPECT_EQ(run.model.n_layers, 24);
  EXPECT_EQ(run.layout.degrees.tensor, 2);
  EXPECT_EQ(run.layout.sharding.kind, Sharding::zero1);
  EXPECT_EQ(run.layout.layer.recompute.kind, Recompute::full);
  EXPECT_EQ(run.layout.software.framework, Framework::megatron);
  EXPECT_TRUE(run.layout.layer.sequence_parallel);
  EXPECT_EQ(run.layout.world_size(), 16);
  EXPECT_EQ(*run.inter_node_bandwidth_Gbps, 800);
  EXPECT_TRUE(check(run.layout, run.model).ok());
  EXPECT_TRUE(looks_like_llm_runs(one_run()));
  EXPECT_FALSE(looks_like_llm_runs("size_bytes,time_us\n1,2\n"));
}

TEST(LlmRuns, SaysWhatItAssumesForEmptyFields) {
  const LlmRun run =
      read({{"vocab_size", ""}, {"ffn_hidden_size", ""}, {"micro_batch_sequences", ""}, {"attention", ""}});
  EXPECT_EQ(run.model.vocab_size, 50257);
  EXPECT_EQ(run.model.ffn_hidden_size, 8192);
  EXPECT_EQ(run.layout.batch.micro_batch_sequences, 1);
  EXPECT_EQ(run.assumed.size(), 4U);
  EXPECT_THAT(read().assumed, IsEmpty());
}

// What no column says comes from the preset of that name: no model is known by parts of its name.
TEST(LlmRuns, TakesTheRestOfAModelFromItsPreset) {
  const LlmRun lite = read({{"model", "DeepSeek-V2-Lite"},
                            {"n_experts", "64"},
                            {"moe_top_k", "6"},
                            {"moe_ffn_hidden_size", "1408"},
                            {"n_dense_layers", "1"}});
  const Transformer preset = find_preset("deepseek-v2-lite").value();
  EXPECT_TRUE(preset.attention);
  EXPECT_EQ(lite.model.attention, preset.attention);
  EXPECT_EQ(lite.model.moe, preset.moe);
  EXPECT_EQ(lite.model.activation, Activation::silu);
  EXPECT_EQ(lite.model.n_layers, 24);  // a column
  const LlmRun unknown = read({{"model", "deepseek-like"}, {"n_experts", "64"}});
  EXPECT_FALSE(unknown.model.attention);
  EXPECT_EQ(read({{"model", "my-model"}, {"architecture", "llama"}}).model.position,
            PositionEncoding::rotary);
  EXPECT_EQ(read({{"model", "my-model"}, {"architecture", "bert"}}).model.architecture,
            Architecture::encoder);
}

TEST(LlmRuns, ReadsTypes) {
  EXPECT_EQ(read({{"dtype", "float8 rowwise"}}).layout.layer.precision.compute, DType::fp8);
  EXPECT_EQ(read({{"dtype", "fp8"}}).layout.layer.precision.compute, DType::fp8);
  EXPECT_THAT(message({{"dtype", "fifty-8"}}), HasSubstr("an unknown type"));
}

TEST(LlmRuns, ReadsDateAndMemoryOutOfTheNote) {
  EXPECT_EQ(read({{"note", "memory 82.4 GiB; llama3_202412"}}).memory_GiB, 82.4);
  EXPECT_EQ(read({{"note", "llama3_h100_202412"}}).layout.software.date, "2024-12");
  EXPECT_EQ(read({{"note", "asyncTP_2025-06"}}).layout.software.date, "2025-06");
  EXPECT_EQ(read({{"note", "2048 GPUs; 20 layers"}}).layout.software.date, "");
  EXPECT_EQ(read({{"framework", "llm-foundry (PyTorch FSDP)"}}).layout.software.date, "2023");
  EXPECT_FALSE(read({{"note", "memory  GiB"}}).memory_GiB.has_value());
}

TEST(LlmRuns, UnevenStagesAreAsEvenAsPossible) {
  const LlmRun run = read({{"n_layers", "25"}});
  EXPECT_EQ(run.layout.pipeline.layers_per_stage, (std::vector<std::int64_t>{13, 12}));
  EXPECT_THAT(run.assumed, Not(IsEmpty()));
}

TEST(LlmRuns, MoreStagesThanLayersAreLeftToTheCheck) {
  const LlmRun run = read({{"pipeline_parallel", "999999999"}, {"n_gpus", "7999999992"}});
  EXPECT_THAT(run.layout.pipeline.layers_per_stage, IsEmpty());
  EXPECT_THAT(check(run.layout, run.model), test::FailsWith("pipeline"));
}

// 16 sequences of a rank, two pipeline ranks: two micro-batches in 2024, sixteen later.
TEST(LlmRuns, MicroBatchesOfTorchTitanThatNobodySays) {
  std::map<std::string, std::string> cells{{"framework", "TorchTitan"},
                                           {"micro_batch_sequences", "16"},
                                           {"pipeline_schedule", "interleaved 1F1B"},
                                           {"note", "llama3_h100_202412"}};
  const LlmRun old = read(cells);
  EXPECT_EQ(old.layout.batch.micro_batch_sequences, 8);
  EXPECT_EQ(old.layout.degrees.virtual_stages, 2);
  EXPECT_EQ(old.layout.pipeline.schedule, PipelineSchedule::interleaved);
  cells["note"] = "llama3_h100_202506";
  EXPECT_EQ(read(cells).layout.batch.micro_batch_sequences, 1);
}

TEST(LlmRuns, NamesFileLineAndColumnOfWhatCannotBe) {
  EXPECT_EQ(message({}), "no error");
  for (const auto& [column, value] :
       std::multimap<std::string, std::string>{{"iter_time_ms", "0"},
                                               {"iter_time_ms", "-3"},
                                               {"hidden_size", "wide"},
                                               {"n_gpus", "0"},
                                               {"n_layers", "24.5"},
                                               {"dtype", "int3"},
                                               {"seq_len_tokens", ""},
                                               {"iter_time_ms", "nan"},
                                               {"global_batch_sequences", "1e400"}}) {
    EXPECT_THAT(message({{column, value}}),
                AllOf(HasSubstr("runs.csv"), HasSubstr("line 2"), HasSubstr(column)))
        << column << " = " << value;
  }
}

TEST(LlmRuns, NamesAMissingColumn) {
  std::string text = one_run();
  text.replace(text.find("iter_time_ms"), 12, "duration_ms_");
  const Result<std::vector<LlmRun>> runs = parse_llm_runs(text, "runs.csv");
  ASSERT_FALSE(runs.ok());
  EXPECT_THAT(runs.error().message(), HasSubstr("lacks the column iter_time_ms"));
}

}  // namespace
}  // namespace stepcast::llm_runs_test
