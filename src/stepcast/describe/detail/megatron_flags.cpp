#include "stepcast/describe/detail/megatron_flags.h"

#include <algorithm>
#include <type_traits>

#include "stepcast/describe/detail/optimizer_words.h"
#include "stepcast/describe/setting_groups.h"

namespace stepcast::detail {
namespace {

using S = JobSettings;
template <class Value>
using Words = std::pair<std::string_view, Value>;

constexpr Words<PositionEncoding> kPositions[] = {{"learned_absolute", PositionEncoding::learned},
                                                  {"rope", PositionEncoding::rotary},
                                                  {"mrope", PositionEncoding::rotary},
                                                  {"yarn", PositionEncoding::rotary},
                                                  {"alibi", PositionEncoding::alibi},
                                                  {"none", PositionEncoding::none}};
constexpr Words<NormKind> kNorms[] = {{"LayerNorm", NormKind::layer_norm},
                                      {"RMSNorm", NormKind::rms_norm},
                                      {"layernorm", NormKind::layer_norm},  // Megatron-DeepSpeed's
                                      {"rmsnorm", NormKind::rms_norm}};
constexpr Words<Recompute> kRecompute[] = {{"full", Recompute::full},
                                           {"selective", Recompute::selective},
                                           {"op", Recompute::selective_ops}};  // TorchTitan's
constexpr Words<bool> kRecomputeMethods[] = {{"uniform", false}, {"block", true}};
constexpr Words<bool> kFp8Formats[] = {{"e4m3", true}, {"hybrid", true}};
constexpr Words<Fp8Scaling> kFp8Recipes[] = {{"delayed", Fp8Scaling::delayed},
                                             {"tensorwise", Fp8Scaling::dynamic},
                                             {"rowwise", Fp8Scaling::rowwise},  // TorchTitan's
                                             {"blockwise", Fp8Scaling::blockwise},
                                             {"mxfp8", Fp8Scaling::mxfp8}};
constexpr Words<bool> kFp4Formats[] = {{"e2m1", true}};
constexpr Words<TokenDispatcher> kDispatchers[] = {{"alltoall", TokenDispatcher::all_to_all},
                                                   {"allgather", TokenDispatcher::all_gather},
                                                   {"flex", TokenDispatcher::deepep}};
constexpr Words<TokenDispatcher> kFlexDispatchers[] = {{"deepep", TokenDispatcher::deepep},
                                                       {"hybridep", TokenDispatcher::hybridep}};
constexpr Words<DType> kStateTypes[] = {
    {"fp32", DType::fp32}, {"bf16", DType::bf16}, {"fp16", DType::fp16}, {"fp8", DType::fp8}};
// auto: Transformer Engine takes a fused kernel.
constexpr Words<AttentionMethod> kAttentionBackends[] = {{"auto", AttentionMethod::flash},
                                                         {"flash", AttentionMethod::flash},
                                                         {"fused", AttentionMethod::flash},
                                                         {"unfused", AttentionMethod::unfused},
                                                         {"local", AttentionMethod::unfused}};
constexpr Words<ContextParallelKind> kContextKinds[] = {{"p2p", ContextParallelKind::ring},
                                                        {"a2a", ContextParallelKind::all_to_all},
                                                        {"all_gather", ContextParallelKind::all_gather}};
constexpr Words<Sharding> kShardingStrategies[] = {{"no_shard", Sharding::none},
                                                   {"optim", Sharding::zero1},
                                                   {"optim_grads", Sharding::zero2},
                                                   {"optim_grads_params", Sharding::zero3}};
constexpr Words<PipelineSchedule> kSchedules[] = {{"1f1b", PipelineSchedule::one_f_one_b},
                                                  {"gpipe", PipelineSchedule::gpipe},
                                                  {"zero-bubble", PipelineSchedule::zero_bubble_h1},
                                                  {"dualpipe", PipelineSchedule::dual_pipe},
                                                  {"zb-v", PipelineSchedule::zb_v},
                                                  {"v-half", PipelineSchedule::v_half},
                                                  {"v-min", PipelineSchedule::v_min}};

constexpr Words<bool> kSoftmaxTypes[] = {{"vanilla", false}, {"off-by-one", false}, {"learnable", true}};

constexpr MegatronSwitch<bool> on(std::optional<bool> S::*field) { return {field, true}; }
constexpr MegatronSwitch<bool> off(std::optional<bool> S::*field) { return {field, false}; }

// Flags that act. What is said twice is that of Megatron's configurations, which name it otherwise.
constexpr MegatronSettingFlag kSettings[] = {
    {"--num-layers", &S::n_layers},
    {"--encoder-num-layers", &S::n_layers},
    {"--decoder-num-layers", &S::decoder_layers},
    {"--decoder-seq-length", &S::decoder_tokens},
    {"--hybrid-layer-pattern", &S::hybrid_pattern},
    {"--hybrid-override-pattern", &S::hybrid_pattern},
    {"--hybrid-attention-ratio", &S::hybrid_attention_share},
    {"--hybrid-mlp-ratio", &S::hybrid_ffn_share},
    {"--is-hybrid-model", on(&S::hybrid)},
    {"--mamba-state-dim", &S::state_size},
    {"--mamba-head-dim", &S::state_head_dim},
    {"--mamba-num-groups", &S::state_groups},
    {"--mamba-num-heads", &S::state_heads},
    {"--experimental-attention-variant", &S::attention_variant},
    {"--linear-attention-freq", &S::linear_attention_pattern},
    {"--linear-conv-kernel-dim", &S::linear_kernel},
    {"--linear-key-head-dim", &S::linear_key_head_dim},
    {"--linear-value-head-dim", &S::linear_head_dim},
    {"--linear-num-key-heads", &S::linear_key_heads},
    {"--linear-num-value-heads", &S::linear_heads},
    {"--dsa-indexer-n-heads", &S::indexer_heads},
    {"--dsa-indexer-head-dim", &S::indexer_head_dim},
    {"--dsa-indexer-topk", &S::indexer_keys},
    {"--dsa-indexer-topk-freq", &S::indexer_every},
    {"--dsa-indexer-skip-topk-offset", &S::indexer_offset},
    {"--hidden-size", &S::hidden_size},
    {"--ffn-hidden-size", &S::ffn_hidden_size},
    {"--num-attention-heads", &S::n_heads},
    {"--kv-channels", &S::head_dim},
    {"--max-position-embeddings", &S::max_position},
    {"--mtp-num-layers", &S::n_multi_token_prediction_layers},
    {"--num-query-groups", &S::query_groups},
    {"--num-key-value-heads", &S::query_groups},  // Megatron-DeepSpeed's
    {"--vocab-size", &S::vocab_size},
    {"--padded-vocab-size", &S::padded_vocab_size},
    {"--rotary-percent", &S::rotary_fraction},
    {"--hidden-dropout", &S::hidden_dropout},
    {"--attention-dropout", &S::attention_dropout},
    {"--group-query-attention", on(&S::grouped_query)},
    {"--use-rotary-position-embeddings", on(&S::rotary_positions)},
    {"--swiglu", on(&S::swiglu)},
    {"--gated-linear-unit", on(&S::swiglu)},
    {"--quick-geglu", on(&S::gated_gelu)},
    {"--squared-relu", on(&S::squared_relu)},
    {"--disable-bias-linear", off(&S::linear_bias)},
    {"--add-bias-linear", on(&S::linear_bias)},
    {"--add-qkv-bias", on(&S::add_qkv_bias)},
    {"--untie-embeddings-and-output-weights", off(&S::tied_embeddings)},
    {"--share-embeddings-and-output-weights", on(&S::tied_embeddings)},
    {"--qk-layernorm", on(&S::qk_norm)},
    {"--attention-output-gate", on(&S::attention_output_gate)},
    {"--softmax-type", MegatronChoice<bool>{&S::attention_sinks, kSoftmaxTypes}},
    {"--no-position-embedding", off(&S::learned_positions)},
    {"--position-embedding-type", MegatronChoice<PositionEncoding>{&S::position, kPositions}},
    {"--normalization", MegatronChoice<NormKind>{&S::norm, kNorms}},
    {"--tokenizer-type", &S::tokenizer},
    {"--tokenizer-model", &S::tokenizer_model},
    {"--window-size", &S::window},
    {"--num-experts", &S::n_experts},
    {"--num-moe-experts", &S::n_experts},
    {"--moe-router-topk", &S::experts_per_token},
    {"--moe-ffn-hidden-size", &S::expert_ffn_hidden_size},
    {"--moe-shared-expert-intermediate-size", &S::shared_ffn_hidden_size},
    {"--moe-shared-expert-gate", on(&S::shared_expert_gate)},
    {"--moe-latent-size", &S::expert_latent_size},
    {"--moe-layer-freq", &S::moe_layer_pattern},
    {"--multi-latent-attention", on(&S::latent_attention)},
    {"--q-lora-rank", &S::q_lora_rank},
    {"--kv-lora-rank", &S::kv_lora_rank},
    {"--qk-head-dim", &S::qk_head_dim},
    {"--qk-pos-emb-head-dim", &S::qk_rope_head_dim},
    {"--v-head-dim", &S::v_head_dim},
    {"--tensor-model-parallel-size", &S::tensor},
    {"--model-parallel-size", &S::tensor},
    {"--pipeline-model-parallel-size", &S::pipeline},
    {"--context-parallel-size", &S::context},
    {"--data-parallel-size", &S::data},
    {"--expert-model-parallel-size", &S::expert},
    {"--expert-tensor-parallel-size", &S::expert_tensor},
    {"--num-virtual-stages-per-pipeline-rank", &S::virtual_stages},
    {"--virtual-pipeline-model-parallel-size", &S::virtual_stages},
    {"--num-layers-per-virtual-pipeline-stage", &S::layers_per_virtual_stage},
    {"--decoder-first-pipeline-num-layers", &S::first_stage_layers},
    {"--decoder-last-pipeline-num-layers", &S::last_stage_layers},
    {"--num-layers-in-first-pipeline-stage", &S::first_stage_layers},
    {"--num-layers-in-last-pipeline-stage", &S::last_stage_layers},
    {"--pipeline-model-parallel-layout", &S::pipeline_layout},
    {"--account-for-embedding-in-pipeline-split", on(&S::count_embedding_as_layer)},
    {"--account-for-loss-in-pipeline-split", on(&S::count_output_as_layer)},
    {"--use-tp-pp-dp-mapping", on(&S::pipeline_before_data)},
    {"--micro-batch-size", &S::micro_batch_sequences},
    {"--batch-size", &S::micro_batch_sequences},
    {"--global-batch-size", &S::global_batch_sequences},
    {"--seq-length", &S::seq_len_tokens},
    {"--encoder-seq-length", &S::seq_len_tokens},
    {"--fp16", MegatronSwitch<DType>{&S::dtype, DType::fp16}},
    {"--bf16", MegatronSwitch<DType>{&S::dtype, DType::bf16}},
    {"--fp8-format", MegatronChoice<bool>{&S::fp8, kFp8Formats}},
    {"--fp8", MegatronChoice<bool>{&S::fp8, kFp8Formats}},
    {"--fp8-hybrid", on(&S::fp8)},
    {"--fp8-e4m3", on(&S::fp8)},
    {"--accumulate-allreduce-grads-in-fp32", MegatronSwitch<DType>{&S::gradient_dtype, DType::fp32}},
    {"--grad-reduce-in-fp32", MegatronSwitch<DType>{&S::gradient_dtype, DType::fp32}},
    {"--grad-reduce-in-bf16", MegatronSwitch<DType>{&S::gradient_dtype, DType::bf16}},
    {"--fp8-recipe", MegatronChoice<Fp8Scaling>{&S::fp8_scaling, kFp8Recipes}},
    {"--no-fp8-wgrad", off(&S::fp8_weight_gradients)},
    {"--fp8-param-gather", on(&S::fp8_gather_weights)},
    {"--fp8-param", on(&S::fp8_gather_weights)},
    {"--fp8-dot-product-attention", on(&S::fp8_attention)},
    {"--fp8-multi-head-attention", on(&S::fp8_attention)},
    {"--first-last-layers-bf16", on(&S::fp8_spares_end_layers)},
    {"--num-layers-at-start-in-bf16", &S::fp8_spared_first_layers},
    {"--num-layers-at-end-in-bf16", &S::fp8_spared_last_layers},
    {"--fp4-format", MegatronChoice<bool>{&S::fp4, kFp4Formats}},
    {"--fp4", MegatronChoice<bool>{&S::fp4, kFp4Formats}},
    {"--main-grads-dtype", MegatronChoice<DType>{&S::gradient_dtype, kStateTypes}},
    {"--main-params-dtype", MegatronChoice<DType>{&S::master_dtype, kStateTypes}},
    {"--exp-avg-dtype", MegatronChoice<DType>{&S::moments_dtype, kStateTypes}},
    {"--sequence-parallel", on(&S::sequence_parallel)},
    {"--cp-comm-type", MegatronChoice<ContextParallelKind>{&S::context_parallel_kind, kContextKinds}},
    {"--moe-router-num-groups", &S::n_expert_groups},
    {"--moe-router-group-topk", &S::expert_groups_per_token},
    {"--moe-expert-capacity-factor", &S::expert_capacity_factor},
    {"--moe-pad-expert-input-to-capacity", on(&S::pad_experts_to_capacity)},
    {"--expert-load", &S::expert_load},
    {"--pipeline-schedule", MegatronChoice<PipelineSchedule>{&S::pipeline_schedule, kSchedules}},
    {"--moe-fp8-dispatch", on(&S::narrow_dispatch)},
    {"--activation-func-fp8-input-store", on(&S::narrow_activation_inputs)},
    {"--attention-backend", MegatronChoice<AttentionMethod>{&S::attention, kAttentionBackends}},
    {"--use-flash-attn", on(&S::flash_attention)},
    {"--use-flash-attn-v2", on(&S::flash_attention)},
    {"--use-legacy-models", on(&S::legacy_models)},
    {"--transformer-impl", &S::transformer_implementation},
    {"--recompute-granularity", MegatronChoice<Recompute>{&S::recompute, kRecompute}},
    {"--recompute-activations", on(&S::recompute_attention)},
    {"--checkpoint-activations", on(&S::checkpoint_layers)},
    {"--deepspeed-activation-checkpointing", on(&S::checkpoint_layers)},
    {"--recompute-modules", MegatronWordList{&S::recompute_modules}},
    {"--recompute-method", MegatronChoice<bool>{&S::recompute_by_block, kRecomputeMethods}},
    {"--activations-checkpoint-method", MegatronChoice<bool>{&S::recompute_by_block, kRecomputeMethods}},
    {"--recompute-num-layers", &S::recompute_layers},
    {"--activations-checkpoint-num-layers", &S::recompute_layers},
    {"--checkpoint-num-layers", &S::recompute_layers},
    {"--no-masked-softmax-fusion", off(&S::fuse_softmax)},
    {"--no-scaled-masked-softmax-fusion", off(&S::fuse_softmax)},
    {"--no-bias-gelu-fusion", off(&S::fuse_bias_activation)},
    {"--no-bias-swiglu-fusion", off(&S::fuse_bias_activation)},
    {"--bias-activation-fusion", on(&S::fuse_bias_activation)},
    {"--no-bias-dropout-fusion", off(&S::fuse_bias_dropout)},
    {"--no-rope-fusion", off(&S::fuse_rotary)},
    {"--cross-entropy-loss-fusion", on(&S::fuse_cross_entropy)},
    {"--moe-permute-fusion", on(&S::fuse_permutation)},
    {"--no-gradient-accumulation-fusion", off(&S::fuse_gradient_accumulation)},
    {"--tp-comm-overlap", on(&S::overlap_tensor_parallel)},
    // NeMo and Megatron Bridge overlap unless their configuration says no; Megatron-LM needs no such flag.
    {"--no-tp-comm-overlap", off(&S::overlap_tensor_parallel)},
    {"--delay-wgrad-compute", on(&S::delay_weight_gradient)},
    {"--moe-token-dispatcher-type", MegatronChoice<TokenDispatcher>{&S::dispatcher, kDispatchers}},
    {"--moe-flex-dispatcher-backend", MegatronChoice<TokenDispatcher>{&S::flex_dispatcher, kFlexDispatchers}},
    {"--moe-enable-deepep", MegatronSwitch<TokenDispatcher>{&S::flex_dispatcher, TokenDispatcher::deepep}},
    {"--cuda-graph-impl", &S::cuda_graph_implementation},
    {"--cuda-graph-scope", MegatronWordList{&S::cuda_graph_scope}},
    {"--cuda-graph-modules", MegatronWordList{&S::cuda_graph_scope}},
    {"--enable-cuda-graph", on(&S::cuda_graph_layers)},
    {"--external-cuda-graph", on(&S::cuda_graph_layers)},
    {"--cpu-offloading-num-layers", &S::activation_offload_layers},
    {"--fine-grained-activation-offloading", on(&S::offloads_modules)},
    {"--offload-modules", MegatronWordList{&S::offload_modules}},
    {"--moe-shared-expert-overlap", on(&S::overlap_shared_experts)},
    {"--overlap-moe-expert-parallel-comm", on(&S::overlap_expert)},
    {"--no-async-tensor-model-parallel-allreduce", off(&S::overlap_sequence_parallel_weight_gradient)},
    {"--overlap-p2p-communication", on(&S::overlap_p2p)},
    {"--no-overlap-p2p-communication", off(&S::overlap_p2p)},
    {"--no-scatter-gather-tensors-in-pipeline", off(&S::p2p_scatter_gather)},
    {"--overlap-grad-reduce", on(&S::overlap_gradient_reduce)},
    {"--overlap-param-gather", on(&S::overlap_parameter_gather)},
    {"--data-parallel-sharding-strategy", MegatronChoice<Sharding>{&S::sharding, kShardingStrategies}},
    {"--use-distributed-optimizer", on(&S::distributed_optimizer)},
    {"--num-distributed-optimizer-instances", &S::weight_copies},
    {"--use-torch-fsdp2", on(&S::fully_sharded)},
    {"--use-custom-fsdp", on(&S::fully_sharded)},
    {"--use-megatron-fsdp", on(&S::fully_sharded)},
    {"--zero-stage", &S::zero_stage},
    {"--ddp-bucket-size", &S::bucket_parameters},
    {"--bucket-size", &S::bucket_parameters},
    {"--make-vocab-size-divisible-by", &S::vocab_divisible_by},
    {"--optimizer", MegatronChoice<OptimizerKind>{&S::optimizer, kMegatronOptimizers}},
    {"--muon-num-ns-steps", &S::newton_schulz_iterations},
    {"--optimizer-cpu-offload", on(&S::optimizer_offload)},
    {"--cpu-optimizer", on(&S::optimizer_offload)},
    {"--clip-grad", &S::clip_gradients},
    {"--deterministic-mode", on(&S::deterministic)},
    {"--log-params-norm", on(&S::log_parameter_norm)},
    {"--log-num-zeros-in-grad", on(&S::log_gradient_zeros)},
    {"--eval-interval", &S::evaluation_interval},
    {"--eval-iters", &S::evaluation_batches},
    {"--save-interval", &S::save_interval},
    {"--async-save", on(&S::saves_asynchronously)},
    {"--frozen-base", on(&S::frozen_base)},
    {"--lora-rank", &S::lora_rank},
    {"--lora-target-modules", MegatronWordList{&S::lora_targets}},
    {"--reference-model", on(&S::reference_model)},
    {"--dpo", on(&S::reference_model)},
    {"--packed-mean-tokens", &S::packed_mean_tokens},
    {"--framework-date", &S::framework_date},
    {"--predicted-token-share", &S::predicted_token_share},
};

// All the others, a row for each reason. Exact names hold over patterns, longer patterns over shorter ones.
using Use = MegatronFlagUse;
constexpr MegatronFlagRow kRows[] = {
    // What is refused.
    {Use::out_of_scope, "generating text (inference) is not modelled: a forecast is of a training step",
     "inference* serv* generat* num-tokens-to-generate prompts prompt-file* output-path "
     "output-every-n-results temperature top_k top_p top-k top-p top-n-logprobs return-log-probs "
     "incoming-requests-* stop-words termination-id"},
    {Use::out_of_scope,
     "reinforcement learning is not modelled by this flag: say it with --rl grpo (or ppo, dapo; "
     "docs/post-training.md); without the flag it is the training step alone",
     "perform-rl-step rl rl-* grpo* ppo* rlhf* reward* langrl-* refit-method"},
    {Use::out_of_scope, "vision models and vision encoders are not modelled",
     "img-h img-w patch-dim num-channels num-classes vision-* swin-backbone-type dino-* mask-type "
     "mask-factor iter-per-epoch classes-fraction data-per-class-fraction head-lr-mult "
     "disable-vision-class-token language-model-checkpoint"},
    {Use::out_of_scope, "models that retrieve (ICT, RETRO, bi-encoders) are not modelled",
     "ict-* biencoder-* retriever-* retro-* titles-data-path evidence-data-path block-data-path "
     "embedding-path indexer-* query-in-block-prob use-one-sent-docs"},
    {Use::out_of_scope, "a step that also runs another model (a teacher) is not modelled", "export-kd-*"},
    {Use::out_of_scope, "elastic models (Flextron), whose sizes are drawn anew each step, are not modelled",
     "flextron"},
    {Use::out_of_scope,
     "layers of several shapes are not modelled from flags: give --model with its config.json",
     "heterogeneous-layers-config-path heterogeneous-layers-config-encoded-json "
     "heterogeneous-block-specs"},
    {Use::out_of_scope, "settings in a YAML file are not modelled: give them as flags", "yaml-cfg"},
    // What changes time or memory and has no price here.
    {Use::not_modelled, "steps differ: the batch that is reached last is forecast",
     "rampup-batch-size step-batch-size-schedule decrease-batch-size-if-needed"},
    {Use::not_modelled, "lengths of sequences differ; --packed-mean-tokens says the mean",
     "sft variable-seq-lengths reset-attention-mask dataloader-inter-document-masking "
     "hybrid-context-parallel max-seqlen-per-dp-cp-rank"},
    {Use::not_modelled, "where activations are kept",
     "distribute-saved-activations distribute-checkpointed-activations "
     "fine-grained-offloading-* "
     "min-offloaded-tensor-size delay-offload-until-cuda-graph delta-offload-bytes-across-pp-ranks "
     "activation-offload-fraction moe-paged-stash* cpu-offloading-weights "
     "cpu-offloading-double-buffering cpu-offloading-retain-pinned-cpu-buffers "
     "no-cpu-offloading-activations num-microbatches-with-partial-activation-checkpoints "
     "moe-layer-recompute gdp-num-chunk-states-to-recompute mlp-chunks-for-training "
     "ep-overlap-early-attn-memory-release empty-unused-memory-level"},
    {Use::not_modelled, "kernels that give the same result every time", "batch-invariant-*"},
    {Use::not_modelled, "precision of single operations",
     "fp32-residual-connection apply-query-key-layer-scaling attention-softmax-in-fp32 "
     "no-attention-softmax-in-fp32 disable-bf16-reduced-precision-matmul fp16-lm-cross-entropy "
     "output-logit-dtype logit-dtype mamba-training-ssm-states-dtype enable-autocast autocast-dtype "
     "use-precision-aware-optimizer exp-avg-sq-dtype no-store-param-remainders "
     "megatron-fsdp-main-params-dtype megatron-fsdp-main-grads-dtype megatron-fsdp-grad-comm-dtype "
     "moe-dispatch-fwd-dtype moe-combine-bwd-dtype"},
    {Use::not_modelled, "which tensors are narrow, and how they are kept",
     "keep-fp8-weight-transpose-cache keep-fp8-transpose-cache "
     "keep-fp8-transpose-cache-when-using-custom-fsdp reuse-grad-buf-for-mxfp8-param-ag fp4-param "
     "fp4-param-gather fp4-recipe fp8-output-proj fp8-quantizer-factory fp4-quantizer-factory "
     "quant-recipe te-precision-config-file tp-only-amax-red moe-router-padding-for-fp8 "
     "moe-router-padding-for-quantization disable-parameter-transpose-cache use-kitchen* kitchen-*"},
    {Use::not_modelled, "which kernels are merged",
     "no-persist-layer-norm memory-efficient-layer-norm cross-entropy-fusion-impl disable-jit-fuser "
     "use-fused-weighted-squared-relu fused-single-qkv-rope fused-residual-rmsnorm "
     "use-transformer-engine-op-fuser use-te-activation-func use-flashinfer-fused-rope "
     "moe-permute-fusion-into-hybridep moe-router-fusion "
     "moe-use-legacy-grouped-gemm use-grouped-gemm-for-* moe-use-grouped-tensor moe-single-grouped-* "
     "mla-down-proj-fusion no-gradient-reduce-div-fusion flash-attention-version gdp-cutedsl-kernel "
     "use-mamba-mem-eff-path"},
    {Use::not_modelled, "parts of layers that are small, or not known",
     "spec qk-clip qk-clip-* qk-l2-norm log-max-attention-logit window-attn-skip-freq "
     "use-arbitrary-attention-mask enable-mhc-connections mhc-* mtp-use-repeated-layer "
     "mtp-detach-heads mtp-hsm mtp-hybrid-override-pattern gdp-num-householder freeze-all-layers"},
    {Use::not_modelled, "how the optimizer works",
     "muon-fp32-matmul-prec muon-tp-mode muon-no-split-qkv no-muon-split-qkv muon-use-syrk "
     "muon-scalar-optimizer optimizer-offload-fraction overlap-cpu-optimizer-d2h-h2d "
     "overlap-param-gather-with-optimizer-step use-torch-optimizer-for-cpu-offload no-pin-cpu-grads "
     "no-pin-cpu-params optimizer-cuda-graph use-layer-wise-distributed-optimizer "
     "no-use-layer-wise-param-layout"},
    {Use::not_modelled, "how tensor-parallel ranks overlap",
     "defer-embedding-wgrad-compute wgrad-deferral-limit disable-tp-comm-* no-tp-comm-* "
     "tp-comm-overlap-* tp-comm-atomic-* symmetric-ar-type"},
    {Use::not_modelled, "how stages exchange and what stands on them",
     "overlap-p2p-communication-warmup-flush overlap-p2p-comm-warmup-flush use-ring-exchange-p2p "
     "no-batch-p2p-comm no-batch-p2p-sync microbatch-group-size-per-virtual-pipeline-stage "
     "microbatch-group-size-per-vp-stage pipeline-model-parallel-comm-backend "
     "pipeline-model-parallel-split-rank encoder-tensor-model-parallel-size "
     "encoder-pipeline-model-parallel-size standalone-embedding-stage mtp-standalone "
     "hierarchical-context-parallel-sizes context-parallel-ulysses-degree"},
    {Use::not_modelled, "how gradients and weights are cut, reduced and gathered",
     "align-grad-reduce no-align-grad-reduce no-align-param-gather ddp-num-buckets "
     "num-buckets ddp-pad-buckets-for-high-nccl-busbw pad-buckets-for-high-nccl-busbw "
     "ddp-reduce-scatter-with-fp32-accumulation reduce-scatter-with-fp32-accumulation "
     "ddp-average-in-collective average-in-collective outer-dp-sharding-strategy "
     "ddp-param-name-patterns-for-fp32-local-accumulation "
     "param-name-patterns-for-fp32-local-accumulation fsdp-* torch-fsdp2-no-reshard-after-forward "
     "enable-full-sharding-in-hsdp no-fsdp-* megatron-fsdp-* gtp-* expert-gtp-weight-remat-size "
     "tensor-parallel-num-weight-shards expert-tensor-parallel-num-weight-shards "
     "suggested-communication-unit-size create-all-gather-group"},
    {Use::not_modelled, "what communication runs on",
     "use-nccl-ub nccl-ub use-sharp sharp-enabled-group disable-symmetric-registration "
     "nccl-communicator-config-path high-priority-stream-groups high-priority-a2a-comm-stream "
     "fake-process-group enable-gloo-process-groups"},
    {Use::not_modelled, "how tokens reach experts",
     "moe-extended-tp moe-input-jitter-eps moe-token-dropping moe-expert-rank-capacity-factor "
     "moe-router-force-* moe-hybridep-* moe-deepep-* moe-flex-dispatcher-num-sms moe-ncclep-zero-copy "
     "overlap-dispatch-backward-with-experts-wgrad moe-enable-routing-replay"},
    {Use::not_modelled, "tensors that are written to files in a step",
     "logits-* save-activations-interval save-wgrads-interval save-dgrads-interval "
     "save-tokens-per-expert-interval moe-routing-trace-*"},
    {Use::not_modelled, "another engine", "deepspeed deepspeed_config"},
    // What changes no step.
    {Use::passed_over, "learning, and what numbers come out",
     "lr min-lr lr-* warmup decoupled-lr decoupled-min-lr override-opt_param-scheduler "
     "override-opt-param-scheduler override-lr-scheduler use-checkpoint-opt_param-scheduler "
     "use-checkpoint-opt-param-scheduler use-checkpoint-lr-scheduler weight-decay start-weight-decay "
     "end-weight-decay weight-decay-incr-style wd-incr-steps wsd-decay-steps no-weight-decay-cond-type "
     "apply-wd-to-qk-layernorm no-decoupled-weight-decay adam-* lion-* sgd-momentum muon-momentum "
     "muon-nesterov muon-use-nesterov muon-scale-mode muon-extra-scale-factor muon-coefficient-type "
     "adaptive-muon-* soap-* no-soap-* grad-norm-skip-threshold loss-scale initial-loss-scale "
     "min-loss-scale loss-scale-window hysteresis moe-router-load-balancing-type moe-aux-loss-coeff "
     "moe-z-loss-coeff moe-router-score-function moe-router-pre-softmax moe-router-topk-scaling-factor "
     "moe-router-enable-expert-bias moe-router-bias-update-rate moe-router-quantile-balancing-ema "
     "moe-router-dtype moe-router-topk-limited-devices moe-token-drop-policy moe-apply-probs-on-input "
     "mtp-loss-scaling-factor calculate-per-token-loss iterations-to-skip"},
    {Use::passed_over, "how long training goes on, and evaluation",
     "train-iters train-samples phase-transition-iterations skip-train test-mode exit-* eval-* "
     "start-eval-at-iter full-validation multiple-validation-sets validation-set-names "
     "train-sync-interval"},
    {Use::passed_over, "initial values",
     "init-method init-method-std init-method-xavier-uniform embedding-init-method "
     "embedding-init-method-std output-layer-init-method no-initialization perform-initialization "
     "use-cpu-initialization init-model-with-meta-device seed data-parallel-random-init use-mup mup-* "
     "te-rng-tracker use-te-rng-tracker"},
    {Use::passed_over, "data",
     "data-path train-data-path valid-data-path test-data-path data-args-path per-split-data-args-path "
     "per-dataset-sequences-path data-cache-path data-impl split mock-data num-dataset-builder-threads "
     "no-mmap-bin-files mmap-warmup num-workers dataloader-type dataloader-fast-cache-load "
     "dataloader-defer-npy-index-mmap dataset-provider object-storage-cache-path "
     "mid-level-dataset-surplus no-data-sharding create-attention-mask-in-dataloader "
     "no-create-attention-mask-in-dataloader reset-position-ids eod-mask-loss sample-rate mask-prob "
     "short-seq-prob fim-* enable-msc disable-msc sft-tokenizer-prompt-format"},
    {Use::passed_over, "tokenizers, whose size counts alone",
     "vocab-file merge-file vocab-extra-ids tokenizer-name-or-path tokenizer-sentencepiece-legacy "
     "tokenizer-hf-* no-tokenizer-sentencepiece-ignore-extra-whitespaces tiktoken-* special-tokens "
     "metadata-path trust-remote-code null-tokenizer-* chat-template use-gigatoken "
     "allow-ambiguous-pad-tokens no-pad-vocab-size should-pad-vocab "
     "no-use-tokenizer-model-from-checkpoint-args"},
    {Use::passed_over, "checkpoints",
     "save save-retain-interval save-params-interval save-config-filepath most-recent-k "
     "load load-main-params-from-ckpt no-save-optim no-save-rng no-save-tokenizer-assets no-load-optim "
     "no-load-rng no-strict-fsdp-dtensor-load finetune pretrained-checkpoint ckpt-* no-ckpt-* "
     "auto-detect-ckpt-format async-strategy async-ckpt-* use-dist-ckpt "
     "use-persistent-ckpt-worker dist-ckpt-* distrib-optim-fully-reshardable-mem-efficient "
     "hetereogenous-dist-checkpoint fully-parallel-* non-persistent-* replication replication-* "
     "verify-integrity use-checkpoint-args use-mp-args-from-checkpoint-args override-ckpt-iteration "
     "moe-use-upcycling moe-upcycling-granularity export-model-type export-default-te-spec "
     "export-te-mcore-model bert-load"},
    {Use::passed_over, "logs and traces",
     "log-* no-log-* no-record-throughput timing-* timers tensorboard-* wandb-* one-logger-* "
     "enable-one-logger no-one-logger app-tag-* otel-* logging-level no-filter-warnings "
     "modules-to-filter set-level-for-all-loggers memory-keys runtime-time-unit throughput-window-size "
     "barrier-with-L1-time no-barrier-with-level-1-timing moe-per-layer-logging profile profile-* "
     "use-pytorch-profiler pytorch-profiler-* use-nsys-profiler record-shapes nvtx-ranges "
     "record-memory-history memory-snapshot-path dump-param-to-param-group-map config-logger-dir "
     "run-workload-inspector-server"},
    {Use::passed_over, "failures, restarts, checks of single values",
     "check-for-* no-check-for-* check-weight-hash-across-dp-replicas-interval rerun-mode "
     "error-injection-* result-rejected-tracker-filename inprocess-* enable-ft-package "
     "calc-ft-timeouts ft-* gpu-sniff-test-interval straggler-* disable-straggler-on-startup "
     "adlr-autoresume adlr-autoresume-interval flight-recorder-* no-flight-recorder-* manual-gc "
     "manual-gc-interval no-manual-gc-eval"},
    {Use::passed_over, "how processes find each other",
     "distributed-backend distributed-timeout-minutes distributed-timeout-seconds-after-init "
     "local_rank local-rank rank lazy-mpu-init disable-gloo-process-groups use-gloo-process-groups "
     "tp-comm-bootstrap-backend"},
    {Use::passed_over, "Megatron's own choice, or its code",
     "use-mcore-models use-mcore DDP-impl no-contiguous-buffers-in-local-ddp "
     "use-contiguous-buffers-in-local-ddp enable-experimental model-provider builder transformer "
     "transformer-layer-spec hybrid-stack-spec activation-func no-sync-func grad-sync-func "
     "param-sync-func finalize-model-grads-func grad-scale-func moe-grad-scale-func "
     "mtp-grad-scale-func experimental-attention-variant-loss-scale-func -cpu-offloading-context "
     "cpu-offloading params-dtype pipeline-dtype deallocate-pipeline-outputs no-parallel-output "
     "clone-scatter-output-in-embedding no-clone-scatter-output-in-embedding "
     "no-scatter-embedding-sequence-parallel moe-grouped-gemm no-cuda-graph-use-single-mempool "
     "cuda-graph-retain-backward-graph cuda-graph-warmup-steps"},
    {Use::passed_over, "numbers inside of kernels",
     "layernorm-epsilon norm-epsilon apply-layernorm-1p layernorm-zero-centered-gamma "
     "apply-residual-connection-post-layernorm onnx-safe openai-gelu softmax-scale glu-linear-offset "
     "activation-func-clamp-value moe-mlp-glu-interleave-size moe-shared-expert-glu-interleave-size "
     "rope-type rope-scaling rope-scaling-factor use-rope-scaling rotary-base rotary-interleaved "
     "rotary-scaling-factor rotary-seq-len-interpolation-factor seq-len-interpolation-factor "
     "no-rope-freq mrope-section mscale mscale-all-dim beta-fast beta-slow "
     "original-max-position-embeddings yarn-* no-yarn-* relative-attention-* fp8-margin fp8-interval "
     "fp8-amax-history-len fp8-amax-compute-algo dsa-* no-dsa-* bert-no-binary-head "
     "bert-embedder-type output-bert-embeddings"},
    {Use::passed_over, "engines of inference, which a training step does not run",
     "max-tokens-to-oom inference-batch-times-seqlen-threshold inference-max-requests "
     "inference-max-seq-length inference-dynamic-batching inference-dynamic-batching-* "
     "inference-logging-step-interval inference-text-gen-server-logging inference-wandb-logging "
     "inference-coordinator-port inference-shards inference-use-synchronous-zmq-collectives "
     "inference-disable-* inference-cuda-graph-* inference-sampling-seed inference-rng-tracker "
     "inference-fuse-tp-communication inference-grouped-gemm-backend inference-moe-* "
     "inference-ckpt-non-strict mamba-inference-* use-legacy-static-engine decode-only-cuda-graphs "
     "enable-chunked-prefill num-speculative-tokens use-same-sampling-seed-across-dp-ranks "
     "flash-decode nccl-all-reduce-for-prefill use-inference-optimized-layers cache-mla-latents "
     "mlp-chunks-for-prefill moe-pad-experts-for-cuda-graph-inference"},
};

// Flags whose argument, the name of their field, is called otherwise.
constexpr std::pair<std::string_view, std::string_view> kArguments[] = {
    {"--disable-bias-linear", "add_bias_linear"},
    {"--no-masked-softmax-fusion", "masked_softmax_fusion"},
    {"--no-scaled-masked-softmax-fusion", "scaled_masked_softmax_fusion"},
    {"--no-bias-gelu-fusion", "bias_gelu_fusion"},
    {"--no-bias-swiglu-fusion", "bias_swiglu_fusion"},
    {"--no-bias-dropout-fusion", "bias_dropout_fusion"},
    {"--no-rope-fusion", "apply_rope_fusion"},
    {"--no-gradient-accumulation-fusion", "gradient_accumulation_fusion"},
    {"--no-async-tensor-model-parallel-allreduce", "async_tensor_model_parallel_allreduce"},
    {"--no-overlap-p2p-communication", "overlap_p2p_comm"},
    {"--no-scatter-gather-tensors-in-pipeline", "scatter_gather_tensors_in_pipeline"},
    {"--no-fp8-wgrad", "fp8_wgrad"},
    {"--overlap-p2p-communication", "overlap_p2p_comm"},
    {"--fp8-format", "fp8"},
    {"--fp4-format", "fp4"},
    {"--num-virtual-stages-per-pipeline-rank", "virtual_pipeline_model_parallel_size"},
};

constexpr MegatronFlagRow kSwitchedOff{Use::passed_over, "switched off, the default", ""};

const MegatronSettingFlag* find_setting(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kSettings), std::end(kSettings),
                                         [&](const MegatronSettingFlag& flag) { return flag.name == name; });
  return found == std::end(kSettings) ? nullptr : found;
}

