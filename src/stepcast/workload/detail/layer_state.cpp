// Layers that carry a state from token to token instead of attending: linear attention and Mamba, computed in chunks as
// their libraries do (flash-linear-attention, lightning-attention, mamba_ssm), and short convolutions. Known by their
// amounts alone: no kernel of these was measured.
#include "stepcast/base/number.h"
#include "stepcast/workload/detail/layer_lists.h"
#include "stepcast/workload/detail/narrow_types.h"

namespace stepcast::detail {
namespace {

// Backward passes compute scores and states of every chunk again and then two gradients of every product, as flash
// attention does: five products for two.
constexpr double kScanGradientOverForward = 2.5;

// Neither library has one kernel for it: how often all their kernels together read or write what lies in memory between
// them. States count as fp32, what is kept in 16 bits as half; keys and queries are a pair.
struct ScanTraffic {
  double states, pairs, values, squares;  // squares: scores of a chunk, in fp32
};
// mamba_ssm, `_mamba_chunk_scan_combined_fwd` (chunk_state, state_passing, bmm_chunk, chunk_scan) and `_bwd`, which
// runs the first three again and then dstates, state_passing, dx, db, dC, dcb, two products and ddA.
constexpr ScanTraffic kMambaForward{3, 2, 3, 2}, kMambaBackward{8.5, 6.5, 11, 6};
// flash-linear-attention, `chunk_gated_delta_rule_fwd` (scaled_dot_kkt, solve_tril, recompute_w_u, fwd_h, fwd_o) and
// `_bwd`, which runs the last but one and the one before it again and then dv_local, dhu, dqkwg and wy_repr.
constexpr ScanTraffic kDeltaForward{1, 2.5, 8, 3}, kDeltaBackward{3, 8, 20, 6};
// lightning-attention, `lightning_attn2`: one kernel forward that keeps the state on the chip; backward one within blocks
// and one between them, which adds to the gradients of the first.
constexpr ScanTraffic kDecayedForward{0, 1, 2, 0}, kDecayedBackward{0, 5, 7, 0};
// mamba_ssm, `selective_scan_fwd` (reads input, step and gate, writes the result in front of the gate and behind it) and
// `selective_scan_bwd` (reads these and the gradient, writes three gradients): the state stays on the chip.
constexpr ScanTraffic kSelectiveForward{0, 1, 5, 0}, kSelectiveBackward{0, 2, 9, 0};
// Of a channel and an element of its state: exponent, decay, input and output (the count of Mamba's authors).
constexpr double kSelectiveFlops = 9;

const ScanTraffic& traffic_of(Mixer mixer, bool forward) {
  switch (mixer) {
    case Mixer::mamba2: return forward ? kMambaForward : kMambaBackward;
    case Mixer::mamba1: return forward ? kSelectiveForward : kSelectiveBackward;
    case Mixer::decayed_linear: return forward ? kDecayedForward : kDecayedBackward;
    default: return forward ? kDeltaForward : kDeltaBackward;
  }
}

}  // namespace

// Queries, keys, values and the gate of the output, steps and gates of every head, in one product.
Linear LayerLists::state_input(bool fp8) const {
  return {.name = "state_input",
          .input_gradient = "state_input_input_gradient",
          .weight_gradient = "state_input_weight_gradient",
          .tokens = tokens_,
          .n = share(state_parts(model_).columns, tp_),
          .k = model_.hidden_size,
          .fp8 = fp8,
          .input_of_kernel = true,
          .parts = parts_of_gathered()};
}

// With some of its results again: keys and a narrow vector, and what is made of that.
Linear LayerLists::inner_product(InnerPart part) const {
  const StateParts parts = state_parts(model_);
  const bool narrow = part == InnerPart::narrow;
  return {.name = narrow ? "state_keys" : "state_steps",
          .input_gradient = narrow ? "state_keys_input_gradient" : "state_steps_input_gradient",
          .weight_gradient = narrow ? "state_keys_weight_gradient" : "state_steps_weight_gradient",
          .tokens = tokens_,
          .n = narrow ? parts.inner_columns : share(parts.inner_out, tp_),
          .k = narrow ? parts.inner_width : parts.inner_rank};
}

Linear LayerLists::state_output(bool fp8) const {
  return {.name = "state_output",
          .input_gradient = "state_output_input_gradient",
          .weight_gradient = "state_output_weight_gradient",
          .tokens = tokens_,
          .n = model_.hidden_size,
          .k = share(model_.state_mixer->values(), tp_),
          .fp8 = fp8};
}

// Per token of a chunk of c, keys of width n and values of width p: scores with the keys of its chunk and what they
// weigh, the state that the chunk adds and what the state before it gives. The delta rule also solves for what every
// token replaces: scores of keys with keys, c / 3 steps of substitution, and the two products with its result. Mamba-1
// has a state of every channel and no products.
Operation LayerLists::chunked_scan(Direction direction) const {
  const StateMixer& state = *model_.state_mixer;
  const bool delta = model_.mixer == Mixer::gated_delta || model_.mixer == Mixer::channel_delta;
  const bool selective = model_.mixer == Mixer::mamba1;
  const double tokens = as_double(tokens_), heads = as_double(share(state.n_heads, tp_));
  const double key_heads = as_double(share(state.n_key_heads, tp_));
  const double c = as_double(state.chunk_tokens), n = as_double(state.key_head_dim);
  const double p = as_double(state.head_dim);
  double per_token = 2 * c * n * (delta ? heads : key_heads) + heads * (2 * c * p + 4 * n * p);
  if (delta) per_token += heads * (2 * c * n + c * c / 3 + 2 * c * (n + p) + 2 * n * p);
  if (selective) per_token = kSelectiveFlops * heads * p * n;
  const bool forward = direction == Direction::forward;
  const ScanTraffic& traffic = traffic_of(model_.mixer, forward);
  // Transformers repeat the keys of the delta rule for every head of values that shares them.
  const double pairs = tokens * 2 * (delta ? heads : key_heads) * n, values = tokens * heads * p;
  const double bytes =
      (traffic.pairs * pairs + traffic.values * values) * element_bytes_ +
      4 * tokens * (traffic.states * heads * n * p / c + traffic.squares * (delta ? heads : key_heads) * c);
  return {AmountShape{.flops = tokens * per_token * (forward ? 1 : kScanGradientOverForward),
                      .bytes_read = bytes / 2,
                      .bytes_written = bytes / 2,
                      .matrix = !selective,
                      .kernel_class = KernelClass::attention},
          dtype_, direction};
}

// With context parallelism a rank convolves and scans whole sequences of a part of the heads, as Megatron Core does
// (`MambaContextParallel`): as much work, between two exchanges. Gradients go the other way.
void LayerLists::exchange_state(WorkList& list, bool to_heads, Direction direction) const {
  if (cp_ == 1) return;
  const bool inputs = to_heads == (direction == Direction::forward);
  const std::int64_t width = inputs ? state_parts(model_).columns : model_.state_mixer->values();
  const double elements = as_double(tokens_ * share(width, tp_));
  list.push_back({to_heads ? "sequence_to_heads" : "heads_to_sequence",
                  Transfer{CollectiveOp::all_to_all, GroupKind::context, Bytes{elements * element_bytes_}}});
}

// The convolution, between two gates where nothing else mixes tokens.
void LayerLists::around_convolution(WorkList& list, Direction direction) const {
  const bool forward = direction == Direction::forward, alone = model_.mixer == Mixer::short_convolution;
  const double values = as_double(tokens_ * share(model_.state_mixer->values(), tp_));
  const double channels = as_double(tokens_ * share(state_parts(model_).channels, tp_));
  const auto gate = [&](std::string_view name) {
    if (alone)
      add_elementwise(list, name, ElementwiseFunction::multiply, values, forward ? 2 : 3, forward ? 1 : 2,
                      direction);
  };
  gate(forward ? "gate_input" : "gate_result_gradient");
  add_elementwise(list, forward ? "causal_convolution" : "causal_convolution_gradient",
                  ElementwiseFunction::silu, channels, forward ? 1 : 2, 1, direction);
  gate(forward ? "gate_result" : "gate_input_gradient");
}

void LayerLists::state_forward(WorkList& list, const LayerVariant& variant) const {
  const bool fp8 = is_narrow(layout_.layer.precision.compute) &&
                   layout_.layer.precision.fp8.attention_linears && !variant.sixteen_bit;
  const StateParts parts = state_parts(model_);
  const double values = as_double(tokens_ * share(model_.state_mixer->values(), tp_));
  gather_tokens(list, "gather_state_input", layout_.layer.overlap.tensor_parallel, fp8);
  add_linear(list, state_input(fp8));
  exchange_state(list, true, Direction::forward);
  around_convolution(list, Direction::forward);
  if (parts.inner_width > 0) add_linear(list, inner_product(InnerPart::narrow));
  if (parts.inner_rank > 0) add_linear(list, inner_product(InnerPart::wide));
  if (model_.mixer != Mixer::short_convolution)
    list.push_back({"chunked_scan", chunked_scan(Direction::forward)});
  if (has_gated_norm()) add_elementwise(list, "gated_norm", ElementwiseFunction::gated_silu, values, 2, 1);
  exchange_state(list, false, Direction::forward);
  add_row_product(list, state_output(fp8), "reduce_state_output");
}

// The scan of Mamba-1 gates its result itself.
bool LayerLists::has_gated_norm() const {
  return model_.mixer != Mixer::short_convolution && model_.mixer != Mixer::mamba1;
}

void LayerLists::state_backward(WorkList& list, const LayerVariant& variant) const {
  const bool fp8 = is_narrow(layout_.layer.precision.compute) &&
                   layout_.layer.precision.fp8.attention_linears && !variant.sixteen_bit;
  const StateParts parts = state_parts(model_);
  const double values = as_double(tokens_ * share(model_.state_mixer->values(), tp_));
  add_linear_gradients(list, state_output(fp8), Edge::row);
  exchange_state(list, true, Direction::backward);
  if (has_gated_norm())
    add_elementwise(list, "gated_norm_gradient", ElementwiseFunction::gated_silu, values, 3, 2,
                    Direction::backward);
  // The fused backward pass of mamba_ssm does not keep what the convolution gave.
  if (model_.mixer == Mixer::mamba2) around_convolution(list, Direction::forward);
  if (model_.mixer != Mixer::short_convolution)
    list.push_back({"chunked_scan_gradient", chunked_scan(Direction::backward)});
  if (parts.inner_rank > 0) add_linear_gradients(list, inner_product(InnerPart::wide), Edge::none);
  if (parts.inner_width > 0) add_linear_gradients(list, inner_product(InnerPart::narrow), Edge::none);
  around_convolution(list, Direction::backward);
  exchange_state(list, false, Direction::backward);
  add_linear_gradients(list, state_input(fp8), Edge::column);
}

}  // namespace stepcast::detail
