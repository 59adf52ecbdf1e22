// A Job: what somebody asked to be trained, in as many or as few words as he used; formats/resolve_job.h says what it comes to.
//
//   Job job{.model = "llama-3-70b", .n_gpus = 512};
//   job.settings.tensor = 4;
//   job.settings.pipeline = 4;
//
// Whatever is said in several places holds in this order, the later the stronger: the model and stepcast's
// defaults, the habits of the framework (software_defaults.h), a file or command line of a framework, settings.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

// What can be said about a training run, all of it optional. Names of settings are Megatron-LM's concepts, each has
// a flag of Megatron-LM (megatron.h), which means the same.
struct JobSettings {
  // The model: all of it, or what is changed in a given one.
  std::optional<std::int64_t> decoder_layers,
      decoder_tokens;  // behind an encoder (T5): its layers and length
  std::optional<std::int64_t> n_layers, hidden_size, ffn_hidden_size, n_heads, head_dim, max_position;
  std::optional<std::int64_t> n_multi_token_prediction_layers, query_groups, vocab_size, padded_vocab_size;
  std::optional<double> rotary_fraction, hidden_dropout, attention_dropout;
  std::optional<bool> grouped_query;  // query_groups counts (always in a given model)
  std::optional<bool> rotary_positions, swiglu, squared_relu, linear_bias, add_qkv_bias, tied_embeddings,
      qk_norm;
  std::optional<bool> gated_gelu, attention_output_gate, attention_sinks, learned_positions;
  std::optional<PositionEncoding> position;
  std::optional<NormKind> norm;
  std::optional<std::string> tokenizer;  // stands for the vocabulary: "GPT2BPETokenizer"
  std::optional<std::string>
      tokenizer_model;                // its file or name, which may tell the vocabulary: "Qwen/Qwen3-8B"
  std::optional<std::string> window;  // tokens before and behind: "4095,0"; -1: all
  std::optional<std::int64_t> n_experts, experts_per_token, expert_ffn_hidden_size, shared_ffn_hidden_size;
  std::optional<std::int64_t> n_expert_groups, expert_groups_per_token;
  std::optional<std::string> moe_layer_pattern;  // a number, or a list such as "[0]*3+[1]*58"
  std::optional<bool> shared_expert_gate;
  std::optional<std::int64_t> expert_latent_size;  // width that experts read and write
  std::optional<bool> multi_latent;                // attention
  std::optional<std::int64_t> q_lora_rank, kv_lora_rank, qk_head_dim, qk_rope_head_dim, v_head_dim;
  // Layers of one part each: a letter for every layer, "M-M*ME", "|" between stages, "/" in front of those that predict
  // further tokens; or shares of attention and FFN among layers with a state.
  std::optional<std::string> hybrid_pattern;
  std::optional<double> hybrid_attention_share, hybrid_ffn_share;
  std::optional<bool> hybrid;
  std::optional<std::int64_t> state_size, state_head_dim, state_groups, state_heads;
  // "gated_delta_net": layers of linear attention, by the one of every so many that attends, or a list. "dsa": an indexer
  // chooses keys, in the one of every so many layers behind the first.
  std::optional<std::string> attention_variant, linear_attention_pattern;
  std::optional<std::int64_t> linear_kernel, linear_key_head_dim, linear_head_dim, linear_key_heads,
      linear_heads;
  std::optional<std::int64_t> indexer_heads, indexer_head_dim, indexer_keys, indexer_every, indexer_offset;

  // Degrees; `data` is otherwise what the GPUs leave.
  std::optional<std::int64_t> tensor, pipeline, context, data, expert, expert_tensor;
  std::optional<std::int64_t> virtual_stages, layers_per_virtual_stage;
  std::optional<std::int64_t> first_stage_layers, last_stage_layers;
  std::optional<std::string> pipeline_layout;  // layers of every stage: "Et*3|(tt|)*29,m|L"
  std::optional<bool> count_embedding_as_layer, count_output_as_layer;  // when layers are spread over stages
  std::optional<PipelineSchedule> pipeline_schedule;  // where it does not follow from virtual stages
  std::optional<bool> pipeline_before_data;           // rank order tp-cp-ep-pp-dp

