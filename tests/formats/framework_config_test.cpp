#include "stepcast/formats/framework_config.h"

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/formats/resolve_job.h"
#include "stepcast/workload/memory.h"

#include "tests/support/paths.h"

namespace stepcast::framework_config_test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Expected {
  const char* file;
  std::int64_t gpus, layers, tensor, pipeline, micro, global, sequence, adapter_rank;
};
// Worked out by hand: the global batch is micro-batch x accumulation x data-parallel ranks.
constexpr Expected kConfigs[] = {
    {"maxtext_llama2_7b.yaml", 8, 32, 1, 1, 4, 32, 4096, 0},
    {"maxtext_dims.yaml", 8, 32, 2, 1, 4, 32, 8192, 0},
    {"maxtext_mixtral.yaml", 8, 32, 1, 1, 1, 8, 4096, 0},
    {"nanotron_1b.yaml", 8, 24, 1, 1, 4, 64, 2048, 0},
    {"nanotron_8b_tp.yaml", 16, 32, 4, 1, 2, 64, 4096, 0},
    {"nanotron_pp.yaml", 16, 32, 2, 4, 1, 32, 2048, 0},
    {"torchtune_full.yaml", 8, 32, 1, 1, 2, 64, 4096, 0},
    {"torchtune_lora.yaml", 8, 80, 1, 1, 2, 16, 8192, 16},
    {"torchtune_tp.yaml", 8, 32, 2, 1, 4, 16, 2048, 0},
    {"bridge_llama.yaml", 8, 32, 2, 1, 1, 128, 8192, 0},
    {"nemo2_llama.yaml", 16, 32, 4, 2, 1, 64, 8192, 0},
    {"nemo2_class.yaml", 64, 80, 4, 4, 1, 128, 8192, 0},
    {"axolotl_lora.yaml", 8, 32, 1, 1, 2, 64, 4096, 32},
    {"axolotl_fsdp.yaml", 8, 80, 1, 1, 1, 8, 8192, 0},
    {"axolotl_zero3.yaml", 8, 32, 1, 1, 2, 32, 4096, 0},
    {"llamafactory_lora.yaml", 8, 32, 1, 1, 1, 64, 2048, 8},
    {"llamafactory_full.yaml", 8, 32, 1, 1, 2, 32, 4096, 0},
    {"llamafactory_fsdp.yaml", 8, 36, 1, 1, 4, 32, 2048, 0},
    {"trl_sft.yaml", 8, 36, 1, 1, 2, 128, 2048, 0},
    {"trl_peft.yaml", 8, 32, 1, 1, 4, 64, 1024, 16},
    {"trl_zero3.yaml", 8, 64, 1, 1, 1, 32, 4096, 0},
    {"trainer_ddp.yaml", 8, 28, 1, 1, 4, 32, 1024, 0},
    {"trainer_fsdp.json", 8, 40, 1, 1, 2, 64, 4096, 0},
    {"trainer_zero2.yaml", 8, 32, 1, 1, 1, 128, 2048, 0},
};

Job job_of(const std::string& text) { return {.n_gpus = 8, .config = ConfigText{text, "c.yaml"}}; }

std::string error_of(const Job& job) {
  const auto resolved = resolve(job);
  return resolved.ok() ? "no error" : resolved.error().message();
}

class FrameworkConfigFile : public ::testing::TestWithParam<Expected> {};

TEST_P(FrameworkConfigFile, ComesToItsLayout) {
  const Expected& e = GetParam();
  Job job;
  auto text = read_config_text(test::source_dir() / "tests/formats/configs/frameworks" / e.file);
  ASSERT_TRUE(text.ok()) << text.error().message();
  job.config = std::move(*text);
  // NeMo's and Nanotron's say how many there are.
  const std::string name = e.file;
  if (!name.starts_with("nanotron") && !name.starts_with("nemo2")) job.n_gpus = e.gpus;
  const auto resolved = resolve(job);
  ASSERT_TRUE(resolved.ok()) << resolved.error().message();
  const Layout& layout = resolved->layout;
  EXPECT_EQ(layout.world_size(), e.gpus);
  EXPECT_EQ(resolved->model.n_layers, e.layers);
  EXPECT_EQ(layout.degrees.tensor, e.tensor);
  EXPECT_EQ(layout.degrees.pipeline, e.pipeline);
  EXPECT_EQ(layout.batch.micro_batch_sequences, e.micro);
  EXPECT_EQ(layout.batch.global_batch_sequences, e.global);
  EXPECT_EQ(layout.batch.seq_len_tokens, e.sequence);
  EXPECT_EQ(layout.layer.adapters.rank, e.adapter_rank);
  for (const std::string& note : resolved->notes)
    EXPECT_THAT(note, ::testing::Not(HasSubstr("left out"))) << e.file;
}

INSTANTIATE_TEST_SUITE_P(All, FrameworkConfigFile, ::testing::ValuesIn(kConfigs), [](const auto& info) {
  const std::string file = info.param.file;
  return file.substr(0, file.find('.'));
});

TEST(FrameworkConfig, ShardsAsTheConfigSays) {
  const std::string base = "base_model: meta-llama/Llama-3.1-8B\nsequence_len: 2048\nbf16: true\n";
  const auto sharding = [&](const std::string& more) {
    const auto resolved = resolve(job_of(base + more));
    EXPECT_TRUE(resolved.ok()) << resolved.error().message();
    return resolved->layout.sharding.kind;
  };
  EXPECT_EQ(sharding(""), Sharding::none);
  EXPECT_EQ(sharding("fsdp: [full_shard, auto_wrap]\n"), Sharding::zero3);
  EXPECT_EQ(sharding("fsdp: shard_grad_op\n"), Sharding::zero2);
  EXPECT_EQ(sharding("deepspeed: {zero_optimization: {stage: 3}, bf16: {enabled: true}}\n"), Sharding::zero3);
  EXPECT_EQ(sharding("deepspeed: absent/zero2.json\n"), Sharding::zero2);
}

