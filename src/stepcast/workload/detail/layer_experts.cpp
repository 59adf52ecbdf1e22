// The expert part of one layer: router, tokens to their experts and back, experts, shared experts.
#include <algorithm>

#include "stepcast/base/number.h"
#include "stepcast/workload/detail/layer_lists.h"

namespace stepcast::detail {
namespace {

// What the host does for the parts of an eager expert layer besides launching their kernels, in launches: Python of
// router, dispatcher and grouped products, tensors of every expert. docs/constants.md says how they were chosen.
constexpr double kHostOfRouter = 180, kHostOfRouterGradient = 150;
constexpr double kHostOfProduct = 130;       // a grouped product, forward or both gradients
constexpr double kHostOfNarrowTensor = 1.5;  // an operand of one expert in fp8: quantizer, scales, transpose
// Where whole operators are counted (LayerChoices::operator_launches): for each operand of an expert, in launches.
constexpr double kHostOfOperand = 60;

}  // namespace

// Tokens are copied once per expert they visit, travel to the ranks of these experts, and come back. The
// busiest rank, which everybody waits for, has `expert_imbalance` times the mean, or what the capacity leaves of it.
LayerLists::ExpertFlow LayerLists::expert_flow() const {
  const MixtureOfExperts& moe = *model_.moe;
  ExpertFlow flow;
  flow.tensor_degree = layout_.expert_tensor_degree();
  // Without sequence parallelism the tokens of a tensor-parallel group are split among its ranks first.
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

// Without a capacity the host has to know how many tokens every expert gets before it launches what follows; a graph of
// everything holds the largest sizes instead.
bool LayerLists::host_reads_counts() const {
  const LayerChoices& layer = layout_.layer;
  return !layer.expert_capacity_factor && !layer.cuda_graphs.full_iteration && !layer.cuda_graphs.experts;
}

// Of each of an expert product's operands, in launches.
double LayerLists::host_of_operands(bool fp8, std::int64_t experts) const {
  if (layout_.layer.operator_launches) return kHostOfOperand * as_double(experts);
  return fp8 ? kHostOfNarrowTensor * as_double(experts) : 0;
}

void LayerLists::move_tokens(WorkList& list, std::string_view name, MovementKind kind, double tokens) const {
  const std::int64_t h = routed_width();
  list.push_back({name, Operation{MovementShape{kind, rounded(tokens * as_double(h)), h, true}, dtype_}});
}

// Ranks that share every expert gather its tokens, and sum its results.
void LayerLists::share_expert_tokens(WorkList& list, std::string_view name, CollectiveOp op,
                                     const ExpertFlow& flow) const {
  if (flow.tensor_degree == 1) return;
  list.push_back({name, Transfer{op, GroupKind::tensor, Bytes{flow.bytes * as_double(flow.tensor_degree)}}});
}

// Scores of every expert in fp32, the best of them, the loss that balances them, and where every token goes.
void LayerLists::router_forward(WorkList& list, const ExpertFlow& flow) const {
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

void LayerLists::router_backward(WorkList& list, const ExpertFlow& flow) const {
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

// Into the order of local experts: after all-to-all in two steps (own order, then that of the receiver), after a
// library's exchange in one; HybridEP writes that order itself.
void LayerLists::order_by_expert(WorkList& list, std::string_view name, const ExpertFlow& flow) const {
  if (layout_.degrees.expert == 1 || flow.local_experts == 1) return;
  if (layout_.layer.dispatcher == TokenDispatcher::hybridep) return;
  move_tokens(list, name, MovementKind::gather, flow.busiest * as_double(flow.tensor_degree));
}

// Transformer Engine multiplies in 8 bits by whole groups of 16 or 32 rows, so Megatron Core copies the tokens of experts
// to places that are multiples of these and their results back (Fp8Padding of TEGroupedMLP). HybridEP writes them so, full
// experts lie so, and so does what comes in 8 bits from the start.
void LayerLists::pad_for_narrow(WorkList& list, std::string_view name, bool fp8,
                                const ExpertFlow& flow) const {
  const LayerChoices& layer = layout_.layer;
  if (!fp8 || layer.dispatcher == TokenDispatcher::hybridep || layer.expert_pads_to_capacity ||
      layer.narrow_dispatch || layer.fused.compiled) {
    return;
  }
  move_tokens(list, name, MovementKind::copy, flow.busiest * as_double(flow.tensor_degree));
}

std::int64_t LayerLists::routed_width() const {
  return model_.moe->latent_size > 0 ? model_.moe->latent_size : model_.hidden_size;
}

// Between the width of the model and that which experts see; shared by all of them.
Linear LayerLists::latent_projection(bool down) const {
  const std::int64_t latent = model_.moe->latent_size, h = model_.hidden_size;
  return {.name = down ? "expert_latent_down" : "expert_latent_up",
          .input_gradient = "expert_latent_input_gradient",
          .weight_gradient = "expert_latent_weight_gradient",
          .tokens = share(tokens_, tp_),
          .n = down ? latent : h,
          .k = down ? h : latent};
}

// Tokens to the experts of this rank and back. MaxText fills experts of a fixed capacity by products with masks: every
// place is a sum over all tokens of its sequence (its einsum "BSM,BSEC -> EBCM"), and back; what tells tokens apart has a
// gradient on the way back alone.
void LayerLists::order_own_tokens(WorkList& list, std::string_view name, MovementKind movement,
                                  const ExpertFlow& flow, Direction direction) const {
  if (!permutes_own_tokens()) return;
  const LayerChoices& layer = layout_.layer;
  if (layout_.software.framework != Framework::maxtext || !layer.expert_pads_to_capacity ||
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

void LayerLists::experts_forward(WorkList& list, bool fp8) const {
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
  // Where the gradients of another micro-batch were launched before, the GPU has work meanwhile.
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

void LayerLists::expert_product_gradients(WorkList& list, const ExpertFlow& flow, bool fp8) const {
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

void LayerLists::experts_backward(WorkList& list, bool fp8) const {
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

bool LayerLists::weighs_output_bias() const {
  return model_.moe && model_.ffn_bias && !layout_.layer.fused.compiled;
}

// The bias of the second product counts as much as the score of the token says, so no product can add it: expert by
// expert `tokens + bias * scores`, which the scores make fp32, put together again and cast back (Megatron Core,
// `TEGroupedMLP._apply_bias`). Backward the tokens, the bias and the scores have gradients.
void LayerLists::weighed_bias(WorkList& list, const ExpertFlow& flow, Direction direction) const {
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

// Written out in framework operations (Megatron Core, `glu` of TEGroupedMLP): two clamps, the three operations of a quick
// GELU, offset, product, then the scores in fp32 and back. Backward every product has two gradients, of which that of the
// scores is summed up per token, what is used twice is added up, and the halves are put together again; an offset needs
// nothing.
void LayerLists::clamped_activation(WorkList& list, double elements, Direction direction) const {
  using F = ElementwiseFunction;
  const double wide = 4 / element_bytes_;  // an element in fp32
  const auto add = [&](std::string_view name, ElementwiseFunction function, double reads, double writes) {
    add_elementwise(list, name, function, elements, reads, writes, direction);
  };
  if (direction == Direction::forward) {
    add("clamp_gate", F::relu, 1, 1);
    add("clamp_input", F::relu, 1, 1);
    add("scale_gate", F::multiply_scalar, 1, 1);
    add("sigmoid", F::sigmoid, 1, 1);
    add("multiply_gate", F::multiply, 2, 1);
    add("offset_input", F::add_scalar, 1, 1);
    add("gate", F::multiply, 2, 1);
    add("weigh_by_score", F::multiply, 1, wide);
    add("cast_weighed", F::cast, wide, 1);
    list.back().role = ItemRole::cast;
    return;
  }
  const ExpertFlow flow = expert_flow();
  add("cast_weighed_gradient", F::cast, 1, wide);
  add("weigh_by_score_gradient", F::multiply, wide, wide);
  add("cast_unweighed_gradient", F::cast, wide, 1);
  add("multiply_gradient_by_activation", F::multiply, wide + 1, wide);
  list.push_back(
      {"score_gradient_of_activation",
       Operation{ReductionShape{.rows = std::max<std::int64_t>(1, rounded(elements / as_double(flow.width))),
                                .cols = flow.width},
                 DType::fp32}});
  add("gate_gradient", F::multiply, 4, 2);
  add("multiply_gate_gradient", F::multiply, 4, 2);
  add("sigmoid_gradient", F::sigmoid, 2, 1);
  add("scale_gate_gradient", F::multiply_scalar, 1, 1);
  add("add_gate_gradients", F::add, 2, 1);
  add("clamp_gate_gradient", F::relu, 2, 1);
  add("clamp_input_gradient", F::relu, 2, 1);
  add("join_gate_and_input_gradients", F::other, 2, 2);
}

}  // namespace stepcast::detail
