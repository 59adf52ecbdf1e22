#include "stepcast/recommend/dlrm_job.h"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stepcast/recommend/dlrm_presets.h"
#include "stepcast/recommend/torchrec_plan.h"

namespace stepcast::dlrm_job_test {
namespace {

std::string error_of(const char* text) {
  const Result<DlrmJob> job = parse_dlrm_job(text, "x.toml", "");
  return job.ok() ? "" : job.error().message();
}
std::string table_error(const char* text) {
  const Result<std::vector<EmbeddingTable>> tables = parse_embedding_tables(text, "t.csv");
  return tables.ok() ? "" : tables.error().message();
}

TEST(DlrmJob, SaysHowTheDensePartIsUpdated) {
  const Result<DlrmJob> loop =
      parse_dlrm_job("model = \"dlrm-ddp\"\ndense_optimizer_implementation = \"for_loop\"\n", "job.toml", "");
  ASSERT_TRUE(loop.ok()) << loop.error().message();
  EXPECT_EQ(loop->training.dense_optimizer_implementation, OptimizerImplementation::for_loop);
  const Result<DlrmJob> wrong =
      parse_dlrm_job("model = \"dlrm-ddp\"\ndense_optimizer_implementation = \"fast\"\n", "job.toml", "");
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().message().find("foreach or for_loop"), std::string::npos)
      << wrong.error().message();
}

TEST(DlrmJob, BeginsWithAPresetAndIsSaidFurther) {
  const Result<DlrmJob> job = parse_dlrm_job(
      "model = \"dlrm-mlperf-v1\"\nbatch_per_rank = 512\nstack = \"torchrec\"\ntable_optimizer = "
      "\"adagrad\"\n",
      "x.toml", "");
  ASSERT_TRUE(job.ok()) << job.error().message();
  EXPECT_EQ(job->model.tables.size(), 26U);
  EXPECT_EQ(job->training.stack, DlrmStack::torchrec);
  EXPECT_EQ(job->training_on(8).global_batch, 4096);
  // 27 vectors: 351 products, and the 128 of the bottom MLP.
  EXPECT_EQ(job->model.interaction_width(), 479);
}

TEST(DlrmJob, SettingsBesideTheFileAreTheStronger) {
  Result<DlrmJob> job = parse_dlrm_job(
      "model = \"dlrm-mlperf-v1\"\nrelease = \"21.05\"\nexchange_dtype = \"fp16\"\n", "x.toml", "");
  ASSERT_TRUE(job.ok()) << job.error().message();
  EXPECT_EQ(job->training.exchange_dtype, DType::fp16);
  DlrmTraining& training = job->training;
  ASSERT_TRUE(set_training({{"release", "v3.1"}, {"stack", ""}, {"exchange_dtype", "int8"}}, training).ok());
  EXPECT_EQ(training.release, 2309);
  EXPECT_EQ(training.stack, DlrmStack::hugectr);
  EXPECT_EQ(training.exchange_dtype, DType::int8);
  const Status wrong = set_training({{"exchange_dtype", "fp4"}}, training);
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().message().find("fp32, fp16, bf16, fp8 or int8"), std::string::npos)
      << wrong.error().message();
}

TEST(DlrmJob, RowsOfInt8CarryScaleAndOffset) {
  const auto bytes = [](DType dtype) {
    return EmbeddingTable{.rows = 10, .dim = 64, .dtype = dtype}.bytes();
  };
  EXPECT_EQ(bytes(DType::fp32), 10 * 64 * 4);
  EXPECT_EQ(bytes(DType::fp16), 10 * 64 * 2);
  EXPECT_EQ(bytes(DType::int8), 10 * (64 + 8));
}

TEST(DlrmJob, PresetsAreSound) {
  for (const std::string& name : dlrm_names()) {
    const std::optional<Dlrm> model = dlrm_preset(name);
    ASSERT_TRUE(model) << name;
    EXPECT_EQ(model->check().ok(), !model->tables.empty()) << name;
  }
}

TEST(DlrmJob, NamesWhatIsWrong) {
  EXPECT_NE(error_of("modle = \"dlrm-mlperf-v1\"").find("did you mean"), std::string::npos)
      << error_of("modle = \"x\"");
  EXPECT_NE(error_of("model = \"dlrm\"").find("dlrm-mlperf-v1"), std::string::npos);
  EXPECT_NE(error_of("top_mlp = [0]").find("top_mlp"), std::string::npos);
  EXPECT_NE(error_of("model = \"dlrm-ddp\"\nglobal_batch = 1\nbatch_per_rank = 1").find("keep one"),
            std::string::npos);
}