  // Batches, in sequences.
  std::optional<std::int64_t> micro_batch_sequences, global_batch_sequences, seq_len_tokens;

  // Element types.
  std::optional<DType> dtype;  // fp32, fp16 or bf16; with fp8 what is left in more bits
  std::optional<bool> fp8, fp4;
  std::optional<DType> master_dtype, moments_dtype;  // of master weights, of Adam's moments
  std::optional<DType> gradient_dtype;               // gradients are kept and reduced in
  std::optional<Fp8Scaling> fp8_scaling;
  std::optional<bool> fp8_weight_gradients, fp8_gather_weights, fp8_attention;
  std::optional<bool> fp8_spares_end_layers;  // so many at either end stay in dtype; 1 and 1 unless said
  std::optional<std::int64_t> fp8_spared_first_layers, fp8_spared_last_layers;

  // Layers.
  std::optional<bool> sequence_parallel;
  std::optional<ContextParallelKind> context_parallel_kind;
  std::optional<double> expert_capacity_factor;
  std::optional<bool> pad_experts_to_capacity;
  // How tokens spread over experts: "balanced", "power-law:1.2", or a file of measured loads (workload/expert_load.h).
  std::optional<std::string> expert_load;
  std::optional<AttentionMethod> attention;
  std::optional<bool> flash_attention, legacy_models;
  std::optional<std::string> transformer_implementation;  // "local", "transformer_engine"
  std::optional<Recompute> recompute;
  std::optional<bool> recompute_attention, checkpoint_layers;  // older ways to say selective and full
  std::optional<bool> recompute_by_block;                      // the first layers of a stage; false: uniform
  std::optional<std::int64_t> recompute_layers;
  std::optional<std::string> recompute_modules;  // "core_attn layernorm moe_act": selective
  // "qkv attention" (workload/layer_words.h): full recomputation keeps them, or the CPU. Without flags of Megatron-LM.
  std::optional<std::string> recompute_keeps, recompute_offloads;
  std::optional<std::string> cuda_graph_implementation;  // "none", "local", "transformer_engine"
  std::optional<std::string> cuda_graph_scope;  // "attn moe_router", "full_iteration"; nothing: layers
  std::optional<bool> cuda_graph_layers;        // older ways to say graphs of whole layers
  std::optional<std::int64_t> activation_offload_layers;  // of a stage, to the CPU
  std::optional<bool> offloads_modules;                   // inputs of offload_modules, to the CPU
  std::optional<std::string> offload_modules;             // "core_attn moe_act"
  std::optional<bool> fuse_softmax, fuse_bias_activation, fuse_bias_dropout, fuse_rotary, fuse_cross_entropy;
  std::optional<bool> fuse_gradient_accumulation, fuse_permutation;
  std::optional<bool> overlap_tensor_parallel, overlap_expert, overlap_shared_experts;
  std::optional<bool> overlap_sequence_parallel_weight_gradient;
  std::optional<bool> delay_weight_gradient;
  std::optional<bool> narrow_dispatch;                         // tokens travel to their experts in 8 bits
  std::optional<bool> narrow_activation_inputs;                // inputs of activations are kept in 8 bits
  std::optional<TokenDispatcher> dispatcher, flex_dispatcher;  // the second: which, if the first is "flex"

  // What is trained, and on what. Without flags of Megatron-LM.
  std::optional<bool> frozen_base;               // the weights of the model do not change
  std::optional<std::int64_t> lora_rank;         // with adapters of this rank; freezes the base
  std::optional<double> lora_dropout;            // of what adapters read
  std::optional<std::string> lora_targets;       // "linear_qkv linear_proj linear_fc1 linear_fc2"
  std::optional<std::string> lora_base_weights;  // "16bit", "int8", "nf4", "nf4-double": the frozen ones
  std::optional<bool> reference_model;           // runs forward beside the trained one (DPO, KTO)
  std::optional<double> packed_mean_tokens, predicted_token_share;

