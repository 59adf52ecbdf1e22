// The work of a block of a network that is described by its operations (workload/network.h).
#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "stepcast/base/number.h"
#include "stepcast/workload/detail/network_writer.h"
#include "stepcast/workload/framework_behavior.h"
#include "stepcast/workload/network.h"

namespace stepcast {
namespace detail {
namespace {

// The shape of an operation for `n` samples. Backward reductions sum over the batch: gradients of vectors
// that all samples share.
OperationShape of_samples(OperationShape shape, std::int64_t n, double element_bytes, bool backward) {
  std::visit(
      [&](auto& s) {
        using Shape = std::decay_t<decltype(s)>;
        if constexpr (std::is_same_v<Shape, ConvolutionShape> || std::is_same_v<Shape, AttentionShape> ||
                      std::is_same_v<Shape, GemmShape>) {
          s.batch *= n;
        } else if constexpr (std::is_same_v<Shape, NormShape>) {
          (s.kind == NormKind::batch_norm ? s.cols : s.rows) *= n;
        } else if constexpr (std::is_same_v<Shape, ReductionShape>) {
          (backward ? s.cols : s.rows) *= n;
        } else if constexpr (std::is_same_v<Shape, SoftmaxShape> ||
                             std::is_same_v<Shape, CrossEntropyShape>) {
          s.rows *= n;
        } else if constexpr (std::is_same_v<Shape, ElementwiseShape> ||
                             std::is_same_v<Shape, MovementShape>) {
          s.elements *= n;
        } else if constexpr (std::is_same_v<Shape, LookupShape>) {
          s.bags *= n;
        } else if constexpr (std::is_same_v<Shape, AmountShape>) {
          const double samples = as_double(n);
          s.flops *= samples;
          s.bytes_read *= samples * element_bytes;
          s.bytes_written *= samples * element_bytes;
        }
      },
      shape);
  return shape;
}

// Indices (such as those of max pooling) are written in addition to the outputs, and read again in the
// backward pass.
void add_index_bytes(OperationShape& shape, double bytes, bool backward) {
  auto* amount = std::get_if<AmountShape>(&shape);
  if (amount == nullptr) return;
  if (backward) std::swap(amount->bytes_read, amount->bytes_written);
  (backward ? amount->bytes_read : amount->bytes_written) += bytes;
}

// A GEMM with trained weights, not between two activations.
bool has_weights(const NetworkPart& part) {
  const auto* product = std::get_if<GemmShape>(&part.shape);
  return product != nullptr && (part.parameters > 0 || part.shared_weights);
}

}  // namespace

// A GEMM part with weights as a Linear, split over tensor-parallel ranks.
Linear NetworkWriter::linear_of(const NetworkPart& part) const {
  const auto& product = std::get<GemmShape>(part.shape);
  const bool column = part.split == NetworkPart::Split::column, row = part.split == NetworkPart::Split::row;
  return {.name = part.name,
          .input_gradient = part.gradient,
          .weight_gradient = part.gradient,
          .bias_gradient = part.gradient,
          .tokens = product.m * layout_.batch.micro_batch_sequences,
          .n = column ? share(product.n, tp_) : product.n,
          .k = row ? share(product.k, tp_) : product.k,
          .bias = product.bias};
}

void NetworkWriter::sum_over_tensor(WorkList& list, const NetworkPart& part, std::int64_t width) const {
  if (tp_ == 1) return;
  const auto& product = std::get<GemmShape>(part.shape);
  const double elements = as_double(product.m * layout_.batch.micro_batch_sequences * width);
  list.push_back({"reduce_product",
                  Transfer{CollectiveOp::all_reduce, GroupKind::tensor, Bytes{elements * element_bytes_}}});
}

void NetworkWriter::network_part(WorkList& list, const NetworkPart& part, Direction direction) const {
  const bool forward = direction == Direction::forward;
  if (!forward && part.backward == NetworkPart::Backward::none) return;
  if (has_weights(part)) {
    const Linear linear = linear_of(part);
    const auto& product = std::get<GemmShape>(part.shape);
    if (forward) {
      add_linear(list, linear);
      if (part.split == NetworkPart::Split::row) sum_over_tensor(list, part, product.n);
      return;
    }
    // Without trained parts before it, the input gradient (the first item) is dropped.
    const std::size_t first = list.size();
    add_linear_gradients(list, linear, Edge::none);
    if (part.backward == NetworkPart::Backward::weights)
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(first));
    if (part.split == NetworkPart::Split::column) sum_over_tensor(list, part, product.k);
    return;
  }
  OperationShape shape = forward ? part.shape : part.other_gradient.value_or(part.shape);
  shape = of_samples(shape, layout_.batch.micro_batch_sequences, element_bytes_, !forward);
  add_index_bytes(shape, part.index_bytes * as_double(layout_.batch.micro_batch_sequences), !forward);
  if (auto* attention = std::get_if<AttentionShape>(&shape); attention != nullptr) {
    attention->heads = share(attention->heads, tp_);
    attention->key_value_heads = share(std::max<std::int64_t>(1, attention->key_value_heads), tp_);
    attention->kernel = layout_.layer.attention_kernel;
  } else if (part.split == NetworkPart::Split::column) {
    if (auto* product = std::get_if<GemmShape>(&shape)) product->batch = share(product->batch, tp_);
    if (auto* scores = std::get_if<SoftmaxShape>(&shape)) scores->rows = share(scores->rows, tp_);
    if (auto* pointwise = std::get_if<ElementwiseShape>(&shape))
      pointwise->elements = share(pointwise->elements, tp_);
  }
  Direction run = direction;
  if (!forward && part.other_gradient) run = Direction::forward;
  if (!forward && part.backward == NetworkPart::Backward::weights) run = Direction::weight_gradient;
  list.push_back({forward ? part.name : part.gradient, Operation{shape, dtype_, run}});
}

void NetworkWriter::network_block(const NetworkBlock& block, LayerWork& work) const {
  for (const NetworkPart& part : block.parts) {
    network_part(work.forward, part, Direction::forward);
    const double ranks = part.split == NetworkPart::Split::none ? 1 : as_double(tp_);
    work.dense_parameters += as_double(part.parameters) / ranks;
  }
  for (auto part = block.parts.rbegin(); part != block.parts.rend(); ++part)
    network_part(work.backward, *part, Direction::backward);
}

// Frameworks run the tower unsplit on every tensor-parallel rank.
void NetworkWriter::add_tower(LayerWork& work) const {
  const VisionTower& tower = *model_.tower;
  Layout of_images = layout_;
  of_images.degrees.tensor = 1;
  of_images.layer.sequence_parallel = false;
  of_images.batch.micro_batch_sequences *= tower.images;
  const NetworkWriter lists{LayerWriter{model_, of_images}};
  LayerWork all;
  for (const std::uint8_t block : tower.blocks) {
    LayerWork one;
    lists.network_block(tower.network.kinds[block], one);
    all.forward.insert(all.forward.end(), one.forward.begin(), one.forward.end());
    if (recomputes_tower(layout_))
      one.backward.insert(one.backward.begin(), one.forward.begin(), one.forward.end());
    all.backward.insert(all.backward.begin(), one.backward.begin(), one.backward.end());
  }
  if (tower.images > 0) {
    work.forward.insert(work.forward.begin(), all.forward.begin(), all.forward.end());
    if (!layout_.layer.frozen_base)
      work.backward.insert(work.backward.end(), all.backward.begin(), all.backward.end());
  }
  work.dense_parameters += as_double(tower.parameters());
}

}  // namespace detail

double forward_flops(const BlockNetwork& network, const std::vector<std::uint8_t>& blocks) {
  double flops = 0;
  for (const std::uint8_t block : blocks) {
    for (const NetworkPart& part : network.kinds[block].parts) {
      const bool product = std::holds_alternative<GemmShape>(part.shape) ||
                           std::holds_alternative<ConvolutionShape>(part.shape) ||
                           std::holds_alternative<AttentionShape>(part.shape);
      if (product) flops += work_of({part.shape}).flops.value();
    }
  }
  return flops;
}

}  // namespace stepcast
