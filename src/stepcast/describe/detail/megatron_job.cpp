#include "stepcast/describe/detail/megatron_job.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace stepcast::detail {
namespace {

Error bad_value(std::string_view flag, std::string_view found, std::string_view expected) {
  return Error::at("", std::string{flag})
      .found(fmt::format("`{}`", found.substr(0, 60)))
      .expected(std::string{expected});
}

template <class Value, std::size_t N>
Status choose(std::string_view flag, const std::string& text,
              const std::array<std::pair<std::string_view, Value>, N>& values, Value& out) {
  if (text.empty()) return Ok{};
  std::string names;
  for (const auto& [name, value] : values) {
    if (name == text) {
      out = value;
      return Ok{};
    }
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  }
  return bad_value(flag, text, fmt::format("one of {}", names));
}

Status read_positions(const MegatronScratch& s, Transformer& model) {
  if (s.rope) model.position = PositionEncoding::rotary;
  constexpr std::array<std::pair<std::string_view, PositionEncoding>, 5> kValues{
      {{"learned_absolute", PositionEncoding::learned},
       {"rope", PositionEncoding::rotary},
       {"yarn", PositionEncoding::rotary},
       {"alibi", PositionEncoding::alibi},
       {"none", PositionEncoding::none}}};
  return choose("--position-embedding-type", s.position, kValues, model.position);
}

Status read_norm(const MegatronScratch& s, bool has_base, Transformer& model) {
  constexpr std::array<std::pair<std::string_view, NormKind>, 2> kValues{
      {{"LayerNorm", NormKind::layer_norm}, {"RMSNorm", NormKind::rms_norm}}};
  STEPCAST_TRY(choose("--normalization", s.normalization, kValues, model.norm));
  if (!has_base || !s.normalization.empty()) model.norm_bias = model.norm == NormKind::layer_norm;
  return Ok{};
}

Status read_vocabulary(const MegatronScratch& s, bool has_base, Transformer& model) {
  if (s.vocab_size > 0) {
    model.vocab_size = s.vocab_size;
  } else if (s.padded_vocab_size > 0) {
    model.vocab_size = s.padded_vocab_size;
  } else if (!has_base) {
    constexpr std::int64_t kGpt2Vocabulary = 50257;
    if (s.tokenizer != "GPT2BPETokenizer") {
      return Error::at("", "--vocab-size", "the vocabulary of the tokenizer is not known")
          .advice("add --vocab-size");
    }
    model.vocab_size = kGpt2Vocabulary;
  }
  return Ok{};
}

Status read_experts(const MegatronScratch& s, Transformer& model) {
  if (s.n_experts == 0) return Ok{};
  MixtureOfExperts moe;
  moe.n_experts = s.n_experts;
  moe.experts_per_token = s.router_topk;
  moe.expert_ffn_hidden_size =
      s.expert_ffn_hidden_size > 0 ? s.expert_ffn_hidden_size : model.ffn_hidden_size;
  if (s.shared_ffn_hidden_size > 0) {
    moe.n_shared_experts = 1;
    moe.shared_ffn_hidden_size = s.shared_ffn_hidden_size;
  }
  STEPCAST_TRY(read_moe_layer_pattern(s.moe_layer_freq, model.n_layers, moe));
  model.moe = moe;
  return Ok{};
}

Status read_latent_attention(const MegatronScratch& s, Transformer& model) {
  if (!s.latent_attention) return Ok{};
  if (s.kv_lora_rank == 0) return Error::at("", "--kv-lora-rank", "is needed with --multi-latent-attention");
  model.latent_attention = LatentAttention{.q_lora_rank = s.q_lora_rank,
                                           .kv_lora_rank = s.kv_lora_rank,
                                           .qk_nope_head_dim = s.qk_head_dim,
                                           .qk_rope_head_dim = s.qk_pos_emb_head_dim,
                                           .v_head_dim = s.v_head_dim};
  model.head_dim = model.n_kv_heads = 0;
  model.qk_norm = false;  // the latent vectors have their norms anyway
  model.qkv_bias = false;
  return Ok{};
}

// "4095,0", "(4095, 0)", "(-1, -1)": tokens before and behind; -1: all.
Status read_window(const MegatronScratch& s, Transformer& model) {
  if (s.window.empty()) return Ok{};
  const char* at = s.window.data();
  const char* end = at + s.window.size();
  while (at != end && (*at == '(' || *at == ' ')) ++at;
  std::int64_t before = 0;
  const auto read = std::from_chars(at, end, before);
  if (read.ec != std::errc{} || before < -1 || before > 1'000'000'000) {
    return bad_value("--window-size", s.window, "two numbers, such as 4095,0");
  }
  model.sliding_window_tokens = before == -1 ? 0 : before + 1;  // a token sees itself too
  return Ok{};
}

Status read_model(const MegatronScratch& s, bool has_base, Transformer& model) {
  if (!has_base || s.swiglu) model.gated_ffn = s.swiglu;
  if (s.swiglu) model.activation = Activation::silu;
  if (s.squared_relu) model.activation = Activation::squared_relu;
  if (model.ffn_hidden_size == 0) {
    // Megatron keeps the parameters of an FFN: two thirds of the width with three matrices, in steps of 64.
    model.ffn_hidden_size = s.swiglu ? 4 * model.hidden_size * 2 / 3 / 64 * 64 : 4 * model.hidden_size;
  }
  if (s.query_groups > 0 && (s.group_query || has_base)) model.n_kv_heads = s.query_groups;
  if (s.no_linear_bias) model.qkv_bias = model.attention_output_bias = model.ffn_bias = false;
  if (s.add_qkv_bias) model.qkv_bias = true;
  STEPCAST_TRY(read_positions(s, model));
  STEPCAST_TRY(read_norm(s, has_base, model));
  STEPCAST_TRY(read_vocabulary(s, has_base, model));
  STEPCAST_TRY(read_window(s, model));
  STEPCAST_TRY(read_experts(s, model));
  return read_latent_attention(s, model);
}

Status read_data_parallel(const MegatronScratch& s, DescribedJob& job) {
  Layout& layout = job.layout;
  layout.degrees.data = s.data_parallel > 0 ? s.data_parallel : 1;
  const std::int64_t replica = layout.degrees.tensor * layout.degrees.pipeline * layout.degrees.context;
  if (job.n_gpus && s.data_parallel == 0) {
    if (replica < 1 || *job.n_gpus < replica || *job.n_gpus % replica != 0) {
      return Error{fmt::format(
          "{} GPUs are not a multiple of tensor_parallel {} x pipeline_parallel {} x "
          "context_parallel {} = {}; nearest that works: {} GPUs",
          *job.n_gpus, layout.degrees.tensor, layout.degrees.pipeline, layout.degrees.context, replica,
          replica < 1 ? 1 : std::max<std::int64_t>(1, (*job.n_gpus + replica / 2) / replica) * replica)};
    }
    layout.degrees.data = *job.n_gpus / replica;
  }
  layout.batch.global_batch_sequences =
      s.global_batch > 0 ? s.global_batch : layout.batch.micro_batch_sequences * layout.degrees.data;
  return Ok{};
}

Status read_stages(const MegatronScratch& s, const Transformer& model, Layout& layout) {
  const std::int64_t pp = layout.degrees.pipeline, per_stage = s.layers_per_virtual_stage;
  if (s.virtual_stages > 0) layout.degrees.virtual_stages = s.virtual_stages;
  if (per_stage > 0) {
    if (model.n_layers % (pp * per_stage) != 0) {
      return Error::at(
          "", "--num-layers-per-virtual-pipeline-stage",
          fmt::format("{} layers are not divisible by {} stages x {}", model.n_layers, pp, per_stage));
    }
    layout.degrees.virtual_stages = model.n_layers / (pp * per_stage);
  }
  if (layout.degrees.virtual_stages > 1) {
    layout.pipeline.schedule = PipelineSchedule::interleaved;
    layout.pipeline.overlap = !s.no_p2p_overlap;
  }
  const bool uneven = s.first_stage_layers > 0 || s.last_stage_layers > 0;
  if (!uneven && !s.account_for_embedding && !s.account_for_loss) return Ok{};
  const std::int64_t n_chunks = pp * layout.degrees.virtual_stages;
  const auto does_not_fit = [&](std::string_view flag) {
    return Error::at("", std::string{flag},
                     fmt::format("{} layers cannot be spread so over {} stages", model.n_layers, n_chunks));
  };
  constexpr std::int64_t kMostChunks = 1'000'000;
  if (n_chunks > kMostChunks || n_chunks > model.n_layers)
    return does_not_fit("--pipeline-model-parallel-size");
  if (uneven) {
    if (layout.degrees.virtual_stages > 1) {
      return Error::at("", "--decoder-first-pipeline-num-layers", "not supported with virtual stages");
    }
    const std::int64_t fixed = (s.first_stage_layers > 0 ? 1 : 0) + (s.last_stage_layers > 0 ? 1 : 0);
    const std::int64_t rest = model.n_layers - s.first_stage_layers - s.last_stage_layers;
    if (n_chunks <= fixed || rest < n_chunks - fixed || rest % (n_chunks - fixed) != 0) {
      return does_not_fit("--decoder-first-pipeline-num-layers");
    }
    layout.pipeline.layers_per_stage.assign(static_cast<std::size_t>(n_chunks), rest / (n_chunks - fixed));
    if (s.first_stage_layers > 0) layout.pipeline.layers_per_stage.front() = s.first_stage_layers;
    if (s.last_stage_layers > 0) layout.pipeline.layers_per_stage.back() = s.last_stage_layers;
    return Ok{};
  }
  const std::int64_t units =
      model.n_layers + (s.account_for_embedding ? 1 : 0) + (s.account_for_loss ? 1 : 0);
  if (units % n_chunks != 0) return does_not_fit("--account-for-embedding-in-pipeline-split");
  layout.pipeline.layers_per_stage.assign(static_cast<std::size_t>(n_chunks), units / n_chunks);
  if (s.account_for_embedding) --layout.pipeline.layers_per_stage.front();
  if (s.account_for_loss) --layout.pipeline.layers_per_stage.back();
  return Ok{};
}

Status read_recompute(const MegatronScratch& s, Layout& layout) {
  if (s.recompute_activations) layout.layer.recompute.kind = Recompute::selective;
  if (s.checkpoint_activations) layout.layer.recompute.kind = Recompute::full;
  constexpr std::array<std::pair<std::string_view, Recompute>, 2> kGranularity{
      {{"full", Recompute::full}, {"selective", Recompute::selective}}};
  STEPCAST_TRY(
      choose("--recompute-granularity", s.recompute_granularity, kGranularity, layout.layer.recompute.kind));
  constexpr std::array<std::pair<std::string_view, bool>, 2> kMethod{{{"uniform", false}, {"block", true}}};
  bool is_block = false;
  STEPCAST_TRY(choose("--recompute-method", s.recompute_method, kMethod, is_block));
  if (layout.layer.recompute.kind == Recompute::none && !s.recompute_method.empty())
    layout.layer.recompute.kind = Recompute::full;
  if (layout.layer.recompute.kind != Recompute::full) return Ok{};
  if (is_block) {
    layout.layer.recompute.layers_per_stage = s.recompute_layers;
  } else {
    layout.layer.recompute.chunk_layers = s.recompute_layers;
  }
  return Ok{};
}

Status read_precision(const MegatronScratch& s, Layout& layout) {
  if (s.fp16 && s.bf16) return Error::at("", "--bf16", "given together with --fp16").advice("choose one");
  const Fp8Recipe recipe = layout.layer.precision.fp8;
  layout.layer.precision = precision_for(s.fp16 ? DType::fp16 : s.bf16 ? DType::bf16 : DType::fp32);
  layout.layer.precision.fp8 = recipe;
  if (s.fp16 && s.grads_in_fp32)
    layout.layer.precision.gradients = layout.layer.precision.reduction = DType::fp32;
  if (s.reduce_in_bf16) layout.layer.precision.gradients = layout.layer.precision.reduction = DType::bf16;
  if (s.fp8_format.empty() && !s.fp8_hybrid && !s.fp8_e4m3) return Ok{};
  constexpr std::array<std::pair<std::string_view, bool>, 2> kFormats{{{"e4m3", true}, {"hybrid", true}}};
  bool ignored = true;
  STEPCAST_TRY(choose("--fp8-format", s.fp8_format, kFormats, ignored));
  layout.layer.precision.compute = DType::fp8;
  if (layout.layer.precision.other == DType::fp32) layout.layer.precision.other = DType::bf16;
  constexpr std::array<std::pair<std::string_view, Fp8Scaling>, 4> kRecipes{
      {{"delayed", Fp8Scaling::delayed},
       {"tensorwise", Fp8Scaling::dynamic},
       {"blockwise", Fp8Scaling::blockwise},
       {"mxfp8", Fp8Scaling::blockwise}}};
  STEPCAST_TRY(choose("--fp8-recipe", s.fp8_recipe, kRecipes, layout.layer.precision.fp8.scaling));
  if (s.first_last_layers_bf16) {
    layout.layer.precision.fp8.first_layers = s.bf16_first_layers;
    layout.layer.precision.fp8.last_layers = s.bf16_last_layers;
  }
  return Ok{};
}

Status read_attention(const MegatronScratch& s, DescribedJob& job) {
  // Transformer Engine chooses a fused kernel; the code before it had none unless asked to.
  const bool old = s.legacy || s.checkpoint_activations || s.transformer_impl == "local";
  job.layout.layer.attention = old && !s.flash ? AttentionMethod::unfused : AttentionMethod::flash;
  constexpr std::array<std::pair<std::string_view, AttentionMethod>, 4> kBackends{
      {{"flash", AttentionMethod::flash},
       {"fused", AttentionMethod::flash},
       {"unfused", AttentionMethod::unfused},
       {"local", AttentionMethod::unfused}}};
  if (s.attention_backend != "auto") {
    STEPCAST_TRY(choose("--attention-backend", s.attention_backend, kBackends, job.layout.layer.attention));
  }
  if (s.cp_comm_type == "a2a+p2p") {
    job.not_modelled.emplace_back("--cp-comm-type a2a+p2p");
    return Ok{};
  }
  constexpr std::array<std::pair<std::string_view, ContextParallelKind>, 3> kKinds{
      {{"p2p", ContextParallelKind::ring},
       {"a2a", ContextParallelKind::all_to_all},
       {"all_gather", ContextParallelKind::all_gather}}};
  return choose("--cp-comm-type", s.cp_comm_type, kKinds, job.layout.layer.context_parallel_kind);
}

Status read_sharding(const MegatronScratch& s, Layout& layout) {
  if (s.distributed_optimizer) layout.sharding.kind = Sharding::zero1;
  if (s.fsdp) layout.sharding.kind = Sharding::zero3;
  constexpr std::array<std::pair<std::string_view, Sharding>, 4> kStrategies{
      {{"no_shard", Sharding::none},
       {"optim", Sharding::zero1},
       {"optim_grads", Sharding::zero2},
       {"optim_grads_params", Sharding::zero3}}};
  STEPCAST_TRY(
      choose("--data-parallel-sharding-strategy", s.sharding_strategy, kStrategies, layout.sharding.kind));
  if (s.zero_stage > 3) return bad_value("--zero-stage", fmt::format("{}", s.zero_stage), "0 to 3");
  if (s.zero_stage > 0) {
    layout.sharding.kind = s.zero_stage == 1   ? Sharding::zero1
                           : s.zero_stage == 2 ? Sharding::zero2
                                               : Sharding::zero3;
    layout.software.framework = Framework::deepspeed;
  }
  if (s.bucket_parameters > 0) layout.sharding.bucket_parameters = s.bucket_parameters;
  return Ok{};
}

Status read_optimizer(const MegatronScratch& s, Layout& layout) {
  constexpr std::array<std::pair<std::string_view, OptimizerKind>, 4> kKinds{
      {{"adam", OptimizerKind::adam},
       {"adamw", OptimizerKind::adamw},
       {"sgd", OptimizerKind::momentum_sgd},
       {"lamb", OptimizerKind::lamb}}};
  layout.optimizer.gradient_clip = s.clip_grad > 0;
  return choose("--optimizer", s.optimizer, kKinds, layout.optimizer.kind);
}

// "[0,1]*3" as layers with (1) and without (0) experts, added to `pattern`.
bool add_pattern_term(std::string_view term, std::vector<bool>& pattern, std::size_t most) {
  const std::size_t close = term.find(']');
  if (!term.starts_with('[') || close == std::string_view::npos) return false;
  std::vector<bool> once;
  bool expects_digit = true;
  for (const char c : term.substr(1, close - 1)) {
    if (c == ' ') continue;
    if (expects_digit != (c == '0' || c == '1') || (!expects_digit && c != ',')) return false;
    if (expects_digit) once.push_back(c == '1');
    expects_digit = !expects_digit;
  }
  std::string_view rest = term.substr(close + 1);
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  std::size_t times = 1;
  if (!rest.empty()) {
    if (!rest.starts_with('*')) return false;
    rest.remove_prefix(1);
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    while (rest.ends_with(' ')) rest.remove_suffix(1);
    const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), times);
    if (read.ec != std::errc{} || read.ptr != rest.data() + rest.size()) return false;
  }
  for (std::size_t i = 0; i < times && !once.empty(); ++i) {
    if (pattern.size() + once.size() > most) return false;
    pattern.insert(pattern.end(), once.begin(), once.end());
  }
  return true;
}

}  // namespace

