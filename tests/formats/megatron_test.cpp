#include "stepcast/formats/megatron.h"

#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/formats/presets.h"
#include "stepcast/formats/resolve_job.h"

namespace stepcast::megatron_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Given {
  std::optional<Transformer> model = {};
  std::optional<std::int64_t> n_gpus = {};
};

Result<ResolvedJob> resolved(std::string_view line, const Given& given) {
  Job job;
  job.command_line = line;
  job.transformer = given.model;
  job.n_gpus = given.n_gpus;
  return resolve(job);
}

ResolvedJob job_of(std::string_view line, const Given& given = {}) {
  auto job = resolved(line, given);
  EXPECT_TRUE(job.ok()) << job.error().message();
  return job.ok() ? std::move(*job) : ResolvedJob{};
}

std::string message_of(std::string_view line, const Given& given = {}) {
  const auto job = resolved(line, given);
  return job.ok() ? "no error" : job.error().message();
}

constexpr std::string_view kSmall =
    "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 --max-position-embeddings "
    "1024 "
    "--vocab-size 50257 --micro-batch-size 4 ";

std::string small(std::string_view more) { return std::string{kSmall} + std::string{more}; }

TEST(MegatronCommandLine, DescribesGpt3) {
  const ResolvedJob job = job_of(R"(
      # 175B on 1,024 GPUs
      torchrun --nproc_per_node 8 --nnodes=128 --rdzv_id 7 pretrain_gpt.py \
        --tensor-model-parallel-size 8 --pipeline-model-parallel-size=16 \
        --num-layers-per-virtual-pipeline-stage 2 --sequence-parallel \
        --num-layers 96 --hidden-size 12288 --num-attention-heads 96 \
        --seq-length 2048 --max-position-embeddings 2048 --tokenizer-type GPT2BPETokenizer \
        --micro-batch-size 1 --global-batch-size 1536 --rampup-batch-size 16 16 5859375 \
        --recompute-activations --use-distributed-optimizer --overlap-grad-reduce --bf16 \
        --lr 6.0e-5 --min-lr 6.0e-6 --split 98,2,0 --data-path 0.5 one 0.5 'two files' --clip-grad 1.0)");
  EXPECT_EQ(job.n_gpus, 1024);
  EXPECT_EQ(job.gpus_per_node, 8);
  EXPECT_THAT(job.not_modelled, ElementsAre("--rampup-batch-size 16 16 5859375"));
  EXPECT_EQ(parameter_count(job.model), parameter_count(find_preset("gpt3-175b").value()));
  EXPECT_DOUBLE_EQ(job.model.hidden_dropout, 0.1);
  Layout expected{
      .degrees = {.tensor = 8, .pipeline = 16, .data = 8, .virtual_stages = 3},
      .batch = {.micro_batch_sequences = 1, .global_batch_sequences = 1536, .seq_len_tokens = 2048},
      .layer = {.sequence_parallel = true, .recompute = {.kind = Recompute::selective}},
      .pipeline = {.schedule = PipelineSchedule::interleaved},
      .sharding = {.kind = Sharding::zero1},
      .software = {.framework = Framework::megatron}};
  expected.sharding.overlap_gradient_reduce = true;
  expected.pipeline.overlap = true;
  expected.layer.precision.fp8.fused_maxima = expected.layer.precision.fp8.gather_activations = true;
  // An eager stack (megatron_flags_test.cpp).
  expected.layer.operator_launches = job.layout.layer.operator_launches;
  expected.layer.fused.permutation = false;
  EXPECT_EQ(job.layout, expected);
}

