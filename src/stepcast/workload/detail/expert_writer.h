// Writes the expert part of a layer: router, tokens to their experts and back, experts, shared experts (modules/experts.cpp,
// modules/expert_dispatch.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "stepcast/workload/detail/feed_forward_writer.h"

namespace stepcast::detail {

class ExpertWriter : public FeedForwardWriter {
 public:
  explicit ExpertWriter(const LayerWriter& writer) : FeedForwardWriter(writer) {}
  enum class Exchange : std::uint8_t { dispatch, combine, combine_gradient, dispatch_gradient };
  // Of another micro-batch; `joins`: behind what was exchanged before.
  void overlap_exchange(WorkList& list, Exchange which, double share, bool joins) const;
  [[nodiscard]] bool overlaps_exchanges() const;
  // Weight gradients are computed behind the other gradients of the experts, and of the attention.
  [[nodiscard]] bool delays_weight_gradients() const;
  static constexpr double kCombineGradientBesideWeights = 1.0 / 3;
  // Out of `list`, behind `from`.
  static WorkList take_weight_gradients(WorkList& list, std::size_t from);
  static WorkList take_delayed_weight_gradients(WorkList& list, std::size_t from);
  void experts_forward(WorkList& list, bool fp8) const;
  void experts_backward(WorkList& list, bool fp8) const;
  // The result of the activation of all local experts, again.
  void activation_forward(WorkList& list) const;

 private:
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
  [[nodiscard]] Transfer exchange(Exchange which, const ExpertFlow& flow) const;
  void exchange_tokens(WorkList& list, Exchange which, const ExpertFlow& flow, bool fp8) const;
  void order_own_tokens(WorkList& list, std::string_view name, MovementKind movement, const ExpertFlow& flow,
                        Direction direction) const;
  void pad_for_narrow(WorkList& list, std::string_view name, bool fp8, const ExpertFlow& flow) const;
  void add_counts(WorkList& list) const;
  void add_scores(WorkList& list, std::string_view name, const ExpertFlow& flow) const;
  void add_half_of_shared_experts(WorkList& list, Exchange beside, bool fp8) const;
  void add_overlapping_remainder(WorkList& list, std::string_view name, const Transfer& transfer,
                                 double share, bool joins) const;
  static constexpr double kDispatchGradientBesideWeights = 0.5;
  // A layer exchanges its own tokens beside its shared experts.
  [[nodiscard]] bool overlaps_shared_experts() const;
  void order_by_expert(WorkList& list, std::string_view name, const ExpertFlow& flow) const;
  [[nodiscard]] bool permutes_own_tokens() const;
  void router_forward(WorkList& list, const ExpertFlow& flow) const;
  void router_backward(WorkList& list, const ExpertFlow& flow) const;
  [[nodiscard]] bool host_reads_counts() const;
  [[nodiscard]] double host_of_operands(bool fp8, std::int64_t experts) const;
  void share_expert_tokens(WorkList& list, std::string_view name, CollectiveOp op,
                           const ExpertFlow& flow) const;
  void expert_product_gradients(WorkList& list, const ExpertFlow& flow, bool fp8) const;
  // Biases of experts weighed by the scores of their tokens, written out in framework operations.
  [[nodiscard]] bool weighs_output_bias() const;
  void weighed_bias(WorkList& list, const ExpertFlow& flow, Direction direction) const;
};

}  // namespace stepcast::detail
