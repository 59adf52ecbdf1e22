#include "lab/run_platforms.h"

#include <map>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/data.h"

namespace stepcast::run_platforms_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kHeader =
    "set,model,hidden_size,n_layers,n_heads,seq_len_tokens,platform,gpu,gpus_per_node,n_gpus,"
    "inter_node_bandwidth_Gbps,dtype,tensor_parallel,pipeline_parallel,data_parallel,micro_batch_sequences,"
    "global_batch_sequences,iter_time_ms\n";

std::vector<LlmRun> runs(const std::string& rows) {
  auto parsed = parse_llm_runs(kHeader + rows, "runs.csv");
  EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : parsed.error().message());
  return parsed.ok() ? *parsed : std::vector<LlmRun>{};
}

// Every machine of the measured runs stands for the platform that fits it: (platform and GPU as rows say them).
TEST(RunPlatforms, RowsOfTheMeasuredRunsFindTheirPlatforms) {
  SKIP_WITHOUT_DATA();
  const std::map<std::pair<std::string, std::string>, std::string> expected{
      {{"DGX H100", "H100-SXM5-80GB"}, "dgx-h100"},
      {{"8xA100-SXM4-80GB nodes", "A100-SXM4-80GB"}, "8xa100-800g"},
      {{"8xH100 nodes", "H100-96GB-HBM2e-500W"}, "8xh100-96gb-500w"},
      {{"8xH100 nodes", "H200-SXM"}, "dgx-h200"},
      {{"8-GPU SXM nodes, RoCE (1600 Gb/s per node stated for A100)", "A100-SXM4-40GB"}, "roce-8xa100-40gb"},
      {{"8-GPU SXM nodes, RoCE (1600 Gb/s per node stated for A100)", "H100-SXM5-80GB"}, "roce-8xh100"},
      {{"GPU type not stated; 8-GPU nodes", ""}, "unstated-8gpu"}};
  const auto rows = read_llm_runs(*test::measured_data() / "iterations" / "llm_runs.csv");
  ASSERT_TRUE(rows.ok()) << rows.error().message();
  std::map<std::pair<std::string, std::string>, std::string> found;
  for (const LlmRun& run : *rows) {
    std::string& name = found[{run.platform, run.gpu}];
    if (!name.empty()) continue;
    const auto choice = platform_for(machine_of(run));
    ASSERT_TRUE(choice.ok()) << choice.error().message();
    name = choice->platform.name;
  }
  EXPECT_EQ(found, expected);
}

TEST(RunPlatforms, TakesWhatTheRowSaysAboutNodesAndNetwork) {
  const auto rows = runs(
      "a,m,4096,8,32,2048,DGX H100,H100-SXM5-80GB,8,16,,bf16,1,1,16,1,16,100\n"
      "a,m,4096,8,32,2048,DGX H100,H100-SXM5-80GB,4,16,100,bf16,1,1,16,1,16,100\n");
  ASSERT_EQ(rows.size(), 2U);
  RunPlatforms platforms;
  const auto shipped = platforms.model_for(rows[0]);
  const auto changed = platforms.model_for(rows[1]);
  ASSERT_TRUE(shipped.ok() && changed.ok());
  const Platform& p = (*changed)->platform();
  EXPECT_EQ(p.node.gpus_per_node, 4U);
  // 100 Gb/s per node are 12.5 GB/s.
  EXPECT_NEAR(p.node.network->bandwidth_per_node().value(), 12.5e9, 1);
  // A slower network never makes the step faster.
  const auto fast = (*shipped)->predict(rows[0].model, rows[0].layout);
  const auto slow = (*changed)->predict(rows[1].model, rows[1].layout);
  ASSERT_TRUE(fast.ok() && slow.ok());
  EXPECT_GT(slow->step.time, fast->step.time);
}

TEST(RunPlatforms, FindsADeviceThatIsSpelledWithItsMemory) {
  const auto rows = runs("a,m,4096,8,32,2048,nowhere,B200-SXM-180GB,8,16,,bf16,1,1,16,1,16,100\n");
  RunPlatforms platforms;
  const auto model = platforms.model_for(rows.at(0));
  ASSERT_TRUE(model.ok());
  EXPECT_THAT((*model)->platform().device.name, HasSubstr("B200"));
  EXPECT_THAT(platform_for(machine_of(rows[0]))->note, HasSubstr("is not shipped"));
}

TEST(PredictRuns, NamesRowsThatCannotBePredicted) {
  const auto rows = runs(
      "a,m,4096,8,32,2048,DGX H100,H100-SXM5-80GB,8,16,,bf16,1,1,16,1,16,100\n"
      "a,odd,4096,8,30,2048,DGX H100,H100-SXM5-80GB,8,16,,bf16,4,1,4,1,16,100\n"
      "a,m,4096,8,32,2048,nowhere,Abacus-9,8,16,,bf16,1,1,16,1,16,100\n");
  RunPlatforms platforms;
  std::vector<Skipped> skipped;
  const auto predicted = predict_runs(rows, platforms, skipped);
  ASSERT_EQ(predicted.size(), 1U);
  ASSERT_EQ(skipped.size(), 2U);
  EXPECT_THAT(skipped[0].what, HasSubstr("line 3 odd"));
  EXPECT_THAT(skipped[1].what, HasSubstr("line 4"));
}

TEST(PredictRuns, WidensTheBandForEveryFieldThatIsLeftOpen) {
  const auto rows = runs("a,m,4096,8,32,2048,DGX H100,H100-SXM5-80GB,8,16,,bf16,1,1,16,1,16,100\n");
  ASSERT_EQ(rows.size(), 1U);
  ASSERT_FALSE(rows[0].assumed.empty());
  auto stated = rows;
  stated[0].assumed.clear();
  RunPlatforms platforms;
  std::vector<Skipped> skipped;
  const auto open = predict_runs(rows, platforms, skipped);
  const auto closed = predict_runs(stated, platforms, skipped);
  ASSERT_EQ(open.size() + closed.size(), 2U);
  EXPECT_EQ(open[0].prediction.step.time, closed[0].prediction.step.time);
  EXPECT_LT(open[0].prediction.step.p10, closed[0].prediction.step.p10);
  EXPECT_GT(open[0].prediction.step.p90, closed[0].prediction.step.p90);
}

}  // namespace
}  // namespace stepcast::run_platforms_test
