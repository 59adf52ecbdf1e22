// Writes down the operations and transfers of one layer, of the embedding and of the head, for one rank and
// one micro-batch.
#pragma once

#include <cstdint>

#include "stepcast/workload/detail/layer_writer.h"
#include "stepcast/workload/step_work.h"

namespace stepcast {
struct NetworkPart;
struct NetworkBlock;
}  // namespace stepcast

namespace stepcast::detail {

class LayerLists : public LayerWriter {
 public:
  LayerLists(const Transformer& model, const Layout& layout);

  // Layer `layer` of the model, which is number `in_chunk` of its chunk.
  [[nodiscard]] LayerVariant variant(std::int64_t layer, std::int64_t in_chunk) const;
  // From this layer on, variant() looks at the place in the chunk alone; the number of layers where it always looks at both.
  [[nodiscard]] std::int64_t alike_from() const;
  [[nodiscard]] LayerWork layer(const LayerVariant& variant) const;
  [[nodiscard]] LayerWork embedding() const;
  [[nodiscard]] LayerWork head() const;
  // With the forward pass of LayerChoices::reference_model in front of its own.
  [[nodiscard]] std::shared_ptr<const LayerWork> beside_reference(LayerWork work) const;

  // Of one rank.
  [[nodiscard]] double word_embedding_parameters() const;
  // Activations that a stage sends to the next one, per rank.
  [[nodiscard]] Bytes boundary() const;

 private:
  [[nodiscard]] WorkList embedding(Direction direction) const;
  [[nodiscard]] WorkList head(Direction direction) const;
  void predict_further_tokens(WorkList& list, Direction direction) const;
  void vectors_of_layers(WorkList& list, Direction direction) const;
  // What a layer makes of its own one: gated by its output, projected back and added.
  void add_own_vector(WorkList& list, Direction direction) const;

  [[nodiscard]] double adapter_parameters(bool experts) const;
  // What selective recomputation computes again before the backward pass of a layer.
  void recompute_modules(WorkList& list, const LayerVariant& variant, bool fp8_ffn) const;
  void recompute(WorkList& backward, const WorkList& forward, const LayerVariant& variant) const;
  void layer_forward(WorkList& forward, const LayerVariant& variant) const;
  void layer_backward(WorkList& backward, const LayerVariant& variant) const;
  void count_parameters(LayerWork& work, const LayerVariant& variant) const;
  // Parts of a layer that are launched as CUDA graphs.
  struct Captured {
    bool attention = false, ffn = false;
  };
  [[nodiscard]] Captured captured(const LayerVariant& variant) const;

