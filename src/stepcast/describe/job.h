// A Job is the user's description of a training run, with as many or as few details as the user gives.
// resolve() (formats/resolve_job.h) turns it into a model, a layout and batches.
//
//   Job job{.model = "llama-3-70b", .n_gpus = 512};
//   job.settings.tensor = 4;
//   job.settings.pipeline = 4;
//
// Precedence, lowest first: the model and stepcast's defaults, the defaults of the framework
// (software_defaults.h), a config file or command line of the framework, `settings`.
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

// The settings of a training run, all optional. The names follow the concepts of Megatron-LM. Unless a
// comment says otherwise, each has a flag of Megatron-LM (megatron.h) with the same meaning.
struct JobSettings {
  // The model: a whole one, or changes to a given one. Sizes are in elements, dropouts and fractions from 0
  // to 1.
  //
  // T5: layers and sequence length of the decoder. The encoder uses n_layers and seq_len_tokens.
  std::optional<std::int64_t> decoder_layers, decoder_tokens;
  std::optional<std::int64_t> n_layers, hidden_size, ffn_hidden_size, n_heads, head_dim, max_position;
  // query_groups: number of key-value heads. padded_vocab_size replaces the padding to vocab_divisible_by.
  std::optional<std::int64_t> n_multi_token_prediction_layers, query_groups, vocab_size, padded_vocab_size;
  std::optional<double> rotary_fraction, hidden_dropout, attention_dropout;
  // query_groups is used only if true; with a given model it is always used.
  std::optional<bool> grouped_query;
  std::optional<bool> rotary_positions, swiglu, squared_relu, linear_bias, add_qkv_bias, tied_embeddings,
      qk_norm;
  std::optional<bool> gated_gelu, attention_output_gate, attention_sinks, learned_positions;
  std::optional<PositionEncoding> position;
  std::optional<NormKind> norm;
  // The tokenizer implies the vocabulary size: its kind ("GPT2BPETokenizer"), and its file or name if that is
  // known ("Qwen/Qwen3-8B").
  std::optional<std::string> tokenizer;
  std::optional<std::string> tokenizer_model;
  // Sliding-window attention: tokens before and after each token, as "4095,0"; -1 means all.
  std::optional<std::string> window;
  std::optional<std::int64_t> n_experts, experts_per_token, expert_ffn_hidden_size, shared_ffn_hidden_size;
  std::optional<std::int64_t> n_expert_groups, expert_groups_per_token;
  // Which layers have experts: a period ("2": every second layer), or a list such as "[0]*3+[1]*58".
  std::optional<std::string> moe_layer_pattern;
  std::optional<bool> shared_expert_gate;
  // Width of the latent space that experts read and write.
  std::optional<std::int64_t> expert_latent_size;
  std::optional<bool> multi_latent;  // multi-head latent attention (MLA)
  std::optional<std::int64_t> q_lora_rank, kv_lora_rank, qk_head_dim, qk_rope_head_dim, v_head_dim;
  // Hybrid models, with one operator per layer. A pattern has one letter per layer ("M-M*ME"), "|" between
  // pipeline stages and "/" before layers of multi-token prediction. The older form gives the shares of
  // attention and FFN layers; the other layers have a state (Mamba).
  std::optional<std::string> hybrid_pattern;
  std::optional<double> hybrid_attention_share, hybrid_ffn_share;
  std::optional<bool> hybrid;
  std::optional<std::int64_t> state_size, state_head_dim, state_groups, state_heads;
  // attention_variant "gated_delta_net": linear attention, except in every N-th layer or in a list of layers
  // (linear_attention_pattern). "dsa": sparse attention; an indexer selects keys in the first indexer_offset
  // layers and in every indexer_every-th layer after them, and the other layers reuse its keys.
  std::optional<std::string> attention_variant, linear_attention_pattern;
  std::optional<std::int64_t> linear_kernel, linear_key_head_dim, linear_head_dim, linear_key_heads,
      linear_heads;
  std::optional<std::int64_t> indexer_heads, indexer_head_dim, indexer_keys, indexer_every, indexer_offset;

  // Parallelism degrees. Without `data`, it is the number of GPUs divided by the other degrees.
  std::optional<std::int64_t> tensor, pipeline, context, data, expert, expert_tensor;
  // Two ways to give interleaving: model chunks per stage, or layers per chunk.
  std::optional<std::int64_t> virtual_stages, layers_per_virtual_stage;
  std::optional<std::int64_t> first_stage_layers, last_stage_layers;
  // Layers of all stages, in Megatron-LM's notation: "Et*3|(tt|)*29,m|L".
  std::optional<std::string> pipeline_layout;
  // Whether the embedding and the output layer count as layers when layers are distributed over stages.
  std::optional<bool> count_embedding_as_layer, count_output_as_layer;
  // Needed only where it does not follow from virtual_stages.
  std::optional<PipelineSchedule> pipeline_schedule;
  std::optional<bool> pipeline_before_data;  // rank order tp-cp-ep-pp-dp instead of tp-cp-ep-dp-pp

