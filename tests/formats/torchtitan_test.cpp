#include "stepcast/formats/torchtitan.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/formats/presets.h"

namespace stepcast::torchtitan_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ResolvedJob job_of(std::string_view text, const TorchTitanOptions& options = {}) {
  auto job = parse_torchtitan_config(text, "job.toml", options);
  EXPECT_TRUE(job.ok()) << job.error().message();
  return job.ok() ? std::move(*job) : ResolvedJob{};
}

std::string message_of(std::string_view text, const TorchTitanOptions& options = {.n_gpus = 8}) {
  const auto job = parse_torchtitan_config(text, "job.toml", options);
  return job.ok() ? "no error" : job.error().message();
}

// Like the config of Llama 3 8B that ships with torchtitan.
constexpr std::string_view kLlama8b = R"(
[job]
dump_folder = "./outputs"
description = "Llama 3 8B training"

[profiling]
enable_profiling = true

[metrics]
log_freq = 10

[model]
name = "llama3"
flavor = "8B"
norm_type = "rmsnorm"  # layernorm / np_layernorm / rmsnorm
tokenizer_path = "./tokenizer.model"

[optimizer]
name = "AdamW"
lr = 3e-4

[training]
batch_size = 1
seq_len = 8192
warmup_steps = 200  # lr scheduler warm up
max_norm = 1.0
steps = 1000
data_parallel_replicate_degree = 1
data_parallel_shard_degree = -1
tensor_parallel_degree = 1
compile = false
dataset = "c4"

[experimental]
context_parallel_degree = 1
pipeline_parallel_degree = 1

[checkpoint]
enable_checkpoint = false

[activation_checkpoint]
mode = 'selective'
selective_ac_option = 'op'  # 'int' = ac every positive int layer or 'op'

[float8]
enable_float8_linear = false
)";

TEST(TorchTitanConfig, DescribesLlama3) {
  const ResolvedJob job = job_of(kLlama8b, {.n_gpus = 128});
  EXPECT_EQ(job.model, find_preset("llama-3.1-8b").value());
  EXPECT_EQ(job.n_gpus, 128);
  Layout expected{
      .degrees = {.data = 128},
      .batch = {.micro_batch_sequences = 1, .global_batch_sequences = 128, .seq_len_tokens = 8192},
      .layer = {.recompute = {.kind = Recompute::selective_ops}},
      .sharding = {.kind = Sharding::zero3},
      .software = {.framework = Framework::torchtitan}};
  expected.optimizer.kind = OptimizerKind::adamw;
  expected.layer.precision.fp8.scaling = Fp8Scaling::dynamic;
  expected.layer.precision.fp8.gather_activations = true;
  expected.layer.fused = {.softmax = false,
                          .bias_activation = false,
                          .bias_dropout_add = false,
                          .norm = true,
                          .rotary = false,
                          .cross_entropy = false,
                          .weight_gradient_accumulation = false,
                          .compiled = false};
  expected.sharding.overlap_gradient_reduce = true;  // FSDP
  expected.layer.overlap.sequence_parallel_weight_gradient = false;
  expected.layer.context_parallel_kind = ContextParallelKind::all_gather;
  EXPECT_EQ(job.layout, expected);
  EXPECT_THAT(job.not_modelled, IsEmpty());
}

