// The flags of Megatron-LM that change visible steps most: two lines that differ in one of them, and which is faster.

#include <string>

#include <gtest/gtest.h>

#include "stepcast/api/stepcast.h"

namespace stepcast::megatron_flag_pairs_test {
namespace {

constexpr char kDense[] =
    "torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py --num-layers 24 --hidden-size 4096 "
    "--num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 "
    "--global-batch-size 64 --tensor-model-parallel-size 4 --bf16 --use-distributed-optimizer "
    "--tokenizer-type NullTokenizer --vocab-size 128000 ";
constexpr char kStages[] =
    "torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py --num-layers 32 --hidden-size 4096 "
    "--num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 "
    "--global-batch-size 32 --tensor-model-parallel-size 2 --pipeline-model-parallel-size 4 --bf16 "
    "--tokenizer-type NullTokenizer --vocab-size 32000 ";
constexpr char kSmall[] =
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 12 --hidden-size 512 --num-attention-heads 8 "
    "--seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 4 --global-batch-size 32 --bf16 "
    "--tokenizer-type NullTokenizer --vocab-size 32000 ";
constexpr char kExperts[] =
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 4096 --num-attention-heads 32 "
    "--seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 16 --bf16 "
    "--num-experts 8 --moe-router-topk 2 --expert-model-parallel-size 8 --moe-token-dispatcher-type alltoall "
    "--moe-grouped-gemm --use-distributed-optimizer --tokenizer-type NullTokenizer --vocab-size 32000 ";

struct Pair {
  const char *name, *line, *flags;
  bool faster;               // with the flags
  const char* of_both = "";  // flags of both lines
};
constexpr Pair kPairs[] = {
    {"Recomputation", kDense,
     "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1", false},
    {"Fp8", kDense, "--fp8-format hybrid", true},
    {"OverlapGradReduce", kDense, "--overlap-grad-reduce", true},
    {"TpCommOverlap", kDense, "--tp-comm-overlap", true, "--sequence-parallel "},
    {"UnfusedAttention", kDense, "--attention-backend unfused", false},
    {"OptimizerCpuOffload", kDense, "--optimizer-cpu-offload", false},
    {"Deterministic", kDense, "--deterministic-mode", false},
    {"VirtualStages", kStages, "--num-layers-per-virtual-pipeline-stage 2", true},
    {"LogNumZeros", kSmall, "--log-num-zeros-in-grad", false},
    {"LogParamsNorm", kSmall, "--log-params-norm", false},
    {"CudaGraphs", kSmall, "--cuda-graph-impl local", true},
    // As measured with Megatron-LM's own small test cases, whose steps are those of the host.
    {"SequenceParallel", kSmall, "--sequence-parallel", false, "--tensor-model-parallel-size 2 "},
    {"Stages", kSmall, "--pipeline-model-parallel-size 4", false},
    {"TensorParallel", kSmall, "--tensor-model-parallel-size 2", false},
    {"RopeFusion", kSmall, "--no-rope-fusion", false, "--position-embedding-type rope "},
    {"Untie", kSmall, "--untie-embeddings-and-output-weights", false},
    {"ExpertOverlap", kExperts, "--overlap-moe-expert-parallel-comm", true},
};

class MegatronFlagPair : public ::testing::TestWithParam<Pair> {};

TEST_P(MegatronFlagPair, HasTheSignThatItHasOnGpus) {
  const Session session;
  const auto step_ms = [&](const std::string& line) {
    PredictRequest request;
    request.job.command_line = line;
    request.platform = "dgx-h100";
    const Result<Forecast> forecast = session.predict(request);
    EXPECT_TRUE(forecast.ok()) << forecast.error().message();
    return forecast.ok() ? forecast->step_time_ms : 0;
  };
  const Pair& pair = GetParam();
  const std::string line = pair.line + std::string{pair.of_both};
  const double without = step_ms(line), with = step_ms(line + pair.flags);
  if (pair.faster)
    EXPECT_LT(with, without) << pair.flags;
  else
    EXPECT_GT(with, without) << pair.flags;
}

INSTANTIATE_TEST_SUITE_P(All, MegatronFlagPair, ::testing::ValuesIn(kPairs),
                         [](const auto& info) { return std::string{info.param.name}; });

}  // namespace
}  // namespace stepcast::megatron_flag_pairs_test