TEST(MegatronCommandLine, DescribesLlamaWithFp8) {
  const ResolvedJob job = job_of(
      "--num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672 --num-attention-heads 64 "
      "--group-query-attention "
      "--num-query-groups 8 --max-position-embeddings 131072 --position-embedding-type rope --normalization "
      "RMSNorm "
      "--swiglu --disable-bias-linear --untie-embeddings-and-output-weights --hidden-dropout 0.0 "
      "--attention-dropout 0 --vocab-size 128256 --seq-length 8192 --tensor-model-parallel-size 4 "
      "--pipeline-model-parallel-size 4 --context-parallel-size 2 --cp-comm-type a2a --micro-batch-size 1 "
      "--global-batch-size 128 --bf16 --fp8-format hybrid --fp8-recipe tensorwise --fp8-param-gather "
      "--tp-comm-overlap --transformer-impl transformer_engine --cross-entropy-loss-fusion",
      {.n_gpus = 64});
  Transformer expected = find_preset("llama-3.1-70b").value();
  expected.name = job.model.name;
  EXPECT_EQ(job.model, expected);
  EXPECT_EQ(job.layout.degrees.data, 2);
  EXPECT_EQ(job.layout.layer.precision.compute, DType::fp8);
  EXPECT_EQ(job.layout.layer.precision.other, DType::bf16);
  EXPECT_EQ(job.layout.layer.precision.gradients, DType::fp32);
  EXPECT_EQ(job.layout.layer.precision.fp8.scaling, Fp8Scaling::dynamic);
  EXPECT_TRUE(job.layout.layer.precision.fp8.gather_weights);
  EXPECT_TRUE(job.layout.layer.overlap.tensor_parallel);
  EXPECT_TRUE(job.layout.layer.fused.cross_entropy);
  EXPECT_EQ(job.layout.layer.context_parallel_kind, ContextParallelKind::all_to_all);
  EXPECT_EQ(job.layout.layer.attention, AttentionMethod::flash);
  EXPECT_THAT(job.not_modelled, IsEmpty());
}

TEST(MegatronCommandLine, DescribesDeepSeek) {
  const ResolvedJob job = job_of(
      "--num-layers 61 --hidden-size 7168 --ffn-hidden-size 18432 --num-attention-heads 128 "
      "--max-position-embeddings 163840 --position-embedding-type rope --normalization RMSNorm --swiglu "
      "--disable-bias-linear --untie-embeddings-and-output-weights --hidden-dropout 0 --attention-dropout 0 "
      "--vocab-size 129280 --multi-latent-attention --q-lora-rank 1536 --kv-lora-rank 512 --qk-head-dim 128 "
      "--qk-pos-emb-head-dim 64 --v-head-dim 128 --kv-channels 128 --qk-layernorm --num-experts 256 "
      "--moe-router-topk 8 --moe-ffn-hidden-size 2048 --moe-shared-expert-intermediate-size 2048 "
      "--moe-layer-freq ([0]*3+[1]*58) --mtp-num-layers 1 --seq-length 4096 --micro-batch-size 1 "
      "--moe-router-num-groups 8 --moe-router-group-topk 4 --pipeline-schedule dualpipe --moe-fp8-dispatch "
      "--activation-func-fp8-input-store "
      "--expert-model-parallel-size 64 --expert-tensor-parallel-size 1 --moe-expert-capacity-factor 1.5 "
      "--bf16",
      {.n_gpus = 64});
  Transformer expected = find_preset("deepseek-v3").value();
  expected.name = job.model.name;
  EXPECT_EQ(job.model, expected);
  EXPECT_EQ(job.layout.degrees.expert, 64);
  EXPECT_EQ(job.layout.degrees.expert_tensor, 1);
  EXPECT_EQ(job.layout.layer.expert_capacity_factor, 1.5);
  EXPECT_TRUE(job.layout.layer.narrow_dispatch);
  EXPECT_TRUE(job.layout.layer.narrow_activation_inputs);
  EXPECT_EQ(job.layout.pipeline.schedule, PipelineSchedule::one_f_one_b);  // without a pipeline there is none
  EXPECT_EQ(job.layout.batch.global_batch_sequences, 64);
}

TEST(MegatronCommandLine, FlagsChangeExpertsOfAGivenModel) {
  const Transformer model = find_preset("deepseek-v3").value();
  const Given given{.model = model};
  const ResolvedJob job = job_of("--seq-length 4096 --moe-router-topk 4 --moe-ffn-hidden-size 1024", given);
  Transformer expected = model;
  expected.moe->experts_per_token = 4;
  expected.moe->expert_ffn_hidden_size = 1024;
  EXPECT_EQ(job.model, expected);
  EXPECT_EQ(job_of("--seq-length 4096 --num-experts 128", given).model.moe->n_shared_experts, 1);
  EXPECT_THAT(message_of("--seq-length 4096 --moe-router-topk 257", given),
              AllOf(HasSubstr("experts_per_token"), HasSubstr("from 1 to 256")));
  EXPECT_THAT(message_of("--seq-length 4096 --moe-expert-capacity-factor 0", given),
              HasSubstr("leaves no token"));
  EXPECT_EQ(
      job_of("--seq-length 4096 --moe-expert-capacity-factor -1", given).layout.layer.expert_capacity_factor,
      std::nullopt);
}

