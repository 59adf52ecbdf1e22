#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/run_scores.h"

namespace stepcast::bert_runs_test {
namespace {

using ::testing::HasSubstr;

const std::string kHeader =
    "round,org,system,gpu,n_gpus,accelerator_interconnect,global_batch_samples,grad_accum,iter_time_ms\n";

// 768 samples on 8 GPUs in one pass: 96 each; 240 on 6 in two: 20.
TEST(BertRuns, BecomePackedRunsOfOneNode) {
  const std::string text = kHeader +
                           "v3.0,Some,\"Box, large\",NVIDIA H100-SXM5-80GB,8,NVLink,768,1,101.5\n"
                           "v3.1,Other,Card,NVIDIA L4,6,,240,2,750\n";
  ASSERT_TRUE(looks_like_bert_runs(text));
  const Result<std::vector<LlmRun>> runs = parse_bert_runs(text, "bert.csv");
  ASSERT_TRUE(runs.ok()) << runs.error().message();
  ASSERT_EQ(runs->size(), 2U);
  const LlmRun &first = (*runs)[0], &second = (*runs)[1];
  EXPECT_EQ(first.set, kBertNodeSet);
  EXPECT_EQ(first.line, 2U);
  EXPECT_EQ(first.iter_time_ms, 101.5);
  EXPECT_EQ(first.n_gpus, 8);
  EXPECT_EQ(first.gpus_per_node, 8);
  EXPECT_EQ(first.layout.batch.micro_batch_sequences, 96);
  EXPECT_EQ(first.layout.layer.precision.compute, DType::fp8);
  EXPECT_EQ(first.layout.layer.packed_mean_tokens, 256);
  EXPECT_EQ(first.layout.optimizer.kind, OptimizerKind::lamb);
  EXPECT_TRUE(first.layout.layer.cuda_graphs.full_iteration);
  EXPECT_EQ(second.line, 3U);
  EXPECT_EQ(second.layout.batch.micro_batch_sequences, 20);
  EXPECT_EQ(second.layout.layer.precision.compute, DType::fp16);
}

TEST(BertRuns, AreToldFromOtherTables) {
  EXPECT_FALSE(looks_like_bert_runs("set,model,gpu,n_gpus,tensor_parallel,iter_time_ms\n"));
  EXPECT_FALSE(
      looks_like_bert_runs("set,model,round,org,gpu,n_gpus,global_batch_samples,grad_accum,iter_time_ms\n"));
  EXPECT_FALSE(looks_like_bert_runs(""));
}

TEST(BertRuns, ErrorsNameLineAndColumn) {
  const Result<std::vector<LlmRun>> runs =
      parse_bert_runs(kHeader + "v3.0,a,b,NVIDIA L4,many,,240,2,750\n", "bert.csv");
  ASSERT_FALSE(runs.ok());
  EXPECT_THAT(runs.error().message(), HasSubstr("line 2"));
  EXPECT_THAT(runs.error().message(), HasSubstr("n_gpus"));
}

PredictedRun predicted(const LlmRun& run, double ms) {
  PredictedRun p{.run = &run};
  p.prediction.step.time = Microseconds{ms * 1e3};
  return p;
}

// Two GPUs: 100 ms measured, 50 predicted. Four: 90 and 120 measured, 30 and 30 predicted. Without the four the factor is
// 2, so they come out at 60; without the two it is 3 or 4, the upper median 4, so they come out at 200.
TEST(BertScaling, EveryNumberOfGpusHasTheFactorOfTheOthers) {
  const auto run = [](std::int64_t n_gpus, double ms) {
    LlmRun r;
    r.set = kBertNodeSet;
    r.n_gpus = n_gpus;
    r.iter_time_ms = ms;
    return r;
  };
  const std::vector<LlmRun> runs{run(2, 100), run(4, 90), run(4, 120)};
  const TestScore score =
      score_bert_scaling({predicted(runs[0], 50), predicted(runs[1], 30), predicted(runs[2], 30)});
  ASSERT_EQ(score.sets.size(), 2U);
  EXPECT_THAT(score.sets[0].set, HasSubstr("2 GPUs"));
  EXPECT_EQ(score.sets[0].n_fit, 2U);
  EXPECT_DOUBLE_EQ(score.sets[0].rows[0].predicted, 200);
  EXPECT_DOUBLE_EQ(score.sets[1].rows[0].predicted, 60);
  EXPECT_DOUBLE_EQ(score.sets[1].rows[1].predicted, 60);
  // One number of GPUs says nothing.
  EXPECT_TRUE(score_bert_scaling({predicted(runs[1], 30), predicted(runs[2], 30)}).sets.empty());
}

}  // namespace
}  // namespace stepcast::bert_runs_test
