#include "stepcast/workload/framework_rule.h"

#include <gtest/gtest.h>

namespace stepcast::framework_rule_test {
namespace {

TEST(FrameworkRules, ATextMayNameSeveral) {
  EXPECT_EQ(parse_framework("NeMo / Megatron Core"), Framework::nemo);
  EXPECT_EQ(parse_framework("NeMo Automodel"), Framework::automodel);
  EXPECT_EQ(parse_framework("Megatron-DeepSpeed"), Framework::megatron);
  EXPECT_EQ(parse_framework("GPT-NeoX (DeepSpeed)"), Framework::neox);
  EXPECT_EQ(parse_framework("llm-foundry (PyTorch FSDP)"), Framework::fsdp);
  EXPECT_EQ(parse_framework("PyTorch"), Framework::pytorch);
  EXPECT_EQ(parse_framework("PyTorch 2"), Framework::unknown);  // of any of them
  EXPECT_EQ(parse_framework(""), Framework::unknown);
}

TEST(FrameworkRules, NamesAreParsedAndListed) {
  EXPECT_EQ(framework_names(" or "),
            "megatron, nemo, automodel, torchtitan, fsdp, deepspeed, neox, pytorch, libai or maxtext");
  for (int i = 0; i < static_cast<int>(Framework::count); ++i) {
    const auto framework = static_cast<Framework>(i);
    EXPECT_EQ(parse_framework(to_string(framework)), framework);
  }
}

TEST(FrameworkRules, SaysWhatCanBeSharded) {
  const ShardingKinds& kinds = rule_of(Framework::automodel).sharding.kinds;
  EXPECT_EQ(kinds.words(), "none, zero3 or hybrid:N");
  EXPECT_TRUE(kinds.has(Sharding::none, false));
  EXPECT_TRUE(kinds.has(Sharding::zero3, true));
  EXPECT_FALSE(kinds.has(Sharding::zero1, false));
  EXPECT_EQ(rule_of(Framework::pytorch).sharding.kinds.words(),
            "none or zero1 (--framework fsdp shards weights)");
}

}  // namespace
}  // namespace stepcast::framework_rule_test