// Logits of all tokens, 6 bytes each, are gone; whichever framework has another key for it.
TEST(FrameworkConfig, LigerKeepsNoLogits) {
  const auto peak = [](const std::string& rest) {
    const auto job =
        resolve(job_of("base_model: NousResearch/Meta-Llama-3.1-8B\nmicro_batch_size: 4\nsequence_len: 8192\n"
                       "gradient_checkpointing: true\nbf16: true\n" +
                       rest));
    EXPECT_TRUE(job.ok()) << job.error().message();
    if (!job) return 0.0;
    EXPECT_THAT(job->not_modelled, IsEmpty());
    const auto memory = memory_forecast(job->model, job->layout, Bytes{1});
    return memory.ok() ? memory->stages.front().working.value() : 0.0;
  };
  const double logits = 4.0 * 8192 * 128256;
  const double plain = peak(""), liger = peak("liger_fused_linear_cross_entropy: true\n");
  EXPECT_GT(plain - liger, 4 * logits);
  EXPECT_DOUBLE_EQ(peak("cut_cross_entropy: true\n"), liger);
}

TEST(FrameworkConfig, ModelsAreKnownByTheirNamesAtAHub) {
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"NousResearch/Meta-Llama-3.1-8B-Instruct", "llama-3.1-8b"},
      {"unsloth/Llama-3.2-1B-Instruct-bnb-4bit", "llama-3.2-1b"},
      {"meta-llama/Llama-3.3-70B-Instruct", "llama-3.1-70b"},
      {"mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b"},
      {"mistralai/Mistral-Nemo-Instruct-2407", "mistral-nemo"},
      {"Qwen/Qwen3-4B-Instruct-2507", "qwen3-4b"},
      {"Qwen/Qwen2.5-Coder-7B-Instruct", "qwen2.5-7b"},
      {"Qwen/Qwen2-0.5B", "qwen2.5-0.5b"},
      {"deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "qwen2.5-7b"},
      {"deepseek-ai/DeepSeek-R1-Distill-Llama-8B", "llama-3.1-8b"},
      {"google/gemma-3-4b-it", "gemma-3-4b"},
      {"microsoft/Phi-3.5-mini-instruct", "phi-3-mini"},
      {"HuggingFaceTB/SmolLM2-1.7B-Instruct", "smollm2-1.7b"},
      {"TinyLlama/TinyLlama-1.1B-Chat-v1.0", "tinyllama-1.1b"},
      {"Qwen/Qwen1.5-MoE-A2.7B-Chat", "qwen1.5-moe-a2.7b"},
      {"OpenRLHF/Llama-3-8b-sft-mixture", "llama-3-8b"},
      {"deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", "qwen3-8b"},
  };
  for (const auto& [hub, preset] : kNames) {
    const auto config = parse_framework_config(job_of(std::string{"base_model: "} + hub + "\n"));
    ASSERT_TRUE(config.ok()) << config.error().message();
    EXPECT_EQ(config->job.model, preset) << hub;
  }
  constexpr std::pair<const char*, const char*> kOthers[] = {
      {"model_name: deepseek3-671b\nper_device_batch_size: 1\n", "deepseek-v3"},
      {"model_name: llama4-17b-16e\nper_device_batch_size: 1\n", "llama-4-scout"},
      {"model: {_component_: torchtune.models.qwen2_5.lora_qwen2_5_7b_instruct}\nbatch_size: 1\n",
       "qwen2.5-7b"},
      {"model: {_component_: torchtune.models.llama4.llama4_scout_17b_16e}\nbatch_size: 1\n",
       "llama-4-scout"},
      {"model: {_component_: torchtune.models.qwen2.qwen2_0_5b}\nbatch_size: 1\n", "qwen2.5-0.5b"},
      {"model: {_component_: torchtune.models.qwen2_5.qwen2_5_0_5b}\nbatch_size: 1\n", "qwen2.5-0.5b"},
      {"model: {_component_: torchtune.models.phi4.lora_phi4_14b}\nbatch_size: 1\n", "phi-4"},
      {"model: {_target_: a.qwen_provider.Qwen3MoEModelProvider30B_A3B}\ntrain: {micro_batch_size: 1}\n",
       "qwen3-30b-a3b"},
  };
  for (const auto& [text, preset] : kOthers) {
    const auto config = parse_framework_config(job_of(text));
    ASSERT_TRUE(config.ok()) << config.error().message();
    EXPECT_EQ(config->job.model, preset) << text;
  }
}

TEST(FrameworkConfig, NanotronsExpertsAct) {
  Job job = job_of(
      "parallelism: {dp: 8, tp: 1, pp: 1, expert_parallel_size: 8}\n"
      "tokens: {micro_batch_size: 1, sequence_length: 2048}\n"
      "model: {dtype: bfloat16, model_config: {hidden_size: 2048, intermediate_size: 6144, "
      "num_attention_heads: 16, "
      "num_hidden_layers: 24, num_key_value_heads: 4, vocab_size: 151936, max_position_embeddings: 4096, "
      "moe_config: {num_experts: 64, top_k: 8, moe_intermediate_size: 768, layers: [-1]}}}\n");
  const auto resolved = resolve(job);
  ASSERT_TRUE(resolved.ok()) << resolved.error().message();
  ASSERT_TRUE(resolved->model.moe);
  EXPECT_EQ(resolved->model.moe->n_experts, 64);
  EXPECT_EQ(resolved->model.moe->experts_per_token, 8);
  EXPECT_EQ(resolved->model.moe->expert_ffn_hidden_size, 768);
  EXPECT_EQ(resolved->layout.degrees.expert, 8);
}

