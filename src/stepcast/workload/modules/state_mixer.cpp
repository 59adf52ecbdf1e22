// Linear attention and Mamba in chunks, as in their libraries (flash-linear-attention, lightning-attention,
// mamba_ssm), and short convolutions. They are priced only by their amounts: none of these kernels was
// measured.
#include "stepcast/workload/modules/state_mixer.h"

#include <numeric>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/number.h"
#include "stepcast/workload/detail/activation_count.h"
#include "stepcast/workload/detail/divisors.h"
#include "stepcast/workload/detail/layer_writer.h"
#include "stepcast/workload/modules/parameters.h"

namespace stepcast {
namespace {

using detail::Edge;
using detail::LayerVariant;
using detail::LayerWriter;
using detail::Linear;
using detail::nearest_divisors;
using detail::share;

// Backward recomputes scores and states of every chunk and then two gradients of every GEMM, as flash
// attention does: five GEMMs for two.
constexpr double kScanGradientOverForward = 2.5;

// The libraries use several kernels: the numbers say how often all kernels together read or write each
// intermediate tensor in memory. States count as fp32, tensors kept in 16 bits as half; keys and queries are
// a pair.
struct ScanTraffic {
  double states, pairs, values, squares;  // squares: scores of a chunk, in fp32
};
// mamba_ssm, `_mamba_chunk_scan_combined_fwd` (chunk_state, state_passing, bmm_chunk, chunk_scan) and `_bwd`,
// which repeats the first three and then runs dstates, state_passing, dx, db, dC, dcb, two GEMMs and ddA.
constexpr ScanTraffic kMambaForward{3, 2, 3, 2}, kMambaBackward{8.5, 6.5, 11, 6};
// flash-linear-attention, `chunk_gated_delta_rule_fwd` (scaled_dot_kkt, solve_tril, recompute_w_u, fwd_h,
// fwd_o) and `_bwd`, which repeats recompute_w_u and fwd_h and then runs dv_local, dhu, dqkwg and wy_repr.
constexpr ScanTraffic kDeltaForward{1, 2.5, 8, 3}, kDeltaBackward{3, 8, 20, 6};
// lightning-attention, `lightning_attn2`: one forward kernel that keeps the state on the chip; two backward
// kernels, within blocks and between them, the second adding to the gradients of the first.
constexpr ScanTraffic kDecayedForward{0, 1, 2, 0}, kDecayedBackward{0, 5, 7, 0};
// mamba_ssm, `selective_scan_fwd` (reads input, step and gate, writes the result before and after the gate)
// and `selective_scan_bwd` (reads these and the gradient, writes three gradients): the state stays on the
// chip.
constexpr ScanTraffic kSelectiveForward{0, 1, 5, 0}, kSelectiveBackward{0, 2, 9, 0};
// FLOPs per channel and state element: exponential, decay, input and output (the count of Mamba's authors).
constexpr double kSelectiveFlops = 9;

const ScanTraffic& traffic_of(Mixer mixer, bool forward) {
  switch (mixer) {
    case Mixer::mamba2: return forward ? kMambaForward : kMambaBackward;
    case Mixer::mamba1: return forward ? kSelectiveForward : kSelectiveBackward;
    case Mixer::decayed_linear: return forward ? kDecayedForward : kDecayedBackward;
    default: return forward ? kDeltaForward : kDeltaBackward;
  }
}

// Writes the work of a recurrent mixer.
class StateWriter : private LayerWriter {
 public:
  explicit StateWriter(const LayerWriter& writer) : LayerWriter(writer) {}
  void forward(WorkList& list, const LayerVariant& variant) const;
  void backward(WorkList& list, const LayerVariant& variant) const;