  // Batches in sequences, sequence length in tokens.
  std::optional<std::int64_t> micro_batch_sequences, global_batch_sequences, seq_len_tokens;

  // Element types.
  // Fp32, fp16 or bf16; with fp8, of the operations that stay in higher precision.
  std::optional<DType> dtype;
  std::optional<bool> fp8, fp4;
  std::optional<DType> master_dtype, moments_dtype;  // of the master weights, and of Adam's moments
  std::optional<DType> gradient_dtype;               // gradients are stored and reduced in this type
  std::optional<Fp8Scaling> fp8_scaling;
  std::optional<bool> fp8_weight_gradients, fp8_gather_weights, fp8_attention;
  // First and last layers that stay in dtype: 1 and 1 if no numbers are given.
  std::optional<bool> fp8_spares_end_layers;
  std::optional<std::int64_t> fp8_spared_first_layers, fp8_spared_last_layers;

  // Layers.
  std::optional<bool> sequence_parallel;
  std::optional<ContextParallelKind> context_parallel_kind;
  std::optional<double> expert_capacity_factor;
  std::optional<bool> pad_experts_to_capacity;
  // Distribution of tokens over experts: "balanced", "power-law:1.2", or a file with measured loads
  // (workload/expert_load.h).
  std::optional<std::string> expert_load;
  std::optional<AttentionMethod> attention;
  std::optional<bool> flash_attention, legacy_models;
  std::optional<std::string> transformer_implementation;  // "local", "transformer_engine"
  std::optional<Recompute> recompute;
  // Older flags for selective and for full recomputation.
  std::optional<bool> recompute_attention, checkpoint_layers;
  std::optional<bool> recompute_by_block;  // true: the first recompute_layers of each stage; false: uniform
  std::optional<std::int64_t> recompute_layers;
  std::optional<std::string> recompute_modules;  // selective recomputation: "core_attn layernorm moe_act"
  // Activations that full recomputation keeps on the GPU, or on the CPU: "qkv attention"
  // (workload/layer_words.h). These two have no flag of Megatron-LM.
  std::optional<std::string> recompute_keeps, recompute_offloads;
  std::optional<std::string> cuda_graph_implementation;  // "none", "local", "transformer_engine"
  std::optional<std::string> cuda_graph_scope;  // "attn moe_router", "full_iteration"; empty: whole layers
  std::optional<bool> cuda_graph_layers;        // older flags for graphs of whole layers
  std::optional<std::int64_t> activation_offload_layers;  // layers of each stage with activations on the CPU
  std::optional<bool> offloads_modules;                   // inputs of offload_modules are kept on the CPU
  std::optional<std::string> offload_modules;             // "core_attn moe_act"
  std::optional<bool> fuse_softmax, fuse_bias_activation, fuse_bias_dropout, fuse_rotary, fuse_cross_entropy;
  std::optional<bool> fuse_gradient_accumulation, fuse_permutation;
  std::optional<bool> overlap_tensor_parallel, overlap_expert, overlap_shared_experts;
  std::optional<bool> overlap_sequence_parallel_weight_gradient;
  std::optional<bool> delay_weight_gradient;
  std::optional<bool> narrow_dispatch;           // tokens are sent to their experts in 8 bits
  std::optional<bool> narrow_activation_inputs;  // inputs of activation functions are stored in 8 bits
  // flex_dispatcher: the implementation if dispatcher is "flex"
  std::optional<TokenDispatcher> dispatcher, flex_dispatcher;

  // Fine-tuning. These have no flags of Megatron-LM.
  std::optional<bool> frozen_base;          // the weights of the model are not trained
  std::optional<std::int64_t> lora_rank;    // rank of the LoRA adapters; freezes the base model
  std::optional<double> lora_dropout;       // of the inputs of the adapters
  std::optional<std::string> lora_targets;  // "linear_qkv linear_proj linear_fc1 linear_fc2"
  // Storage of the frozen weights: "16bit", "int8", "nf4", "nf4-double"
  std::optional<std::string> lora_base_weights;
  std::optional<bool> reference_model;  // adds a forward pass of a frozen copy of the model (DPO, KTO)
  // Packing: mean length of the packed texts in tokens. Share of the tokens that enter the loss.
  std::optional<double> packed_mean_tokens, predicted_token_share;