// What only shows that nobody knows it, or that it is not priced.
std::vector<std::string> listed(const Job& job) {
  const auto resolved = resolve(job);
  EXPECT_TRUE(resolved.ok()) << resolved.error().message();
  return resolved.ok() ? resolved->not_modelled : std::vector<std::string>{};
}

constexpr char kAutomodel[] = R"(
step_scheduler: {global_batch_size: 64, local_batch_size: 2, ckpt_every_steps: 50}
dist_env: {backend: nccl}
model: {_target_: nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained, pretrained_model_name_or_path: Qwen/Qwen3-8B}
distributed: {_target_: nemo_automodel.components.distributed.fsdp2.FSDP2Manager, dp_size: none, tp_size: 2, sequence_parallel: false}
packed_sequence: {packed_sequence_size: 0}
dataset: {_target_: a.b, seq_length: 4096}
)";

TEST(FrameworkConfig, AutomodelIsReadAsItself) {
  const auto read = [](const std::string& more) { return job_of(kAutomodel + more); };
  const auto config = parse_framework_config(read(""));
  ASSERT_TRUE(config.ok()) << config.error().message();
  EXPECT_EQ(config->framework, "NeMo Automodel");
  EXPECT_EQ(config->job.framework, Framework::automodel);
  const auto resolved =
      resolve(read("peft: {_target_: a.PeftConfig, dim: 16, target_modules: ['*_proj']}\n"));
  ASSERT_TRUE(resolved.ok()) << resolved.error().message();
  const Layout& layout = resolved->layout;
  EXPECT_EQ(layout.degrees.tensor, 2);
  EXPECT_EQ(layout.batch.micro_batch_sequences, 2);
  EXPECT_EQ(layout.batch.global_batch_sequences, 64);
  EXPECT_EQ(layout.batch.seq_len_tokens, 4096);
  EXPECT_EQ(layout.layer.adapters.rank, 16);
  EXPECT_THAT(listed(read("peft: {_target_: a.PeftConfig, dim: 8, match_all_linear: true, dropout: 0.1}\n"
                          "quantization: {load_in_4bit: true, bnb_4bit_quant_type: nf4}\n")),
              ::testing::IsEmpty());
  EXPECT_THAT(listed(read("a_key_of_tomorrow: 1\n")), ::testing::ElementsAre("a_key_of_tomorrow"));
}

// Rank and products of adapters act, and how the frozen weights are stored: double quantisation where the framework has it
// unless told otherwise. TRL and ms-swift have dropout of 0.05.
TEST(FrameworkConfig, ReadsAdapters) {
  constexpr FrozenWeights kWhole = FrozenWeights::as_computed, kNf4 = FrozenWeights::nf4,
                          kDouble = FrozenWeights::nf4_double, kInt8 = FrozenWeights::int8;
  const std::string axolotl = "base_model: Qwen/Qwen3-8B\nadapter: ",
                    factory = "model_name_or_path: Qwen/Qwen3-8B\nstage: sft\nfinetuning_type: lora\n",
                    trl = "model_name_or_path: Qwen/Qwen3-8B\ndataset_name: d\nuse_peft: true\n",
                    swift = "model: Qwen/Qwen3-8B\ntuner_type: lora\n";
  const Adapters all{.rank = 8, .ffn_up = true, .ffn_down = true}, qkv{.rank = 8, .attention_output = false};
  Adapters all_dropped = all, qkv_dropped = qkv;
  all_dropped.dropout = qkv_dropped.dropout = true;
  struct Said {
    std::string text;
    Adapters adapters;
    FrozenWeights weights;
    std::vector<std::string> listed;
  };
  const Said kSaid[] = {
      {axolotl + "qlora\nload_in_4bit: true\nlora_dropout: 0.05\nlora_target_modules: [q_proj, v_proj]\n",
       qkv_dropped,
       kDouble,
       {}},
      {axolotl + "qlora\nload_in_4bit: true\nlora_target_linear: true\nbnb_config_kwargs: "
                 "{bnb_4bit_use_double_quant: false, bnb_4bit_quant_type: nf4}\n",
       all,
       kNf4,
       {}},
      {axolotl + "lora\nload_in_8bit: true\nlora_dropout: 0.0\n", qkv, kInt8, {}},
      {axolotl + "lora\nload_in_8bit: false\n", qkv, kWhole, {}},
      {"base_model: Qwen/Qwen3-8B\nload_in_8bit: true\n", {}, kWhole, {"weights in 8 bits without adapters"}},
      {"base_model: unsloth/Qwen3-8B-bnb-4bit\nadapter: lora\n", qkv, kDouble, {}},
      {factory + "quantization_bit: 4\nquantization_type: nf4\n", all, kDouble, {}},
      {factory + "quantization_bit: 4\ndouble_quantization: false\nlora_target: q_proj,v_proj,lm_head\n",
       qkv,
       kNf4,
       {"adapters on lm_head"}},
      {factory + "quantization_bit: 8\nlora_dropout: 0.1\n", all_dropped, kInt8, {}},
      {factory + "quantization_bit: 4\nquantization_method: hqq\n",
       all,
       kWhole,
       {"weights in 4 bits by hqq"}},
      {trl + "lora_r: 8\nload_in_4bit: true\nbnb_4bit_quant_type: nf4\n", qkv_dropped, kNf4, {}},
      {trl + "lora_r: 8\nload_in_4bit: true\nuse_bnb_nested_quant: true\nlora_target_modules: "
             "all-linear\nlora_dropout: 0\n",
       all,
       kDouble,
       {}},
      {swift + "quant_bits: 4\nquant_method: bnb\n", all_dropped, kDouble, {}},
      {swift + "quant_bits: 4\n", all_dropped, kWhole, {"weights in 4 bits without a method"}},
      {"model: {_component_: torchtune.models.llama3.qlora_llama3_8b, lora_rank: 8, lora_attn_modules: "
       "[q_proj, v_proj]}\nbatch_size: 1\n",
       qkv,
       kDouble,
       {}},
      {kAutomodel + std::string{"peft: {_target_: a.PeftConfig}\nquantization: {load_in_4bit: true, "
                                "bnb_4bit_use_double_quant: false}\n"},
       all,
       kNf4,
       {}}};
  for (const Said& said : kSaid) {
    const auto resolved = resolve(job_of(said.text));
    ASSERT_TRUE(resolved.ok()) << said.text << resolved.error().message();
    EXPECT_EQ(resolved->layout.layer.adapters, said.adapters) << said.text;
    EXPECT_EQ(resolved->layout.layer.frozen_weights, said.weights) << said.text;
    EXPECT_THAT(resolved->not_modelled, ::testing::UnorderedElementsAreArray(said.listed)) << said.text;
  }
}

