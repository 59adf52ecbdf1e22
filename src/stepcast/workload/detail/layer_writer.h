// Writes items of work lists for one rank and one micro-batch: GEMMs with weights and their gradients, norms, transfers of the
// tensor-parallel group. Parts of layers (workload/modules/) write themselves with it.
//
//   w.gather_tokens(list, "gather_ffn_input", false);
//   w.add_linear(list, {.name = "ffn_up", .tokens = w.tokens(), .n = width, .k = w.model().hidden_size});
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "stepcast/workload/step_work.h"

namespace stepcast::detail {

inline std::int64_t rounded(double value) { return static_cast<std::int64_t>(std::llround(value)); }
// Of equal parts, rounded up; at least 1.
inline std::int64_t share(std::int64_t whole, std::int64_t parts) {
  return std::max<std::int64_t>(1, (whole + parts - 1) / parts);
}

// What tells layers of one model and LayerKey apart.
struct LayerVariant {
  std::size_t kind = 0;  // of Transformer::layer_kinds
  bool experts = false;
  bool recomputed = false;
  bool sixteen_bit = false;  // not in fp8 though the others are
  bool holds_back_weight_gradients = false;
  std::int64_t window_tokens = 0;
  friend bool operator==(const LayerVariant&, const LayerVariant&) = default;
};

// A matrix product with weights: tokens x n x k.
struct Linear {
  std::string_view name = {}, input_gradient = {}, weight_gradient = {}, bias_gradient = {};
  std::int64_t tokens = 1, n = 1, k = 1;
  bool bias = false;
  bool fp8 = false;
  std::int64_t experts = 1;  // products of this size, one per local expert
  // Its input, or the gradient of its output, comes from a norm or an activation.
  bool input_of_kernel = false, gradient_of_kernel = false;
  std::int64_t parts = 1;  // one after the other, of equal numbers of tokens
  ItemRole role = ItemRole::other;
};

enum class Edge : std::uint8_t { none, column, row };  // how tensor parallelism splits a Linear

class LayerWriter {
 public:
  LayerWriter(const Transformer& model, const Layout& layout);

  [[nodiscard]] const Transformer& model() const { return model_; }
  [[nodiscard]] const Layout& layout() const { return layout_; }
  [[nodiscard]] DType dtype() const { return dtype_; }  // of activations and of products outside fp8
  [[nodiscard]] double element_bytes() const { return element_bytes_; }  // of dtype()
  [[nodiscard]] std::int64_t tp() const { return tp_; }
  [[nodiscard]] std::int64_t cp() const { return cp_; }
  // Of a micro-batch on this rank, where the whole sequence part is there; and where sequence parallelism spreads them.
  [[nodiscard]] std::int64_t tokens() const { return tokens_; }
  [[nodiscard]] double norm_tokens() const { return norm_tokens_; }
  [[nodiscard]] std::int64_t heads() const { return heads_; }  // of this rank
  [[nodiscard]] std::int64_t kv_heads() const { return kv_heads_; }
  // Whether the linear layers of mixers run in fp8 or fp4 in this layer.
  [[nodiscard]] bool has_narrow_mixer(const LayerVariant& variant) const;
  // Likewise those of FFNs and experts.
  [[nodiscard]] bool has_narrow_ffn(const LayerVariant& variant) const;

  void add_linear(WorkList& list, const Linear& linear) const;
  void add_linear_gradients(WorkList& list, const Linear& linear, Edge edge) const;
  void add_weight_gradient(WorkList& list, const Linear& linear) const;
  // `in_product`: the time of the product that reads it holds the cast itself.
  // `of_kernel`: a norm or an activation writes it.
  void add_cast(WorkList& list, std::string_view name, double elements, bool in_product,
                bool of_kernel = false) const;
  // What narrow products run in: Precision::compute, or its kernels with scales per block.
  [[nodiscard]] DType narrow_type() const;
  // Of the frozen weight of `linear`, where it is kept in fewer bits.
  void add_dequantisation(WorkList& list, const Linear& linear) const;
  void add_norm(WorkList& list, std::string_view name, Direction direction, double tokens) const;
  void add_elementwise(WorkList& list, std::string_view name, ElementwiseFunction function, double elements,
                       double reads, double writes, Direction direction = Direction::forward) const;
  // What every rank of the tensor-parallel group has to get of its input, and give of its output.
  void gather_tokens(WorkList& list, std::string_view name, bool overlaps_next, bool fp8 = false) const;
  void reduce_tokens(WorkList& list, std::string_view name, bool overlaps_next) const;
  // The product that row-split `linear` ends with, and the sum of its parts over the group: one after the other,
  // or, with overlap of tensor-parallel transfers, pipelined over parts.
  void add_row_product(WorkList& list, Linear linear, std::string_view reduction) const;
  // Into so many a product is cut whose operand is gathered from the tensor-parallel group meanwhile.
  [[nodiscard]] std::int64_t parts_of_gathered() const;
  // Low-rank adapters of a product, as far as it has some (modules/adapters.cpp): behind it, and next to its gradients.
  [[nodiscard]] bool has_adapter(ItemRole linear) const;
  [[nodiscard]] std::int64_t adapted_projections(ItemRole linear) const;
  void add_adapter(WorkList& list, const Linear& linear, Edge edge) const;
  void add_adapter_gradients(WorkList& list, const Linear& linear, Edge edge) const;
  [[nodiscard]] double adapter_parameters(bool experts) const;  // of this rank and layer
  void residual(WorkList& list, Direction direction) const;
  // What the host does besides launching, in launches.
  void add_host_work(WorkList& list, std::string_view name, double launches) const;
  // Marks what was added since `first`.
  static void capture(WorkList& list, std::size_t first, bool captured);

 private:
  void add_part_of_reduction(WorkList& list, std::string_view name, bool beside) const;
  void add_overlapped(WorkList& list, std::string_view name, double message) const;
  void launch_as_one(WorkList& list, std::int64_t parts) const;
  // Of several residual streams.
  void mix_streams(WorkList& list, Direction direction) const;

 protected:
  const Transformer& model_;
  const Layout& layout_;
  DType dtype_;
  double element_bytes_;
  std::int64_t tp_, cp_;
  std::int64_t tokens_;
  double norm_tokens_;
  std::int64_t heads_, kv_heads_;
  std::int64_t padded_vocab_;
  std::int64_t predicted_tokens_;  // that the vocabulary layer and the loss see
  FrozenWeightBytes frozen_;       // of weights of linear layers
};

}  // namespace stepcast::detail
