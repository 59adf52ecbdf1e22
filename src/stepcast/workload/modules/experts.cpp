#include "stepcast/workload/modules/experts.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "stepcast/base/number.h"
#include "stepcast/workload/detail/activation_count.h"
#include "stepcast/workload/detail/divisors.h"
#include "stepcast/workload/detail/expert_writer.h"
#include "stepcast/workload/framework_rule.h"
#include "stepcast/workload/modules/feed_forward.h"
#include "stepcast/workload/modules/parameters.h"

namespace stepcast {

namespace detail {
namespace {

// Host work of the parts of an eager expert layer in addition to launches, in launches: Python code of
// router, dispatcher and grouped GEMMs, and per-expert tensors. docs/constants.md explains their choice.
constexpr double kHostOfRouter = 180, kHostOfRouterGradient = 150;
constexpr double kHostOfProduct = 130;       // a grouped GEMM, forward or both gradients
constexpr double kHostOfNarrowTensor = 1.5;  // an operand of one expert in fp8: quantizer, scales, transpose
// Where whole operators are counted (LayerChoices::operator_launches): per operand of an expert, in launches.
constexpr double kHostOfOperand = 60;

}  // namespace

// Tokens are copied once per expert that they visit, sent to the ranks of these experts, and returned. The
// busiest rank, which all ranks wait for, has `expert_imbalance` times the mean, limited by the capacity.
ExpertWriter::ExpertFlow ExpertWriter::expert_flow() const {
  const MixtureOfExperts& moe = *model_.moe;
  ExpertFlow flow;
  flow.tensor_degree = layout_.expert_tensor_degree();
  // Without sequence parallelism, the tokens of a tensor-parallel group are first divided among its ranks.
  flow.own = as_double(tokens_) / as_double(tp_);
  const double routed = flow.own * as_double(moe.experts_per_token);
  flow.imbalance = kept_imbalance(layout_.layer);
  flow.busiest = routed * flow.imbalance;
  flow.bytes = routed * as_double(routed_width()) * element_bytes_;
  flow.token_bytes = flow.own * as_double(routed_width()) * element_bytes_;
  flow.local_experts = share(moe.n_experts, layout_.degrees.expert);
  flow.tokens_per_expert = std::max<std::int64_t>(
      1, rounded(flow.busiest * as_double(flow.tensor_degree) / as_double(flow.local_experts)));
  flow.width = share(moe.expert_ffn_hidden_size, flow.tensor_degree);
  return flow;
}

// Without a capacity, the host must know the number of tokens per expert before it launches the following
// work; a graph of everything uses the largest sizes instead.
bool ExpertWriter::host_reads_counts() const {
  const LayerChoices& layer = layout_.layer;
  return !layer.expert_capacity_factor && !layer.cuda_graphs.full_iteration && !layer.cuda_graphs.experts;
}

// Host work for one operand of a grouped GEMM over all experts, in launches.
double ExpertWriter::host_of_operands(bool fp8, std::int64_t experts) const {
  if (layout_.layer.operator_launches) return kHostOfOperand * as_double(experts);
  return fp8 ? kHostOfNarrowTensor * as_double(experts) : 0;
}

void ExpertWriter::move_tokens(WorkList& list, std::string_view name, MovementKind kind,
                               double tokens) const {
  const std::int64_t h = routed_width();
  list.push_back({name, Operation{MovementShape{kind, rounded(tokens * as_double(h)), h, true}, dtype_}});
}

// Ranks that share every expert gather its tokens, and sum its results.
void ExpertWriter::share_expert_tokens(WorkList& list, std::string_view name, CollectiveOp op,
                                       const ExpertFlow& flow) const {
  if (flow.tensor_degree == 1) return;
  list.push_back({name, Transfer{op, GroupKind::tensor, Bytes{flow.bytes * as_double(flow.tensor_degree)}}});
}

// Scores of every expert in fp32, the top k, the balancing loss, and the routing of every token.
void ExpertWriter::router_forward(WorkList& list, const ExpertFlow& flow) const {
  const MixtureOfExperts& moe = *model_.moe;
  const auto tokens = rounded(flow.own);
  const double scores = flow.own * as_double(moe.n_experts);
  add_linear(list, {.name = "router", .tokens = tokens, .n = moe.n_experts, .k = model_.hidden_size});
  add_elementwise(list, "router_input_in_fp32", ElementwiseFunction::cast,
                  flow.own * as_double(model_.hidden_size), 1, 2);
  list.push_back(
      {"router_scores", Operation{SoftmaxShape{SoftmaxKind::plain, tokens, moe.n_experts}, DType::fp32}});
  list.push_back({"top_k", Operation{ReductionShape{.rows = tokens, .cols = moe.n_experts}, DType::fp32}});
  add_elementwise(list, "routing_map", ElementwiseFunction::other, scores, 1, 1);
  list.back().role = ItemRole::training;
  list.push_back(
      {"auxiliary_loss", Operation{ReductionShape{.rows = moe.n_experts, .cols = tokens}, DType::fp32}});
  list.back().role = ItemRole::training;
  add_host_work(list, "router_on_host", kHostOfRouter);
}

void ExpertWriter::router_backward(WorkList& list, const ExpertFlow& flow) const {
  const MixtureOfExperts& moe = *model_.moe;
  const auto tokens = rounded(flow.own);
  const double scores = flow.own * as_double(moe.n_experts);
  add_elementwise(list, "auxiliary_loss_gradient", ElementwiseFunction::other, scores, 1, 1,
                  Direction::backward);
  list.push_back({"router_scores_gradient", Operation{SoftmaxShape{SoftmaxKind::plain, tokens, moe.n_experts},
                                                      DType::fp32, Direction::backward}});
  add_linear_gradients(list,
                       {.input_gradient = "router_input_gradient",
                        .weight_gradient = "router_weight_gradient",
                        .tokens = tokens,
                        .n = moe.n_experts,
                        .k = model_.hidden_size},
                       Edge::none);
  add_host_work(list, "router_gradient_on_host", kHostOfRouterGradient);
}

// Sorts tokens by local expert: after an all-to-all in two steps (order of the sender, then of the receiver),
// after a library's dispatch in one; HybridEP writes this order directly.
void ExpertWriter::order_by_expert(WorkList& list, std::string_view name, const ExpertFlow& flow) const {
  if (layout_.degrees.expert == 1 || flow.local_experts == 1) return;
  if (layout_.layer.dispatcher == TokenDispatcher::hybridep) return;
  move_tokens(list, name, MovementKind::gather, flow.busiest * as_double(flow.tensor_degree));
}

// Transformer Engine needs multiples of 16 or 32 rows per expert for 8-bit GEMMs, so Megatron Core copies the
// tokens of experts to padded positions and their results back (Fp8Padding of TEGroupedMLP). No copies are
// needed after HybridEP, which writes padded positions, for experts padded to their capacity, and for tokens
// dispatched in 8 bits.
void ExpertWriter::pad_for_narrow(WorkList& list, std::string_view name, bool fp8,
                                  const ExpertFlow& flow) const {
  const LayerChoices& layer = layout_.layer;
  if (!fp8 || layer.dispatcher == TokenDispatcher::hybridep || layer.expert_pads_to_capacity ||
      layer.narrow_dispatch || layer.fused.compiled) {
    return;
  }
  move_tokens(list, name, MovementKind::copy, flow.busiest * as_double(flow.tensor_degree));
}

std::int64_t ExpertWriter::routed_width() const {
  return model_.moe->latent_size > 0 ? model_.moe->latent_size : model_.hidden_size;
}

// The GEMM between the model width and the width of the experts; shared by all experts.
Linear ExpertWriter::latent_projection(bool down) const {
  const std::int64_t latent = model_.moe->latent_size, h = model_.hidden_size;
  return {.name = down ? "expert_latent_down" : "expert_latent_up",
          .input_gradient = "expert_latent_input_gradient",
          .weight_gradient = "expert_latent_weight_gradient",
          .tokens = share(tokens_, tp_),
          .n = down ? latent : h,
          .k = down ? h : latent};
}

// Tokens to the experts of this rank and back. MaxText fills experts with a fixed capacity by GEMMs with
// masks: every place is a sum over all tokens of its sequence (its einsum "BSM,BSEC -> EBCM"), and back; the
// masks have a gradient only in the combine.
void ExpertWriter::order_own_tokens(WorkList& list, std::string_view name, MovementKind movement,
                                    const ExpertFlow& flow, Direction direction) const {
  if (!permutes_own_tokens()) return;
  const LayerChoices& layer = layout_.layer;
  if (!rule_of(layout_).layers.routes_by_masks || !layer.expert_pads_to_capacity ||
      !layer.expert_capacity_factor) {
    return move_tokens(list, name, movement, flow.busiest);
  }
  const std::int64_t sequences = layout_.batch.micro_batch_sequences, tokens = tokens_ / sequences;
  const std::int64_t places =
      rounded(*layer.expert_capacity_factor * as_double(tokens) * as_double(model_.moe->experts_per_token));
  const bool forward = direction == Direction::forward;
  const bool into_experts = (movement == MovementKind::gather) == forward;
  const GemmShape product{.batch = sequences,
                          .m = into_experts ? places : tokens,
                          .n = routed_width(),
                          .k = into_experts ? tokens : places};
  list.push_back({name, gemm(product, dtype_,
                             forward        ? Direction::forward
                             : into_experts ? Direction::weight_gradient
                                            : Direction::backward)});
}

void ExpertWriter::experts_forward(WorkList& list, bool fp8) const {
  const MixtureOfExperts& moe = *model_.moe;
  const CudaGraphs& graphs = layout_.layer.cuda_graphs;
  const std::int64_t h = routed_width();
  const ExpertFlow flow = expert_flow();
  const std::int64_t local = flow.local_experts, per_expert = flow.tokens_per_expert, width = flow.width;
  const double tensors = host_of_operands(fp8, local);
  const std::size_t router = list.size();
  router_forward(list, flow);
  capture(list, router, graphs.router || graphs.full_iteration);
  if (moe.n_shared_experts > 0 && !overlaps_shared_experts())
    ffn_forward(list, moe.n_shared_experts * moe.shared_ffn_hidden_size, fp8, tp_ > 1);
  if (moe.latent_size > 0) add_linear(list, latent_projection(true));
  const std::size_t preprocess = list.size();
  order_own_tokens(list, "permute_tokens", MovementKind::gather, flow, Direction::forward);
  capture(list, preprocess, graphs.expert_dispatch || graphs.full_iteration);
  const std::size_t dispatch = list.size();
  exchange_tokens(list, Exchange::dispatch, flow, fp8);
  // Where the gradients of another micro-batch were launched before, the GPU has other work while the host
  // waits.
  const bool counts = list[dispatch].role == ItemRole::expert_counts;
  list[dispatch + (counts ? 1 : 0)].host_waits = host_reads_counts() && !overlaps_exchanges();
  if (overlaps_exchanges()) {
    overlap_exchange(list, Exchange::dispatch_gradient,
                     delays_weight_gradients() ? 1 - kDispatchGradientBesideWeights : 1, true);
  }
  share_expert_tokens(list, "gather_expert_tokens", CollectiveOp::all_gather, flow);
  order_by_expert(list, "sort_by_expert", flow);
  pad_for_narrow(list, "pad_expert_tokens", fp8, flow);
  add_host_work(list, "expert_up_on_host", kHostOfProduct + tensors);
  add_linear(list, {.name = "expert_up",
                    .tokens = per_expert,
                    .n = width * (model_.gated_ffn ? 2 : 1),
                    .k = h,
                    .bias = model_.ffn_bias,
                    .fp8 = fp8,
                    .experts = local,
                    .role = ItemRole::expert_up});
  activation(list, as_double(per_expert * local * width), Direction::forward);
  add_host_work(list, "expert_down_on_host", kHostOfProduct + tensors);
  add_linear(list, {.name = "expert_down",
                    .tokens = per_expert,
                    .n = h,
                    .k = width,
                    .bias = model_.ffn_bias && !weighs_output_bias(),
                    .fp8 = fp8,
                    .experts = local,
                    .role = ItemRole::expert_down});
  if (weighs_output_bias()) weighed_bias(list, flow, Direction::forward);
  pad_for_narrow(list, "unpad_expert_tokens", fp8, flow);
  order_by_expert(list, "unsort_by_expert", flow);
  share_expert_tokens(list, "reduce_expert_tokens", CollectiveOp::reduce_scatter, flow);
  exchange_tokens(list, Exchange::combine, flow, fp8);
  order_own_tokens(list, "unpermute_tokens", MovementKind::scatter, flow, Direction::forward);
  if (moe.latent_size > 0) add_linear(list, latent_projection(false));
}

void ExpertWriter::expert_product_gradients(WorkList& list, const ExpertFlow& flow, bool fp8) const {
  add_linear_gradients(list,
                       {.input_gradient = "expert_down_input_gradient",
                        .weight_gradient = "expert_down_weight_gradient",
                        .bias_gradient = "expert_down_bias_gradient",
                        .tokens = flow.tokens_per_expert,
                        .n = routed_width(),
                        .k = flow.width,
                        .bias = model_.ffn_bias && !weighs_output_bias(),
                        .fp8 = fp8,
                        .experts = flow.local_experts},
                       Edge::none);
  activation(list, as_double(flow.tokens_per_expert * flow.local_experts * flow.width), Direction::backward);
  add_linear_gradients(list,
                       {.input_gradient = "expert_up_input_gradient",
                        .weight_gradient = "expert_up_weight_gradient",
                        .bias_gradient = "expert_up_bias_gradient",
                        .tokens = flow.tokens_per_expert,
                        .n = flow.width * (model_.gated_ffn ? 2 : 1),
                        .k = routed_width(),
                        .bias = model_.ffn_bias,
                        .fp8 = fp8,
                        .experts = flow.local_experts},
                       Edge::none);
}

void ExpertWriter::experts_backward(WorkList& list, bool fp8) const {
  const MixtureOfExperts& moe = *model_.moe;
  const CudaGraphs& graphs = layout_.layer.cuda_graphs;
  const ExpertFlow flow = expert_flow();
  const double tensors = host_of_operands(fp8, flow.local_experts);
  if (moe.latent_size > 0) add_linear_gradients(list, latent_projection(false), Edge::none);
  order_own_tokens(list, "unpermute_gradient", MovementKind::gather, flow, Direction::backward);
  if (overlaps_exchanges()) overlap_exchange(list, Exchange::dispatch, 1, false);
  exchange_tokens(list, Exchange::combine_gradient, flow, fp8);
  share_expert_tokens(list, "gather_expert_gradients", CollectiveOp::all_gather, flow);
  order_by_expert(list, "sort_gradients_by_expert", flow);
  pad_for_narrow(list, "pad_expert_gradients", fp8, flow);
  const std::size_t products = list.size();
  if (weighs_output_bias()) weighed_bias(list, flow, Direction::backward);
  expert_product_gradients(list, flow, fp8);
  add_host_work(list, "expert_gradients_on_host", 2 * (2 * kHostOfProduct + tensors));
  if (delays_weight_gradients()) {
    const WorkList weights = take_delayed_weight_gradients(list, products);
    overlap_exchange(list, Exchange::dispatch_gradient, kDispatchGradientBesideWeights, false);
    list.insert(list.end(), weights.begin(), weights.end());
  }
  if (overlaps_exchanges()) overlap_exchange(list, Exchange::combine, 1, true);
  pad_for_narrow(list, "unpad_expert_gradients", fp8, flow);
  order_by_expert(list, "unsort_gradients_by_expert", flow);
  share_expert_tokens(list, "reduce_expert_gradients", CollectiveOp::reduce_scatter, flow);
  exchange_tokens(list, Exchange::dispatch_gradient, flow, fp8);
  if (permutes_own_tokens()) {
    const std::size_t preprocess = list.size();
    order_own_tokens(list, "permute_gradient", MovementKind::scatter, flow, Direction::backward);
    capture(list, preprocess, graphs.expert_dispatch || graphs.full_iteration);
  }
  if (moe.latent_size > 0) add_linear_gradients(list, latent_projection(true), Edge::none);
  if (moe.n_shared_experts > 0 && !overlaps_shared_experts())
    ffn_backward(list, moe.n_shared_experts * moe.shared_ffn_hidden_size, fp8, tp_ > 1);
  const std::size_t router = list.size();
  router_backward(list, flow);
  capture(list, router, graphs.router || graphs.full_iteration);
}

bool ExpertWriter::weighs_output_bias() const {
  return model_.moe && model_.ffn_bias && !layout_.layer.fused.compiled;
}

// The bias of the second GEMM is multiplied by the score of the token, so no GEMM can add it: expert by
// expert `tokens + bias * scores` in fp32 because of the scores, then concatenation and a cast back (Megatron
// Core, `TEGroupedMLP._apply_bias`). Backward computes gradients of tokens, bias and scores.
void ExpertWriter::weighed_bias(WorkList& list, const ExpertFlow& flow, Direction direction) const {
  using F = ElementwiseFunction;
  const double wide = 4 / element_bytes_;  // an element in fp32
  const double of_expert = as_double(flow.tokens_per_expert) * as_double(model_.hidden_size);
  const double all = of_expert * as_double(flow.local_experts);
  const auto per_expert = [&](std::string_view name, F function, double reads, double writes) {
    add_elementwise(list, name, function, of_expert, reads, writes, direction);
    list.back().count = flow.local_experts;
  };
  const auto sum = [&](std::string_view name, std::int64_t rows, std::int64_t cols) {
    list.push_back({name, Operation{ReductionShape{.rows = rows, .cols = cols}, DType::fp32}});
    list.back().count = flow.local_experts;
  };
  if (direction == Direction::forward) {
    per_expert("weigh_bias", F::multiply, 0, wide);
    list.back().role = ItemRole::training;
    per_expert("add_weighed_bias", F::add, 1 + wide, wide);
    list.back().role = ItemRole::training;
    add_elementwise(list, "join_experts", F::other, all, wide, wide);
    add_elementwise(list, "cast_joined", F::cast, all, wide, 1);
    return;
  }
  add_elementwise(list, "cast_joined_gradient", F::cast, all, 1, wide, direction);
  per_expert("cast_gradient_of_expert", F::cast, wide, 1);
  add_elementwise(list, "join_gradients_of_experts", F::other, all, 1, 1, direction);
  per_expert("weigh_gradient", F::multiply, wide, wide);
  sum("expert_down_bias_gradient", model_.hidden_size, flow.tokens_per_expert);
  per_expert("multiply_gradient_by_bias", F::multiply, wide, wide);
  sum("score_gradient", flow.tokens_per_expert, model_.hidden_size);
}

// A sum over the tensor-parallel group that would overlap them is waited for (Transformer Engine,
// `_Linear.backward`).
WorkList ExpertWriter::take_delayed_weight_gradients(WorkList& list, std::size_t from) {
  for (std::size_t i = from; i + 1 < list.size(); ++i)
    if (list[i + 1].weight_gradient) list[i].overlaps_next = false;
  return take_weight_gradients(list, from);
}

// Stable: both lists keep their order.
WorkList ExpertWriter::take_weight_gradients(WorkList& list, std::size_t from) {
  const auto begin = list.begin() + static_cast<std::ptrdiff_t>(from);
  const auto first =
      std::stable_partition(begin, list.end(), [](const WorkItem& item) { return !item.weight_gradient; });
  WorkList taken{first, list.end()};
  list.erase(first, list.end());
  return taken;
}

void ExpertWriter::activation_forward(WorkList& list) const {
  const ExpertFlow flow = expert_flow();
  activation(list, as_double(flow.tokens_per_expert * flow.local_experts * flow.width), Direction::forward);
}

}  // namespace detail

namespace {

using detail::ExpertWriter;
using detail::LayerVariant;
using detail::LayerWriter;
using detail::nearest_divisors;

// Bytes per element of a token at an expert, where framework operations permute tokens: the result of the
// expert, its multiple by the score in fp32, and the summands.
constexpr double kUnfusedPermutationBytes = 8;

// Megatron Core's constraints on the overlap of the all-to-all, and the capacity for padding.
Status check_expert_overlap(const Layout& layout) {
  const LayerOverlap& overlap = layout.layer.overlap;
  if (overlap.expert && layout.degrees.expert > 1 && layout.degrees.pipeline > 1 &&
      layout.degrees.virtual_stages == 1 && !splits_backward(layout.pipeline.schedule)) {
    return layout_error("virtual_stages",
                        "overlap of the all-to-all with another micro-batch in a pipeline without virtual "
                        "stages, which Megatron Core does not support")
        .advice(
            "add --num-virtual-stages-per-pipeline-rank 2, or leave out --overlap-moe-expert-parallel-comm");
  }
  if (layout.layer.expert_pads_to_capacity && !layout.layer.expert_capacity_factor) {
    return layout_error("expert_capacity_factor", "experts are padded to a capacity that is not given")
        .advice("add --moe-expert-capacity-factor");
  }
  return Ok{};
}

// The capacity must allow at least one token per expert, for the tokens of one rank and micro-batch.
Status check_expert_capacity(const Layout& layout, const MixtureOfExperts& moe) {
  if (!layout.layer.expert_capacity_factor) return Ok{};
  const double tokens = static_cast<double>(layout.batch.micro_batch_sequences) *
                        static_cast<double>(layout.batch.seq_len_tokens) /
                        static_cast<double>(layout.degrees.context * layout.degrees.tensor);
  const double mean =
      tokens * static_cast<double>(moe.experts_per_token) / static_cast<double>(moe.n_experts);
  if (*layout.layer.expert_capacity_factor * mean >= 1) return Ok{};
  return layout_error(
             "expert_capacity_factor",
             fmt::format("a capacity of {:.2g} x the mean of {:.3g} tokens leaves an expert less than "
                         "one token of a rank's micro-batch",
                         *layout.layer.expert_capacity_factor, mean))
      .advice(fmt::format("use at least {:.2g}", 1 / mean));
}

// Experts must divide by the expert-parallel degree, and the ranks of a stage by both expert degrees.
Status check_expert_degrees(const Layout& layout, const Transformer& model) {
  const std::int64_t ep = layout.degrees.expert, etp = layout.expert_tensor_degree();
  if (layout.layer.overlap.delayed_weight_gradient && !layout.layer.overlap.expert) {
    return layout_error("delay_weight_gradient",
                        "weight gradients are delayed without an all-to-all to overlap")
        .advice(
            "add --overlap-moe-expert-parallel-comm, which Megatron Core needs, or leave out "
            "--delay-wgrad-compute");
  }
  if (!model.moe) {
    if (ep == 1) return Ok{};
    return layout_error("expert_parallel", fmt::format("expert_parallel {} for a model without experts", ep))
        .advice("use expert_parallel 1");
  }
  if (model.moe->n_experts % ep != 0) {
    return layout_error("expert_parallel", fmt::format("n_experts {} is not divisible by expert_parallel {}",
                                                       model.moe->n_experts, ep))
        .advice(
            fmt::format("nearest that work: expert_parallel {}", nearest_divisors(model.moe->n_experts, ep)));
  }
  STEPCAST_TRY(check_expert_capacity(layout, *model.moe));
  STEPCAST_TRY(check_expert_overlap(layout));
  if (model.moe->expert_ffn_hidden_size % etp != 0) {
    return layout_error("expert_tensor_parallel",
                        fmt::format("expert_ffn_hidden_size {} is not divisible by expert_tensor_parallel {}",
                                    model.moe->expert_ffn_hidden_size, etp))
        .advice(
            fmt::format("nearest that work: {}", nearest_divisors(model.moe->expert_ffn_hidden_size, etp)));
  }
  const std::int64_t ranks = layout.degrees.tensor * layout.degrees.context * layout.degrees.data;
  if (ranks % etp != 0) {
    return layout_error(
               "expert_tensor_parallel",
               fmt::format("the {} ranks of a pipeline stage are not divisible by expert_tensor_parallel {}",
                           ranks, etp))
        .advice(fmt::format("nearest that work: {}", nearest_divisors(ranks, etp)));
  }
  if (ranks / etp % ep != 0) {
    return layout_error(
               "expert_parallel",
               fmt::format(
                   "the {} ranks of a pipeline stage are not divisible by expert_tensor_parallel {} x "
                   "expert_parallel {}",
                   ranks, etp, ep))
        .advice(fmt::format("nearest that work: expert_parallel {}",
                            nearest_divisors(std::gcd(ranks / etp, model.moe->n_experts), ep)));
  }
  return Ok{};
}

// The module of expert layers.
class Experts final : public LayerModule {
 public:
  void add_parameters(const Transformer& model, ParameterCount& n) const override {
    const MixtureOfExperts& moe = *model.moe;
    n.router = model.hidden_size * (moe.n_experts + moe.zero_experts);
    if (moe.shared_expert_gate) n.router += model.hidden_size;
    if (moe.router_bias) n.router += moe.n_experts;
    // The projections to and from latent vectors are shared by all experts.
    const std::int64_t routed_width = moe.latent_size > 0 ? moe.latent_size : model.hidden_size;
    n.routed_experts = moe.n_experts * ffn_parameters(model, routed_width, moe.expert_ffn_hidden_size);
    n.router += 2 * model.hidden_size * moe.latent_size;
    n.shared_experts =
        moe.n_shared_experts * ffn_parameters(model, model.hidden_size, moe.shared_ffn_hidden_size);
  }
  void forward(const LayerWriter& w, WorkList& list, const LayerVariant& variant) const override {
    ExpertWriter{w}.experts_forward(list, w.has_narrow_ffn(variant));
  }
  void backward(const LayerWriter& w, WorkList& list, const LayerVariant& variant) const override {
    ExpertWriter{w}.experts_backward(list, w.has_narrow_ffn(variant));
  }