Status read_moe_layer_pattern(std::string_view text, std::int64_t n_layers, MixtureOfExperts& moe) {
  constexpr std::string_view kFlag = "--moe-layer-freq";
  const std::string_view whole = text;
  if (text.empty()) return Ok{};
  if (text.find('[') == std::string_view::npos) {
    const auto read = std::from_chars(text.data(), text.data() + text.size(), moe.moe_every_n_layers);
    if (read.ec != std::errc{} || read.ptr != text.data() + text.size() || moe.moe_every_n_layers < 1) {
      return bad_value(kFlag, whole, "a whole number or a list such as [0]*3+[1]*58");
    }
    // Megatron gives experts to the first of every n layers, not the last; as many if n divides the layers.
    if (n_layers % moe.moe_every_n_layers != 0) {
      return bad_value(kFlag, whole, fmt::format("a divisor of {} layers", n_layers));
    }
    return Ok{};
  }
  while (text.starts_with('(') || text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(')') || text.ends_with(' ')) text.remove_suffix(1);
  std::vector<bool> pattern;
  const auto most = static_cast<std::size_t>(n_layers);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('+'), text.size());
    if (!add_pattern_term(text.substr(0, end), pattern, most)) {
      return bad_value(kFlag, whole,
                       fmt::format("a list of {} zeros and ones, such as [0]*3+[1]*58", n_layers));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
    while (text.starts_with(' ')) text.remove_prefix(1);
  }
  if (pattern.size() != most) {
    return bad_value(kFlag, whole,
                     fmt::format("an entry for each of {} layers, not {}", n_layers, pattern.size()));
  }
  std::int64_t leading = 0;
  while (leading < n_layers && !pattern[static_cast<std::size_t>(leading)]) ++leading;
  // Every layer behind the dense ones, or the last of every n from the start.
  for (const auto& [dense, every] :
       {std::pair{leading, std::int64_t{1}}, std::pair{std::int64_t{0}, leading + 1}}) {
    bool fits = true;
    for (std::int64_t layer = 0; layer < n_layers && fits; ++layer) {
      fits = pattern[static_cast<std::size_t>(layer)] == (layer >= dense && (layer - dense + 1) % every == 0);
    }
    if (!fits) continue;
    moe.first_dense_layers = dense;
    moe.moe_every_n_layers = every;
    return Ok{};
  }
  return bad_value(kFlag, whole,
                   "dense layers in front of layers with experts, or the last of every n with experts");
}

