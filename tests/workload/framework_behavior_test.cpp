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
  // Without a date the newest release.
  EXPECT_EQ(usual_attention_kernel({.framework = Framework::fsdp}, true), AttentionKernel::flash2);
  EXPECT_EQ(usual_attention_kernel({.framework = Framework::nemo, .date = "2023-11"}, true),
            AttentionKernel::flash2);
}

// 40 million until 40 data-parallel ranks, then a million for each.
TEST(FrameworkHabits, BucketsGrowWithTheRanks) {
  EXPECT_EQ(usual_bucket_parameters(Framework::megatron, 1), 40'000'000);
  EXPECT_EQ(usual_bucket_parameters(Framework::megatron, 40), 40'000'000);
  EXPECT_EQ(usual_bucket_parameters(Framework::megatron, 64), 64'000'000);
}

TEST(FrameworkHabits, WorkspacesAreThreeWithTransformerEngine) {
  EXPECT_EQ(workspace_bytes(Framework::megatron), 96.0 * 1024 * 1024);
  EXPECT_EQ(workspace_bytes(Framework::torchtitan), 64.0 * 1024 * 1024);
}

// 16-bit logits and an fp32 softmax: 2 + 4 bytes. TorchTitan: their place and three fp32 tensors, 2 + 3 x 4; spread over
// ranks one more; compiled since 2025, the logits and their gradient, 2 x 2. Megatron's fused loss: fp32 logits, too.
TEST(FrameworkHabits, LossKeepsSoManyBytes) {
  const FusedKernels plain{}, fused{.cross_entropy = true}, compiled{.compiled = true};
  const Software titan{.framework = Framework::torchtitan};
  EXPECT_EQ(loss_bytes_per_logit({.framework = Framework::megatron}, plain, false, 2), 6);
  EXPECT_EQ(loss_bytes_per_logit({.framework = Framework::megatron}, fused, false, 2), 12);
  EXPECT_EQ(loss_bytes_per_logit({.framework = Framework::nemo}, fused, false, 2), 6);
  for (const Framework framework : {Framework::pytorch, Framework::fsdp, Framework::deepspeed}) {
    EXPECT_EQ(loss_bytes_per_logit({.framework = framework}, plain, false, 2), 6);
    EXPECT_EQ(loss_bytes_per_logit({.framework = framework}, fused, false, 2), 0);  // Liger: none
  }
  EXPECT_EQ(loss_bytes_per_logit(titan, plain, false, 2), 14);
  EXPECT_EQ(loss_bytes_per_logit(titan, compiled, true, 2), 18);
  EXPECT_EQ(loss_bytes_per_logit({.framework = Framework::torchtitan, .date = "2024-12"}, compiled, false, 2),
            14);
  EXPECT_EQ(loss_bytes_per_logit({.framework = Framework::torchtitan, .date = "2025-06"}, compiled, false, 2),
            4);
}

}  // namespace
}  // namespace stepcast::framework_behavior_test