const MegatronFlagRow* find_row(std::string_view name) {
  const MegatronFlagRow* best = nullptr;
  std::size_t length = 0;  // of the pattern
  for (const MegatronFlagRow& row : kRows) {
    bool is_exact = false;
    each_name(row, [&](std::string_view known) {
      is_exact = is_exact || known == name;
      if (!known.ends_with('*') || known.size() <= length) return;
      if (!name.starts_with(known.substr(0, known.size() - 1))) return;
      best = &row;
      length = known.size();
    });
    if (is_exact) return &row;
  }
  return best;
}

// A name of its type for each member: g++ 12 takes decltype of what an outer lambda captures for another type.
template <class Group, class Field>
bool holds_member(const Group& group, Field field) {
  bool found = false;
  group.each([&]<class Member>(Member member) {
    if constexpr (std::is_same_v<Member, Field>) found = found || member == field;
  });
  return found;
}

// Of which part of a description a member is.
std::string_view part_of(const MegatronSetting& setting) {
  return with_member(setting, [](auto field) -> std::string_view {
    if (holds_member(setting_groups::kModel, field)) return "the model";
    if (holds_member(setting_groups::kKept, field)) return "how it is computed, batches and the optimizer";
    return "how it is spread over GPUs, and recomputation";
  });
}

}  // namespace