namespace {

// Products of these must stay inside 64 bits; check() says the rest.
Status check_degrees(const MegatronScratch& s, const Layout& layout) {
  constexpr std::int64_t kMost = 1'000'000;
  const std::pair<std::string_view, std::int64_t> degrees[] = {
      {"--tensor-model-parallel-size", layout.degrees.tensor},
      {"--pipeline-model-parallel-size", layout.degrees.pipeline},
      {"--context-parallel-size", layout.degrees.context},
      {"--data-parallel-size", std::max<std::int64_t>(s.data_parallel, 1)},
      {"--num-virtual-stages-per-pipeline-rank", std::max<std::int64_t>(s.virtual_stages, 1)},
      {"--num-layers-per-virtual-pipeline-stage", std::max<std::int64_t>(s.layers_per_virtual_stage, 1)},
  };
  for (const auto& [flag, degree] : degrees) {
    if (degree < 1 || degree > kMost) return bad_value(flag, fmt::format("{}", degree), "1 to 1e6");
  }
  return Ok{};
}

}  // namespace

Status finish_megatron_job(const MegatronScratch& scratch, bool has_base, DescribedJob& job) {
  Layout& layout = job.layout;
  layout.software.framework = Framework::megatron;
  STEPCAST_TRY(read_model(scratch, has_base, job.model));
  STEPCAST_TRY(check(job.model));
  STEPCAST_TRY(check_degrees(scratch, layout));
  STEPCAST_TRY(read_data_parallel(scratch, job));
  STEPCAST_TRY(read_stages(scratch, job.model, layout));
  STEPCAST_TRY(read_recompute(scratch, layout));
  STEPCAST_TRY(read_precision(scratch, layout));
  STEPCAST_TRY(read_attention(scratch, job));
  STEPCAST_TRY(read_sharding(scratch, layout));
  STEPCAST_TRY(read_optimizer(scratch, layout));
  if (scratch.tp_pp_dp_order) layout.rank_order = "tp-cp-ep-pp-dp";
  if (scratch.expert_capacity_factor > 0)
    layout.layer.expert_capacity_factor = scratch.expert_capacity_factor;
  if (scratch.no_async_tensor_parallel) layout.layer.overlap.sequence_parallel_weight_gradient = false;
  if (scratch.token_dispatcher == "allgather")
    job.not_modelled.emplace_back("--moe-token-dispatcher-type allgather");
  return check(layout, job.model, job.n_gpus);
}

}  // namespace stepcast::detail
