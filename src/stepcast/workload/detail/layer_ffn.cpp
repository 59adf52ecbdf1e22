// The feed-forward part of one layer, dense or of experts.
#include <algorithm>

#include "stepcast/workload/detail/layer_lists.h"

namespace stepcast::detail {

void LayerLists::ffn_forward(WorkList& list, std::int64_t ffn, bool fp8, bool communicate) const {
  const std::int64_t h = model_.hidden_size, t = tokens_, width = share(ffn, tp_);
  if (communicate) gather_tokens(list, "gather_ffn_input", layout_.layer.overlap.tensor_parallel, fp8);
  const Linear up{.name = "ffn_up",
                  .tokens = t,
                  .n = width * (model_.gated_ffn ? 2 : 1),
                  .k = h,
                  .bias = model_.ffn_bias && !layout_.layer.fused.bias_activation,
                  .fp8 = fp8,
                  .input_of_kernel = true,
                  .parts = communicate ? parts_of_gathered() : 1};
  add_linear(list, up);
  add_adapter(list, up, Edge::column);
  activation(list, static_cast<double>(t * width), Direction::forward);
  add_row_product(list,
                  {.name = "ffn_down",
                   .tokens = t,
                   .n = h,
                   .k = width,
                   .bias = model_.ffn_bias && !layout_.layer.fused.bias_dropout_add,
                   .fp8 = fp8,
                   .input_of_kernel = true},
                  communicate ? "reduce_ffn_output" : std::string_view{});
}

void LayerLists::ffn_backward(WorkList& list, std::int64_t ffn, bool fp8, bool communicate) const {
  const std::int64_t h = model_.hidden_size, t = tokens_, width = share(ffn, tp_);
  add_linear_gradients(list,
                       {"ffn_down", "ffn_down_input_gradient", "ffn_down_weight_gradient",
                        "ffn_down_bias_gradient", t, h, width, model_.ffn_bias, fp8},
                       communicate ? Edge::row : Edge::none);
  activation(list, static_cast<double>(t * width), Direction::backward);
  add_linear_gradients(list,
                       {"ffn_up", "ffn_up_input_gradient", "ffn_up_weight_gradient", "ffn_up_bias_gradient",
                        t, width * (model_.gated_ffn ? 2 : 1), h, model_.ffn_bias, fp8, 1, false, true},
                       communicate ? Edge::column : Edge::none);
}

// Tokens are copied once per expert they visit, travel to the ranks of these experts, and come back. The
// busiest rank, which everybody waits for, has `expert_imbalance` times the mean.
LayerLists::ExpertFlow LayerLists::expert_flow() const {
  const MixtureOfExperts& moe = *model_.moe;
  ExpertFlow flow;
  flow.tensor_degree = layout_.expert_tensor_degree();
  // Without sequence parallelism the tokens of a tensor-parallel group are split among its ranks first.
  flow.own = static_cast<double>(tokens_) / static_cast<double>(tp_);
  const double routed = flow.own * static_cast<double>(moe.experts_per_token);
  flow.busiest = routed * layout_.layer.expert_imbalance;
  flow.bytes = routed * static_cast<double>(model_.hidden_size) * element_bytes_;
  flow.local_experts = share(moe.n_experts, layout_.degrees.expert);
  flow.tokens_per_expert =
      std::max<std::int64_t>(1, rounded(flow.busiest * static_cast<double>(flow.tensor_degree) /
                                        static_cast<double>(flow.local_experts)));
  flow.width = share(moe.expert_ffn_hidden_size, flow.tensor_degree);
  return flow;
}

void LayerLists::move_tokens(WorkList& list, std::string_view name, MovementKind kind,
                             const ExpertFlow& flow) const {
  const std::int64_t h = model_.hidden_size;
  list.push_back(
      {name, Operation{MovementShape{kind, rounded(flow.busiest * static_cast<double>(h)), h}, dtype_}});
}

void LayerLists::exchange_tokens(WorkList& list, std::string_view name, const ExpertFlow& flow) const {
  if (layout_.degrees.expert == 1) return;
  list.push_back({name,
                  Transfer{CollectiveOp::all_to_all, GroupKind::expert,
                           Bytes{flow.bytes * layout_.layer.expert_imbalance}},
                  1, layout_.layer.overlap.expert});
}

// Ranks that share every expert gather its tokens, and sum its results.
void LayerLists::share_expert_tokens(WorkList& list, std::string_view name, CollectiveOp op,
                                     const ExpertFlow& flow) const {
  if (flow.tensor_degree == 1) return;
  list.push_back(
      {name, Transfer{op, GroupKind::tensor, Bytes{flow.bytes * static_cast<double>(flow.tensor_degree)}}});
}

void LayerLists::experts_forward(WorkList& list, bool fp8) const {
  const MixtureOfExperts& moe = *model_.moe;
  const std::int64_t h = model_.hidden_size;
  const ExpertFlow flow = expert_flow();
  const std::int64_t local = flow.local_experts, per_expert = flow.tokens_per_expert, width = flow.width;
  add_linear(list, {"router", {}, {}, {}, rounded(flow.own), moe.n_experts, h, false, false});
  list.push_back(
      {"route", Operation{SoftmaxShape{SoftmaxKind::plain, rounded(flow.own), moe.n_experts}, dtype_}});
  move_tokens(list, "permute_tokens", MovementKind::gather, flow);
  exchange_tokens(list, "dispatch_tokens", flow);
  share_expert_tokens(list, "gather_expert_tokens", CollectiveOp::all_gather, flow);
  add_linear(list,
             {"expert_up", {}, {}, {}, per_expert, width * (model_.gated_ffn ? 2 : 1), h, false, fp8, local});
  activation(list, static_cast<double>(per_expert * local * width), Direction::forward);
  add_linear(list, {"expert_down", {}, {}, {}, per_expert, h, width, false, fp8, local});
  share_expert_tokens(list, "reduce_expert_tokens", CollectiveOp::reduce_scatter, flow);
  exchange_tokens(list, "combine_tokens", flow);
  move_tokens(list, "unpermute_tokens", MovementKind::scatter, flow);
  if (moe.n_shared_experts > 0) {
    ffn_forward(list, moe.n_shared_experts * moe.shared_ffn_hidden_size, fp8, tp_ > 1);
  }
}

void LayerLists::experts_backward(WorkList& list, bool fp8) const {
  const MixtureOfExperts& moe = *model_.moe;
  const std::int64_t h = model_.hidden_size;
  const ExpertFlow flow = expert_flow();
  const std::int64_t local = flow.local_experts, per_expert = flow.tokens_per_expert, width = flow.width;
  if (moe.n_shared_experts > 0) {
    ffn_backward(list, moe.n_shared_experts * moe.shared_ffn_hidden_size, fp8, tp_ > 1);
  }
  move_tokens(list, "unpermute_gradient", MovementKind::gather, flow);
  exchange_tokens(list, "dispatch_gradients", flow);
  share_expert_tokens(list, "gather_expert_gradients", CollectiveOp::all_gather, flow);
  add_linear_gradients(list,
                       {{},
                        "expert_down_input_gradient",
                        "expert_down_weight_gradient",
                        {},
                        per_expert,
                        h,
                        width,
                        false,
                        fp8,
                        local},
                       Edge::none);
  activation(list, static_cast<double>(per_expert * local * width), Direction::backward);
  add_linear_gradients(list,
                       {{},
                        "expert_up_input_gradient",
                        "expert_up_weight_gradient",
                        {},
                        per_expert,
                        width * (model_.gated_ffn ? 2 : 1),
                        h,
                        false,
                        fp8,
                        local},
                       Edge::none);
  share_expert_tokens(list, "reduce_expert_gradients", CollectiveOp::reduce_scatter, flow);
  exchange_tokens(list, "return_gradients", flow);
  move_tokens(list, "permute_gradient", MovementKind::scatter, flow);
  add_linear_gradients(list,
                       {{},
                        "router_input_gradient",
                        "router_weight_gradient",
                        {},
                        rounded(flow.own),
                        moe.n_experts,
                        h,
                        false,
                        false},
                       Edge::none);
}

}  // namespace stepcast::detail
