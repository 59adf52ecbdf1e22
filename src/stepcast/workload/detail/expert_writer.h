// Writes the expert part of a layer: router, dispatch and combine of tokens, experts, shared experts
// (modules/experts.cpp, modules/expert_dispatch.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "stepcast/workload/detail/feed_forward_writer.h"

namespace stepcast::detail {

class ExpertWriter : public FeedForwardWriter {
 public:
  explicit ExpertWriter(const LayerWriter& writer) : FeedForwardWriter(writer) {}
  // The four token all-to-alls of a layer, in order of execution.
  enum class Exchange : std::uint8_t { dispatch, combine, combine_gradient, dispatch_gradient };
  // An all-to-all of another micro-batch that overlaps this layer; `joins`: it follows the previous one.
  // `share`: part of its time.
  void overlap_exchange(WorkList& list, Exchange which, double share, bool joins) const;
  // Whether the all-to-alls of one micro-batch overlap the computation of another.
  [[nodiscard]] bool overlaps_exchanges() const;
  // Whether weight gradients are computed after the other gradients of the experts, and of the attention.
  [[nodiscard]] bool delays_weight_gradients() const;
  // Share of the combine gradient that overlaps delayed weight gradients.
  static constexpr double kCombineGradientBesideWeights = 1.0 / 3;
  // Moves the weight gradients from position `from` on out of `list`.
  static WorkList take_weight_gradients(WorkList& list, std::size_t from);
  // The same for --delay-wgrad-compute: transfers that overlapped these gradients no longer overlap.
  static WorkList take_delayed_weight_gradients(WorkList& list, std::size_t from);
  // Router, dispatch, expert GEMMs, combine, and shared experts.
  void experts_forward(WorkList& list, bool fp8) const;
  void experts_backward(WorkList& list, bool fp8) const;
  // Recomputes the activation of all local experts.
  void activation_forward(WorkList& list) const;

 private:
  // Sizes of the token flow of one rank.
  struct ExpertFlow {
    double own = 0;          // tokens of this rank
    double imbalance = 1;    // load of the busiest rank over the mean, limited by the capacity
    double busiest = 0;      // token visits to experts on the busiest rank
    double bytes = 0;        // of all visits of this rank's tokens
    double token_bytes = 0;  // of this rank's tokens, each counted once
    std::int64_t tensor_degree = 1, local_experts = 1, tokens_per_expert = 1, width = 1;
  };
  [[nodiscard]] ExpertFlow expert_flow() const;
  [[nodiscard]] std::int64_t routed_width() const;  // width of the vectors that travel to experts
  [[nodiscard]] Linear latent_projection(bool down) const;
  // Copies token vectors: gathers, scatters or rearranges.
  void move_tokens(WorkList& list, std::string_view name, MovementKind kind, double tokens) const;
  // The transfer of an all-to-all, by dispatcher.
  [[nodiscard]] Transfer exchange(Exchange which, const ExpertFlow& flow) const;
  // The all-to-all of this micro-batch with its token counts, scores and host work.
  void exchange_tokens(WorkList& list, Exchange which, const ExpertFlow& flow, bool fp8) const;
  // Orders the tokens of this rank by expert, before dispatch or after combine.
  void order_own_tokens(WorkList& list, std::string_view name, MovementKind movement, const ExpertFlow& flow,
                        Direction direction) const;
  // Padding of rows per expert to the multiple that narrow GEMMs need.
  void pad_for_narrow(WorkList& list, std::string_view name, bool fp8, const ExpertFlow& flow) const;
  // The all-gather of the token counts per expert, before an all-to-all.
  void add_counts(WorkList& list) const;
  void add_scores(WorkList& list, std::string_view name, const ExpertFlow& flow) const;
  // Half of the shared experts, next to the all-to-all that overlaps them.
  void add_half_of_shared_experts(WorkList& list, Exchange beside, bool fp8) const;
  // A transfer that overlaps the following work until an item waits.
  void add_overlapping_remainder(WorkList& list, std::string_view name, const Transfer& transfer,
                                 double share, bool joins) const;
  static constexpr double kDispatchGradientBesideWeights = 0.5;
  // Whether a layer overlaps its token all-to-all with its shared experts.
  [[nodiscard]] bool overlaps_shared_experts() const;
  // Orders received tokens by local expert.
  void order_by_expert(WorkList& list, std::string_view name, const ExpertFlow& flow) const;
  // Whether the tokens of this rank are ordered by a separate kernel before dispatch.
  [[nodiscard]] bool permutes_own_tokens() const;
  void router_forward(WorkList& list, const ExpertFlow& flow) const;
  void router_backward(WorkList& list, const ExpertFlow& flow) const;
  // Whether the host waits for the token counts per expert.
  [[nodiscard]] bool host_reads_counts() const;
  // Host work to prepare grouped GEMMs, in launches.
  [[nodiscard]] double host_of_operands(bool fp8, std::int64_t experts) const;
  // All-gather or reduce-scatter of expert tokens within expert tensor parallelism.
  void share_expert_tokens(WorkList& list, std::string_view name, CollectiveOp op,
                           const ExpertFlow& flow) const;
  void expert_product_gradients(WorkList& list, const ExpertFlow& flow, bool fp8) const;
  // Whether biases of experts are weighted by token scores in separate framework operations.
  [[nodiscard]] bool weighs_output_bias() const;
  void weighed_bias(WorkList& list, const ExpertFlow& flow, Direction direction) const;
};

}  // namespace stepcast::detail