TEST(EmbeddingTables, AreReadWithTheirReuse) {
  const Result<std::vector<EmbeddingTable>> tables = parse_embedding_tables(
      "rows,dim,pooling_factor,dtype,reuse,reuse_lookups\n1000,64,20,fp16,0.5-0.5-0-0-0-0-0-0-0-0-0-0-0-0-0-"
      "0-0,3000\n",
      "t.csv");
  ASSERT_TRUE(tables.ok()) << tables.error().message();
  EXPECT_EQ((*tables)[0].name, "table_0");
  EXPECT_DOUBLE_EQ((*tables)[0].bytes(), 128000);
  EXPECT_DOUBLE_EQ((*(*tables)[0].reuse)[1], 0.5);
}

TEST(EmbeddingTables, RefuseWhatCannotBe) {
  EXPECT_NE(table_error("rows,dim,pooling_factor\n0,64,20\n").find("line 2"), std::string::npos);
  EXPECT_NE(table_error("rows,dim,pooling_factor\n10,64,-1\n").find("pooling_factor"), std::string::npos);
  EXPECT_NE(table_error("rows,dim\n10,64\n").find("pooling_factor"), std::string::npos);
  EXPECT_NE(table_error("rows,dim,pooling_factor\n").find("no tables"), std::string::npos);
  EXPECT_NE(table_error("name,rows,dim,pooling_factor\na,10,64,1\na,10,64,1\n").find("line 3"),
            std::string::npos);
  EXPECT_NE(table_error("rows,dim,pooling_factor,reuse,reuse_lookups\n10,64,1,0.5-0.5,10\n").find("17"),
            std::string::npos);
}

Dlrm two_tables() {
  Dlrm model;
  model.top_mlp = {1};
  model.tables = {{.name = "a", .rows = 100, .dim = 16}, {.name = "b", .rows = 10, .dim = 16}};
  return model;
}

TEST(TorchrecPlan, ComesBackAsItWasWritten) {
  ShardingPlan plan;
  plan.tables = {{.kind = ShardingKind::column_wise, .ranks = {1, 3}, .memory = TableMemory::uvm_cached},
                 {.kind = ShardingKind::data_parallel}};
  const std::string text = torchrec_plan_json(two_tables(), plan, 4, 2);
  EXPECT_NE(text.find("rank:3/cuda:1"), std::string::npos);
  const Result<ShardingPlan> back = parse_torchrec_plan(text, "p.json", two_tables(), 4);
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(back->tables, plan.tables);
}

TEST(TorchrecPlan, GridShardsAndCachesComeBackToo) {
  ShardingPlan plan;
  plan.tables = {{.kind = ShardingKind::grid_shard, .ranks = {0, 1, 2, 3}, .column_parts = 2},
                 {.kind = ShardingKind::row_wise,
                  .ranks = {0, 1, 2, 3},
                  .memory = TableMemory::uvm_cached,
                  .cached_share = 0.05}};
  const std::string text = torchrec_plan_json(two_tables(), plan, 4, 2);
  const Result<ShardingPlan> back = parse_torchrec_plan(text, "p.json", two_tables(), 4);
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(back->tables, plan.tables);
}

TEST(TorchrecPlan, RefusesKernelsThatKeepTablesElsewhere) {
  for (const char* kernel : {"key_value", "ssd_virtual_table", "quant_uvm"}) {
    const std::string text = fmt::format(
        R"({{"plan": {{"m": {{"a": {{"sharding_type": "table_wise", "compute_kernel": "{}", "ranks": [0]}}}}}}}})",
        kernel);
    const Result<ShardingPlan> plan = parse_torchrec_plan(text, "p.json", two_tables(), 4);
    ASSERT_FALSE(plan.ok());
    EXPECT_NE(plan.error().message().find(kernel), std::string::npos);
  }
}

TEST(TorchrecPlan, RefusesAMissingTableAndARankTwice) {
  const auto error = [](const char* text) {
    const Result<ShardingPlan> plan = parse_torchrec_plan(text, "p.json", two_tables(), 4);
    return plan.ok() ? std::string{} : plan.error().message();
  };
  EXPECT_NE(error(R"({"plan": {"m": {"a": {"sharding_type": "table_wise", "ranks": [0]}}}})").find("`b`"),
            std::string::npos);
  EXPECT_NE(
      error(
          R"({"plan": {"m": {"a": {"sharding_type": "row_wise", "ranks": [0, 0]}, "b": {"sharding_type": "table_wise", "ranks": [0]}}}})")
          .find("rank 0 twice"),
      std::string::npos);
  EXPECT_NE(
      error(
          R"({"plan": {"m": {"a": {"sharding_type": "table_wise", "ranks": [9]}, "b": {"sharding_type": "table_wise", "ranks": [0]}}}})")
          .find("rank 9"),
      std::string::npos);
  EXPECT_NE(error(R"({"plan": 3})").find("plan"), std::string::npos);
}

}  // namespace
}  // namespace stepcast::dlrm_job_test
