#include "stepcast/formats/deepspeed.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/formats/presets.h"

namespace stepcast::deepspeed_test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

ResolvedJob base_64() {
  ResolvedJob base;
  base.model = find_preset("llama-2-13b").value();
  base.layout.batch.seq_len_tokens = 4096;
  base.n_gpus = 64;
  return base;
}

ResolvedJob job_of(std::string_view text, const ResolvedJob& base = base_64()) {
  auto job = parse_deepspeed_config(text, "ds.json", base);
  EXPECT_TRUE(job.ok()) << job.error().message();
  return job.ok() ? std::move(*job) : ResolvedJob{};
}

std::string message_of(std::string_view text, const ResolvedJob& base = base_64()) {
  const auto job = parse_deepspeed_config(text, "ds.json", base);
  if (!job.ok()) return job.error().message();
  const Status runs = check(job->layout, job->model, job->n_gpus);
  return runs.ok() ? "no error" : runs.error().message();
}

TEST(DeepSpeedConfig, DescribesZero3WithOffload) {
  const ResolvedJob job = job_of(R"({
    "train_batch_size": "auto", "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4,
    "steps_per_print": 10, "gradient_clipping": 1.0, "bf16": {"enabled": true},
    "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": [0.9, 0.95]}},
    "zero_optimization": {
      "stage": 3, "overlap_comm": true, "contiguous_gradients": true, "reduce_bucket_size": 5e7,
      "stage3_prefetch_bucket_size": "auto", "sub_group_size": 1e9, "zero_quantized_weights": true,
      "offload_optimizer": {"device": "cpu", "pin_memory": true}, "offload_param": {"device": "none"}},
    "activation_checkpointing": {"partition_activations": true, "cpu_checkpointing": true}})");
  const Layout& layout = job.layout;
  EXPECT_EQ(layout.software.framework, Framework::deepspeed);
  EXPECT_EQ(layout.degrees.data, 64);
  EXPECT_EQ(layout.batch.global_batch_sequences, 512);
  EXPECT_EQ(layout.micro_batches(), 4);
  EXPECT_EQ(layout.sharding.kind, Sharding::zero3);
  EXPECT_EQ(layout.sharding.bucket_parameters, 50'000'000);
  EXPECT_TRUE(layout.optimizer.cpu_offload);
  EXPECT_FALSE(layout.sharding.parameter_offload);
  EXPECT_TRUE(layout.optimizer.gradient_clip);
  EXPECT_TRUE(layout.sharding.overlap_gradient_reduce);
  EXPECT_EQ(layout.layer.precision.compute, DType::bf16);
  EXPECT_EQ(layout.layer.precision.reduction, DType::bf16);
  EXPECT_EQ(layout.layer.precision.gradients, DType::bf16);
  EXPECT_EQ(layout.layer.recompute.kind, Recompute::full);
  EXPECT_TRUE(layout.layer.activation_offload);
  EXPECT_THAT(job.not_modelled, UnorderedElementsAre("zero_optimization.zero_quantized_weights",
                                                     "activation_checkpointing.partition_activations"));
}

TEST(DeepSpeedConfig, ReadsDegreesOfTensorsAndSequences) {
  const Layout layout = job_of(R"({"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 2,
    "sequence_parallel_size": 4, "tensor_parallel": {"autotp_size": 2}})")
                            .layout;
  EXPECT_EQ(layout.degrees.tensor, 2);
  EXPECT_EQ(layout.degrees.context, 4);
  EXPECT_EQ(layout.degrees.data, 8);
  EXPECT_EQ(layout.layer.context_parallel_kind, ContextParallelKind::all_to_all);
  EXPECT_EQ(layout.batch.global_batch_sequences, 16);
}

TEST(DeepSpeedConfig, DefaultsAreDeepSpeeds) {
  const ResolvedJob job = job_of(R"({"train_batch_size": 128, "fp16": {"enabled": true, "loss_scale": 0}})");
  EXPECT_EQ(job.layout.sharding.kind, Sharding::none);
  EXPECT_EQ(job.layout.batch.micro_batch_sequences, 2);
  EXPECT_EQ(job.layout.layer.precision, precision_for(DType::fp16));
  EXPECT_FALSE(job.layout.optimizer.gradient_clip);
  EXPECT_FALSE(job.layout.sharding.overlap_gradient_reduce);
  EXPECT_THAT(job.not_modelled, IsEmpty());
  EXPECT_EQ(job_of(R"({"train_batch_size": 64})").layout.layer.precision.compute, DType::fp32);
  const ResolvedJob reduced = job_of(R"({"train_batch_size": 64, "bf16": {"enabled": true},
    "communication_data_type": "fp32", "data_types": {"grad_accum_dtype": "fp32"}, "zero_optimization": {"stage": 2}})");
  EXPECT_EQ(reduced.layout.layer.precision.reduction, DType::fp32);
  EXPECT_EQ(reduced.layout.layer.precision.gradients, DType::fp32);
}

