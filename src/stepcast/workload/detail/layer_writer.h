// Writes items of work lists for one rank and one micro-batch: GEMMs with weights and their gradients, norms,
// transfers of the tensor-parallel group. The modules of layers (workload/modules/) write their work with it.
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
// Size of the largest of equal parts (rounded up), at least 1.
inline std::int64_t share(std::int64_t whole, std::int64_t parts) {
  return std::max<std::int64_t>(1, (whole + parts - 1) / parts);
}

// Properties that distinguish the layers of one model and LayerKey.
struct LayerVariant {
  std::size_t kind = 0;  // index into Transformer::layer_kinds
  bool experts = false;
  bool recomputed = false;
  bool sixteen_bit = false;  // an exception in a model with fp8 layers
  bool holds_back_weight_gradients = false;
  std::int64_t window_tokens = 0;  // 0: all tokens
  friend bool operator==(const LayerVariant&, const LayerVariant&) = default;
};

// A GEMM with weights, tokens x n x k, with the names of its items.
struct Linear {
  std::string_view name = {}, input_gradient = {}, weight_gradient = {}, bias_gradient = {};
  std::int64_t tokens = 1, n = 1, k = 1;
  bool bias = false;
  bool fp8 = false;
  std::int64_t experts = 1;  // number of GEMMs of this size, one per local expert
  // Whether its input, or the gradient of its output, is written by a norm or an activation.
  bool input_of_kernel = false, gradient_of_kernel = false;
  std::int64_t parts = 1;  // number of sequential GEMMs with equal numbers of tokens
  ItemRole role = ItemRole::other;
};

enum class Edge : std::uint8_t { none, column, row };  // split of a Linear by tensor parallelism

class LayerWriter {
 public:
  LayerWriter(const Transformer& model, const Layout& layout);

  [[nodiscard]] const Transformer& model() const { return model_; }
  [[nodiscard]] const Layout& layout() const { return layout_; }
  [[nodiscard]] DType dtype() const { return dtype_; }  // of activations and of GEMMs outside of fp8
  [[nodiscard]] double element_bytes() const { return element_bytes_; }  // of dtype()
  [[nodiscard]] std::int64_t tp() const { return tp_; }
  [[nodiscard]] std::int64_t cp() const { return cp_; }
  // Tokens of a micro-batch on this rank: whole, and where sequence parallelism splits them.
  [[nodiscard]] std::int64_t tokens() const { return tokens_; }
  [[nodiscard]] double norm_tokens() const { return norm_tokens_; }
  [[nodiscard]] std::int64_t heads() const { return heads_; }  // on this rank
  [[nodiscard]] std::int64_t kv_heads() const { return kv_heads_; }
  // Whether the linear layers of mixers run in fp8 or fp4 in this layer.
  [[nodiscard]] bool has_narrow_mixer(const LayerVariant& variant) const;
  // The same for FFNs and experts.
  [[nodiscard]] bool has_narrow_ffn(const LayerVariant& variant) const;

  // The forward GEMM with casts and dequantisation.
  void add_linear(WorkList& list, const Linear& linear) const;
  // Both gradients with their casts and transfers.
  void add_linear_gradients(WorkList& list, const Linear& linear, Edge edge) const;
  void add_weight_gradient(WorkList& list, const Linear& linear) const;
  // The cast of an operand to the narrow type. `in_product`: the time of the GEMM already includes it.
  // `of_kernel`: a norm or an activation wrote the operand.
  void add_cast(WorkList& list, std::string_view name, double elements, bool in_product,
                bool of_kernel = false) const;
  // Type of narrow GEMMs: Precision::compute, or the variant with scales per block.
  [[nodiscard]] DType narrow_type() const;
  // Dequantisation of the frozen weight of `linear`, if it is stored in fewer bits.
  void add_dequantisation(WorkList& list, const Linear& linear) const;
  void add_norm(WorkList& list, std::string_view name, Direction direction, double tokens) const;
  void add_elementwise(WorkList& list, std::string_view name, ElementwiseFunction function, double elements,
                       double reads, double writes, Direction direction = Direction::forward) const;
  // Transfers of the tensor-parallel group: gather of its input, and sum of its output.
  void gather_tokens(WorkList& list, std::string_view name, bool overlaps_next, bool fp8 = false) const;
  void reduce_tokens(WorkList& list, std::string_view name, bool overlaps_next) const;
  // The GEMM of a row-split `linear` and the sum of its parts over the group: sequential, or with overlap of
  // tensor-parallel transfers pipelined over parts.
  void add_row_product(WorkList& list, Linear linear, std::string_view reduction) const;
  // Number of parts of a GEMM with an operand that is gathered from the tensor-parallel group at the same
  // time.
  [[nodiscard]] std::int64_t parts_of_gathered() const;
  // Low-rank adapters of a GEMM, if it has one (modules/adapters.cpp): after the GEMM, and with its
  // gradients.
  [[nodiscard]] bool has_adapter(ItemRole linear) const;
  [[nodiscard]] std::int64_t adapted_projections(ItemRole linear) const;
  void add_adapter(WorkList& list, const Linear& linear, Edge edge) const;
  void add_adapter_gradients(WorkList& list, const Linear& linear, Edge edge) const;
  [[nodiscard]] double adapter_parameters(bool experts) const;  // on this rank, per layer
  // Bias, dropout and residual addition, fused or separate.
  void residual(WorkList& list, Direction direction) const;
  // Host work other than launching, in launches.
  void add_host_work(WorkList& list, std::string_view name, double launches) const;
  // Marks the items from `first` on as captured, if `captured`.
  static void capture(WorkList& list, std::size_t first, bool captured);

 private:
  // One part of a pipelined reduce-scatter; `beside`: the part that overlaps the GEMM.
  void add_part_of_reduction(WorkList& list, std::string_view name, bool beside) const;
  // An all-gather that overlaps the next GEMM except for its first part.
  void add_overlapped(WorkList& list, std::string_view name, double message) const;
  // Marks the parts of a GEMM as one host operator, where operators are counted.
  void launch_as_one(WorkList& list, std::int64_t parts) const;
  // The residual of models with several streams.
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
  std::int64_t predicted_tokens_;  // tokens of the vocabulary layer and the loss
  FrozenWeightBytes frozen_;       // of weights of linear layers
};

}  // namespace stepcast::detail