std::span<const MegatronSettingFlag> megatron_setting_flags() { return kSettings; }
std::span<const MegatronFlagRow> megatron_flag_rows() { return kRows; }

std::string argument_of(std::string_view flag) {
  for (const auto& [name, argument] : kArguments) {
    if (name == flag) return std::string{argument};
  }
  std::string argument{flag.substr(2)};
  std::replace(argument.begin(), argument.end(), '-', '_');
  return argument;
}

bool switches_off(std::string_view flag) {
  return flag == "--disable-bias-linear" || (flag.starts_with("--no-") && flag != "--no-persist-layer-norm");
}

FoundMegatronFlag find_megatron_flag(std::string_view flag) {
  if (const MegatronSettingFlag* setting = find_setting(flag)) return {.setting = setting};
  if (!flag.starts_with("--")) return {};
  const std::string_view name = flag.substr(2);
  const bool is_off = name.starts_with("no-");
  const std::string other = is_off ? "--" + std::string{name.substr(3)} : "--no-" + std::string{name};
  const MegatronFlagRow* row = find_row(name);
  if (row != nullptr) return {.row = row};
  if (const MegatronSettingFlag* setting = find_setting(other);
      setting != nullptr && std::holds_alternative<MegatronSwitch<bool>>(setting->setting)) {
    return {.setting = setting, .opposite = true};
  }
  const std::string argument = argument_of(flag);
  for (const auto& [known, of] : kArguments) {
    if (of == argument) return {.setting = find_setting(known), .opposite = switches_off(known)};
  }
  return {.row = find_row(std::string_view{other}.substr(2)) != nullptr ? &kSwitchedOff : nullptr};
}

}  // namespace stepcast::detail

namespace stepcast {

std::vector<MegatronFlag> megatron_flags() {
  std::vector<MegatronFlag> flags;
  for (const detail::MegatronSettingFlag& flag : detail::megatron_setting_flags()) {
    flags.push_back({std::string{flag.name}, MegatronFlagUse::understood, detail::part_of(flag.setting)});
  }
  for (const detail::MegatronFlagRow& row : detail::megatron_flag_rows()) {
    detail::each_name(row, [&](std::string_view name) {
      flags.push_back({"--" + std::string{name}, row.use, row.why});
    });
  }
  return flags;
}

std::optional<MegatronFlagUse> use_of_megatron_flag(std::string_view flag) {
  const detail::FoundMegatronFlag found = detail::find_megatron_flag(flag);
  if (found.setting != nullptr) return MegatronFlagUse::understood;
  return found.row != nullptr ? std::optional{found.row->use} : std::nullopt;
}

}  // namespace stepcast