DType compute_of(std::string_view text, const JobSettings& said = {}) {
  const auto job = parse_deepspeed_config(text, "ds.json", base_64(), said);
  EXPECT_TRUE(job.ok()) << job.error().message();
  return job.ok() ? job->layout.layer.precision.compute : DType::unknown;
}

// The Trainer's template says "auto" of both types; a section without `enabled` is off, as DeepSpeed has it.
TEST(DeepSpeedConfig, LeavesTypesOpenThatAreAuto) {
  constexpr std::string_view kAuto =
      R"({"train_batch_size": 64, "fp16": {"enabled": "auto", "loss_scale": 0}, "bf16": {"enabled": "auto"}})";
  EXPECT_EQ(compute_of(kAuto), DType::bf16);
  EXPECT_THAT(job_of(kAuto).notes, Contains("computation type is \"auto\": bf16 is assumed"));
  EXPECT_EQ(compute_of(kAuto, {.dtype = DType::bf16}), DType::bf16);
  EXPECT_EQ(compute_of(kAuto, {.dtype = DType::fp16}), DType::fp16);
  EXPECT_EQ(compute_of(R"({"fp16": {"enabled": "auto"}})"), DType::fp16);
  EXPECT_EQ(compute_of(R"({"fp16": {"enabled": "auto"}, "bf16": {"enabled": true}})"), DType::bf16);
  EXPECT_EQ(compute_of(R"({"fp16": {"enabled": true}, "bf16": {"enabled": "auto"}})"), DType::fp16);
  EXPECT_EQ(compute_of(R"({"fp16": {"loss_scale": 0}})"), DType::fp32);
  EXPECT_EQ(compute_of(R"({"fp16": {"loss_scale": 0}, "bf16": {}})"), DType::fp32);
  EXPECT_EQ(compute_of(R"({"fp16": {"enabled": true}, "bf16": {"enabled": true}})", {.dtype = DType::fp16}),
            DType::fp16);
}

TEST(DeepSpeedConfig, KeepsWhatTheBaseSays) {
  ResolvedJob base = base_64();
  base.layout.degrees.tensor = 4;
  base.layout.batch.micro_batch_sequences = 2;
  base.layout.layer.sequence_parallel = true;
  const ResolvedJob job =
      job_of(R"({"gradient_accumulation_steps": 8, "zero_optimization": {"stage": 1}})", base);
  EXPECT_EQ(job.layout.degrees.data, 16);
  EXPECT_EQ(job.layout.batch.global_batch_sequences, 2 * 8 * 16);
  EXPECT_TRUE(job.layout.layer.sequence_parallel);
  EXPECT_EQ(job.model, base.model);
}

TEST(DeepSpeedConfig, RefusesWhatItDoesNotUnderstand) {
  EXPECT_THAT(message_of("{\"train_batch_size\": 64,\n\"zero_optimisation\": {}}"),
              HasSubstr("ds.json: line 2: zero_optimisation: unknown key"));
  EXPECT_THAT(message_of(R"({"zero_optimization": {"stage": 4}})"), HasSubstr("zero_optimization.stage"));
  EXPECT_THAT(message_of(R"({"zero_optimization": {"shard": 4}})"),
              HasSubstr("zero_optimization.shard: unknown key"));
  EXPECT_THAT(message_of(R"({"train_batch_size": 100})"),
              AllOf(HasSubstr("train_batch_size"), HasSubstr("a multiple of 64 data-parallel ranks")));
  // 1e9 / 64 ranks = 15,625,000 sequences of 4096 tokens each: 6.4e10 tokens.
  EXPECT_THAT(message_of(R"({"train_batch_size": 1000000000})"),
              HasSubstr("a micro-batch of 15625000 sequences x 4096 tokens"));
  EXPECT_THAT(message_of(R"({"train_batch_size": 128, "train_micro_batch_size_per_gpu": 1,
                             "gradient_accumulation_steps": 4})"),
              HasSubstr("= 256"));
  EXPECT_THAT(message_of(R"({"fp16": {"enabled": true}, "bf16": {"enabled": true}})"),
              HasSubstr("choose one"));
  EXPECT_THAT(message_of(R"({"optimizer": {"type": "Lion"}})"), HasSubstr("optimizer.type"));
  EXPECT_THAT(message_of(R"({"zero_optimization": {"offload_optimizer": {"device": "disk"}}})"),
              HasSubstr("none, cpu or nvme"));
  ResolvedJob base = base_64();
  base.n_gpus = 30;
  base.layout.degrees.tensor = 4;
  EXPECT_THAT(message_of(R"({"train_batch_size": 64})", base), HasSubstr("30 GPUs"));
  base = base_64();
  base.layout.batch.seq_len_tokens = 0;
  EXPECT_THAT(message_of(R"({"train_batch_size": 64})", base), HasSubstr("seq_len_tokens"));
}

}  // namespace
}  // namespace stepcast::deepspeed_test
