#include <gtest/gtest.h>

#include "stepcast/describe/job.h"
#include "stepcast/logs/training_log.h"
#include "stepcast/workload/framework_behavior.h"

namespace stepcast::invented_framework_test {
namespace {

Job described(const char* text) {
  Job job;
  job.n_gpus = 16;
  job.config = ConfigText{text, "sledge.yaml"};
  return job;
}

constexpr char kConfig[] =
    "sledge:\n  layers: 4\n  width: 512\n  heads: 8\n  ffn: 2048\n  vocabulary: 1001\n  batch: 2\n  tensor: "
    "2\n"
    "  seed: 1\n  curriculum: steep\n";

TEST(InventedFramework, ItsConfigItsHabitsAndItsLogAreRead) {
  const auto job = resolve(described(kConfig));
  ASSERT_TRUE(job.ok()) << job.error().message();
  EXPECT_EQ(job->model.n_layers, 4);
  EXPECT_EQ(job->not_modelled, std::vector<std::string>{"sledge.curriculum"});
  const Layout& layout = job->layout;
  EXPECT_EQ(to_string(layout.software.framework), "sledge");
  EXPECT_EQ(layout.batch.seq_len_tokens, 4096);
  EXPECT_EQ(layout.batch.global_batch_sequences, 16);
  EXPECT_EQ(layout.sharding.kind, Sharding::zero3);
  EXPECT_EQ(layout.layer.precision.master, DType::bf16);
  EXPECT_FALSE(layout.layer.fused.rotary);
  EXPECT_EQ(padded_vocab_size(job->model, layout), 1002);
  EXPECT_EQ(usual_attention_kernel(layout.software, true), AttentionKernel::flash3);

  const auto log =
      parse_training_log("blow 1 took 0.5 s, batch 16\nblow 2 took 0.25 s, batch 16\n", "run.log");
  ASSERT_TRUE(log.ok()) << log.error().message();
  ASSERT_EQ(log->steps.size(), 2U);
  EXPECT_EQ(log->steps[1].time_ms, 250);
  EXPECT_EQ(log->steps[1].batch_sequences, 16U);
  EXPECT_EQ(log_format_name(log->steps[0].format), "Sledge");
}

}  // namespace
}  // namespace stepcast::invented_framework_test
