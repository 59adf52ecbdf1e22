// Layers that carry a state from token to token instead of attending: the gated delta rule and Mamba-2, computed in
// chunks as their libraries do (flash-linear-attention, mamba_ssm). Known by their amounts alone: no kernel of these was
// measured.
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

}  // namespace

// Queries, keys, values and the gate of the output, steps and gates of every head, in one product.
LayerLists::Linear LayerLists::state_input(bool fp8) const {
  const StateMixer& state = *model_.state_mixer;
  const std::int64_t vectors = model_.mixer == Mixer::gated_delta ? 2 : 1;
  return {.name = "state_input",
          .input_gradient = "state_input_input_gradient",
          .weight_gradient = "state_input_weight_gradient",
          .tokens = tokens_,
          .n = share(2 * (state.values() + state.keys()) + vectors * state.n_heads, tp_),
          .k = model_.hidden_size,
          .fp8 = fp8,
          .input_of_kernel = true,
          .parts = parts_of_gathered()};
}

LayerLists::Linear LayerLists::state_output(bool fp8) const {
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
// token replaces: scores of keys with keys, c / 3 steps of substitution, and the two products with its result.
Operation LayerLists::chunked_scan(Direction direction) const {
  const StateMixer& state = *model_.state_mixer;
  const bool delta = model_.mixer == Mixer::gated_delta;
  const double tokens = as_double(tokens_), heads = as_double(share(state.n_heads, tp_));
  const double key_heads = as_double(share(state.n_key_heads, tp_));
  const double c = as_double(state.chunk_tokens), n = as_double(state.key_head_dim);
  const double p = as_double(state.head_dim);
  double per_token = 2 * c * n * (delta ? heads : key_heads) + heads * (2 * c * p + 4 * n * p);
  if (delta) per_token += heads * (2 * c * n + c * c / 3 + 2 * c * (n + p) + 2 * n * p);
  const bool forward = direction == Direction::forward;
  const ScanTraffic& traffic =
      delta ? (forward ? kDeltaForward : kDeltaBackward) : (forward ? kMambaForward : kMambaBackward);
  // Transformers repeat the keys of the delta rule for every head of values that shares them.
  const double pairs = tokens * 2 * (delta ? heads : key_heads) * n, values = tokens * heads * p;
  const double bytes =
      (traffic.pairs * pairs + traffic.values * values) * element_bytes_ +
      4 * tokens * (traffic.states * heads * n * p / c + traffic.squares * (delta ? heads : key_heads) * c);
  return {AmountShape{.flops = tokens * per_token * (forward ? 1 : kScanGradientOverForward),
                      .bytes_read = bytes / 2,
                      .bytes_written = bytes / 2,
                      .matrix = true,
                      .kernel_class = KernelClass::attention},
          dtype_, direction};
}

// With context parallelism a rank convolves and scans whole sequences of a part of the heads, as Megatron Core does
// (`MambaContextParallel`): as much work, between two exchanges. Gradients go the other way.
void LayerLists::exchange_state(WorkList& list, bool to_heads, Direction direction) const {
  if (cp_ == 1) return;
  const StateMixer& state = *model_.state_mixer;
  const bool inputs = to_heads == (direction == Direction::forward);
  const std::int64_t vectors = model_.mixer == Mixer::gated_delta ? 2 : 1;
  const std::int64_t width =
      inputs ? 2 * (state.values() + state.keys()) + vectors * state.n_heads : state.values();
  const double elements = as_double(tokens_ * share(width, tp_));
  list.push_back({to_heads ? "sequence_to_heads" : "heads_to_sequence",
                  Transfer{CollectiveOp::all_to_all, GroupKind::context, Bytes{elements * element_bytes_}}});
}

void LayerLists::state_forward(WorkList& list, const LayerVariant& variant) const {
  const bool fp8 = is_narrow(layout_.layer.precision.compute) &&
                   layout_.layer.precision.fp8.attention_linears && !variant.sixteen_bit;
  const StateMixer& state = *model_.state_mixer;
  const double values = as_double(tokens_ * share(state.values(), tp_));
  const double channels = values + as_double(2 * tokens_ * share(state.keys(), tp_));
  gather_tokens(list, "gather_state_input", layout_.layer.overlap.tensor_parallel, fp8);
  add_linear(list, state_input(fp8));
  exchange_state(list, true, Direction::forward);
  add_elementwise(list, "causal_convolution", ElementwiseFunction::silu, channels, 1, 1);
  list.push_back({"chunked_scan", chunked_scan(Direction::forward)});
  add_elementwise(list, "gated_norm", ElementwiseFunction::gated_silu, values, 2, 1);
  exchange_state(list, false, Direction::forward);
  add_row_product(list, state_output(fp8), "reduce_state_output");
}

void LayerLists::state_backward(WorkList& list, const LayerVariant& variant) const {
  const bool fp8 = is_narrow(layout_.layer.precision.compute) &&
                   layout_.layer.precision.fp8.attention_linears && !variant.sixteen_bit;
  const StateMixer& state = *model_.state_mixer;
  const double values = as_double(tokens_ * share(state.values(), tp_));
  const double channels = values + as_double(2 * tokens_ * share(state.keys(), tp_));
  add_linear_gradients(list, state_output(fp8), Edge::row);
  exchange_state(list, true, Direction::backward);
  add_elementwise(list, "gated_norm_gradient", ElementwiseFunction::gated_silu, values, 3, 2,
                  Direction::backward);
  // The fused backward pass of mamba_ssm does not keep what the convolution gave.
  if (model_.mixer == Mixer::mamba2)
    add_elementwise(list, "causal_convolution", ElementwiseFunction::silu, channels, 1, 1);
  list.push_back({"chunked_scan_gradient", chunked_scan(Direction::backward)});
  add_elementwise(list, "causal_convolution_gradient", ElementwiseFunction::silu, channels, 2, 1,
                  Direction::backward);
  exchange_state(list, false, Direction::backward);
  add_linear_gradients(list, state_input(fp8), Edge::column);
}

}  // namespace stepcast::detail