TEST(MegatronCommandLine, FlagsChangeAGivenModel) {
  const Transformer llama = find_preset("llama-3-8b").value();
  const ResolvedJob same = job_of("--seq-length 8192 --bf16", {.model = llama});
  EXPECT_EQ(same.model, llama);
  const ResolvedJob changed =
      job_of("--seq-length 8192 --num-layers 16 --num-query-groups 4", {.model = llama});
  EXPECT_EQ(changed.model.n_layers, 16);
  EXPECT_EQ(changed.model.n_kv_heads, 4);
  EXPECT_TRUE(changed.model.gated_ffn);
}

TEST(MegatronCommandLine, SettingsOfTodaysRecipes) {
  const LayerChoices layer =
      job_of(small("--bf16 --fp8-format hybrid --fp8-recipe mxfp8 --recompute-granularity selective "
                   "--recompute-modules layernorm mlp --cuda-graph-impl transformer_engine "
                   "--cuda-graph-scope attn "
                   "mlp --moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep "
                   "--overlap-moe-expert-parallel-comm --delay-wgrad-compute --cpu-offloading-num-layers 3 "
                   "--lora-rank 8 --lora-target-modules "
                   "linear_qkv --packed-mean-tokens 300 --exp-avg-dtype bf16"))
          .layout.layer;
  EXPECT_EQ(layer.precision.fp8.scaling, Fp8Scaling::mxfp8);
  EXPECT_EQ(layer.precision.moments, DType::bf16);
  EXPECT_EQ(layer.recompute.kind, Recompute::selective);
  EXPECT_EQ(layer.recompute.modules,
            (RecomputedModules{.core_attention = false, .norms = true, .ffn = true}));
  EXPECT_EQ(layer.cuda_graphs, (CudaGraphs{.attention = true, .ffn = true}));
  EXPECT_EQ(layer.dispatcher, TokenDispatcher::hybridep);
  EXPECT_TRUE(layer.overlap.delayed_weight_gradient && layer.activation_offload && layer.frozen_base);
  EXPECT_EQ(layer.activation_offload_layers, 3);
  EXPECT_EQ(layer.adapters, (Adapters{.rank = 8, .attention_output = false}));
  EXPECT_EQ(layer.packed_mean_tokens, 300);
}

TEST(MegatronCommandLine, RefusesAdaptersWithoutARankAndNothingToTrain) {
  EXPECT_THAT(message_of(small("--bf16 --lora-target-modules linear_qkv")), HasSubstr("--lora-rank"));
  EXPECT_THAT(message_of(small("--bf16 --frozen-base")), HasSubstr("leaves nothing to train"));
  EXPECT_THAT(message_of(small("--bf16 --lora-dropout 0.1")), HasSubstr("--lora-rank"));
  EXPECT_THAT(message_of(small("--bf16 --lora-rank 8 --lora-dropout 1")), HasSubstr("below 1"));
  EXPECT_THAT(message_of(small("--bf16 --lora-base-weights nf4")), HasSubstr("--lora-rank"));
  EXPECT_THAT(message_of(small("--bf16 --lora-rank 8 --lora-base-weights int4")), HasSubstr("nf4-double"));
  EXPECT_EQ(job_of(small("--bf16 --lora-rank 8 --lora-base-weights nf4")).layout.layer.frozen_weights,
            FrozenWeights::nf4);
}

// 24 layers on 2 x 2 stages, the last with the loss alone.
TEST(MegatronCommandLine, ReadsALayoutOfStages) {
  const Layout layout =
      job_of(small("--bf16 --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout "
                   "Et*7|t*8|t*9|L --global-batch-size 64"))
          .layout;
  EXPECT_EQ(layout.degrees.virtual_stages, 2);
  EXPECT_THAT(layout.pipeline.layers_per_stage, ElementsAre(7, 8, 9, 0));
}

