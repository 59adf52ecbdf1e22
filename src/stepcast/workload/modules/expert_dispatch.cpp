// Dispatch and combine of tokens: exposed, overlapped with another micro-batch, or overlapped with shared
// experts.
#include <algorithm>
#include <array>

#include "stepcast/base/number.h"
#include "stepcast/workload/detail/expert_writer.h"

namespace stepcast::detail {
namespace {

// Host work of a dispatch or combine in addition to launches, in launches, as in experts.cpp; it includes the
// token counts that the host waits for.
constexpr double kHostOfExchange = 90;
// Share of an overlapped all-to-all that nevertheless extends the step. For the kernels of a library: the SMs
// that they take from GEMMs (20 and 32 of 132). All-to-all collectives take SMs from any running kernel, and
// sort and copy tokens before and after in the stream of the GEMMs.
constexpr double kExposedOfDeepEp = 0.15, kExposedOfHybridEp = 0.24, kExposedOfAllToAll = 0.5;

double exposed_of_overlapped(TokenDispatcher dispatcher) {
  if (dispatcher == TokenDispatcher::deepep) return kExposedOfDeepEp;
  return dispatcher == TokenDispatcher::hybridep ? kExposedOfHybridEp : kExposedOfAllToAll;
}

// Whether a library moves the tokens instead of NCCL.
bool is_library(TokenDispatcher dispatcher) {
  return dispatcher == TokenDispatcher::deepep || dispatcher == TokenDispatcher::hybridep;
}

}  // namespace

bool ExpertWriter::permutes_own_tokens() const {
  return layout_.degrees.expert == 1 || !is_library(layout_.layer.dispatcher);
}

// A library sends a token once to every rank and node that needs it (`scatter` for dispatch, `gather` for
// combine); all-to-all sends it once per expert, all-gather sends all tokens to all ranks.
Transfer ExpertWriter::exchange(Exchange which, const ExpertFlow& flow) const {
  const TokenDispatcher dispatcher = layout_.layer.dispatcher;
  const bool back = which == Exchange::combine || which == Exchange::dispatch_gradient;
  Transfer transfer{CollectiveOp::all_to_all, GroupKind::expert, Bytes{flow.bytes * flow.imbalance}};
  if (is_library(dispatcher)) {
    transfer.op = back ? CollectiveOp::gather : CollectiveOp::scatter;
    transfer.message = Bytes{flow.token_bytes * flow.imbalance};
  } else if (dispatcher == TokenDispatcher::all_gather) {
    transfer.op = back ? CollectiveOp::reduce_scatter : CollectiveOp::all_gather;
    transfer.message = Bytes{flow.token_bytes * as_double(layout_.degrees.expert)};
  }
  return transfer;
}

// The all-to-all of this micro-batch, unless another one overlaps it, with its host work.
void ExpertWriter::exchange_tokens(WorkList& list, Exchange which, const ExpertFlow& flow, bool fp8) const {
  struct Names {
    std::string_view transfer, host;
  };
  static constexpr std::array<Names, 4> kNames = {{{"dispatch_tokens", "dispatch_on_host"},
                                                   {"combine_tokens", "combine_on_host"},
                                                   {"dispatch_gradients", "dispatch_gradients_on_host"},
                                                   {"return_gradients", "return_gradients_on_host"}}};
  const Names& names = kNames[static_cast<std::size_t>(which)];
  const bool beside_shared = overlaps_shared_experts();
  if (beside_shared) {
    if (which == Exchange::dispatch) add_counts(list);
    add_overlapping_remainder(list, names.transfer, exchange(which, flow), 1, false);
    add_half_of_shared_experts(list, which, fp8);
  } else if (layout_.degrees.expert > 1 && !overlaps_exchanges()) {
    if (which == Exchange::dispatch) add_counts(list);
    list.push_back({names.transfer, exchange(which, flow)});
    if (which == Exchange::dispatch) add_scores(list, "dispatch_scores", flow);
    if (which == Exchange::dispatch_gradient) add_scores(list, "return_score_gradients", flow);
  }
  add_host_work(list, names.host, kHostOfExchange);
  list.back().joins = beside_shared;
}

// All-to-all needs the number of tokens per expert from every rank, 8 bytes each, unless experts are always
// full. It moves the scores, in fp32, in a separate call (Megatron Core, MoEAlltoAllTokenDispatcher).
// Libraries send both with the tokens.
void ExpertWriter::add_counts(WorkList& list) const {
  if (layout_.layer.dispatcher != TokenDispatcher::all_to_all || layout_.layer.expert_pads_to_capacity)
    return;
  const double bytes = 8 * as_double(model_.moe->n_experts * layout_.degrees.expert);
  list.push_back({"gather_counts", Transfer{CollectiveOp::all_gather, GroupKind::expert, Bytes{bytes}}});
  list.back().role = ItemRole::expert_counts;
}

void ExpertWriter::add_scores(WorkList& list, std::string_view name, const ExpertFlow& flow) const {
  if (layout_.layer.dispatcher != TokenDispatcher::all_to_all) return;
  list.push_back({name, Transfer{CollectiveOp::all_to_all, GroupKind::expert, Bytes{4 * flow.busiest}}});
}

// First half: up to the second GEMM, without the casts of its operands; second half: the rest.
void ExpertWriter::add_half_of_shared_experts(WorkList& list, Exchange beside, bool fp8) const {
  const bool forward = beside == Exchange::dispatch || beside == Exchange::combine;
  const bool first = beside == Exchange::dispatch || beside == Exchange::combine_gradient;
  const std::int64_t width = model_.moe->n_shared_experts * model_.moe->shared_ffn_hidden_size;
  WorkList all;
  forward ? ffn_forward(all, width, fp8, tp_ > 1) : ffn_backward(all, width, fp8, tp_ > 1);
  auto cut = std::ranges::find(all, forward ? ItemRole::ffn_down : ItemRole::ffn_up, &WorkItem::role);
  while (cut != all.begin() && ((cut - 1)->role == ItemRole::cast ||
                                (cut - 1)->role == ItemRole::dequantise || (cut - 1)->overlaps_next))
    --cut;
  list.insert(list.end(), first ? all.begin() : cut, first ? cut : all.end());
}

// A layer that is recomputed as a whole does not overlap with another micro-batch.
bool ExpertWriter::overlaps_exchanges() const {
  const Recomputation& again = layout_.layer.recompute;
  const bool whole =
      again.kind == Recompute::full || (again.kind == Recompute::selective && again.modules.experts);
  return layout_.degrees.expert > 1 && layout_.layer.overlap.expert && !whole;
}

bool ExpertWriter::delays_weight_gradients() const {
  return overlaps_exchanges() && layout_.layer.overlap.delayed_weight_gradient &&
         !splits_backward(layout_.pipeline.schedule);
}

// The all-to-all of one micro-batch overlaps the computation of another, as Megatron Core overlaps the
// forward pass of one layer with the backward pass of another (TransformerLayerSchedulePlan.run; F forward, B
// backward, W weight gradients, of attention with router and shared experts, and of experts):
//
//   computation | F attention      | B experts  [W experts] | F experts         | B attention  [W attention]
//   all-to-all  | combine gradient | dispatch ->            | dispatch gradient | combine
//
// So an all-to-all is in the list of the pass that it overlaps: those of gradients in the forward pass, those
// of tokens in the backward pass. Without delay, B includes W. With delay, the dispatch gradients are sent
// before the weight gradients of experts (half of the all-to-all overlaps them: they have as much arithmetic
// as the experts that hide the rest), and the combine gradients of the previous layer before the weight
// gradients of attention (a third: they take half as long as the attention that hides the rest).
void ExpertWriter::overlap_exchange(WorkList& list, Exchange which, double share, bool joins) const {
  static constexpr std::array<std::string_view, 4> kNames = {
      "dispatch_tokens_of_other_batch", "combine_tokens_of_other_batch", "dispatch_gradients_of_other_batch",
      "return_gradients_of_other_batch"};
  add_overlapping_remainder(list, kNames[static_cast<std::size_t>(which)], exchange(which, expert_flow()),
                            share, joins);
}

// A transfer in two items: the exposed share, then the share that overlaps the following work.
void ExpertWriter::add_overlapping_remainder(WorkList& list, std::string_view name, const Transfer& transfer,
                                             double share, bool joins) const {
  const double exposed = exposed_of_overlapped(layout_.layer.dispatcher);
  WorkItem slowed{name, transfer};
  slowed.joins = joins;
  slowed.share = share * exposed;
  list.push_back(slowed);
  WorkItem beside{name, transfer};
  beside.overlaps_remainder = true;
  beside.share = share * (1 - exposed);
  list.push_back(beside);
}

// Two streams: half of the shared experts overlaps each all-to-all (--moe-shared-expert-overlap).
bool ExpertWriter::overlaps_shared_experts() const {
  return layout_.layer.overlap.shared_experts && model_.moe->n_shared_experts > 0 &&
         layout_.degrees.expert > 1 && !overlaps_exchanges();
}

}  // namespace stepcast::detail