  // Whatever mixes tokens in this layer.
  void mix(WorkList& list, const LayerVariant& variant, Direction direction) const;
  void feed(WorkList& list, const LayerVariant& variant, Direction direction) const;
  // Blocks of networks that are told by their operations (network_lists.cpp).
  [[nodiscard]] LayerWork network_layer(const LayerVariant& variant) const;
  void network_block(const NetworkBlock& block, LayerWork& work) const;
  void add_tower(LayerWork& work) const;
  void network_part(WorkList& list, const NetworkPart& part, Direction direction) const;
  [[nodiscard]] Linear linear_of(const NetworkPart& part) const;
  void sum_over_tensor(WorkList& list, const NetworkPart& part, std::int64_t width) const;
  // Recurrent mixers (layer_state.cpp).
  enum class InnerPart : std::uint8_t { narrow, wide };
  [[nodiscard]] Linear inner_product(InnerPart part) const;
  void around_convolution(WorkList& list, Direction direction) const;
  [[nodiscard]] bool has_gated_norm() const;
  void state_forward(WorkList& list, const LayerVariant& variant) const;
  void state_backward(WorkList& list, const LayerVariant& variant) const;
  [[nodiscard]] Operation chunked_scan(Direction direction) const;
  [[nodiscard]] Linear state_input(bool fp8) const;
  [[nodiscard]] Linear state_output(bool fp8) const;
  void exchange_state(WorkList& list, bool to_heads, Direction direction) const;
  void ffn_forward(WorkList& list, std::int64_t ffn, bool fp8, bool communicate) const;
  void ffn_backward(WorkList& list, std::int64_t ffn, bool fp8, bool communicate) const;
  // Tokens on their way to experts and back, on one rank.
  struct ExpertFlow {
    double own = 0;          // tokens of this rank
    double imbalance = 1;    // of the busiest rank over the mean, as far as the capacity lets it
    double busiest = 0;      // visits of tokens to experts on the busiest rank
    double bytes = 0;        // of all visits of this rank's tokens
    double token_bytes = 0;  // of this rank's tokens, each once
    std::int64_t tensor_degree = 1, local_experts = 1, tokens_per_expert = 1, width = 1;
  };
  [[nodiscard]] ExpertFlow expert_flow() const;
  [[nodiscard]] std::int64_t routed_width() const;  // of what travels to experts
  [[nodiscard]] Linear latent_projection(bool down) const;
  void move_tokens(WorkList& list, std::string_view name, MovementKind kind, double tokens) const;
  enum class Exchange : std::uint8_t { dispatch, combine, combine_gradient, dispatch_gradient };
  [[nodiscard]] Transfer exchange(Exchange which, const ExpertFlow& flow) const;
  void exchange_tokens(WorkList& list, Exchange which, const ExpertFlow& flow, bool fp8) const;
  void order_own_tokens(WorkList& list, std::string_view name, MovementKind movement, const ExpertFlow& flow,
                        Direction direction) const;
  void pad_for_narrow(WorkList& list, std::string_view name, bool fp8, const ExpertFlow& flow) const;
  void add_counts(WorkList& list) const;
  void add_scores(WorkList& list, std::string_view name, const ExpertFlow& flow) const;
  void add_half_of_shared_experts(WorkList& list, Exchange beside, bool fp8) const;
  // Of another micro-batch; `joins`: behind what was exchanged before.
  void overlap_exchange(WorkList& list, Exchange which, double share, bool joins) const;
  void add_overlapping_remainder(WorkList& list, std::string_view name, const Transfer& transfer,
                                 double share, bool joins) const;
  [[nodiscard]] bool overlaps_exchanges() const;
  // Weight gradients are computed behind the other gradients of the experts, and of the attention.
  [[nodiscard]] bool delays_weight_gradients() const;
  static constexpr double kDispatchGradientBesideWeights = 0.5;
  static constexpr double kCombineGradientBesideWeights = 1.0 / 3;
  // Out of `list`, behind `from`.
  static WorkList take_weight_gradients(WorkList& list, std::size_t from);
  static WorkList take_delayed_weight_gradients(WorkList& list, std::size_t from);
  // A layer exchanges its own tokens beside its shared experts.
  [[nodiscard]] bool overlaps_shared_experts() const;
  void order_by_expert(WorkList& list, std::string_view name, const ExpertFlow& flow) const;
  [[nodiscard]] bool permutes_own_tokens() const;
  void router_forward(WorkList& list, const ExpertFlow& flow) const;
  void router_backward(WorkList& list, const ExpertFlow& flow) const;
  [[nodiscard]] bool host_reads_counts() const;
  [[nodiscard]] double host_of_operands(bool fp8, std::int64_t experts) const;
  void add_part_of_micro_batch(WorkList& list) const;
  void share_expert_tokens(WorkList& list, std::string_view name, CollectiveOp op,
                           const ExpertFlow& flow) const;
  void experts_forward(WorkList& list, bool fp8) const;
  void experts_backward(WorkList& list, bool fp8) const;
  void expert_product_gradients(WorkList& list, const ExpertFlow& flow, bool fp8) const;
  // Biases of experts weighed by the scores of their tokens, written out in framework operations.
  [[nodiscard]] bool weighs_output_bias() const;
  void weighed_bias(WorkList& list, const ExpertFlow& flow, Direction direction) const;
  void activation(WorkList& list, double elements, Direction direction) const;
  void clamped_activation(WorkList& list, double elements, Direction direction) const;
};

}  // namespace stepcast::detail