TEST(MegatronCommandLine, KnowsOldSpellings) {
  const ResolvedJob job =
      job_of(small("--model-parallel-size 2 --checkpoint-activations --checkpoint-num-layers 2 "
                   "--DDP-impl torch --fp16 --no-scatter-gather-tensors-in-pipeline"),
             {.n_gpus = 16});
  EXPECT_EQ(job.layout.degrees.tensor, 2);
  EXPECT_EQ(job.layout.degrees.data, 8);
  EXPECT_EQ(job.layout.batch.global_batch_sequences, 32);
  EXPECT_EQ(job.layout.layer.recompute.kind, Recompute::full);
  EXPECT_EQ(job.layout.layer.recompute.chunk_layers, 2);
  EXPECT_EQ(job.layout.layer.attention, AttentionMethod::unfused);
  EXPECT_EQ(job.layout.layer.precision.compute, DType::fp16);
  EXPECT_EQ(job.layout.layer.precision.gradients, DType::fp16);
  EXPECT_FALSE(job.layout.pipeline.p2p_scatter_gather);
  EXPECT_EQ(parameter_count(job.model).total(), 354'823'168);  // GPT-2 medium
}

TEST(MegatronCommandLine, ReadsRecomputation) {
  const auto layout = [](std::string_view flags) { return job_of(small(flags)).layout; };
  EXPECT_EQ(layout("").layer.recompute.kind, Recompute::none);
  const Layout block =
      layout("--recompute-granularity full --recompute-method block --recompute-num-layers 3");
  EXPECT_EQ(block.layer.recompute.kind, Recompute::full);
  EXPECT_EQ(block.layer.recompute.layers_per_stage, 3);
  const Layout uniform =
      layout("--recompute-granularity full --recompute-method uniform --recompute-num-layers 4");
  EXPECT_EQ(uniform.layer.recompute.layers_per_stage, std::nullopt);
  EXPECT_EQ(uniform.layer.recompute.chunk_layers, 4);
  EXPECT_EQ(layout("--recompute-granularity selective").layer.recompute.kind, Recompute::selective);
}

TEST(MegatronCommandLine, ReadsUnevenStages) {
  const auto layers = [](std::string_view flags) {
    return job_of(small(flags), {.n_gpus = 4}).layout.pipeline.layers_per_stage;
  };
  EXPECT_THAT(layers("--pipeline-model-parallel-size 4"), IsEmpty());
  EXPECT_THAT(layers("--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 3 "
                     "--decoder-last-pipeline-num-layers 5"),
              ElementsAre(3, 8, 8, 5));
  EXPECT_THAT(layers("--pipeline-model-parallel-size 4 --decoder-last-pipeline-num-layers 3"),
              ElementsAre(7, 7, 7, 3));
  const auto accounted = job_of(
      "--num-layers 126 --hidden-size 16384 --num-attention-heads 128 --seq-length 8192 "
      "--max-position-embeddings 8192 "
      "--vocab-size 128256 --pipeline-model-parallel-size 16 --account-for-embedding-in-pipeline-split "
      "--account-for-loss-in-pipeline-split");
  EXPECT_THAT(accounted.layout.pipeline.layers_per_stage,
              ElementsAre(7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7));
}

TEST(MegatronCommandLine, ReadsZero) {
  EXPECT_EQ(job_of(small("--deepspeed --zero-stage 2")).layout.sharding.kind, Sharding::zero2);
  EXPECT_EQ(job_of(small("--zero-stage=3")).layout.software.framework, Framework::deepspeed);
  EXPECT_EQ(job_of(small("--use-torch-fsdp2")).layout.sharding.kind, Sharding::zero3);
  EXPECT_EQ(job_of(small("--data-parallel-sharding-strategy optim_grads")).layout.sharding.kind,
            Sharding::zero2);
  EXPECT_THAT(message_of(small("--zero-stage 4")), HasSubstr("0 to 3"));
}

TEST(MegatronCommandLine, InstancesOfTheOptimizerAreCopiesOfItsShards) {
  const std::string sharded = "--use-distributed-optimizer --num-distributed-optimizer-instances ";
  EXPECT_EQ(job_of(small(sharded + "2"), {.n_gpus = 8}).layout.sharding.shard_group_size, 4);
  EXPECT_EQ(job_of(small(sharded + "1"), {.n_gpus = 8}).layout.sharding.shard_group_size, 0);
  EXPECT_THAT(message_of(small(sharded + "3"), {.n_gpus = 8}),
              HasSubstr("a divisor of the 8 data-parallel ranks"));
}