TEST(TorchTitanConfig, DescribesThe405BWithFourDegrees) {
  const ResolvedJob job = job_of(R"(
[model]
name = "llama3"
flavor = "405B"
converters = ["float8"]
[training]
local_batch_size = 32
global_batch_size = 512
seq_len = 8192
compile = true
[parallelism]
data_parallel_shard_degree = 8
tensor_parallel_degree = 8
enable_async_tensor_parallel = true
pipeline_parallel_degree = 8
pipeline_parallel_schedule = "Interleaved1F1B"
pipeline_parallel_microbatch_size = 2
context_parallel_degree = 2
context_parallel_rotate_method = "alltoall"
disable_loss_parallel = true
[activation_checkpoint]
mode = "full"
[quantize.linear.float8]
enable_fsdp_float8_all_gather = true
precompute_float8_dynamic_scale_for_fsdp = true
filter_fqns = ["output"]
)");
  const Layout& layout = job.layout;
  EXPECT_EQ(job.n_gpus, 1024);
  EXPECT_EQ(layout.degrees.data, 8);
  EXPECT_EQ(layout.degrees.virtual_stages, 2);
  EXPECT_EQ(layout.pipeline.schedule, PipelineSchedule::interleaved);
  EXPECT_THAT(layout.pipeline.layers_per_stage, ElementsAre(7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7));
  EXPECT_EQ(layout.batch.micro_batch_sequences, 2);
  EXPECT_EQ(layout.batch.global_batch_sequences, 512);
  EXPECT_TRUE(layout.layer.sequence_parallel);
  EXPECT_TRUE(layout.layer.overlap.tensor_parallel);
  EXPECT_FALSE(layout.sharding.reshard_after_forward);  // the default of pipelines
  EXPECT_EQ(layout.layer.context_parallel_kind, ContextParallelKind::all_to_all);
  EXPECT_EQ(layout.layer.recompute.kind, Recompute::full);
  EXPECT_EQ(layout.layer.precision.compute, DType::fp8);
  EXPECT_TRUE(layout.layer.precision.fp8.gather_weights);
  EXPECT_FALSE(layout.layer.precision.fp8.logits);
  EXPECT_TRUE(layout.layer.fused.compiled);
  EXPECT_THAT(job.not_modelled, ElementsAre("parallelism.disable_loss_parallel"));
}

TEST(TorchTitanConfig, ReadsHybridSharding) {
  const ResolvedJob job = job_of(
      "[model]\nflavor = '8B'\n[training]\nlocal_batch_size = 2\n"
      "[parallelism]\ndata_parallel_replicate_degree = 4\n",
      {.n_gpus = 32});
  EXPECT_EQ(job.layout.degrees.data, 32);
  EXPECT_EQ(job.layout.shard_group(), 8);
  EXPECT_EQ(job.layout.layer.recompute.every_n_layers, 2);  // the default: every second layer
  const ResolvedJob plain = job_of(
      "[model]\nflavor = '8B'\n[parallelism]\ndata_parallel_replicate_degree = 4\ndata_parallel_shard_degree "
      "= 1\n");
  EXPECT_EQ(plain.layout.sharding.kind, Sharding::none);
}

TEST(TorchTitanConfig, ReadsStages) {
  const auto layout = [](std::string_view more) {
    return job_of(
               "[model]\nflavor = '8B'\n[parallelism]\ndata_parallel_shard_degree = 1\n"
               "pipeline_parallel_degree = 4\n" +
               std::string{more})
        .layout;
  };
  EXPECT_THAT(layout("").pipeline.layers_per_stage, ElementsAre(8, 9, 8, 7));
  EXPECT_THAT(layout("pipeline_parallel_split_points = ['layers.7', 'layers.16', 'layers.25']")
                  .pipeline.layers_per_stage,
              ElementsAre(7, 9, 9, 7));
  const Layout many =
      layout("pipeline_parallel_schedule = 'Interleaved1F1B'\npipeline_parallel_layers_per_stage = 3\n");
  EXPECT_EQ(many.degrees.virtual_stages, 3);
}

// Of 2024 the local batch is cut into as many micro-batches as the pipeline has ranks: 32 into 8 of 4 sequences. Since
// then every sequence is one.
TEST(TorchTitanConfig, CutsTheBatchAsTheReleaseDoes) {
  const auto micro_batch = [](std::string_view section, std::string_view more) {
    return job_of("[model]\nflavor = '405B'\n[training]\nbatch_size = 32\ndata_parallel_shard_degree = 1\n[" +
                  std::string{section} + "]\npipeline_parallel_degree = 8\n" + std::string{more})
        .layout.batch.micro_batch_sequences;
  };
  EXPECT_EQ(micro_batch("experimental", ""), 4);
  EXPECT_EQ(micro_batch("experimental", "pipeline_parallel_microbatches = 16\n"), 2);
  EXPECT_EQ(micro_batch("parallelism", ""), 1);
}

