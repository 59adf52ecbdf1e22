#include "stepcast/predict/network_sharing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "stepcast/predict/step_prices.h"

namespace stepcast {
namespace {

constexpr std::size_t kKinds = kGroupKindCount;

// Lanes of a rank that can communicate at the same time.
enum class NetworkLane : std::uint8_t { in_layer, data, between_stages };

// Kinds in the same lane never overlap.
NetworkLane lane_of(GroupKind kind) {
  switch (kind) {
    case GroupKind::tensor:
    case GroupKind::context:
    case GroupKind::expert: return NetworkLane::in_layer;
    case GroupKind::pipeline: return NetworkLane::between_stages;
    case GroupKind::data:
    case GroupKind::expert_data:
    case GroupKind::embedding:
    case GroupKind::shard:
    case GroupKind::replicate: break;
  }
  return NetworkLane::data;
}

std::size_t index(GroupKind kind) { return static_cast<std::size_t>(kind); }

// Whether a group sends from every rank to every other one (all-to-all) instead of along a ring.
bool exchanges(GroupKind kind, const Layout& layout) {
  if (kind == GroupKind::expert) return layout.layer.dispatcher != TokenDispatcher::all_gather;
  return kind == GroupKind::context && layout.layer.context_parallel_kind == ContextParallelKind::all_to_all;
}

// Whether groups of this kind have ranks in several pools, for pools of replicas or of pipeline stages.
bool spans_pools(GroupKind kind, bool replicas) {
  if (!replicas) return kind == GroupKind::pipeline || kind == GroupKind::embedding;
  return kind == GroupKind::data || kind == GroupKind::expert_data || kind == GroupKind::shard ||
         kind == GroupKind::replicate;
}

// The streams of one kind out of a node. Each uses at most one NIC.
struct Streams {
  double of_group = 1;  // number per group
  double per_node = 1;  // number of all groups of the node
  double demand = 1;    // of each stream, in NICs
};

// A ring drives one NIC per rank, up to all NICs of the node. In an all-to-all every rank sends separately.
// Pipeline transfers are one stream.
Streams streams_of(GroupKind kind, const GroupPlacement& place, double nics, bool exchange) {
  const auto groups = static_cast<double>(std::max<std::int64_t>(1, place.groups_per_node));
  const auto ranks = static_cast<double>(place.ranks_per_node);
  Streams streams;
  streams.of_group = kind == GroupKind::pipeline ? 1 : exchange ? ranks : std::min(ranks, nics);
  streams.per_node = groups * streams.of_group;
  streams.demand = std::min(1.0, nics / streams.per_node);
  return streams;
}

}  // namespace

Result<NetworkSharing> NetworkSharing::of(const Network& network, const Layout& layout,
                                          const Placement& placed, double background_load,
                                          const std::optional<PoolLinks>& pools) {
  NetworkSharing sharing;
  sharing.other_adapters_.fill(1);
  const double nics = std::max(network.nics_per_node, 1U);
  std::array<Streams, kKinds> streams{};
  const auto uses_network = [&](GroupKind kind) {
    const GroupPlacement& on_nodes = group_of(kind, placed);
    return on_nodes.n_nodes > 1 || (pools && spans_pools(kind, pools->replicas) && on_nodes.n_ranks > 1);
  };
  // Link 0: the NICs of one node.
  sharing.capacities_.push_back(nics);
  for (std::size_t k = 0; k < kKinds; ++k) {
    const auto kind = static_cast<GroupKind>(k);
    if (!uses_network(kind)) continue;
    streams[k] = streams_of(kind, group_of(kind, placed), nics, exchanges(kind, layout));
    sharing.flows_[k] = {streams[k].demand, {{0, streams[k].per_node}}};
  }
  // One link for each tier: the uplinks of one unit. Jobs that fit in a unit do not use them.
  for (const NetworkTier& tier : network.tiers) {
    const std::size_t link = sharing.capacities_.size();
    sharing.capacities_.push_back(tier.nodes * nics / tier.oversubscription);
    sharing.others_.passes.push_back({link, background_load * sharing.capacities_.back()});
    if (placed.n_nodes <= tier.nodes) continue;
    STEPCAST_ASSIGN(const Placement in_units, place(layout, placed.gpus_per_node * tier.nodes));
    for (std::size_t k = 0; k < kKinds; ++k) {
      const auto kind = static_cast<GroupKind>(k);
      const GroupPlacement &in_unit = group_of(kind, in_units), &on_nodes = group_of(kind, placed);
      if (!uses_network(kind) || in_unit.n_nodes < 2) continue;
      // Each ring leaves the unit once.
      double leave = static_cast<double>(in_unit.groups_per_node) * streams[k].of_group;
      if (exchanges(kind, layout)) {
        const auto elsewhere = static_cast<double>(on_nodes.n_ranks - in_unit.ranks_per_node);
        leave = streams[k].per_node * tier.nodes * elsewhere /
                static_cast<double>(on_nodes.n_ranks - on_nodes.ranks_per_node);
      }
      sharing.flows_[k].passes.push_back({link, leave});
    }
  }
  sharing.n_tiers_ = network.tiers.size();
  // Last link: between zones, if its bandwidth is limited.
  if (pools && pools->zones) sharing.capacities_.push_back(*pools->zones / network.bandwidth_per_nic);
  for (std::size_t k = 0; pools && k < kKinds; ++k) {
    const auto kind = static_cast<GroupKind>(k);
    if (!uses_network(kind) || !spans_pools(kind, pools->replicas)) continue;
    sharing.other_adapters_[k] = std::max(1.0, pools->bandwidth_over);
    const double groups =
        static_cast<double>(layout.world_size()) / static_cast<double>(group_of(kind, placed).n_ranks);
    if (pools->zones)
      sharing.flows_[k].passes.push_back({sharing.capacities_.size() - 1, groups * streams[k].of_group});
  }
  sharing.solve();
  return sharing;
}

// Rate limited only by the NICs / rate limited by all links, or the slowdown due to slower NICs of other
// pools if that is larger.
double NetworkSharing::slowdown(std::size_t kind, std::optional<std::size_t> other) const {
  std::vector<FlowClass> classes{flows_[kind], others_};
  if (classes[0].passes.empty()) return other_adapters_[kind];
  if (other) classes.push_back(flows_[*other]);
  std::vector<double> without(capacities_.size(), std::numeric_limits<double>::max());
  without[0] = capacities_[0];
  return std::max(fair_rates(classes, without)[0] / fair_rates(classes, capacities_)[0],
                  other_adapters_[kind]);
}

void NetworkSharing::solve() {
  for (std::size_t k = 0; k < kKinds; ++k) {
    alone_[k] = slowdown(k, {});
    for (std::size_t other = 0; other < kKinds; ++other) {
      const bool together = lane_of(static_cast<GroupKind>(k)) != lane_of(static_cast<GroupKind>(other));
      const bool meets = together && !flows_[k].passes.empty() && !flows_[other].passes.empty();
      beside_[k][other] = meets ? slowdown(k, other) : alone_[k];
    }
  }
}

std::vector<double> NetworkSharing::tier_loads() const {
  std::vector<double> loads(n_tiers_, 0.0);
  for (const FlowClass& flows : flows_) {
    for (const FlowClass::Passage& p : flows.passes) {
      if (p.link >= 1 && p.link <= n_tiers_)
        loads[p.link - 1] = std::max(loads[p.link - 1], p.flows * flows.demand / capacities_[p.link]);
    }
  }
  return loads;
}

std::array<SlowdownOfKind, kGroupKindCount> overlaps_of(const PricedStep& step, const StepTimes& times,
                                                        const Layout& layout) {
  const StepSchedule& schedule = step.schedule;
  const double micro_batches = step.work.micro_batches;
  // Transfer time of one micro-batch on the critical stage: in layers of both passes, and of weights and
  // gradients.
  SlowdownOfKind forward_us{}, backward_us{}, gather_us{}, reduce_us{};
  double forward = 0, backward = 0;
  const auto add = [&](const PricedStep::Layer& unit, double count) {
    forward += count * unit.forward.time_us;
    backward += count * (unit.backward.time_us + unit.held_back.time_us);
    for (std::size_t k = 0; k < kKinds; ++k) {
      forward_us[k] += count * unit.forward.transfer_us[k];
      backward_us[k] += count * (unit.backward.transfer_us[k] + unit.held_back.transfer_us[k]);
    }
    for (const BulkTransfer& one : unit.transfers.gather.parts())
      gather_us[index(one.transfer.group)] += count * one.time_us;
    for (const BulkTransfer& one : unit.transfers.reduce.parts())
      reduce_us[index(one.transfer.group)] += count * one.time_us;
  };
  for (std::size_t c = 0; c < step.work.chunks.size(); ++c) {
    const auto chunk_number = static_cast<std::uint32_t>(c);
    if (stage_of_chunk(layout.pipeline.schedule, step.work.stages, chunk_number) != times.critical_stage)
      continue;
    const ChunkWork& chunk = step.work.chunks[c];
    if (chunk.has_embedding) add(step.embedding, 1);
    for (const ChunkWork::Run& run : chunk.runs) add(step.layers[run.kind], run.count);
    if (chunk.has_head) add(step.head, 1);
  }

  std::array<SlowdownOfKind, kKinds> overlaps{};
  // Adds the overlap of weight or gradient transfers with transfers in layers, if the former run during
  // `passes` passes of `pass_us`.
  const auto meet = [&](const SlowdownOfKind& data_us, const SlowdownOfKind& layer_us, double pass_us,
                        double passes) {
    double all_data = 0;
    for (const double us : data_us) all_data += us;
    if (all_data <= 0 || pass_us <= 0 || passes <= 0) return;
    const double within = std::min(1.0, pass_us / all_data);   // share of the data transfers in overlap
    const double covered = std::min(1.0, all_data / pass_us);  // share of the passes in overlap
    for (std::size_t layer = 0; layer < kKinds; ++layer) {
      const double busy = std::min(1.0, layer_us[layer] / pass_us);
      const double all_layer = micro_batches * (forward_us[layer] + backward_us[layer]);
      if (busy <= 0 || all_layer <= 0) continue;
      for (std::size_t data = 0; data < kKinds; ++data) {
        if (data_us[data] <= 0) continue;
        overlaps[data][layer] = std::max(overlaps[data][layer], within * busy);
        overlaps[layer][data] += covered * passes * layer_us[layer] / all_layer * data_us[data] / all_data;
      }
    }
  };
  if (schedule.gather == WeightGather::first_forward) meet(gather_us, forward_us, forward, 1);
  if (schedule.gather == WeightGather::every_forward) {
    meet(gather_us, forward_us, forward, micro_batches);
    if (schedule.gather_backward) meet(gather_us, backward_us, backward, micro_batches);
  }
  if (schedule.reduce == GradientReduce::last_backward) meet(reduce_us, backward_us, backward, 1);
  if (schedule.reduce == GradientReduce::every_backward)
    meet(reduce_us, backward_us, backward, micro_batches);

  // Activations that the sender does not wait for overlap everything else.
  if (step.work.stages > 1 && !schedule.boundary_blocks && times.step_us > 0) {
    const std::size_t pipeline = index(GroupKind::pipeline);
    const double sent =
        std::min(1.0, 2 * micro_batches * step.work.virtual_stages * step.boundary.time_us / times.step_us);
    for (std::size_t k = 0; k < kKinds; ++k) {
      const double busy =
          std::min(1.0, (micro_batches * (forward_us[k] + backward_us[k]) + reduce_us[k]) / times.step_us);
      overlaps[pipeline][k] = k == pipeline ? 0 : busy;
      if (k != pipeline && busy > 0) overlaps[k][pipeline] = sent;
    }
  }
  return overlaps;
}

SlowdownOfKind shared_slowdown(const NetworkSharing& sharing,
                               const std::array<SlowdownOfKind, kGroupKindCount>& overlaps) {
  // Rounds the result to 1/200, because every distinct slowdown needs its own curve (time over message size).
  constexpr double kSteps = 200;
  SlowdownOfKind result = sharing.alone();
  for (std::size_t k = 0; k < kKinds; ++k) {
    double alone = 1, rate = 0;  // remaining share of its time; mean rate relative to its NICs
    for (std::size_t other = 0; other < kKinds; ++other) {
      const double together = std::min(alone, overlaps[k][other]);
      rate += together / sharing.beside(static_cast<GroupKind>(k), static_cast<GroupKind>(other));
      alone -= together;
    }
    rate += alone / result[k];
    result[k] = std::max(result[k], std::round(kSteps / rate) / kSteps);
  }
  return result;
}

namespace {

// Calls set(kind, placement) for every kind of group.
template <class Set>
void for_every_kind(Placement& placement, const Set& set) {
  set(GroupKind::tensor, placement.tensor);
  set(GroupKind::context, placement.context);
  set(GroupKind::expert, placement.expert);
  set(GroupKind::data, placement.data_context);
  set(GroupKind::expert_data, placement.expert_data);
  set(GroupKind::pipeline, placement.pipeline);
  set(GroupKind::embedding, placement.embedding);
  set(GroupKind::shard, placement.shard);
  set(GroupKind::replicate, placement.replicate);
}

}  // namespace

void set_slowdowns(const SlowdownOfKind& slowdown, Placement& placement) {
  for_every_kind(placement, [&](GroupKind kind, GroupPlacement& place) {
    place.network_slowdown = place.n_nodes > 1 ? slowdown[index(kind)] : 1;
  });
}

void set_latencies(const PoolLinks& pools, Placement& placement) {
  for_every_kind(placement, [&](GroupKind kind, GroupPlacement& place) {
    if (kind == GroupKind::pipeline || !spans_pools(kind, pools.replicas)) return;
    // A ring uses all of its links but one. So the latency is at most one round.
    place.between_zones_us =
        std::min(pools.round_us, static_cast<double>(place.n_ranks - 1) * pools.longest_us);
  });
}

}  // namespace stepcast