TEST(MegatronCommandLine, ReadsTheLayersWithExperts) {
  const auto moe = [](const std::string& pattern) {
    return *job_of(small("--num-experts 8 --moe-layer-freq \"" + pattern + "\"")).model.moe;
  };
  EXPECT_EQ(moe("1").moe_every_n_layers, 1);
  EXPECT_EQ(moe("2").moe_every_n_layers, 2);
  EXPECT_EQ(moe("[1]*24").first_dense_layers, 0);
  EXPECT_EQ(moe("[0] + [1] * 23").first_dense_layers, 1);
  EXPECT_EQ(moe("[0,0,1]*8").moe_every_n_layers, 3);
  EXPECT_EQ(moe("[0,0,1]*8").first_dense_layers, 0);
  EXPECT_THAT(message_of(small("--num-experts 8 --moe-layer-freq [1]*23")), HasSubstr("not 23"));
  EXPECT_THAT(message_of(small("--num-experts 8 --moe-layer-freq [1,0]*12")),
              HasSubstr("dense layers before"));
  EXPECT_THAT(message_of(small("--num-experts 8 --moe-layer-freq [1]*99999999999")),
              HasSubstr("--moe-layer-freq"));
  EXPECT_THAT(message_of(small("--num-experts 8 --moe-layer-freq 5")), HasSubstr("a divisor of 24 layers"));
  EXPECT_THAT(message_of(small("--num-experts 8 --moe-layer-freq '[1;1]'")), HasSubstr("zeros and ones"));
}

TEST(MegatronCommandLine, RefusesWhatItDoesNotUnderstand) {
  const std::string typed[] = {"--num-layerz", "3"};
  const auto words = parse_megatron_flags(typed);
  EXPECT_THAT(words.ok() ? "" : words.error().message(),
              AllOf(HasSubstr("--num-layerz: unknown flag"), HasSubstr("did you mean `--num-layers`?")));
  EXPECT_THAT(message_of(small("--swiglu 3")), AllOf(HasSubstr("--swiglu"), HasSubstr("no value")));
  EXPECT_THAT(message_of(small("--num-layers")),
              AllOf(HasSubstr("--num-layers"), HasSubstr("found nothing")));
  EXPECT_THAT(message_of(small("--num-layers 3 4")), HasSubstr("2 words"));
  EXPECT_THAT(message_of(small("--num-layers 3.5")), HasSubstr("a whole number"));
  EXPECT_THAT(message_of(small("--hidden-dropout x")), HasSubstr("a number"));
  EXPECT_THAT(message_of(small("--normalization BatchNorm")), HasSubstr("LayerNorm, RMSNorm"));
  EXPECT_THAT(message_of(small("--fp16 --bf16")), HasSubstr("--bf16"));
  EXPECT_THAT(message_of("ls -l"), HasSubstr("the first word is not a flag"));
  EXPECT_THAT(message_of("pretrain_vlm.py --num-layers 3"), HasSubstr("pretrain_vlm.py"));
  EXPECT_THAT(message_of("a/examples/multimodal/train.py --num-layers 3"), HasSubstr("vision"));
  EXPECT_THAT(message_of("examples/mimo/train.py --num-layers 3"), HasSubstr("vision"));
  EXPECT_THAT(message_of("tools/preprocess_data.py --num-layers 3"), HasSubstr("prepares data"));
  EXPECT_THAT(message_of("tools/checkpoint/convert.py --num-layers 3"), HasSubstr("converts checkpoints"));
  EXPECT_THAT(message_of("tasks/main.py --num-layers 3"), HasSubstr("evaluation"));
  EXPECT_THAT(message_of(small("--tensor-model-parallel-size $TP")),
              AllOf(HasSubstr("--tensor-model-parallel-size: found `$TP`"), HasSubstr("a whole number")));
  EXPECT_THAT(message_of(small("--data-path 'open")), HasSubstr("not closed"));
  EXPECT_THAT(message_of(small("--tensor-model-parallel-size 3")),
              HasSubstr("not divisible by tensor_parallel 3"));
  EXPECT_THAT(message_of(small("--tensor-model-parallel-size 8"), {.n_gpus = 12}), HasSubstr("12 GPUs"));
  EXPECT_THAT(message_of(""), HasSubstr("describes no model"));
}

