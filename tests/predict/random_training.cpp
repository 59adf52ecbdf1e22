#include "tests/predict/random_training.h"

#include <array>
#include <initializer_list>

#include <fmt/core.h>

#include "stepcast/workload/modules/attention_module.h"

namespace stepcast::test {
namespace {

class Dice {
 public:
  explicit Dice(std::mt19937_64& random) : random_(random) {}
  std::int64_t number(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>{low, high}(random_);
  }
  bool one_in(std::int64_t n) { return number(1, n) == 1; }
  bool coin() { return one_in(2); }
  template <class T>
  T of(std::initializer_list<T> choices) {
    return *(choices.begin() + number(0, static_cast<std::int64_t>(choices.size()) - 1));
  }

 private:
  std::mt19937_64& random_;
};

Transformer random_model(Dice& dice) {
  Transformer m;
  m.n_heads = dice.of({8, 16, 32});
  m.hidden_size = m.n_heads * dice.of({64, 128});
  m.ffn_hidden_size = m.hidden_size * dice.of({2, 4});
  m.vocab_size = dice.of({32000, 50257, 51200});
  m.max_position = 4096;
  m.name = "gpt";
  if (dice.coin()) {
    m.name = "llama";
    m.norm = NormKind::rms_norm;
    m.norm_bias = m.qkv_bias = m.attention_output_bias = m.ffn_bias = false;
    m.activation = Activation::silu;
    m.gated_ffn = true;
    m.position = PositionEncoding::rotary;
    m.tied_embeddings = dice.coin();
    m.n_kv_heads = dice.of<std::int64_t>({0, 8});
    m.parallel_residual = dice.one_in(6);
  } else {
    m.hidden_dropout = m.attention_dropout = dice.coin() ? 0.1 : 0;
  }
  if (dice.one_in(4)) {
    m.name += " with experts";
    MixtureOfExperts moe;
    moe.n_experts = 8;
    moe.experts_per_token = dice.of({1, 2});
    moe.expert_ffn_hidden_size = m.ffn_hidden_size / 2;
    if (dice.coin()) {
      moe.n_shared_experts = 1;
      moe.shared_ffn_hidden_size = moe.expert_ffn_hidden_size;
    }
    moe.first_dense_layers = dice.number(0, 1);
    m.moe = moe;
    if (dice.coin()) {
      m.name += " and latent attention";
      m.attention = attention_named("latent", {{"q_lora_rank", dice.of<std::int64_t>({0, 256})},
                                               {"kv_lora_rank", 128},
                                               {"qk_nope_head_dim", 64},
                                               {"qk_rope_head_dim", 32},
                                               {"v_head_dim", 64}});
      m.n_kv_heads = 0;
      m.position = PositionEncoding::rotary;
    }
  }
  return m;
}

Layout random_layout(Dice& dice, const Transformer& model) {
  Layout l;
  l.degrees.tensor = dice.of({1, 1, 2, 4});
  l.degrees.pipeline = dice.of({1, 1, 2, 3, 4});
  l.degrees.context = dice.of({1, 1, 1, 2, 4});
  l.degrees.data = dice.of({1, 2, 4});
  if (model.moe) l.degrees.expert = dice.of({1, 2, 4});
  l.batch.seq_len_tokens = dice.of({512, 1024, 2048});
  l.batch.micro_batch_sequences = dice.of({1, 2});
  std::int64_t micro_batches = dice.number(1, 9);
  if (l.degrees.pipeline > 1) {
    using S = PipelineSchedule;
    l.pipeline.schedule =
        dice.of({S::one_f_one_b, S::interleaved, S::gpipe, S::zero_bubble_h1, S::zb_v, S::v_half, S::v_min});
    if (is_v_shaped(l.pipeline.schedule)) l.degrees.virtual_stages = 2;
    if (l.pipeline.schedule == PipelineSchedule::interleaved) {
      l.degrees.virtual_stages = dice.of({1, 2, 3});
      micro_batches = l.degrees.pipeline * dice.number(1, 3);
    }
  }
  l.batch.global_batch_sequences = l.batch.micro_batch_sequences * l.degrees.data * micro_batches;
  l.layer.sequence_parallel = l.degrees.tensor > 1 && dice.coin();
  l.pipeline.p2p_scatter_gather = dice.coin();

  l.sharding.kind = static_cast<Sharding>(dice.number(0, 3));
  l.sharding.backward_prefetch = static_cast<Prefetch>(dice.number(0, 2));
  l.sharding.forward_prefetch = dice.coin();
  l.sharding.reshard_after_forward = !dice.one_in(3);
  l.sharding.reduce_every_micro_batch = dice.coin();
  if (l.sharding.kind != Sharding::none && l.degrees.data * l.degrees.context % 2 == 0 && dice.one_in(4)) {
    l.sharding.shard_group_size = 2;
  }
  l.layer.overlap.tensor_parallel = dice.coin();
  l.sharding.overlap_gradient_reduce = dice.coin();
  l.sharding.overlap_parameter_gather = dice.coin();
  l.pipeline.overlap = dice.coin();
  l.layer.overlap.sequence_parallel_weight_gradient = dice.coin();
  const bool two_batches_at_once = l.degrees.pipeline == 1 || l.degrees.virtual_stages > 1;
  l.layer.overlap.expert = two_batches_at_once && dice.coin();
  l.layer.overlap.delayed_weight_gradient = l.layer.overlap.expert && dice.coin();
  l.layer.overlap.shared_experts = dice.coin();
  l.layer.context_parallel_kind = static_cast<ContextParallelKind>(dice.number(0, 2));
  l.layer.expert_imbalance = dice.coin() ? 1 : 1.25;
  l.layer.recompute.kind = static_cast<Recompute>(dice.number(0, 3));
  if (l.layer.recompute.kind == Recompute::full && dice.coin()) l.layer.recompute.every_n_layers = 2;
  l.layer.attention = dice.one_in(3) ? AttentionMethod::unfused : AttentionMethod::flash;
  if (l.degrees.context > 1 || model.attention) l.layer.attention = AttentionMethod::flash;
  l.layer.precision =
      precision_for(dice.of({DType::fp32, DType::fp16, DType::bf16, DType::bf16, DType::fp8}));
  l.layer.precision.fp8.scaling = static_cast<Fp8Scaling>(dice.number(0, 3));
  l.optimizer.gradient_clip = dice.coin();
  l.optimizer.cpu_offload = dice.one_in(8);
  l.layer.fused.compiled = dice.coin();
  l.layer.fused.softmax = dice.coin();
  l.layer.fused.weight_gradient_accumulation = dice.coin();
  l.software.framework = static_cast<Framework>(dice.number(0, 6));
  // Without a throw, so that the rest stays as it was.
  if (l.batch.seq_len_tokens == 512 && l.pipeline.overlap) l.layer.operator_launches = 15;
  return l;
}

}  // namespace

RandomTraining random_training(std::mt19937_64& random) { return random_training(random, 1); }

RandomTraining random_training(std::mt19937_64& random, std::int64_t least_micro_batches) {
  Dice dice{random};
  for (;;) {
    RandomTraining training;
    training.model = random_model(dice);
    training.layout = random_layout(dice, training.model);
    Layout& layout = training.layout;
    if (layout.micro_batches() < least_micro_batches) {
      const std::int64_t more = least_micro_batches + dice.number(0, 2 * least_micro_batches);
      layout.batch.global_batch_sequences = layout.batch.micro_batch_sequences * layout.degrees.data *
                                            layout.degrees.pipeline * (more / layout.degrees.pipeline + 1);
    }
    const std::int64_t chunks = layout.degrees.pipeline * layout.degrees.virtual_stages;
    training.model.n_layers = chunks * dice.number(1, 3);
    if (chunks > 1 && dice.one_in(4)) {  // uneven stages
      layout.pipeline.layers_per_stage.assign(static_cast<std::size_t>(chunks), 1);
      for (std::int64_t extra = training.model.n_layers - chunks; extra > 0; --extra) {
        ++layout.pipeline.layers_per_stage[static_cast<std::size_t>(dice.number(0, chunks - 1))];
      }
    }
    if (training.model.moe && training.model.n_layers == 1) training.model.moe->first_dense_layers = 0;
    if (check(layout, training.model).ok()) return training;
  }
}

std::string describe(const RandomTraining& training) {
  const Layout& l = training.layout;
  return fmt::format(
      "{}, {} layers: tp{} pp{}x{} cp{} ({}) ep{} dp{}, {} micro-batches, {}, {}, recompute {}, {}, overlap "
      "tensor {} reduce {} gather {} pipeline {}, prefetch {}",
      training.model.name, training.model.n_layers, l.degrees.tensor, l.degrees.pipeline,
      l.degrees.virtual_stages, l.degrees.context, to_string(l.layer.context_parallel_kind), l.degrees.expert,
      l.degrees.data, l.micro_batches(), to_string(l.pipeline.schedule), to_string(l.sharding.kind),
      to_string(l.layer.recompute.kind), to_string(l.layer.precision.compute),
      l.layer.overlap.tensor_parallel, l.sharding.overlap_gradient_reduce,
      l.sharding.overlap_parameter_gather, l.pipeline.overlap, to_string(l.sharding.backward_prefetch));
}

}  // namespace stepcast::test