  // Received tokens, inputs of the activation, its result. Sent tokens are not kept, only their order.
  [[nodiscard]] double kept(const detail::ActivationCount& count) const override {
    const Transformer& model = count.model();
    const LayerChoices& layer = count.layout().layer;
    const double matrices = model.gated_ffn ? 3 : 2;  // inputs and output of the activation
    const bool fp8 = layer.precision.fp8.ffn_linears;
    const ExpertBytes bytes = expert_bytes(count);
    double kept = count.streams() + count.hidden() + count.linear_input(count.hidden(), false, false) +
                  (model.hidden_dropout > 0 ? count.norm_mask() : 0);
    kept += count.linear_input(bytes.received, fp8, false);
    kept += count.activation_inputs((matrices - 1) * bytes.wide) + count.linear_input(bytes.wide, fp8, false);
    if (!layer.fused.permutation) kept += kUnfusedPermutationBytes * bytes.received / count.element();
    return kept + bytes.shared;
  }

  [[nodiscard]] Status check(const Transformer& model) const override {
    if (!model.moe) return Ok{};
    const MixtureOfExperts& moe = *model.moe;
    constexpr std::int64_t kExperts = 1'000'000, kWidth = 100'000'000;
    STEPCAST_TRY(check_sizes(
        model, "moe.",
        {
            {"n_experts", moe.n_experts, 1, kExperts},
            {"experts_per_token", moe.experts_per_token, 1, moe.n_experts},
            {"expert_ffn_hidden_size", moe.expert_ffn_hidden_size, 1, kWidth},
            {"n_shared_experts", moe.n_shared_experts, 0, kExperts},
            {"shared_ffn_hidden_size", moe.shared_ffn_hidden_size, moe.n_shared_experts > 0 ? 1 : 0, kWidth},
            {"first_dense_layers", moe.first_dense_layers, 0, model.n_layers},
            {"moe_every_n_layers", moe.moe_every_n_layers, 1, model.n_layers},
            {"n_groups", moe.n_groups, 1, moe.n_experts},
            {"latent_size", moe.latent_size, 0, kWidth},
            {"zero_experts", moe.zero_experts, 0, kExperts},
            {"groups_per_token", moe.groups_per_token, 1, moe.n_groups},
        }));
    if (moe.n_experts % moe.n_groups != 0) {
      return Error::at(
          model.name, "moe.n_groups",
          fmt::format("{} experts are not divisible into {} groups", moe.n_experts, moe.n_groups));
    }
    if (moe.n_experts / moe.n_groups * moe.groups_per_token < moe.experts_per_token) {
      return Error::at(
          model.name, "moe.groups_per_token",
          fmt::format("{} groups of {} experts have fewer than the {} experts per token",
                      moe.groups_per_token, moe.n_experts / moe.n_groups, moe.experts_per_token));
    }
    return Ok{};
  }
  [[nodiscard]] Status check(const Layout& layout, const Transformer& model) const override {
    return check_expert_degrees(layout, model);
  }
};
constexpr Experts kExperts;

}  // namespace

const LayerModule& experts() { return kExperts; }

ExpertBytes expert_bytes(const detail::ActivationCount& count) {
  const Transformer& model = count.model();
  const MixtureOfExperts& moe = *model.moe;
  const double visits = count.tokens() / count.tp() * as_double(moe.experts_per_token) * count.imbalance();
  const std::int64_t routed = moe.latent_size > 0 ? moe.latent_size : model.hidden_size;
  const double wide_shared = count.tokens() * as_double(moe.n_shared_experts * moe.shared_ffn_hidden_size) /
                             count.tp() * count.element();
  return {.received = visits * as_double(routed) * count.element(),
          .wide = visits * as_double(moe.expert_ffn_hidden_size) * count.element(),
          .shared = (model.gated_ffn ? 2 : 1) * wide_shared + count.linear_input(wide_shared, false, false)};
}

}  // namespace stepcast