// Arguments of ms-swift: adapters of rank 8 on all products, where nothing else is said.
TEST(FrameworkConfig, ReadsCommandLinesOfSwift) {
  Job job;
  job.command_line =
      "NPROC_PER_NODE=4 swift sft --model Qwen/Qwen3-8B --dataset 'a#5' 'b' --per_device_train_batch_size 2 "
      "--gradient_accumulation_steps $(expr 32 / 4 / 2) --max_length 2048 --torch_dtype bfloat16 --deepspeed "
      "zero2 "
      "--quant_bits 4 --quant_method bnb";
  const auto resolved = resolve(job);
  ASSERT_TRUE(resolved.ok()) << resolved.error().message();
  const Layout& layout = resolved->layout;
  EXPECT_EQ(layout.world_size(), 4);
  EXPECT_EQ(layout.batch.global_batch_sequences, 32);
  EXPECT_EQ(layout.batch.seq_len_tokens, 2048);
  EXPECT_EQ(layout.layer.adapters.rank, 8);
  EXPECT_TRUE(layout.layer.adapters.qkv && layout.layer.adapters.ffn_down);
  EXPECT_EQ(layout.layer.frozen_weights, FrozenWeights::nf4_double);
}

TEST(FrameworkConfig, ReadsVerlsSupervisedTraining) {
  Job job;
  job.command_line =
      "set -x\npython3 data/prepare.py\ntorchrun --standalone --nnodes=1 --nproc_per_node=8 "
      "-m verl.trainer.fsdp_sft_trainer data.train_files=$HOME/a.parquet data.micro_batch_size_per_gpu=2 "
      "data.max_length=2048 model.partial_pretrain=Qwen/Qwen3-8B model.lora_rank=32 "
      "ulysses_sequence_parallel_size=2 "
      "model.target_modules=all-linear data.train_batch_size=64 trainer.total_epochs=1 $@";
  const auto resolved = resolve(job);
  ASSERT_TRUE(resolved.ok()) << resolved.error().message();
  const Layout& layout = resolved->layout;
  EXPECT_EQ(layout.world_size(), 8);
  EXPECT_EQ(layout.degrees.context, 2);
  EXPECT_EQ(layout.batch.micro_batch_sequences, 2);
  EXPECT_EQ(layout.batch.global_batch_sequences, 64);
  EXPECT_EQ(layout.layer.adapters.rank, 32);
  EXPECT_THAT(resolved->not_modelled, ::testing::IsEmpty());
}

TEST(FrameworkConfig, NumbersMayStandInQuotes) {
  const auto resolved =
      resolve(job_of("base_model: meta-llama/Llama-3.2-1B\nmicro_batch_size: \"2\"\nsequence_len: 8_192\n"));
  ASSERT_TRUE(resolved.ok()) << resolved.error().message();
  EXPECT_EQ(resolved->layout.batch.micro_batch_sequences, 2);
  EXPECT_EQ(resolved->layout.batch.seq_len_tokens, 8192);
}

// A pair of answers is two sequences; where answers are generated, the sentence says what forecasts that.
TEST(FrameworkConfig, PreferencesArePairsOfSequences) {
  const std::string factory = "model_name_or_path: Qwen/Qwen3-8B\nper_device_train_batch_size: 2\nstage: ";
  const std::string trl =
      "model_name_or_path: Qwen/Qwen3-8B\nper_device_train_batch_size: 2\ndataset_name: d\n";
  const auto sequences = [](const std::string& text) {
    const auto resolved = resolve(job_of(text));
    EXPECT_TRUE(resolved.ok()) << resolved.error().message();
    return resolved.ok() ? resolved->layout.batch.micro_batch_sequences : 0;
  };
  EXPECT_EQ(sequences(factory + "sft\n"), 2);
  EXPECT_EQ(sequences(factory + "dpo\n"), 4);
  EXPECT_EQ(sequences(factory + "rm\n"), 4);
  EXPECT_EQ(sequences(factory + "kto\n"), 2);
  EXPECT_EQ(sequences(trl + "loss_type: nll\n"), 2);
  EXPECT_EQ(sequences(trl + "loss_type: sigmoid\n"), 4);
  const auto runs_reference = [](const std::string& text) {
    const auto resolved = resolve(job_of(text));
    EXPECT_TRUE(resolved.ok()) << resolved.error().message();
    return resolved.ok() && resolved->layout.layer.reference_model;
  };
  EXPECT_TRUE(runs_reference(factory + "dpo\n"));
  EXPECT_TRUE(runs_reference(factory + "kto\n"));
  EXPECT_FALSE(runs_reference(factory + "orpo\n"));
  EXPECT_TRUE(runs_reference(trl + "loss_type: sigmoid\nprecompute_ref_log_probs: false\n"));
  EXPECT_FALSE(runs_reference(trl + "loss_type: sigmoid\nprecompute_ref_log_probs: true\n"));
  EXPECT_THAT(error_of(job_of(factory + "ppo\n")), AllOf(HasSubstr("`ppo`"), HasSubstr("--rl grpo")));
  EXPECT_THAT(error_of(job_of(trl + "num_generations: 8\n")), HasSubstr("--rl grpo"));
}