  // Pipeline, data parallelism, optimizer.
  std::optional<bool> overlap_p2p, p2p_scatter_gather, overlap_gradient_reduce, overlap_parameter_gather;
  std::optional<Sharding> sharding;
  // Flags that imply a kind of sharding: ZeRO-1 and ZeRO-3.
  std::optional<bool> distributed_optimizer, fully_sharded;
  std::optional<std::int64_t> weight_copies;  // ZeRO-3: replicas of the sharded weights (hybrid sharding)
  std::optional<std::int64_t> zero_stage, bucket_parameters, vocab_divisible_by;
  std::optional<OptimizerKind> optimizer;
  std::optional<std::int64_t> newton_schulz_iterations;  // of Muon
  std::optional<bool> optimizer_offload;
  std::optional<std::string>
      framework_date;                    // "2024-05": simulate a release of that month; otherwise the newest
  std::optional<double> clip_gradients;  // maximum norm; 0: no clipping
  std::optional<bool> deterministic;     // deterministic kernels
  // fp32 convolutions do not use TF32 units (torch.backends.cudnn.allow_tf32 = False).
  std::optional<bool> fp32_convolutions;
  std::optional<bool> log_parameter_norm, log_gradient_zeros;  // computed in every step

  // Periodic interruptions: training steps between evaluations, global batches per evaluation, training steps
  // between checkpoints.
  std::optional<std::int64_t> evaluation_interval, evaluation_batches, save_interval;
  std::optional<bool> saves_asynchronously;

  friend bool operator==(const JobSettings&, const JobSettings&) = default;
};

// `upper` where it has a value, `lower` elsewhere. Settings that express the same choice are replaced as a
// group: if `upper` names a kind of sharding, the ZeRO stage of `lower` is dropped.
[[nodiscard]] JobSettings over(const JobSettings& lower, const JobSettings& upper);

// The content of a framework's config file. `name` denotes the file in errors.
struct ConfigText {
  std::string text, name;
};
// Errors: the file cannot be read or is larger than 1 MiB.
[[nodiscard]] Result<ConfigText> read_config_text(const std::filesystem::path& file);

// What the user gives, before names are looked up and defaults are filled in.
struct Job {
  std::string model;  // name of a preset (presets.h) or path of a Hugging Face config.json
  std::vector<std::string> ignored_model_keys;  // keys of config.json that do not matter (huggingface.h)
  std::optional<Transformer> transformer;       // replaces `model`
  VisionSettings vision;  // images per sequence and their size, for models with a vision tower
  std::optional<std::int64_t> n_gpus;
  std::optional<std::int64_t> gpus_per_node;  // nothing: from the launcher, else from the platform
  std::optional<Framework> framework;         // source of defaults; nothing: from the file, else Megatron-LM
  // A whole command line of Megatron-LM with its launcher. Flags that it does not contain have Megatron-LM's
  // defaults.
  std::optional<std::string> command_line;
  // True: unknown flags of `command_line` and unknown keys of `config` are errors. False: they become notes.
  bool strict = false;
  std::optional<ConfigText> torchtitan;  // config file of TorchTitan; excludes the other sources
  std::optional<ConfigText> deepspeed;
  std::optional<ConfigText> config;  // of a framework in framework_config.h; excludes command_line
  JobSettings settings;
  // Options that `settings` cannot express, spelled as in their source. Copied to ResolvedJob::not_modelled.
  std::vector<std::string> not_modelled;
};

// When evaluation and checkpoints interrupt training, in steps. 0: never, or not given.
struct TrainingRoutine {
  std::int64_t evaluation_interval = 0, evaluation_batches = 0, save_interval = 0;
  bool saves_asynchronously = false;
};

// The result of resolve(): a complete model and layout.
struct ResolvedJob {
  Transformer model;
  Layout layout;
  // From the launcher or the caller. Nothing: not given, and layout.degrees.data is the described degree or
  // 1.
  std::optional<std::int64_t> n_gpus;
  std::optional<std::int64_t> gpus_per_node;  // of a host, from the launcher
  TrainingRoutine routine{};
  std::vector<std::string> notes;  // defaults that were filled in, for the user to see
  // Settings that change time or memory and that no model covers, spelled as in their source, for the user to
  // see: "--rampup-batch-size", "parallelism.enable_async_tensor_parallel".
  std::vector<std::string> not_modelled;
};

}  // namespace stepcast