  // Pipeline, data parallelism, optimizer.
  std::optional<bool> overlap_p2p, p2p_scatter_gather, overlap_gradient_reduce, overlap_parameter_gather;
  std::optional<Sharding> sharding;
  std::optional<bool> distributed_optimizer, fully_sharded;  // zero1, zero3
  std::optional<std::int64_t> weight_copies;                 // zero3: of sharded weights (hybrid sharding)
  std::optional<std::int64_t> zero_stage, bucket_parameters, vocab_divisible_by;
  std::optional<OptimizerKind> optimizer;
  std::optional<std::int64_t> newton_schulz_iterations;  // of Muon
  std::optional<bool> optimizer_offload;
  std::optional<std::string>
      framework_date;                    // "2024-05": as releases until then did it; otherwise the newest
  std::optional<double> clip_gradients;  // 0: not
  std::optional<bool> deterministic;     // kernels that give the same result every time
  std::optional<bool>
      fp32_convolutions;  // those of fp32 do not run on TF32 units (torch.backends.cudnn.allow_tf32)
  std::optional<bool> log_parameter_norm, log_gradient_zeros;  // computed in every step

  // What stops training now and then: steps between two evaluations, batches of one, steps between two checkpoints.
  std::optional<std::int64_t> evaluation_interval, evaluation_batches, save_interval;
  std::optional<bool> saves_asynchronously;

  friend bool operator==(const JobSettings&, const JobSettings&) = default;
};

// `upper` where it says something, `lower` elsewhere. Ways to say one thing go together: who names a kind of
// sharding does not keep the ZeRO stage of `lower`.
[[nodiscard]] JobSettings over(const JobSettings& lower, const JobSettings& upper);

// A file of a framework; `name` stands for it in errors.
struct ConfigText {
  std::string text, name;
};
[[nodiscard]] Result<ConfigText> read_config_text(const std::filesystem::path& file);

struct Job {
  std::string model;  // a preset (presets.h) or the path of a Hugging Face config.json; empty: see below
  std::vector<std::string> ignored_model_keys;  // of config.json, as huggingface.h has them
  std::optional<Transformer> transformer;       // instead of `model`
  VisionSettings vision;                        // images of a sequence and their size, of what sees images
  std::optional<std::int64_t> n_gpus;
  std::optional<std::int64_t> gpus_per_node;  // nothing: as the launcher says, or else as the platform has
  std::optional<Framework> framework;         // whose habits; nothing: of the file, or Megatron-LM's
  // A whole command line of Megatron-LM, with its launcher: what it does not say has Megatron's defaults.
  std::optional<std::string> command_line;
  bool strict =
      false;  // flags of `command_line` and keys of `config` that are not known are errors, and no notes
  std::optional<ConfigText> torchtitan;  // not together with the others
  std::optional<ConfigText> deepspeed;
  std::optional<ConfigText> config;  // of a framework that framework_config.h knows; not with a command line
  JobSettings settings;
  // What `settings` could not hold, as the user spelled it; handed on.
  std::vector<std::string> not_modelled;
};

// Which steps evaluation and checkpoints stand behind; 0: no one says so, or behind none.
struct TrainingRoutine {
  std::int64_t evaluation_interval = 0, evaluation_batches = 0, save_interval = 0;
  bool saves_asynchronously = false;
};

struct ResolvedJob {
  Transformer model;
  Layout layout;
  // As the launcher says, or the caller; nothing: not said, and layout.degrees.data is what the description
  // says, or 1.
  std::optional<std::int64_t> n_gpus;
  std::optional<std::int64_t> gpus_per_node;  // as the launcher says: of a host
  TrainingRoutine routine{};
  std::vector<std::string> notes;  // what nobody said and was filled in
  // Settings that change time or memory and that no model covers, as they are spelled: "--rampup-batch-size",
  // "parallelism.enable_async_tensor_parallel". For the user to see.
  std::vector<std::string> not_modelled;
};

}  // namespace stepcast
