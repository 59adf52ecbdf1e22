#include "stepcast/describe/detail/framework_rows.h"

namespace stepcast::detail {
namespace {

using S = JobSettings;
using W = ConfigWords;

constexpr ConfigRow kMaxTextRows[] = {
    {"model_name", &W::model},
    {"base_emb_dim", &S::hidden_size},
    {"base_mlp_dim", &S::ffn_hidden_size},
    {"base_num_decoder_layers", &S::n_layers},
    {"base_num_query_heads", &S::n_heads},
    {"base_num_kv_heads", &S::query_groups},
    {"head_dim", &S::head_dim},
    {"vocab_size", &S::vocab_size},
    {"logits_via_embedding", &S::tied_embeddings},
    {"num_experts", &S::n_experts},
    {"num_experts_per_tok", &S::experts_per_token},
    {"per_device_batch_size", &W::rank_batch},
    {"gradient_accumulation_steps", &W::accumulation},
    {"num_pipeline_microbatches", &W::pipeline_parts},
    {"max_target_length", &S::seq_len_tokens},
    {"dtype", &W::precision},
    {"quantization", &W::quantization},
    {"capacity_factor", &W::expert_capacity},
    {"sparse_matmul", &W::sparse_experts},
    {"remat_policy", &W::recompute},
    {"decoder_layer_input", &W::kept_input},
    {"query_proj", &W::kept_query},
    {"key_proj", &W::kept_key},
    {"value_proj", &W::kept_value},
    {"qkv_proj", &W::kept_qkv},
    {"context", &W::kept_attention},
    {"out_proj", &W::kept_attention_output},
    {"mlpwi", &W::kept_ffn_up},
    {"mlpwi_0", &W::kept_ffn_up},
    {"mlpwo", &W::kept_ffn_down},
    {"ici_data_parallelism", &W::copies_inside},
    {"ici_fsdp_parallelism", &W::sharded_inside},
    {"ici_fsdp_transpose_parallelism", &W::also_sharded_inside},
    {"dcn_data_parallelism", &W::copies_outside},
    {"dcn_fsdp_parallelism", &W::sharded_outside},
    {"ici_tensor_parallelism", &S::tensor},
    {"dcn_tensor_parallelism", &W::tensor_outside},
    {"ici_pipeline_parallelism", &S::pipeline},
    {"ici_context_parallelism", &S::context},
    {"ici_expert_parallelism", &S::expert},
    {"opt_type", &W::optimizer},
    {"gradient_clipping_threshold", &W::gradient_clip},
};
constexpr std::string_view kMaxTextNotPriced =
    "weight_dtype grad_dtype mu_dtype optimizer_memory_host_offload parameter_memory_host_offload "
    "dcn_pipeline_parallelism ici_sequence_parallelism ici_tensor_sequence_parallelism "
    "ici_tensor_transpose_parallelism "
    "use_iota_embed num_layers_per_pipeline_stage";
constexpr std::string_view kMaxTextPassedOver =
    "base_config base_output_directory run_name steps dataset_* tokenizer_* enable_checkpointing "
    "async_checkpointing "
    "checkpoint_* load_* learning_rate* warmup_steps_fraction adam_* log_* profiler* "
    "skip_first_n_steps_for_profiler "
    "hardware attention attention_typedcn_* mlp_activations mlpwi_1 "
    "scan_layers "
    "normalization_layer_epsilon rope_* decoder_block enable_goodput_recording monitor_* hf_* grain_* eval_* "
    "reuse_example_batch packing gcs_metrics logical_axis_rules metrics_file save_config_to_gcs "
    "enable_dropout "
    "dropout_rate xprof_* sa_* use_vertex_tensorboard vertex_* data_shuffle_seed init_weights_seed megablox";

constexpr ConfigRow kNanotronRows[] = {
    {"parallelism.dp", &W::data},
    {"parallelism.tp", &S::tensor},
    {"parallelism.pp", &S::pipeline},
    {"parallelism.context_parallel_size", &S::context},
    {"parallelism.cp", &S::context},
    {"parallelism.expert_parallel_size", &S::expert},
    {"parallelism.recompute_layer", &W::recompute},
    {"tokens.micro_batch_size", &W::rank_batch},
    {"tokens.batch_accumulation_per_replica", &W::accumulation},
    {"tokens.sequence_length", &S::seq_len_tokens},
    {"model.dtype", &W::precision},
    {"model.model_config.hidden_size", &S::hidden_size},
    {"model.model_config.intermediate_size", &S::ffn_hidden_size},
    {"model.model_config.num_attention_heads", &S::n_heads},
    {"model.model_config.num_hidden_layers", &S::n_layers},
    {"model.model_config.num_key_value_heads", &S::query_groups},
    {"model.model_config.vocab_size", &S::vocab_size},
    {"model.model_config.max_position_embeddings", &S::max_position},
    {"model.model_config.tie_word_embeddings", &S::tied_embeddings},
    {"model.model_config.moe_config.num_experts", &S::n_experts},
    {"model.model_config.moe_config.top_k", &S::experts_per_token},
    {"model.model_config.moe_config.moe_intermediate_size", &S::expert_ffn_hidden_size},
    {"model.model_config.moe_config.shared_expert_intermediate_size", &S::shared_ffn_hidden_size},
    {"optimizer.zero_stage", &S::zero_stage},
    {"optimizer.optimizer_factory.name", &W::optimizer},
    {"optimizer.clip_grad", &W::gradient_clip},
};
constexpr std::string_view kNanotronNotPriced =
    "parallelism.moe_layer_recompute "
    "model.model_config.sliding_window_size model.model_config.attention_bias";
constexpr std::string_view kNanotronPassedOver =
    "checkpoints data_stages general logging lighteval profiler tokenizer s3_upload lr_scheduler "
    "metrics_logging "
    "model.ddp_bucket_cap_mb model.init_method model.model_config.moe_config "
    "model.make_vocab_size_divisible_by model.model_config.* "
    "optimizer.* "
    "parallelism.tp_* parallelism.pp_engine tokens.*";

constexpr ConfigRow kTorchtuneRows[] = {
    {"model._component_", &W::model},
    {"model.lora_rank", &W::adapter_rank},
    {"model.lora_attn_modules", &W::adapter_targets},
    {"model.apply_lora_to_mlp", &W::all_linear},
    {"batch_size", &W::rank_batch},
    {"gradient_accumulation_steps", &W::accumulation},
    {"tokenizer.max_seq_len", &S::seq_len_tokens},
    {"enable_activation_checkpointing", &W::recompute},
    {"dtype", &W::precision},
    {"optimizer._component_", &W::optimizer},
    {"tensor_parallel_dim", &S::tensor},
    {"context_parallel_dim", &S::context},
    {"clip_grad_norm", &W::gradient_clip},
};
constexpr std::string_view kTorchtuneNotPriced =
    "enable_activation_offloading fsdp_cpu_offload optimizer_in_bwd fsdp_reshard_after_forward "
    "data_parallel_replicate_dim "
    "custom_sharded_layers compile";
constexpr std::string_view kTorchtunePassedOver =
    "output_dir tokenizer model.* checkpointer resume_from_checkpoint dataset seed shuffle epochs "
    "max_steps_per_epoch "
    "optimizer lr_scheduler loss device parallelize_plan data_parallel_shard_dim metric_logger log_* "
    "profiler dataset_val run_val_every_n_steps "
    "batch_size_val "
    "save_* enable_async_checkpointing tensor_parallel_plan cudnn_deterministic_mode";

// NeMo 2 and Megatron-Bridge have Megatron-LM's names: describe/nemo_arguments.h.

constexpr ConfigRow kAxolotlRows[] = {
    {"base_model", &W::model},
    {"micro_batch_size", &W::rank_batch},
    {"gradient_accumulation_steps", &W::accumulation},
    {"sequence_len", &S::seq_len_tokens},
    {"bf16", &W::bf16},
    {"fp16", &W::fp16},
    {"bfloat16", &W::bf16},
    {"fp8", &S::fp8},
    {"gradient_checkpointing", &W::recompute},
    {"adapter", &W::adapter},
    {"lora_r", &W::adapter_rank},
    {"lora_target_modules", &W::adapter_targets},
    {"lora_target_linear", &W::all_linear},
    {"fsdp", &W::sharding},
    {"fsdp_version", &W::sharding},
    {"fsdp_config.activation_checkpointing", &W::recomputes},
    {"fsdp_config.fsdp_activation_checkpointing", &W::recomputes},
    {"fsdp_config.sharding_strategy", &W::sharding},
    {"fsdp_config.fsdp_sharding_strategy", &W::sharding},
    {"tensor_parallel_size", &S::tensor},
    {"context_parallel_size", &S::context},
    {"sequence_parallel_degree", &S::context},
    {"optimizer", &W::optimizer},
    {"max_grad_norm", &W::gradient_clip},
    {"rl", &W::work},
};
constexpr std::string_view kAxolotlNotPriced =
    "load_in_4bit load_in_8bit torch_compile liger_* unsloth_* lora_mlp_kernel lora_qkv_kernel lora_o_kernel "
    "flash_optimum sdp_attention activation_offloading lora_modules_to_save unfrozen_parameters "
    "embeddings_skip_upcast "
    "dp_shard_size dp_replicate_size cut_cross_entropy fsdp_config.offload_params "
    "fsdp_config.fsdp_offload_params";
constexpr std::string_view kAxolotlPassedOver =
    "base_model_config model_type processor_type attn_implementation tokenizer_type tokenizer_config "
    "trust_remote_code datasets test_datasets "
    "dataset_* "
    "val_set_size output_dir wandb_* mlflow_* comet_* hub_* push_* plugins strict tf32 num_epochs max_steps "
    "lr_scheduler* "
    "learning_rate warmup_* weight_decay logging_steps eval_* evals_per_epoch save* sample_packing* "
    "pad_to_sequence_len "
    "eval_sample_packing flash_attention xformers_attention lora_alpha lora_dropout lora_model_dir "
    "lora_fan_in_fan_out "
    "train_on_inputs group_by_length early_stopping_patience resume_from_checkpoint local_rank "
    "special_tokens tokens "
    "chat_template* gradient_checkpointing_kwargs fsdp_config auto_resume_from_checkpoints debug deepspeed_* "
    "adam_* "
    "remove_unused_columns loss_watchdog_* seed is_* type shuffle_* skip_prepare_dataset peft_use_* cosine_*";

// Arguments of Hugging Face's Trainer, and of who builds on it.
#define STEPCAST_TRAINER_ROWS                                                                     \
  {"model_name_or_path", &W::model}, {"per_device_train_batch_size", &W::rank_batch},             \
      {"gradient_accumulation_steps", &W::accumulation}, {"bf16", &W::bf16}, {"fp16", &W::fp16},  \
      {"pure_bf16", &W::bf16}, {"gradient_checkpointing", &W::recompute}, {"fsdp", &W::sharding}, \
      {"optim", &W::optimizer}, {"fsdp_config.activation_checkpointing", &W::recomputes},         \
      {"fsdp_config.fsdp_activation_checkpointing", &W::recomputes}, {                            \
    "max_grad_norm", &W::gradient_clip                                                            \
  }
#define STEPCAST_TRAINER_NOT_PRICED                                                                    \
  "torch_compile use_liger_kernel load_in_4bit load_in_8bit neftune_noise_alpha auto_find_batch_size " \
  "optim_target_modules fsdp_config.offload_params fsdp_config.fsdp_offload_params "                   \
  "freeze_vision_tower freeze_multi_modal_projector freeze_language_model "
#define STEPCAST_TRAINER_PASSED_OVER                                                                        \
  "output_dir overwrite_output_dir do_* eval_* evaluation_strategy per_device_eval_batch_size "             \
  "learning_rate weight_decay "                                                                             \
  "adam_* num_train_epochs max_steps lr_scheduler* warmup_* logging_* log_* save_* seed data_seed "         \
  "report_to run_name tf32 "                                                                                \
  "push_to_hub hub_* dataloader_* remove_unused_columns ddp_* group_by_length length_column_name "          \
  "gradient_checkpointing_kwargs "                                                                          \
  "fsdp_config fsdp_transformer_layer_cls_to_wrap label_smoothing_factor load_best_model_at_end "           \
  "metric_for_best_model "                                                                                  \
  "greater_is_better resume_from_checkpoint torch_dtype dtype attn_implementation trust_remote_code "       \
  "model_revision "                                                                                         \
  "tokenizer_name* cache_dir preprocessing_num_workers max_train_samples max_eval_samples include_* "       \
  "prediction_loss_only "                                                                                   \
  "disable_tqdm dataset_* bf16_full_eval accelerator_config full_determinism use_fast_tokenizer streaming " \
  "half_precision_backend mp_parameters push_to_hub_* jit_mode_eval use_ipex past_index no_cuda use_cpu "   \
  "use_mps_device local_rank fp16_* tpu_* debug average_tokens_across_devices ignore_data_skip "            \
  "skip_memory_metrics eval_* batch_eval_metrics restore_callback_states_from_checkpoint optim_args "       \
  "torchdynamo ray_scope xpu_backend config_name low_cpu_mem_usage train_file validation_file "             \
  "validation_split_percentage overwrite_cache keep_linebreaks token use_auth_token project "               \
  "trackio_space_id torch_empty_cache_steps per_gpu_* liger_kernel_config parallelism_config "              \
  "enable_jit_checkpoint "

constexpr ConfigRow kLlamaFactoryRows[] = {STEPCAST_TRAINER_ROWS,
                                           {"stage", &W::work},
                                           {"finetuning_type", &W::adapter},
                                           {"lora_rank", &W::adapter_rank},
                                           {"lora_target", &W::adapter_targets},
                                           {"cutoff_len", &S::seq_len_tokens},
                                           {"disable_gradient_checkpointing", &W::keeps_activations}};
constexpr ConfigRow kTrlRows[] = {STEPCAST_TRAINER_ROWS,
                                  {"use_peft", &W::adapter},
                                  {"lora_r", &W::adapter_rank},
                                  {"lora_target_modules", &W::adapter_targets},
                                  {"max_length", &S::seq_len_tokens},
                                  {"max_seq_length", &S::seq_len_tokens}};
constexpr ConfigRow kTrainerRows[] = {STEPCAST_TRAINER_ROWS,
                                      {"block_size", &S::seq_len_tokens},
                                      {"max_seq_length", &S::seq_len_tokens},
                                      {"model_max_length", &S::seq_len_tokens}};

constexpr ConfigFramework kFrameworks[] = {
    {"MaxText", "per_device_batch_size model_name|base_num_decoder_layers", kMaxTextRows, kMaxTextNotPriced,
     kMaxTextPassedOver, 12, 2048, 8, Framework::maxtext, true, true},
    {"Nanotron", "parallelism.dp tokens.micro_batch_size model.model_config", kNanotronRows,
     kNanotronNotPriced, kNanotronPassedOver, 1, 0, 8, Framework::megatron},
    {"torchtune", "model._component_ batch_size", kTorchtuneRows, kTorchtuneNotPriced, kTorchtunePassedOver,
     1, 0, 8, Framework::fsdp},
    {"NeMo 2 or Megatron-Bridge", "model train|trainer !model.hidden_dim", {}, "", ""},
    {"Axolotl", "base_model", kAxolotlRows, kAxolotlNotPriced, kAxolotlPassedOver, 1, 512, 8,
     Framework::pytorch},
    {"LLaMA-Factory", "model_name_or_path stage", kLlamaFactoryRows,
     STEPCAST_TRAINER_NOT_PRICED "enable_liger_kernel use_unsloth quantization_bit flash_attn "
                                 "freeze_trainable_layers use_galore use_badam shift_attn "
                                 "additional_target",
     STEPCAST_TRAINER_PASSED_OVER "dataset template max_samples overwrite_cache plot_loss val_size "
                                  "lora_alpha lora_dropout packing neat_packing mask_history "
                                  "train_on_prompt image_* video_* media_dir use_swanlab swanlab_* "
                                  "adapter_name_or_path pref_* include_num_input_tokens_seen",
     8, 2048, 8, Framework::pytorch, true},
    {"TRL", "model_name_or_path dataset_name|use_peft|max_length|packing !block_size", kTrlRows,
     STEPCAST_TRAINER_NOT_PRICED
     "activation_offloading lora_modules_to_save use_dora use_rslora padding_free",
     STEPCAST_TRAINER_PASSED_OVER
     "packing packing_strategy lora_alpha lora_dropout lora_task_type "
     "assistant_only_loss completion_only_loss eos_token chat_template* "
     "bnb_* use_bnb_* pad_token loss_type beta max_prompt_length precompute_ref_log_probs "
     "ref_model* rpo_alpha",
     8, 1024, 16, Framework::pytorch},
    {"Hugging Face's Trainer", "per_device_train_batch_size output_dir", kTrainerRows,
     STEPCAST_TRAINER_NOT_PRICED, STEPCAST_TRAINER_PASSED_OVER, 8, 0, 8, Framework::pytorch},
};

}  // namespace

std::span<const ConfigFramework> config_frameworks() { return kFrameworks; }

}  // namespace stepcast::detail