 private:
  // The two sequential inner GEMMs; see StateParts.
  enum class InnerPart : std::uint8_t { narrow, wide };
  [[nodiscard]] Linear inner_product(InnerPart part) const;
  void around_convolution(WorkList& list, Direction direction) const;
  [[nodiscard]] bool has_gated_norm() const;
  [[nodiscard]] Operation chunked_scan(Direction direction) const;
  [[nodiscard]] Linear state_input(bool fp8) const;
  [[nodiscard]] Linear state_output(bool fp8) const;
  void exchange_state(WorkList& list, bool to_heads, Direction direction) const;
};

// One GEMM for queries, keys, values, output gates, and steps and gates of every head.
Linear StateWriter::state_input(bool fp8) const {
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

// The inner GEMMs: to keys and a low-rank vector, and from that vector to steps or gates.
Linear StateWriter::inner_product(InnerPart part) const {
  const StateParts parts = state_parts(model_);
  const bool narrow = part == InnerPart::narrow;
  return {.name = narrow ? "state_keys" : "state_steps",
          .input_gradient = narrow ? "state_keys_input_gradient" : "state_steps_input_gradient",
          .weight_gradient = narrow ? "state_keys_weight_gradient" : "state_steps_weight_gradient",
          .tokens = tokens_,
          .n = narrow ? parts.inner_columns : share(parts.inner_out, tp_),
          .k = narrow ? parts.inner_width : parts.inner_rank};
}

Linear StateWriter::state_output(bool fp8) const {
  return {.name = "state_output",
          .input_gradient = "state_output_input_gradient",
          .weight_gradient = "state_output_weight_gradient",
          .tokens = tokens_,
          .n = model_.hidden_size,
          .k = share(model_.state_mixer->values(), tp_),
          .fp8 = fp8};
}

// Work per token of a chunk of c tokens, with keys of width n and values of width p: scores with the keys of
// the chunk and their weighted values, the update of the state, and the contribution of the previous state.
// The delta rule also solves for the values that each token replaces: scores of keys with keys, c / 3 steps
// of substitution, and two GEMMs with the result. Mamba-1 has one state per channel and no GEMMs.
Operation StateWriter::chunked_scan(Direction direction) const {
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
  // Transformers repeats the keys of the delta rule for every value head that shares them.
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

// With context parallelism a rank convolves and scans whole sequences for a part of the heads, as in Megatron
// Core (`MambaContextParallel`): equal work, between two all-to-alls. Gradients go the other way.
void StateWriter::exchange_state(WorkList& list, bool to_heads, Direction direction) const {
  if (cp_ == 1) return;
  const bool inputs = to_heads == (direction == Direction::forward);
  const std::int64_t width = inputs ? state_parts(model_).columns : model_.state_mixer->values();
  const double elements = as_double(tokens_ * share(width, tp_));
  list.push_back({to_heads ? "sequence_to_heads" : "heads_to_sequence",
                  Transfer{CollectiveOp::all_to_all, GroupKind::context, Bytes{elements * element_bytes_}}});
}

// The convolution; for short_convolution between two gates.
void StateWriter::around_convolution(WorkList& list, Direction direction) const {
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

void StateWriter::forward(WorkList& list, const LayerVariant& variant) const {
  const bool fp8 = has_narrow_mixer(variant);
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

// The scan of Mamba-1 includes the gate of its result.
bool StateWriter::has_gated_norm() const {
  return model_.mixer != Mixer::short_convolution && model_.mixer != Mixer::mamba1;
}

void StateWriter::backward(WorkList& list, const LayerVariant& variant) const {
  const bool fp8 = has_narrow_mixer(variant);
  const StateParts parts = state_parts(model_);
  const double values = as_double(tokens_ * share(model_.state_mixer->values(), tp_));
  add_linear_gradients(list, state_output(fp8), Edge::row);
  exchange_state(list, true, Direction::backward);
  if (has_gated_norm())
    add_elementwise(list, "gated_norm_gradient", ElementwiseFunction::gated_silu, values, 3, 2,
                    Direction::backward);
  // The fused backward of mamba_ssm recomputes the result of the convolution.
  if (model_.mixer == Mixer::mamba2) around_convolution(list, Direction::forward);
  if (model_.mixer != Mixer::short_convolution)
    list.push_back({"chunked_scan_gradient", chunked_scan(Direction::backward)});
  if (parts.inner_rank > 0) add_linear_gradients(list, inner_product(InnerPart::wide), Edge::none);
  if (parts.inner_width > 0) add_linear_gradients(list, inner_product(InnerPart::narrow), Edge::none);
  around_convolution(list, Direction::backward);
  exchange_state(list, false, Direction::backward);
  add_linear_gradients(list, state_input(fp8), Edge::column);
}

// Megatron Core supports the gated delta rule and Mamba-2. Linear attention splits by heads like attention.
Status check_state_heads(const Layout& layout, Mixer mixer, const StateMixer& state) {
  const bool by_heads = mixer == Mixer::channel_delta || mixer == Mixer::decayed_linear;
  const bool known = mixer == Mixer::gated_delta || mixer == Mixer::mamba2;
  for (const auto& [name, degree, splits] :
       {std::tuple{"tensor_parallel", layout.degrees.tensor, known || by_heads},
        {"context_parallel", layout.degrees.context, known}}) {
    if (splits || degree == 1) continue;
    return layout_error(name, fmt::format("no modelled framework splits {} layers by {} {}", to_string(mixer),
                                          name, degree))
        .advice(fmt::format("nearest that works: {} 1; use expert or pipeline parallelism", name));
  }
  for (const auto& [name, heads] :
       {std::pair{"state heads", state.n_heads}, std::pair{"state key heads", state.n_key_heads}}) {
    if (heads % layout.degrees.tensor == 0) continue;
    return layout_error("tensor_parallel", fmt::format("{} {} are not divisible by tensor_parallel {}", heads,
                                                       name, layout.degrees.tensor))
        .advice(fmt::format("nearest that work: tensor_parallel {}",
                            nearest_divisors(heads, layout.degrees.tensor)));
  }
  // The ranks of a context-parallel group share the heads; several ranks may replicate one group of Mamba-2
  // (`MambaContextParallel`).
  const std::int64_t cp = layout.degrees.context, heads = state.n_heads / layout.degrees.tensor,
                     key_heads = state.n_key_heads / layout.degrees.tensor;
  const bool repeats = mixer == Mixer::mamba2 && cp % key_heads == 0;
  if (heads % cp != 0 || (key_heads % cp != 0 && !repeats)) {
    return layout_error(
               "context_parallel",
               fmt::format(
                   "{} heads and {} key heads of {} layers on a tensor-parallel rank do not divide into "
                   "context_parallel {}",
                   heads, key_heads, to_string(mixer), cp))
        .advice(fmt::format("nearest that work: context_parallel {}",
                            nearest_divisors(std::gcd(heads, key_heads), cp)));
  }
  return Ok{};
}

// The module of recurrent mixers.
class StateMixerModule final : public LayerModule {
 public:
  // Input and inner GEMMs, convolution, vectors, and the output projection.
  void add_parameters(const Transformer& model, ParameterCount& count) const override {
    const StateMixer& state = *model.state_mixer;
    const StateParts parts = state_parts(model);
    count.attention += model.hidden_size * parts.columns +
                       parts.channels * (state.conv_kernel + (state.conv_bias ? 1 : 0)) +
                       parts.inner_width * parts.inner_columns + parts.inner_rank * parts.inner_out +
                       parts.vectors + state.values() * model.hidden_size;
  }

  void forward(const LayerWriter& w, WorkList& list, const LayerVariant& variant) const override {
    StateWriter{w}.forward(list, variant);
  }
  void backward(const LayerWriter& w, WorkList& list, const LayerVariant& variant) const override {
    StateWriter{w}.backward(list, variant);
  }

  [[nodiscard]] double kept(const detail::ActivationCount& count) const override {
    const LayerChoices& layer = count.layout().layer;
    return count.hidden() +
           count.linear_input(count.hidden(), layer.precision.fp8.attention_linears, layer.adapters.qkv) +
           count.state_results() + (count.model().hidden_dropout > 0 ? count.norm_mask() : 0);
  }

  [[nodiscard]] Status check(const Transformer& model) const override {
    if (!model.state_mixer) return Ok{};
    const StateMixer& state = *model.state_mixer;
    constexpr std::int64_t kWidth = 10'000, kHeads = 100'000;  // limits keys and values to a width of 1e9
    return check_sizes(model, "state_mixer.",
                       {{"rank", state.rank, 0, kWidth},
                        {"n_heads", state.n_heads, 1, kHeads},
                        {"head_dim", state.head_dim, 1, kWidth},
                        {"n_key_heads", state.n_key_heads, 1, kWidth},
                        {"key_head_dim", state.key_head_dim, 1, kWidth},
                        {"conv_kernel", state.conv_kernel, 1, kWidth},
                        {"chunk_tokens", state.chunk_tokens, 1, kWidth}});
  }
  [[nodiscard]] Status check(const Layout& layout, const Transformer& model) const override {
    return check_state_heads(layout, model.mixer, *model.state_mixer);
  }
};
constexpr StateMixerModule kStateMixer;

}  // namespace

StateParts state_parts(const Transformer& model) {
  const StateMixer& state = *model.state_mixer;
  const std::int64_t values = state.values(), keys = state.keys(), heads = state.n_heads, rank = state.rank;
  StateParts parts{.columns = 2 * (values + keys), .channels = values + 2 * keys};
  parts.kept = 2 * parts.channels + 3 * values;
  switch (model.mixer) {
    case Mixer::gated_delta:
      parts.columns += 2 * heads;
      parts.vectors = 2 * heads + state.head_dim;
      break;
    case Mixer::channel_delta:
      // Gates of the decay and of the output; a decay and a step per head.
      parts.columns += heads + (rank > 0 ? 2 * rank - values : values);
      parts.inner_rank = rank;
      parts.inner_out = rank > 0 ? 2 * values : 0;
      parts.vectors = heads + values + state.head_dim;
      parts.kept += values;
      break;
    case Mixer::decayed_linear:
      parts.kept -= parts.channels;
      parts.channels = 0;
      parts.vectors = (state.has_norm ? values : 0) + (state.head_norms ? 2 * state.key_head_dim : 0);
      break;
    case Mixer::mamba2:
      parts.columns += heads;
      parts.vectors = 3 * heads + (state.has_norm ? values : 0);
      break;
    case Mixer::mamba1:
      parts = {.columns = 2 * values,
               .channels = values,
               .inner_width = values,
               .inner_columns = rank + 2 * keys,
               .inner_rank = rank,
               .inner_out = values,
               .vectors = values * (keys + 2) + (state.has_norm ? rank + 2 * keys : 0),
               .kept = 6 * values};
      break;
    case Mixer::short_convolution:
      parts = {.columns = 3 * values, .channels = values, .kept = 6 * values};
      break;
    case Mixer::attention:
    case Mixer::none: break;
  }
  return parts;
}

const LayerModule& state_mixer() { return kStateMixer; }

}  // namespace stepcast