TEST(FrameworkConfig, BlocksOfTextAreTheTrainersOwnExample) {
  const auto config = parse_framework_config(
      job_of("model_name_or_path: gpt2\ndataset_name: wikitext\nblock_size: 512\noutput_dir: o\n"
             "per_device_train_batch_size: 8\n"));
  ASSERT_TRUE(config.ok()) << config.error().message();
  EXPECT_EQ(config->framework, "Hugging Face's Trainer");
}

TEST(FrameworkConfig, LeavesUnknownKeysOutUnlessStrict) {
  Job job = job_of("base_model: meta-llama/Llama-3.1-8B\nsequence_lem: 4096\n");
  const auto resolved = resolve(job);
  ASSERT_TRUE(resolved.ok()) << resolved.error().message();
  EXPECT_THAT(
      resolved->notes,
      Contains("left out: `sequence_lem` is not a known key of Axolotl; did you mean `sequence_len`?"));
  job.strict = true;
  EXPECT_THAT(error_of(job), HasSubstr("c.yaml: `sequence_lem` is not a known key of Axolotl"));
}

// MaxText's own base.yml has shapes beside the name that they do not belong to, and a single expert for none.
TEST(FrameworkConfig, AModelsNameHoldsOverShapes) {
  const std::string shapes =
      "base_emb_dim: 2048\nbase_mlp_dim: 7168\nbase_num_decoder_layers: 16\nbase_num_query_heads: 16\n"
      "base_num_kv_heads: 16\nvocab_size: 32_000\nnum_experts: 1\nnum_experts_per_tok: 1\n";
  const auto named = resolve(job_of("per_device_batch_size: 1\nmodel_name: llama2-7b\n" + shapes));
  ASSERT_TRUE(named.ok()) << named.error().message();
  EXPECT_EQ(named->model.hidden_size, 4096);
  EXPECT_EQ(named->model.n_layers, 32);
  const auto shaped = resolve(job_of("per_device_batch_size: 1\nmodel_name: default\n" + shapes));
  ASSERT_TRUE(shaped.ok()) << shaped.error().message();
  EXPECT_EQ(shaped->model.n_layers, 16);
  EXPECT_FALSE(shaped->model.moe);
  EXPECT_EQ(shaped->model.vocab_size, 32000);
}

TEST(FrameworkConfig, RecomputesAsTheFrameworkDoes) {
  const auto kind = [](const std::string& more) {
    const auto resolved =
        resolve(job_of("model_name_or_path: meta-llama/Llama-2-7b-hf\nstage: sft\n" + more));
    EXPECT_TRUE(resolved.ok()) << resolved.error().message();
    return resolved->layout.layer.recompute.kind;
  };
  EXPECT_EQ(kind(""), Recompute::full);
  EXPECT_EQ(kind("disable_gradient_checkpointing: true\n"), Recompute::none);
  EXPECT_EQ(kind("gradient_checkpointing: false\n"), Recompute::none);
}

// Of MaxText: what a policy keeps, and where.
TEST(FrameworkConfig, PoliciesOfRematerialisationSayWhatIsKept) {
  const auto recompute = [](const std::string& more) {
    const auto resolved =
        resolve(job_of("model_name: llama3.1-8b\nper_device_batch_size: 1\nremat_policy: " + more));
    EXPECT_TRUE(resolved.ok()) << resolved.error().message();
    return resolved.ok() ? resolved->layout.layer.recompute : Recomputation{};
  };
  EXPECT_EQ(recompute("full").kept, LayerResults{});
  EXPECT_EQ(recompute("none").kind, Recompute::none);
  EXPECT_EQ(recompute("qkv_proj_offloaded").kept_by_host, (LayerResults{.qkv = true}));
  EXPECT_EQ(recompute("save_dot_except_mlpwi").kept,
            (LayerResults{.qkv = true, .attention_output = true, .ffn_down = true}));
  const Recomputation custom =
      recompute("custom\ndecoder_layer_input: offload\nmlpwo: device\ncontext: remat\nkey_proj: device\n");
  EXPECT_EQ(custom.kind, Recompute::full);
  EXPECT_EQ(custom.kept, (LayerResults{.input = true, .ffn_down = true}));
  EXPECT_EQ(custom.kept_by_host, (LayerResults{.input = true}));
  EXPECT_THAT(error_of(job_of("model_name: llama3.1-8b\nper_device_batch_size: 1\nremat_policy: most\n")),
              AllOf(HasSubstr("remat_policy"), HasSubstr("`most`"), HasSubstr("save_qkv_proj")));
}

// Of MaxText: weights are copied along the data axes, -1 is the rest.
TEST(FrameworkConfig, DegreesInsideAndBetweenSlicesSayHowManyCopiesThereAre) {
  const auto shard_group = [](const std::string& more) {
    Job job = job_of("model_name: llama3.1-8b\nper_device_batch_size: 1\n" + more);
    job.n_gpus = 64;
    job.gpus_per_node = 16;
    const auto resolved = resolve(job);
    EXPECT_TRUE(resolved.ok()) << resolved.error().message();
    return resolved.ok() ? resolved->layout.shard_group() : 0;
  };
  EXPECT_EQ(shard_group(""), 16);  // a copy on each of four slices
  EXPECT_EQ(shard_group("dcn_fsdp_parallelism: 4\n"), 64);
  EXPECT_EQ(shard_group("dcn_fsdp_parallelism: 2\nici_data_parallelism: 4\n"), 8);
  EXPECT_EQ(shard_group("ici_data_parallelism: -1\nici_fsdp_parallelism: 2\ndcn_fsdp_parallelism: 4\n"), 8);
  const std::string three = "model_name: llama3.1-8b\nper_device_batch_size: 1\nici_data_parallelism: 3\n";
  EXPECT_THAT(error_of(job_of(three)), HasSubstr("a divisor of the 8 data-parallel ranks"));
  EXPECT_THAT(error_of(job_of(three + "dcn_data_parallelism: 1000000000000\n")),
              AllOf(HasSubstr("dcn_data_parallelism"), HasSubstr("copies of the weights")));
}

