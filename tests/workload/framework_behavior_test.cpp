#include "stepcast/workload/framework_behavior.h"

#include <gtest/gtest.h>

namespace stepcast::framework_behavior_test {
namespace {

TEST(FrameworkHabits, AttentionKernelFollowsFrameworkDateAndDevice) {
  EXPECT_EQ(usual_attention_kernel({.framework = Framework::nemo}, true), AttentionKernel::flash3);
  EXPECT_EQ(usual_attention_kernel({.framework = Framework::nemo}, false), AttentionKernel::flash2);
  EXPECT_EQ(usual_attention_kernel({.framework = Framework::torchtitan}, true), AttentionKernel::flash2);
  EXPECT_EQ(usual_attention_kernel({.framework = Framework::fsdp, .date = "2023-07"}, true),
            AttentionKernel::flash1);
  EXPECT_EQ(usual_attention_kernel({.framework = Framework::fsdp, .date = "2024-01"}, true),
            AttentionKernel::flash2);
}

// 40 million until 40 data-parallel ranks, then a million for each.
TEST(FrameworkHabits, BucketsGrowWithTheRanks) {
  EXPECT_EQ(usual_bucket_parameters(Framework::megatron, 1), 40'000'000);
  EXPECT_EQ(usual_bucket_parameters(Framework::megatron, 40), 40'000'000);
  EXPECT_EQ(usual_bucket_parameters(Framework::megatron, 64), 64'000'000);
}

// 16-bit logits and an fp32 softmax: 2 + 4 bytes. TorchTitan: their place and three fp32 tensors, 2 + 3 x 4; spread over
// ranks one more; compiled since 2025, the logits and their gradient, 2 x 2.
TEST(FrameworkHabits, LossKeepsSoManyBytes) {
  EXPECT_EQ(loss_bytes_per_logit({.framework = Framework::megatron}, false, false, 2), 6);
  EXPECT_EQ(loss_bytes_per_logit({.framework = Framework::torchtitan}, false, false, 2), 14);
  EXPECT_EQ(loss_bytes_per_logit({.framework = Framework::torchtitan}, true, true, 2), 18);
  EXPECT_EQ(loss_bytes_per_logit({.framework = Framework::torchtitan, .date = "2024-12"}, true, false, 2),
            14);
  EXPECT_EQ(loss_bytes_per_logit({.framework = Framework::torchtitan, .date = "2025-06"}, true, false, 2), 4);
}

}  // namespace
}  // namespace stepcast::framework_behavior_test
