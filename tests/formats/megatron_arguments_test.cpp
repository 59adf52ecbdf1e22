#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/formats/megatron.h"
#include "stepcast/formats/megatron_writer.h"

namespace stepcast::megatron_arguments_test {
namespace {

using Arguments = std::vector<std::pair<std::string, std::string>>;

std::string line_of(const Arguments& arguments, bool is_bert = false) {
  return command_line_of_arguments(arguments, is_bert);
}

TEST(MegatronArguments, WritesWhatPythonPrintsAsFlags) {
  EXPECT_EQ(line_of({{"num_layers", "32"}, {"bf16", "True"}, {"fp16", "False"}, {"num_experts", "None"}}),
            "pretrain_gpt.py --num-layers '32' --bf16");
  // Arguments that a flag switches off.
  EXPECT_EQ(line_of({{"add_bias_linear", "False"}, {"masked_softmax_fusion", "True"}}),
            "pretrain_gpt.py --disable-bias-linear");
  // Lists, enumerations and types.
  EXPECT_EQ(
      line_of({{"recompute_granularity", "selective"}, {"recompute_modules", "['core_attn', 'moe_act']"}}),
      "pretrain_gpt.py --recompute-granularity 'selective' --recompute-modules 'core_attn' 'moe_act'");
  EXPECT_EQ(line_of({{"attention_backend", "AttnBackend.flash"}}),
            "pretrain_gpt.py --attention-backend 'flash'");
  EXPECT_EQ(line_of({{"cuda_graph_impl", "local"}, {"cuda_graph_scope", "[<CudaGraphScope.attn: 1>]"}}),
            "pretrain_gpt.py --cuda-graph-impl 'local' --cuda-graph-scope 'attn'");
  EXPECT_EQ(line_of({{"use_precision_aware_optimizer", "True"}, {"main_grads_dtype", "torch.bfloat16"}}),
            "pretrain_gpt.py --main-grads-dtype 'bf16' --use-precision-aware-optimizer");
  EXPECT_EQ(line_of({{"window_size", "(4095, 0)"}}), "pretrain_gpt.py --window-size '(4095,0)'");
  EXPECT_EQ(line_of({{"linear_attention_freq", "[1, 1, 0]"}}),
            "pretrain_gpt.py --linear-attention-freq '[1,1,0]'");
  EXPECT_EQ(line_of({{"num_layers", "12"}}, true), "pretrain_bert.py --num-layers '12'");
}

TEST(MegatronArguments, LeavesOutWhatMeansNothingAlone) {
  EXPECT_EQ(line_of({{"main_grads_dtype", "torch.float32"},
                     {"moe_router_topk", "2"},
                     {"fp8_recipe", "delayed"},
                     {"kv_lora_rank", "32"},
                     {"num_query_groups", "1"},
                     {"zero_stage", "1.0"},
                     {"data_parallel_sharding_strategy", "no_shard"},
                     {"virtual_pipeline_model_parallel_size", "None"}}),
            "pretrain_gpt.py");
  EXPECT_EQ(line_of({{"deepspeed", "True"}, {"zero_stage", "1.0"}}),
            "pretrain_gpt.py --zero-stage '1' --deepspeed");
}

TEST(MegatronArguments, AreReadByTheReaderOfCommandLines) {
  const auto words = parse_megatron_command_line(line_of({{"num_layers", "32"},
                                                          {"tensor_model_parallel_size", "8"},
                                                          {"virtual_pipeline_model_parallel_size", "4"},
                                                          {"overlap_p2p_comm", "True"},
                                                          {"rampup_batch_size", "['32', '32', '1000']"},
                                                          {"fp8", "hybrid"},
                                                          {"fp8_recipe", "tensorwise"}}));
  ASSERT_TRUE(words.ok()) << words.error().message();
  EXPECT_EQ(words->settings.n_layers, 32);
  EXPECT_EQ(words->settings.tensor, 8);
  EXPECT_EQ(words->settings.virtual_stages, 4);
  EXPECT_EQ(words->settings.fp8, true);
  EXPECT_EQ(words->settings.fp8_scaling, Fp8Scaling::dynamic);
  ASSERT_EQ(words->not_modelled.size(), 1U);
  EXPECT_EQ(words->not_modelled[0], "--rampup-batch-size 32 32 1000");
}

}  // namespace
}  // namespace stepcast::megatron_arguments_test