TEST(FrameworkConfig, ExpertsWithACapacityArePaddedToIt) {
  const std::string text = "model_name: mixtral-8x7b\nper_device_batch_size: 1\ncapacity_factor: 1.25\n";
  const auto dropped = resolve(job_of(text + "sparse_matmul: false\n"));
  ASSERT_TRUE(dropped.ok()) << dropped.error().message();
  EXPECT_EQ(dropped->layout.layer.expert_capacity_factor, 1.25);
  EXPECT_TRUE(dropped->layout.layer.expert_pads_to_capacity);
  EXPECT_EQ(resolve(job_of(text))->layout.layer.expert_capacity_factor, std::nullopt);
}

TEST(FrameworkConfig, FlagsHoldOverIt) {
  Job job = job_of("base_model: meta-llama/Llama-3.1-8B\nmicro_batch_size: 2\nsequence_len: 4096\n");
  job.settings.seq_len_tokens = 1024;
  job.settings.tensor = 2;
  const auto resolved = resolve(job);
  ASSERT_TRUE(resolved.ok()) << resolved.error().message();
  EXPECT_EQ(resolved->layout.batch.seq_len_tokens, 1024);
  EXPECT_EQ(resolved->layout.batch.global_batch_sequences, 8);  // 2 on each of 4
}

TEST(FrameworkConfig, SaysWhatIsWrong) {
  EXPECT_THAT(
      error_of(job_of("base_model: acme/giant-1t\n")),
      HasSubstr("found `acme/giant-1t`, expected the name of a preset; give its config.json with --model"));
  EXPECT_THAT(error_of(job_of("base_model: meta-llama/Llama-3.1-8B\nmicro_batch_size: many\n")),
              HasSubstr("c.yaml: line 2: micro_batch_size: found `many`, expected a number"));
  EXPECT_THAT(error_of(job_of("micro_batch_size: 2\nsequence_len: 4096\nlora_r: 8\n")),
              HasSubstr("found keys of Axolotl, expected base_model together with them"));
  EXPECT_THAT(error_of(job_of("a: 1\n")), HasSubstr("keys of no known framework"));
  EXPECT_THAT(error_of(job_of("zero_optimization: {stage: 2}\n")), HasSubstr("--deepspeed"));
  EXPECT_THAT(error_of(job_of("base_model: meta-llama/Llama-3.1-8B\nrl: grpo\n")), HasSubstr("found `grpo`"));
  EXPECT_THAT(error_of(job_of("just words")), HasSubstr("expected keys with their values"));
  Job twice = job_of("base_model: meta-llama/Llama-3.1-8B\n");
  twice.command_line = "--num-layers 2";
  EXPECT_THAT(error_of(twice), HasSubstr("given together with --command-line"));
}

TEST(FrameworkConfig, RecomputesAndShardsAsTheOptionsOfFsdpSay) {
  const std::string axolotl =
      "base_model: meta-llama/Llama-3.1-8B\nsequence_len: 2048\nfsdp_version: 2\nfsdp_config: ";
  const auto layout = [&](const std::string& text) {
    const auto resolved = resolve(job_of(text));
    EXPECT_TRUE(resolved.ok()) << resolved.error().message();
    return resolved->layout;
  };
  EXPECT_EQ(layout(axolotl + "{activation_checkpointing: true}\n").layer.recompute.kind, Recompute::full);
  EXPECT_EQ(layout(axolotl + "{activation_checkpointing: false}\n").layer.recompute.kind, Recompute::none);
  EXPECT_EQ(layout(axolotl + "{fsdp_sharding_strategy: SHARD_GRAD_OP}\n").sharding.kind, Sharding::zero2);
  const std::string trainer =
      "model_name_or_path: meta-llama/Llama-3.1-8B\noutput_dir: x\nper_device_train_batch_size: 1\n";
  EXPECT_EQ(layout(trainer + "fsdp: full_shard\nfsdp_config: {activation_checkpointing: true}\n")
                .layer.recompute.kind,
            Recompute::full);
  const Layout offloaded = layout(trainer + "deepspeed: absent/ds_z3_offload_config.json\n");
  EXPECT_EQ(offloaded.sharding.kind, Sharding::zero3);
  EXPECT_TRUE(offloaded.optimizer.cpu_offload);
  EXPECT_FALSE(layout(trainer + "deepspeed: absent/ds_z3_config.json\n").optimizer.cpu_offload);
}

TEST(FrameworkConfig, AdaptersOfNemoAct) {
  const std::string text =
      "model: {_target_: nemo.llama.Llama3Config8B}\ndata: {seq_length: 4096, micro_batch_size: 1}\n"
      "trainer: {devices: 8, num_nodes: 1}\n";
  const auto adapters = [&](const std::string& more) {
    const auto resolved = resolve(job_of(text + more));
    EXPECT_TRUE(resolved.ok()) << resolved.error().message();
    return resolved->layout.layer.adapters;
  };
  EXPECT_EQ(adapters("").rank, 0);
  EXPECT_EQ(adapters("peft: {_target_: nemo.collections.llm.peft.lora.LoRA}\n").rank, 32);
  const auto some = adapters("peft: {_target_: a.LoRA, dim: 8, target_modules: [linear_qkv, linear_proj]}\n");
  EXPECT_EQ(some.rank, 8);
  EXPECT_TRUE(some.qkv && some.attention_output);
  EXPECT_FALSE(some.ffn_up || some.ffn_down);
  const auto others = resolve(job_of(text + "peft: {_target_: a.DoRA, dim: 8}\n"));
  ASSERT_TRUE(others.ok());
  EXPECT_THAT(others->not_modelled, Contains("peft: DoRA"));
}

