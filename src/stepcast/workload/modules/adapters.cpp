// Low-rank adapters on the GEMMs of a layer with frozen weights.
#include <cstdint>

#include "stepcast/workload/detail/layer_writer.h"
#include "stepcast/workload/framework_rule.h"
#include "stepcast/workload/modules/attention_module.h"

namespace stepcast::detail {

bool LayerWriter::has_adapter(ItemRole linear) const {
  const Adapters& adapters = layout_.layer.adapters;
  if (adapters.rank == 0) return false;
  switch (linear) {
    case ItemRole::qkv: return adapters.qkv;
    case ItemRole::attention_output: return adapters.attention_output;
    case ItemRole::ffn_up: return adapters.ffn_up;
    case ItemRole::ffn_down: return adapters.ffn_down;
    default: return false;
  }
}

// Number of separate GEMMs that `linear` represents, each with an adapter.
std::int64_t LayerWriter::adapted_projections(ItemRole linear) const {
  if (!rule_of(layout_).layers.adapts_each_projection) return 1;
  if (linear == ItemRole::qkv) return 3;
  return linear == ItemRole::ffn_up && model_.gated_ffn ? 2 : 1;
}

// The split of an adapter follows its GEMM: a column split divides the rows of the second matrix, a row split
// the columns of the first. The intermediate tensor is as wide as the adapter rank. The result of a row split
// is redistributed by an all-to-all, so that every rank has whole vectors of its tokens.
void LayerWriter::add_adapter(WorkList& list, const Linear& linear, Edge edge) const {
  if (!has_adapter(linear.role)) return;
  const std::int64_t rank = layout_.layer.adapters.rank, t = linear.tokens;
  const Bytes narrow{static_cast<double>(t * rank) * element_bytes_};
  const std::int64_t parts = adapted_projections(linear.role);
  const auto product = [&](std::string_view name, std::int64_t n, std::int64_t k) {
    list.push_back(
        {name, gemm({.m = t, .n = n, .k = k, .layout = GemmLayout::tn, .output = dtype_}, dtype_), parts});
  };
  const double inputs = static_cast<double>(t * linear.k);
  if (layout_.layer.adapters.dropout) {
    add_elementwise(list, "adapter_dropout", ElementwiseFunction::dropout, inputs, 1, 1);
    list.back().count = parts;
  }
  product("adapter_down", edge == Edge::column ? share(rank, tp_) : rank, linear.k);
  if (tp_ > 1) {
    const CollectiveOp op = edge == Edge::column ? CollectiveOp::all_gather : CollectiveOp::all_reduce;
    list.push_back({"share_adapter", Transfer{op, GroupKind::tensor, narrow}, parts});
  }
  const std::int64_t n = edge == Edge::column ? linear.n : share(linear.n, tp_);
  product("adapter_up", share(n, parts), rank);
  if (edge == Edge::row && tp_ > 1) {
    list.push_back({"exchange_adapter", Transfer{CollectiveOp::all_to_all, GroupKind::tensor,
                                                 Bytes{static_cast<double>(t * n) * element_bytes_}}});
  }
  add_elementwise(list, "adapter_add", ElementwiseFunction::add, static_cast<double>(t * n), 2, 1);
}

// The gradients in reverse order, with the same splits.
void LayerWriter::add_adapter_gradients(WorkList& list, const Linear& linear, Edge edge) const {
  if (!has_adapter(linear.role)) return;
  const std::int64_t rank = layout_.layer.adapters.rank, t = linear.tokens;
  const Bytes narrow{static_cast<double>(t * rank) * element_bytes_};
  const std::int64_t parts = adapted_projections(linear.role);
  const auto product = [&](std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k,
                           GemmLayout order) {
    list.push_back({name, gemm({.m = m, .n = n, .k = k, .layout = order, .output = dtype_}, dtype_), parts});
    list.back().weight_gradient = order == GemmLayout::nt;
  };
  const std::int64_t n = edge == Edge::column ? linear.n : share(linear.n, tp_);
  if (edge == Edge::row && tp_ > 1) {
    list.push_back(
        {"exchange_adapter_gradient", Transfer{CollectiveOp::all_to_all, GroupKind::tensor,
                                               Bytes{static_cast<double>(t * n) * element_bytes_}}});
  }
  product("adapter_up_input_gradient", t, rank, share(n, parts), GemmLayout::nn);
  product("adapter_up_weight_gradient", share(n, parts), rank, t, GemmLayout::nt);
  if (tp_ > 1) {
    const CollectiveOp op = edge == Edge::column ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce;
    list.push_back({"share_adapter_gradient", Transfer{op, GroupKind::tensor, narrow}, parts});
  }
  const std::int64_t width = edge == Edge::column ? share(rank, tp_) : rank;
  product("adapter_down_weight_gradient", width, linear.k, t, GemmLayout::nt);
  product("adapter_down_input_gradient", t, linear.k, width, GemmLayout::nn);
  const double inputs = static_cast<double>(t * linear.k);
  if (layout_.layer.adapters.dropout) {
    add_elementwise(list, "adapter_dropout_gradient", ElementwiseFunction::dropout, inputs, 1, 1,
                    Direction::backward);
    list.back().count = parts;
  }
  add_elementwise(list, "adapter_gradient_add", ElementwiseFunction::add, inputs, 2, 1, Direction::backward);
  list.back().count = parts;
}

// Adapter parameters per rank and layer.
double LayerWriter::adapter_parameters(bool experts) const {
  const Adapters& adapters = layout_.layer.adapters;
  if (adapters.rank == 0) return 0;
  const std::int64_t h = model_.hidden_size;
  const std::int64_t qkv = (heads_ + kv_heads_) * model_.qk_head_dim() + kv_heads_ * model_.value_head_dim();
  const std::int64_t ffn = share(model_.ffn_hidden_size, tp_);
  std::int64_t width = 0;
  if (adapters.qkv && attention_of(model_).traits().has_qkv)
    width += adapted_projections(ItemRole::qkv) * share(h, tp_) + qkv;
  if (adapters.attention_output) width += heads_ * model_.value_head_dim() + share(h, tp_);
  if (adapters.ffn_up && !experts)
    width += adapted_projections(ItemRole::ffn_up) * share(h, tp_) + ffn * (model_.gated_ffn ? 2 : 1);
  if (adapters.ffn_down && !experts) width += ffn + share(h, tp_);
  return static_cast<double>(adapters.rank * width);
}

}  // namespace stepcast::detail