TEST(TorchTitanConfig, RefusesWhatItDoesNotUnderstand) {
  EXPECT_THAT(message_of("[model]\nflavor = '8B'\n[training]\nsequence = 3\n"),
              AllOf(HasSubstr("job.toml: line 4: training.sequence: unknown key")));
  EXPECT_THAT(message_of("[model]\nflavor = '8B'\n[unheard]\na = 3\n"), HasSubstr("unheard: unknown key"));
  EXPECT_THAT(message_of("[model]\nflavor = '9B'\n"), HasSubstr("unknown model `llama3` of flavor `9B`"));
  EXPECT_THAT(message_of("[training]\nseq_len = 3\n"), HasSubstr("[model] is missing"));
  EXPECT_THAT(message_of("[model]\nflavor = '8B'\n[optimizer]\nimplementation = 'magic'\n"),
              HasSubstr("optimizer.implementation: found `magic`, expected for-loop, foreach or fused"));
  EXPECT_THAT(message_of("[model]\nflavor = '8B'\n[compile]\ncomponents = ['model', 'foo']\n"),
              HasSubstr("compile.components: found `foo`, expected model or loss"));
  EXPECT_THAT(message_of("[model]\nflavor = '8B'\n[training]\nsteps = 0\n"),
              HasSubstr("training.steps: found 0, expected 1 or more"));
  EXPECT_THAT(message_of("[model\n"), AllOf(HasSubstr("job.toml: line 1"), HasSubstr("not valid TOML")));
  EXPECT_THAT(message_of("[model]\nflavor = '8B'\n", {}), HasSubstr("give the number of GPUs"));
  EXPECT_THAT(message_of("[model]\nflavor = '8B'\n[parallelism]\ntensor_parallel_degree = 3\n"),
              HasSubstr("not a multiple of the other degrees, 3"));
  EXPECT_THAT(message_of("[model]\nflavor = '8B'\n[parallelism]\ntensor_parallel_degree = -1\n"),
              HasSubstr("tensor_parallel_degree"));
  EXPECT_THAT(message_of("[model]\nflavor = '8B'\n[activation_checkpoint]\nmode = 'some'\n"),
              HasSubstr("none, full or selective"));
  EXPECT_THAT(message_of("[model]\nflavor = '8B'\n[training]\nseq_len = 'long'\n"),
              AllOf(HasSubstr("training.seq_len"), HasSubstr("`long`")));
  EXPECT_THAT(message_of("[model]\nflavor = '8B'\n[training]\nseq_len = inf\n"),
              HasSubstr("a finite number"));
  EXPECT_THAT(message_of("[model]\nflavor = '8B'\n[parallelism]\npipeline_parallel_degree = 2\n"
                         "pipeline_parallel_schedule = 'LoopedBFS'\n"),
              HasSubstr("1F1B, GPipe, Interleaved1F1B or ZBVZeroBubble"));
  EXPECT_THAT(message_of(std::string_view{"[model]\n[a\0]", 12}), HasSubstr("line 2: not valid TOML"));
  EXPECT_THAT(message_of("[\nkey]"), HasSubstr("not valid TOML"));
  std::string deep = "a = ";
  for (int i = 0; i < 100; ++i) deep += '[';
  for (int i = 0; i < 100; ++i) deep += ']';
  EXPECT_THAT(message_of(deep), HasSubstr("line 1"));
}

TEST(TorchTitanConfig, TakesAnyModel) {
  const Transformer model = find_preset("qwen2.5-7b").value();
  const ResolvedJob job = job_of("[training]\nlocal_batch_size = 1\n", {.model = model, .n_gpus = 8});
  EXPECT_EQ(job.model, model);
}

TEST(TorchTitanConfig, KeepsWeightsInTheTypeOfTraining) {
  const auto text = [](const std::string& dtype) {
    return "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\ndtype = \"" + dtype + "\"\n";
  };
  const Precision usual = job_of(text("float32"), {.n_gpus = 8}).layout.layer.precision;
  EXPECT_TRUE(usual.master_weights);
  const Precision narrow = job_of(text("bfloat16"), {.n_gpus = 8}).layout.layer.precision;
  EXPECT_FALSE(narrow.master_weights);
  EXPECT_EQ(narrow.moments, DType::bf16);
  EXPECT_THAT(message_of(text("int3")),
              HasSubstr("training.dtype: found `int3`, expected bfloat16, float16 or float32"));
}

}  // namespace
}  // namespace stepcast::torchtitan_test