TEST(FrameworkConfig, FollowsInterpolations) {
  const auto torchtune =
      resolve(job_of("model: {_component_: torchtune.models.llama3_1.llama3_1_8b}\nbatch_size: "
                     "${sizes.batch}\nsizes: {batch: \"${micro}\"}\n"
                     "micro: 4\ntokenizer: {max_seq_len: 2048}\n"));
  ASSERT_TRUE(torchtune.ok()) << torchtune.error().message();
  EXPECT_EQ(torchtune->layout.batch.micro_batch_sequences, 4);
  const auto nemo =
      resolve(job_of("model: {_target_: a.Llama3Config8B, seq_length: '${data.length}', "
                     "tensor_model_parallel_size: '${.tensor}', tensor: 2}\n"
                     "data: {length: 2048, micro_batch_size: 1}\ntrainer: {devices: 8, num_nodes: 1}\n"));
  ASSERT_TRUE(nemo.ok()) << nemo.error().message();
  EXPECT_EQ(nemo->layout.batch.seq_len_tokens, 2048);
  EXPECT_EQ(nemo->layout.degrees.tensor, 2);
  EXPECT_THAT(error_of(job_of("base_model: Qwen/Qwen3-8B\nmicro_batch_size: ${b}\nb: ${micro_batch_size}\n")),
              HasSubstr("expected a number"));
}

TEST(FrameworkConfig, NamesWhatOtherFilesAre) {
  constexpr std::pair<const char*, const char*> kFiles[] = {
      {"compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\n", "accelerate"},
      {"pipe-parallel-size: 1\nnum-layers: 44\ntrain_micro_batch_size_per_gpu: 4\n", "GPT-NeoX"},
      {"apiVersion: v1\nkind: Pod\n", "Kubernetes"},
      {"zero_optimization: {stage: 2}\n", "DeepSpeed"},
      {"max_seq_len: 2048\nmodel: {d_model: 64}\nfsdp_config: {sharding_strategy: FULL_SHARD}\n",
       "LLM Foundry"},
      {"model: {type: llama, hidden_dim: 64, num_layers: 2}\ntrainer: {train_batch_size: 8}\n", "Levanter"},
      {"model: {num_layers: 2}\ntrainer: {devices: 8}\n", "model.hidden_size"},
      {"num_hidden_layers: 2\n", "config.json"}};
  for (const auto& [text, what] : kFiles) EXPECT_THAT(error_of(job_of(text)), HasSubstr(what));
}

// The words of a Trainer's command line are the keys of its config, and the launcher tells the GPUs.
TEST(FrameworkConfig, ReadsCommandLinesOfTrainers) {
  struct Line {
    const char* text;
    std::int64_t gpus, layers, micro, global, sequence;
    Sharding sharding;
  };
  constexpr Line kLines[] = {
      {"torchrun --nproc_per_node 8 --nnodes=2 run_clm.py --model_name_or_path meta-llama/Llama-3.1-8B "
       "--per_device_train_batch_size 4 --gradient_accumulation_steps=2 --bf16 --fsdp \"full_shard "
       "auto_wrap\" "
       "--block-size 4096 --output_dir /tmp/x --do_train",
       16, 32, 4, 128, 4096, Sharding::zero3},
      {"deepspeed --num_gpus 8 run_clm.py --model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size 2 "
       "--bf16 True "
       "--deepspeed absent_zero2.json --block_size 2048 --output_dir x",
       8, 36, 2, 16, 2048, Sharding::zero2},
      {"accelerate launch --num_processes 4 sft.py --model_name_or_path Qwen/Qwen2-0.5B --dataset_name a "
       "--packing "
       "--per_device_train_batch_size 2 --max_length 1024 --output_dir x",
       4, 24, 2, 8, 1024, Sharding::none},
      {"python3 -m MaxText.train base.yml model_name=llama3.1-8b per_device_batch_size=2 "
       "max_target_length=4096",
       1, 32, 2, 2, 4096, Sharding::none}};
  for (const Line& line : kLines) {
    Job job;
    job.command_line = line.text;
    const auto resolved = resolve(job);
    ASSERT_TRUE(resolved.ok()) << resolved.error().message();
    EXPECT_EQ(resolved->layout.world_size(), line.gpus) << line.text;
    EXPECT_EQ(resolved->model.n_layers, line.layers);
    EXPECT_EQ(resolved->layout.batch.micro_batch_sequences, line.micro);
    EXPECT_EQ(resolved->layout.batch.global_batch_sequences, line.global);
    EXPECT_EQ(resolved->layout.batch.seq_len_tokens, line.sequence);
    EXPECT_EQ(resolved->layout.sharding.kind, line.sharding) << line.text;
  }
}

// MaxText sends the sequences of all stages' devices through the pipeline in parts, as many as stages if it is not said.
TEST(FrameworkConfigFile, PipelinesOfMaxTextTakeTheirBatchInParts) {
  const std::string config =
      "model_name: llama2-70b\nper_device_batch_size: 2\nmax_target_length: 4096\n"
      "ici_pipeline_parallelism: 4\nici_fsdp_parallelism: 4\n";
  const auto job = [&](const char* more) {
    return Job{.n_gpus = 16, .config = ConfigText{config + more, "c.yaml"}};
  };
  const auto usual = resolve(job("")), eight = resolve(job("num_pipeline_microbatches: 8\n"));
  ASSERT_TRUE(usual.ok()) << usual.error().message();
  ASSERT_TRUE(eight.ok()) << eight.error().message();
  EXPECT_EQ(usual->layout.batch.global_batch_sequences, 32);
  EXPECT_EQ(usual->layout.batch.micro_batch_sequences, 2);
  EXPECT_EQ(eight->layout.batch.global_batch_sequences, 32);
  EXPECT_EQ(eight->layout.batch.micro_batch_sequences, 1);
  EXPECT_NE(error_of(job("num_pipeline_microbatches: 3\n")).find("num_pipeline_microbatches"),
            std::string::npos);
}