TEST(MegatronCommandLine, RefusesFlagsThatContradictEachOther) {
  for (const char* both : {"--recompute-granularity full --recompute-activations",
                           "--use-flash-attn --attention-backend unfused",
                           "--tp-comm-overlap --no-tp-comm-overlap", "--swiglu --squared-relu"}) {
    EXPECT_THAT(message_of(small(both)), AllOf(HasSubstr("given together with"), HasSubstr("choose one")))
        << both;
  }
  EXPECT_THAT(message_of(small("--padded-vocab-size 200 --vocab-size 300")),
              HasSubstr("--padded-vocab-size: found 200, expected at least the 300 of --vocab-size"));
  for (const char* alike :
       {"--recompute-granularity selective --recompute-activations",
        "--use-flash-attn --attention-backend flash", "--use-flash-attn --attention-backend auto",
        "--vocab-size 300 --padded-vocab-size 384"}) {
    EXPECT_EQ(message_of(small(alike)), "no error") << alike;
  }
}

// pretrain_gpt.py takes the tokenizer of GPT-2 unless told otherwise.
TEST(MegatronCommandLine, TakesTheTokenizerOfItsScript) {
  const std::string flags =
      " --num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 --micro-batch-size 1 "
      "--max-position-embeddings 1024 --merge-file m.txt";
  EXPECT_EQ(job_of("torchrun pretrain_gpt.py" + flags).model.vocab_size, 50257);
  EXPECT_EQ(job_of("torchrun pretrain_gpt.py" + flags + " --vocab-size 1000").model.vocab_size, 1000);
  const auto notes = [&](const std::string& line) {
    std::string all;
    for (const std::string& note : job_of(line + flags).notes) all += note + "\n";
    return all;
  };
  EXPECT_THAT(notes("torchrun other.py"), HasSubstr("50257 words are assumed"));
  EXPECT_THAT(notes("torchrun pretrain_gpt.py --tokenizer-type HuggingFaceTokenizer"),
              HasSubstr("128256 words are assumed"));
}

TEST(MegatronCommandLine, ReadsBert) {
  const ResolvedJob job = job_of("python pretrain_bert.py " + small("--bert-no-binary-head"));
  EXPECT_EQ(job.model.architecture, Architecture::encoder);
  EXPECT_EQ(job.model.n_token_types, 2);
}

TEST(MegatronCommandLine, ReadsMegatronDeepSpeedsNames) {
  const auto words = parse_megatron_command_line(
      "deepspeed --num_gpus 8 pretrain_gpt.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 "
      "--num-key-value-heads 2 --normalization rmsnorm");
  ASSERT_TRUE(words.ok()) << words.error().message();
  EXPECT_EQ(words->settings.query_groups, 2);
  EXPECT_EQ(words->settings.grouped_query, true);
  EXPECT_EQ(words->settings.norm, NormKind::rms_norm);
  EXPECT_EQ(words->n_gpus, 8);
}

// What may be more flags is never a second value of a flag that has one.
TEST(MegatronCommandLine, NamesFlagsThatItCannotKnow) {
  for (const char* open : {"$EXTRA", "${EXTRA}", "$(more_flags 8)", "`more`"}) {
    const auto words = parse_megatron_command_line(
        std::string{
            "pretrain_gpt.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 --split 99,1,0 "} +
        open);
    ASSERT_TRUE(words.ok()) << words.error().message();
    EXPECT_THAT(words->unknown, ElementsAre(HasSubstr("the script does not set it"))) << open;
  }
  const auto value =
      parse_megatron_command_line("pretrain_gpt.py --num-layers 4 --hidden-size 8 --save $(date) --bf16");
  ASSERT_TRUE(value.ok()) << value.error().message();
  EXPECT_THAT(value->unknown, IsEmpty());
}

TEST(MegatronCommandLine, NamesTheFileThatHoldsTheSettings) {
  constexpr std::pair<const char*, const char*> kCommands[] = {
      {"llamafactory-cli train sft.yaml", "found `sft.yaml`"},
      {"tune run --nproc_per_node 8 lora_finetune_distributed --config llama3_1/8B_lora",
       "found `llama3_1/8B_lora`"},
      {"torchrun --nproc_per_node=8 -m torchtitan.train --job.config_file ./a.toml", "found `./a.toml`"},
      {"torchrun --nproc_per_node=8 sft.py --config recipe.yml", "found `recipe.yml`"}};
  for (const auto& [command, found] : kCommands) {
    const auto words = parse_megatron_command_line(command);
    ASSERT_FALSE(words.ok()) << command;
    EXPECT_THAT(words.error().message(), AllOf(HasSubstr(found), HasSubstr("--config, and --gpus")));
  }
}

}  // namespace
}  // namespace stepcast::megatron_test
