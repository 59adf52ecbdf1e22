// The expert part of one layer: router, tokens to their experts and back, experts, shared experts.
#include <algorithm>

#include "stepcast/workload/detail/layer_lists.h"
#include "stepcast/workload/detail/narrow_types.h"

namespace stepcast::detail {
namespace {

// What the host does for the parts of an eager expert layer besides launching their kernels, in launches: Python of
// router, dispatcher and grouped products, tensors of every expert. docs/constants.md says how they were chosen.
constexpr double kHostOfRouter = 180, kHostOfRouterGradient = 150;
constexpr double kHostOfExchange = 90;  // dispatch or combine, with the counts of tokens that it waits for
constexpr double kHostOfProduct = 130;  // a grouped product, forward or both gradients
constexpr double kHostOfNarrowTensor = 1.5;  // an operand of one expert in fp8: quantizer, scales, transpose
// Share of an exchange that stays exposed where it runs beside another micro-batch: the SMs that it takes from the
// products (20 of 132).
constexpr double kExposedOfOverlapped = 0.15;

double number(std::int64_t value) { return static_cast<double>(value); }

bool is_library(TokenDispatcher dispatcher) {
  return dispatcher == TokenDispatcher::deepep || dispatcher == TokenDispatcher::hybridep;
}

}  // namespace

// Tokens are copied once per expert they visit, travel to the ranks of these experts, and come back. The
// busiest rank, which everybody waits for, has `expert_imbalance` times the mean, or what the capacity leaves of it.
LayerLists::ExpertFlow LayerLists::expert_flow() const {
  const MixtureOfExperts& moe = *model_.moe;
  ExpertFlow flow;
  flow.tensor_degree = layout_.expert_tensor_degree();
  // Without sequence parallelism the tokens of a tensor-parallel group are split among its ranks first.
  flow.own = number(tokens_) / number(tp_);
  const double routed = flow.own * number(moe.experts_per_token);
  flow.imbalance = kept_imbalance(layout_.layer);
  flow.busiest = routed * flow.imbalance;
  flow.bytes = routed * number(model_.hidden_size) * element_bytes_;
  flow.token_bytes = flow.own * number(model_.hidden_size) * element_bytes_;
  flow.local_experts = share(moe.n_experts, layout_.degrees.expert);
  flow.tokens_per_expert = std::max<std::int64_t>(
      1, rounded(flow.busiest * number(flow.tensor_degree) / number(flow.local_experts)));
  flow.width = share(moe.expert_ffn_hidden_size, flow.tensor_degree);
  return flow;
}

// Without a capacity the host has to know how many tokens every expert gets before it launches what follows; a graph of
// everything holds the largest sizes instead.
bool LayerLists::host_reads_counts() const {
  const LayerChoices& layer = layout_.layer;
  return !layer.expert_capacity_factor && !layer.cuda_graphs.full_iteration && !layer.cuda_graphs.experts;
}

// An operation without work: what the host does besides launching.
void LayerLists::add_host_work(WorkList& list, std::string_view name, double launches) const {
  if (launches < 1) return;
  list.push_back({name, Operation{AmountShape{.kernel_class = KernelClass::none}, dtype_}});
  list.back().count = rounded(launches);
}

void LayerLists::move_tokens(WorkList& list, std::string_view name, MovementKind kind, double tokens) const {
  const std::int64_t h = model_.hidden_size;
  list.push_back({name, Operation{MovementShape{kind, rounded(tokens * number(h)), h}, dtype_}});
}

// A library sends a token once to every rank and node that needs it (`scatter` there, `gather` back); all-to-all
// sends it once per expert, all-gather sends all tokens everywhere.
void LayerLists::exchange_tokens(WorkList& list, std::string_view name, bool combine, Direction direction,
                                 const ExpertFlow& flow) const {
  if (layout_.degrees.expert == 1) return;
  const TokenDispatcher dispatcher = layout_.layer.dispatcher;
  Transfer transfer{CollectiveOp::all_to_all, GroupKind::expert, Bytes{flow.bytes * flow.imbalance}};
  if (is_library(dispatcher)) {
    transfer.op = combine ? CollectiveOp::gather : CollectiveOp::scatter;
    transfer.message = Bytes{flow.token_bytes * flow.imbalance};
  } else if (dispatcher == TokenDispatcher::all_gather) {
    transfer.op = combine ? CollectiveOp::reduce_scatter : CollectiveOp::all_gather;
    transfer.message = Bytes{flow.token_bytes * number(layout_.degrees.expert)};
  }
  if (!layout_.layer.overlap.expert) {
    list.push_back({name, transfer});
    return;
  }
  // The forward pass of one micro-batch runs beside the backward pass of another, which takes twice as long: it hides
  // a third of what both exchange. Without weight gradients both take as long.
  const Bytes whole = transfer.message;
  const double part = splits_backward(layout_.pipeline.schedule) ? 1.0
                      : direction == Direction::forward          ? 2.0 / 3
                                                                 : 4.0 / 3;
  transfer.message = whole * kExposedOfOverlapped;
  list.push_back({name, transfer});
  transfer.message = whole * ((1 - kExposedOfOverlapped) * part);
  list.push_back({name, transfer});
  list.back().beside_rest = true;
}

// Ranks that share every expert gather its tokens, and sum its results.
void LayerLists::share_expert_tokens(WorkList& list, std::string_view name, CollectiveOp op,
                                     const ExpertFlow& flow) const {
  if (flow.tensor_degree == 1) return;
  list.push_back({name, Transfer{op, GroupKind::tensor, Bytes{flow.bytes * number(flow.tensor_degree)}}});
}

// Scores of every expert in fp32, the best of them, the loss that balances them, and where every token goes.
void LayerLists::router_forward(WorkList& list, const ExpertFlow& flow) const {
  const MixtureOfExperts& moe = *model_.moe;
  const auto tokens = rounded(flow.own);
  const double scores = flow.own * number(moe.n_experts);
  add_linear(list, {.name = "router", .tokens = tokens, .n = moe.n_experts, .k = model_.hidden_size});
  add_elementwise(list, "router_input_in_fp32", ElementwiseFunction::cast,
                  flow.own * number(model_.hidden_size), 1, 2);
  list.push_back(
      {"router_scores", Operation{SoftmaxShape{SoftmaxKind::plain, tokens, moe.n_experts}, DType::fp32}});
  list.push_back({"top_k", Operation{ReductionShape{.rows = tokens, .cols = moe.n_experts}, DType::fp32}});
  add_elementwise(list, "routing_map", ElementwiseFunction::other, scores, 1, 1);
  list.push_back(
      {"auxiliary_loss", Operation{ReductionShape{.rows = moe.n_experts, .cols = tokens}, DType::fp32}});
  add_host_work(list, "router_on_host", kHostOfRouter);
}

void LayerLists::router_backward(WorkList& list, const ExpertFlow& flow) const {
  const MixtureOfExperts& moe = *model_.moe;
  const auto tokens = rounded(flow.own);
  const double scores = flow.own * number(moe.n_experts);
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
  move_tokens(list, name, MovementKind::gather, flow.busiest * number(flow.tensor_degree));
}

bool LayerLists::permutes_own_tokens() const {
  return layout_.degrees.expert == 1 || !is_library(layout_.layer.dispatcher);
}

void LayerLists::experts_forward(WorkList& list, bool fp8) const {
  const MixtureOfExperts& moe = *model_.moe;
  const CudaGraphs& graphs = layout_.layer.cuda_graphs;
  const std::int64_t h = model_.hidden_size;
  const ExpertFlow flow = expert_flow();
  const std::int64_t local = flow.local_experts, per_expert = flow.tokens_per_expert, width = flow.width;
  const double tensors = fp8 ? kHostOfNarrowTensor * number(local) : 0;
  const std::size_t router = list.size();
  router_forward(list, flow);
  capture(list, router, graphs.router || graphs.full_iteration);
  if (moe.n_shared_experts > 0) {
    ffn_forward(list, moe.n_shared_experts * moe.shared_ffn_hidden_size, fp8, tp_ > 1);
  }
  const std::size_t preprocess = list.size();
  if (permutes_own_tokens()) move_tokens(list, "permute_tokens", MovementKind::gather, flow.busiest);
  capture(list, preprocess, graphs.expert_dispatch || graphs.full_iteration);
  const std::size_t dispatch = list.size();
  exchange_tokens(list, "dispatch_tokens", false, Direction::forward, flow);
  add_host_work(list, "dispatch_on_host", kHostOfExchange);
  list[dispatch].host_waits = host_reads_counts();
  share_expert_tokens(list, "gather_expert_tokens", CollectiveOp::all_gather, flow);
  order_by_expert(list, "sort_by_expert", flow);
  add_host_work(list, "expert_up_on_host", kHostOfProduct + tensors);
  add_linear(list, {.name = "expert_up",
                    .tokens = per_expert,
                    .n = width * (model_.gated_ffn ? 2 : 1),
                    .k = h,
                    .bias = model_.ffn_bias,
                    .fp8 = fp8,
                    .experts = local});
  activation(list, number(per_expert * local * width), Direction::forward);
  add_host_work(list, "expert_down_on_host", kHostOfProduct + tensors);
  add_linear(list, {.name = "expert_down",
                    .tokens = per_expert,
                    .n = h,
                    .k = width,
                    .bias = model_.ffn_bias && !weighs_output_bias(),
                    .fp8 = fp8,
                    .experts = local});
  if (weighs_output_bias()) weighed_bias(list, flow, Direction::forward);
  order_by_expert(list, "unsort_by_expert", flow);
  share_expert_tokens(list, "reduce_expert_tokens", CollectiveOp::reduce_scatter, flow);
  exchange_tokens(list, "combine_tokens", true, Direction::forward, flow);
  add_host_work(list, "combine_on_host", kHostOfExchange);
  if (permutes_own_tokens()) move_tokens(list, "unpermute_tokens", MovementKind::scatter, flow.busiest);
}

void LayerLists::experts_backward(WorkList& list, bool fp8) const {
  const MixtureOfExperts& moe = *model_.moe;
  const CudaGraphs& graphs = layout_.layer.cuda_graphs;
  const std::int64_t h = model_.hidden_size;
  const ExpertFlow flow = expert_flow();
  const std::int64_t local = flow.local_experts, per_expert = flow.tokens_per_expert, width = flow.width;
  const double tensors = fp8 ? kHostOfNarrowTensor * number(local) : 0;
  if (permutes_own_tokens()) move_tokens(list, "unpermute_gradient", MovementKind::gather, flow.busiest);
  exchange_tokens(list, "dispatch_gradients", false, Direction::backward, flow);
  add_host_work(list, "dispatch_gradients_on_host", kHostOfExchange);
  share_expert_tokens(list, "gather_expert_gradients", CollectiveOp::all_gather, flow);
  order_by_expert(list, "sort_gradients_by_expert", flow);
  if (weighs_output_bias()) weighed_bias(list, flow, Direction::backward);
  add_linear_gradients(list,
                       {.input_gradient = "expert_down_input_gradient",
                        .weight_gradient = "expert_down_weight_gradient",
                        .bias_gradient = "expert_down_bias_gradient",
                        .tokens = per_expert,
                        .n = h,
                        .k = width,
                        .bias = model_.ffn_bias && !weighs_output_bias(),
                        .fp8 = fp8,
                        .experts = local},
                       Edge::none);
  activation(list, number(per_expert * local * width), Direction::backward);
  add_linear_gradients(list,
                       {.input_gradient = "expert_up_input_gradient",
                        .weight_gradient = "expert_up_weight_gradient",
                        .bias_gradient = "expert_up_bias_gradient",
                        .tokens = per_expert,
                        .n = width * (model_.gated_ffn ? 2 : 1),
                        .k = h,
                        .bias = model_.ffn_bias,
                        .fp8 = fp8,
                        .experts = local},
                       Edge::none);
  add_host_work(list, "expert_gradients_on_host", 2 * (2 * kHostOfProduct + tensors));
  order_by_expert(list, "unsort_gradients_by_expert", flow);
  share_expert_tokens(list, "reduce_expert_gradients", CollectiveOp::reduce_scatter, flow);
  exchange_tokens(list, "return_gradients", true, Direction::backward, flow);
  add_host_work(list, "return_gradients_on_host", kHostOfExchange);
  if (permutes_own_tokens()) {
    const std::size_t preprocess = list.size();
    move_tokens(list, "permute_gradient", MovementKind::scatter, flow.busiest);
    capture(list, preprocess, graphs.expert_dispatch || graphs.full_iteration);
  }
  if (moe.n_shared_experts > 0) {
    ffn_backward(list, moe.n_shared_experts * moe.shared_ffn_hidden_size, fp8, tp_ > 1);
  }
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
  const double of_expert = number(flow.tokens_per_expert) * number(model_.hidden_size);
  const double all = of_expert * number(flow.local_experts);
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
    per_expert("add_weighed_bias", F::add, 1 + wide, wide);
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

// Written out in framework operations, as no fused kernel has clamps and offset: two clamps, the three operations of a
// quick GELU, offset, product, then the scores in fp32 and back. Backward every one reads its input and a gradient.
void LayerLists::clamped_activation(WorkList& list, double elements, Direction direction) const {
  const bool forward = direction == Direction::forward;
  const double more = forward ? 0 : 1;
  using F = ElementwiseFunction;
  const auto add = [&](std::string_view name, ElementwiseFunction function, double reads, double writes) {
    add_elementwise(list, name, function, elements, reads + more, writes, direction);
  };
  add(forward ? "clamp_gate" : "clamp_gate_gradient", F::relu, 1, 1);
  add(forward ? "clamp_input" : "clamp_input_gradient", F::relu, 1, 1);
  add(forward ? "scale_gate" : "scale_gate_gradient", F::multiply_scalar, 1, 1);
  add(forward ? "sigmoid" : "sigmoid_gradient", F::sigmoid, 1, 1);
  add(forward ? "multiply_gate" : "multiply_gate_gradient", F::multiply, 2, forward ? 1 : 2);
  add(forward ? "offset_input" : "offset_input_gradient", F::add_scalar, 1, 1);
  add(forward ? "gate" : "gate_gradient", F::multiply, 2, forward ? 1 : 2);
  add(forward ? "weigh_by_score" : "weigh_by_score_gradient", F::multiply, 1, forward ? 2 : 4);
  add(forward ? "cast_weighed" : "cast_weighed_gradient", F::cast, forward ? 2 : 1, forward ? 1 : 2);
}

}  // namespace stepcast::detail