// Bridge's and NeMo's words for the ends of the pipeline, for fp8 and for LoRA act.
TEST(FrameworkConfig, WordsOfBridgeAct) {
  const std::string deepseek =
      "model: {_target_: a.DeepSeekV3ModelProvider, pipeline_model_parallel_size: 16, "
      "expert_model_parallel_size: 8,\n"
      "  num_layers_in_first_pipeline_stage: 3, num_layers_in_last_pipeline_stage: 2, seq_length: 4096}\n"
      "train: {global_batch_size: 512, micro_batch_size: 1}\n";
  const auto layout = [&](const std::string& text, std::int64_t gpus) {
    Job job = job_of(text);
    job.n_gpus = gpus;
    const auto resolved = resolve(job);
    EXPECT_TRUE(resolved.ok()) << resolved.error().message();
    return resolved->layout;
  };
  std::vector<std::int64_t> stages(16, 4);
  stages.front() = 3;
  stages.back() = 2;
  EXPECT_EQ(layout(deepseek, 128).pipeline.layers_per_stage, stages);
  const auto fp8 = [&](const std::string& more) { return layout(deepseek + more, 128).layer.precision; };
  EXPECT_EQ(fp8("mixed_precision: bf16_mixed\n").compute, DType::bf16);
  EXPECT_EQ(fp8("mixed_precision: bf16_with_fp8_subchannel_scaling_mixed\n").compute, DType::fp8);
  EXPECT_EQ(fp8("mixed_precision: bf16_with_fp8_subchannel_scaling_mixed\n").fp8.scaling,
            Fp8Scaling::blockwise);
  EXPECT_EQ(fp8("mixed_precision: bf16_with_mxfp8_mixed\n").fp8.scaling, Fp8Scaling::mxfp8);
  const std::string nemo =
      "model: {_target_: a.Llama3Config8B}\ndata: {micro_batch_size: 1}\ntrainer: {plugins: {";
  EXPECT_EQ(layout(nemo + "precision: bf16-mixed, fp8: hybrid, fp8_recipe: tensorwise}}\n", 8)
                .layer.precision.compute,
            DType::fp8);
  EXPECT_EQ(layout(nemo + "precision: bf16-mixed}}\n", 8).layer.precision.compute, DType::bf16);
  EXPECT_EQ(
      layout("model: {_target_: a.Llama3Config8B}\ndata: {micro_batch_size: 1}\ntrainer: {devices: 8}\n", 8)
          .layer.precision.compute,
      DType::bf16);
  const std::string nemo1 =
      "trainer: {devices: 8, num_nodes: 1, precision: bf16}\nmodel: {num_layers: 4, hidden_size: 512, "
      "num_attention_heads: 8,\n"
      "  micro_batch_size: 1, global_batch_size: 8, encoder_seq_length: 512, peft: {peft_scheme: lora, "
      "lora_tuning: "
      "{adapter_dim: 4, target_modules: [attention_dense, mlp_fc1]}}}\n";
  const auto adapters = layout(nemo1, 8).layer.adapters;
  EXPECT_EQ(adapters.rank, 4);
  EXPECT_TRUE(adapters.attention_output && adapters.ffn_up);
  EXPECT_FALSE(adapters.qkv || adapters.ffn_down);
}

// What is trained shows in a loss, or in what only one trainer has.
TEST(FrameworkConfig, LossesTellWhatIsTrained) {
  const std::string trl =
                        "model_name_or_path: Qwen/Qwen3-0.6B\ndataset_name: a\nper_device_train_batch_size: "
                        "2\nmax_length: 512\n",
                    torchtune =
                        "model: {_component_: torchtune.models.llama3_1.llama3_1_8b}\nbatch_size: 2\n"
                        "tokenizer: {max_seq_len: 512}\nloss: {_component_: torchtune.rlhf.loss.";
  struct Expected {
    std::string text;
    std::int64_t micro;
    bool reference;
  };
  const Expected kAll[] = {{trl, 2, false},
                           {trl + "loss_type: kto\n", 2, true},
                           {trl + "desirable_weight: 1.0\n", 2, true},
                           {trl + "center_rewards_coefficient: 0.01\n", 4, false},
                           {trl + "loss_type: simpo\nsimpo_gamma: 0.5\n", 4, false},
                           {trl + "loss_type: ipo\n", 4, true},
                           {torchtune + "DPOLoss}\n", 4, true},
                           {torchtune + "LinearCrossEntropyLoss}\n", 2, false}};
  for (const Expected& e : kAll) {
    const auto resolved = resolve(job_of(e.text));
    ASSERT_TRUE(resolved.ok()) << resolved.error().message();
    EXPECT_EQ(resolved->layout.batch.micro_batch_sequences, e.micro) << e.text;
    EXPECT_EQ(resolved->layout.layer.reference_model, e.reference) << e.text;
  }
  EXPECT_THAT(error_of(job_of(torchtune + "GRPOLoss}\n")), HasSubstr("--rl grpo"));
}

TEST(FrameworkConfig, RegularExpressionsChooseProducts) {
  const auto resolved =
      resolve(job_of("base_model: meta-llama/Llama-3.1-8B\nadapter: lora\nsequence_len: 512\n"
                     "lora_target_modules: 'model.layers.[\\d]+.(mlp|self_attn).(up|gate|q|k|v)_proj'\n"));
  ASSERT_TRUE(resolved.ok()) << resolved.error().message();
  const auto& adapters = resolved->layout.layer.adapters;
  EXPECT_TRUE(adapters.qkv && adapters.ffn_up);
  EXPECT_FALSE(adapters.attention_output || adapters.ffn_down);
}

}  // namespace
}  // namespace stepcast::framework_config_test
