#include "stepcast/cost/collective_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "stepcast/cost/collective_scaling.h"
#include "stepcast/cost/detail/curve_tables.h"
#include "stepcast/cost/nccl_choice.h"
#include "stepcast/cost/torus_collective.h"
#include "stepcast/platform/changed_figures.h"

// Resolution of a group to a curve: measured curves of the platform first, then curves scaled over ranks or
// nodes, related collectives, other machines, and last the bandwidths of the links.

namespace stepcast {
namespace {

using detail::bandwidth_share;
using detail::finished;
using detail::Tables;
using detail::tables_of;

constexpr std::size_t kPoints = TimeCurve::kPoints;

// Up to this multiple of the largest measured count, ranks or nodes are scaled along the measured trend;
// beyond it, NCCL's estimate gives the growth.
constexpr std::uint32_t kRanksInALine = 2;
// Share of nominal bandwidths that collectives reach where nothing was measured. Assumed: measured curves of
// the shipped platforms reach 0.62-0.80 of NVLink's nominal rate and 0.62-0.97 of the network's.
constexpr double kIntraEfficiency = 0.75;
constexpr double kNetworkEfficiency = 0.80;
// The same for all_reduce, all_gather and reduce_scatter over NICs of 400 Gb/s and more: GH200 nodes on
// InfiniBand, 2 to 8 of them.
constexpr double kFastNetworkEfficiency = 0.97, kFastAdapterGBps = 49;
// Smallest number of ranks behind one NVSwitch for an all_reduce with NVLS; 4 ranks take as long as with a
// ring.
constexpr std::uint32_t kNvlsRanks = 8;
// Per doubling of the ranks, each side, in ln; the same as for other rank counts.
constexpr double kBandPerNvlsDoubling = 0.06;
// Share of the nominal bandwidth of torus links, which only two neighbours use. Assumed.
constexpr double kTorusEfficiency = 0.90;
// Half-widths of the bands, in ln: of curves from bandwidths alone, and of curves from a related collective.
constexpr double kAnalyticCollectiveBand = 0.40;
constexpr double kRelatedBand = 0.15;
// Start-up of a collective kernel that moves nothing, and latency of one hop. Assumed; calibrated curves
// replace both.
constexpr double kKernelStartup_us = 6;
constexpr double kHop_us = 2;
constexpr double kNetworkHop_us = 6;
// Share of the network bandwidth for a group that crosses the rails of a rail-optimised network. Assumed.
constexpr double kCrossRailShare = 0.9;
// Inside a node, a collective over several nodes moves more data than one on the node alone. Share of this
// extra transfer that does not overlap with the network transfer. Assumed.
constexpr double kExtraTransferShare = 0.5;
// Band of the extra time of groups that share NICs, as a share of the extra time in ln. Assumed.
constexpr double kBandOfSharing = 0.1;

// A curve startup_us + factor * bytes / GBps with a constant band (half-width in ln).
TimeCurve analytic_curve(double startup_us, double factor, double GBps, double band, EstimateSource source) {
  Tables t;
  for (std::size_t i = 0; i < kPoints; ++i) {
    const double bytes = std::exp2(TimeCurve::log2_bytes(i));
    t.time[i] = std::log(startup_us + factor * bytes / (1000 * GBps));
    t.low[i] = t.time[i] - band;
    t.high[i] = t.time[i] + band;
  }
  TimeCurve curve{t.time, t.low, t.high};
  curve.source = curve.outside_source = source;
  return curve;
}

// Times at sizes multiplied by `size_factor`, then multiplied by `time_factor`; band wider by `band`.
TimeCurve transformed(const TimeCurve& curve, double size_factor, double time_factor, double band,
                      EstimateSource source) {
  Tables t;
  const double shift = std::log2(size_factor), scale = std::log(time_factor);
  const TimeCurve low{curve.ln_low(), curve.ln_low(), curve.ln_low()},
      high{curve.ln_high(), curve.ln_high(), curve.ln_high()};
  for (std::size_t i = 0; i < kPoints; ++i) {
    const double x = TimeCurve::log2_bytes(i) + shift;
    t.time[i] = curve.ln_time_us(x) + scale;
    t.low[i] = low.ln_time_us(x) + scale - band;
    t.high[i] = high.ln_time_us(x) + scale + band;
  }
  TimeCurve result = finished(t, curve, source);
  result.supported_from -= shift;
  result.supported_to -= shift;
  return result;
}

// All_reduce of floats on more ranks than measured, where in-switch addition (NVLS) is faster than `scaled`
// (rings and trees): a rank moves 1 + 1/ranks of the message, and equal shares take equal times (H200 on 8 to
// 5 ranks: 31.8, 32.0, 32.9, 33.2 ms for 8 GiB, by this rule 31.8, 32.3, 33.0, 33.9). Per size the smaller
// time is kept.
TimeCurve added_by_switch(const TimeCurve& scaled, const RankCurve& measured, std::uint32_t n_ranks) {
  const double n = n_ranks, n_base = measured.n_ranks;
  const double shift = std::log2(n / n_base), band = kBandPerNvlsDoubling * shift;
  const double per_byte = std::log((1 + 1 / n) / (1 + 1 / n_base));
  const TimeCurve& base = *measured.curve;
  Tables t = tables_of(scaled);
  for (std::size_t i = 0; i < kPoints; ++i) {
    const double by_shares = base.ln_time_us(TimeCurve::log2_bytes(i) - shift) + std::log(n / n_base);
    const double time = std::max(by_shares, base.ln_time()[i]) + per_byte;
    if (time >= t.time[i]) continue;
    t.time[i] = time;
    t.low[i] = time + base.ln_low()[i] - base.ln_time()[i] - band;
    t.high[i] = time + base.ln_high()[i] - base.ln_time()[i] + band;
  }
  return finished(t, scaled, EstimateSource::analytic);
}

// The curve with all times multiplied by a factor; supported range and source stay.
TimeCurve times(const TimeCurve& curve, double factor) {
  return factor == 1 ? curve : transformed(curve, 1, factor, 0, curve.source);
}

// Nominal bandwidth in bytes/s that limits the group of a curve: the ring inside a node, or the NICs of a
// node.
double group_bandwidth(const CollectiveCurve& curve, const Node& node) {
  if (curve.n_nodes == 1) return ring_bandwidth(node, curve.n_ranks).value();
  if (!node.network) return 1;
  return node.network->bandwidth_per_nic.value() * std::min(node.network->nics_per_node, curve.gpus_per_node);
}

// The curve of a record, scaled to the current bandwidths where a platform file changed the ones it was
// measured with.
Result<TimeCurve> curve_of(const CollectiveCurve& record, const Node& now) {
  STEPCAST_ASSIGN(const TimeCurve curve, time_curve(record));
  return times(
      curve, group_bandwidth(record, with_figures(now, record.measured_with)) / group_bandwidth(record, now));
}

// The dtype with the same collective times in NCCL: NVSwitch adds floats of 16 and 32 bits, but no integers.
// `unknown`: none.
DType measured_like(DType dtype) {
  switch (dtype) {
    case DType::bf16:
    case DType::fp32: return DType::fp16;
    case DType::fp8: return DType::int8;
    default: return DType::unknown;
  }
}

// Share of the nominal NIC bandwidth that a collective reaches.
double network_efficiency(CollectiveOp op, const Network& network) {
  const bool in_pairs = op == CollectiveOp::all_to_all || op == CollectiveOp::send ||
                        op == CollectiveOp::receive || op == CollectiveOp::send_receive;
  const bool fast = network.bandwidth_per_nic.value() / 1e9 >= kFastAdapterGBps;
  return fast && !in_pairs ? kFastNetworkEfficiency : kNetworkEfficiency;
}

}  // namespace

Bytes uneven_all_to_all_size(std::span<const Bytes> share_of_rank, UnevenRule rule) {
  const auto n = static_cast<double>(share_of_rank.size());
  if (share_of_rank.size() < 2) return Bytes{0};
  double sum = 0, largest = 0;
  for (const Bytes b : share_of_rank) sum += b.value();
  for (const Bytes b : share_of_rank) largest = std::max({largest, sum - b.value(), (n - 1) * b.value()});
  return Bytes{rule == UnevenRule::published ? largest : largest * n / (n - 1)};
}

Bytes uneven_all_to_all_size(std::span<const Bytes> sent, std::uint32_t n_ranks) {
  if (n_ranks < 2 || sent.size() != static_cast<std::size_t>(n_ranks) * n_ranks) return Bytes{0};
  double largest = 0;
  for (std::size_t i = 0; i < n_ranks; ++i) {
    double out = 0, in = 0;
    for (std::size_t j = 0; j < n_ranks; ++j) {
      if (i == j) continue;
      out += sent[i * n_ranks + j].value();
      in += sent[j * n_ranks + i].value();
    }
    largest = std::max({largest, out, in});
  }
  return Bytes{largest * n_ranks / (n_ranks - 1.0)};
}

CollectiveModel::CollectiveModel(const Platform& platform)
    : device_(platform.device), stated_node_(platform.node), node_(platform.node) {
  for (const CollectiveCurve& record : platform.curves) {
    if (!record.variant.empty() || record.n_ranks < 2) continue;
    const auto now = record.measured_with.empty() ? nullptr : std::make_shared<const Node>(platform.node);
    auto curve = std::make_shared<const detail::OnDemand<TimeCurve>>(
        JsonValue{},
        [record, now](const JsonValue&) { return now ? curve_of(record, *now) : time_curve(record); },
        record.fit.is_later());
    if (!curve->can_be_read())
      skipped_.push_back(curve->problem());
    else
      entries_.push_back({record.collective, record.dtype, record.n_nodes, record.gpus_per_node,
                          record.n_ranks, std::move(curve)});
  }
  const bool has_own = std::ranges::any_of(entries_, [](const Entry& e) { return e.n_nodes == 1; });
  // Devices of other vendors do not use NCCL.
  const bool uses_nccl = device_.vendor == "NVIDIA" && node_.intra.kind != LinkKind::none;
  if (!has_own && uses_nccl) related_ = RelatedSystems::of(platform);
}

// Curves of the collective in order of preference: of the dtype, of a dtype with equal times, of any dtype.
std::vector<const CollectiveModel::Entry*> CollectiveModel::same_op(CollectiveOp op, DType dtype) const {
  std::vector<const Entry*> result;
  const auto add = [&](DType wanted) {
    for (const Entry& e : entries_) {
      if (e.op != op || e.dtype != wanted) continue;
      const bool known = std::ranges::any_of(result, [&](const Entry* r) {
        return r->n_nodes == e.n_nodes && r->gpus_per_node == e.gpus_per_node;
      });
      if (!known) result.push_back(&e);
    }
  };
  if (dtype != DType::unknown) {
    add(dtype);
    add(measured_like(dtype));
  }
  add(DType::unknown);
  return result;
}

void CollectiveModel::set_speeds(double intra_node, double network) {
  if (intra_node == intra_speed_ && network == network_speed_) return;
  intra_speed_ = intra_node;
  network_speed_ = network;
  node_ = stated_node_;
  IntraNode& intra = node_.intra;
  intra.bandwidth_per_gpu = intra.bandwidth_per_gpu * intra_node;
  if (intra.pcie_bandwidth_per_gpu) intra.pcie_bandwidth_per_gpu = *intra.pcie_bandwidth_per_gpu * intra_node;
  for (Link& link : intra.links) link.bandwidth = link.bandwidth * intra_node;
  if (node_.network) node_.network->bandwidth_per_nic = node_.network->bandwidth_per_nic * network;
}

std::optional<ResolvedCollective> CollectiveModel::from_curves(const CollectiveGroup& group,
                                                               CollectiveOp op) const {
  auto found = as_measured(group, op);
  if (!found) return from_other_systems(group, op);
  found->curve = times(found->curve, 1 / (group.n_nodes > 1 ? network_speed_ : intra_speed_));
  return found;
}

// From curves of the platform, at the speeds that they were measured with.
// From curves of the platform.
std::optional<ResolvedCollective> CollectiveModel::as_measured(const CollectiveGroup& group,
                                                               CollectiveOp op) const {
  const std::vector<const Entry*> entries = same_op(op, group.dtype);
  const std::uint32_t per_node = group.ranks_per_node();
  std::vector<RankCurve> others;
  const Entry* any_nodes = nullptr;
  const auto own = std::ranges::find_if(
      entries, [&](const Entry* e) { return e->n_nodes == group.n_nodes && e->n_ranks == group.n_ranks; });
  if (own != entries.end()) return ResolvedCollective{(*own)->curve(), "fitted on this group"};
  for (const Entry* e : entries) {
    if (group.n_nodes == 1 && e->n_nodes == 1) others.push_back({e->n_ranks, &e->curve()});
    if (group.n_nodes > 1 && e->n_nodes > 1 && e->gpus_per_node == per_node) {
      others.push_back({e->n_ranks, &e->curve()});
      if (any_nodes == nullptr ||
          std::abs(std::log2(static_cast<double>(e->n_nodes) / group.n_nodes)) <
              std::abs(std::log2(static_cast<double>(any_nodes->n_nodes) / group.n_nodes))) {
        any_nodes = e;
      }
    }
  }
  if (others.empty()) return std::nullopt;
  std::ranges::sort(others, {}, &RankCurve::n_ranks);
  const NcclFabric fabric = nccl_fabric(device_, node_, per_node);
  const RanksOnNodes wanted{group.n_ranks, group.n_nodes};
  if (group.n_nodes > 1 && others.size() < 2) {
    const std::uint32_t reached = std::min(group.n_nodes, kRanksInALine * any_nodes->n_nodes);
    TimeCurve curve = scale_nodes(op, any_nodes->curve(), any_nodes->n_nodes, reached, per_node);
    if (reached < group.n_nodes)
      curve = grow_as_nccl(op, curve, fabric, {reached * per_node, reached}, wanted);
    return ResolvedCollective{curve, fmt::format("scaled from {} nodes", any_nodes->n_nodes)};
  }
  // Two numbers of ranks on a line do not predict numbers far outside of them: beyond kRanksInALine times
  // the largest, NCCL's estimate gives the growth.
  const std::uint32_t largest = others.back().n_ranks;
  const std::uint32_t reached = std::min(group.n_ranks, kRanksInALine * largest);
  std::string counts;
  for (const RankCurve& c : others) counts += fmt::format("{}{}", counts.empty() ? "" : ", ", c.n_ranks);
  TimeCurve curve = scale_ranks(op, others, reached);
  if (reached < group.n_ranks) {
    const std::uint32_t nodes = group.n_nodes > 1 ? std::max(reached / per_node, 1U) : 1;
    curve = grow_as_nccl(op, curve, fabric, {reached, nodes}, wanted);
  }
  constexpr double kLongMessage = 1e9;
  const bool is_one_switch = group.n_nodes == 1 && largest >= kNvlsRanks && group.n_ranks > largest;
  if (is_one_switch && op == CollectiveOp::all_reduce &&
      nccl_estimate(fabric, op, group.n_ranks, 1, kLongMessage).algorithm == NcclAlgorithm::nvls)
    curve = added_by_switch(curve, others.back(), group.n_ranks);
  return ResolvedCollective{curve, fmt::format("scaled from {} ranks", counts)};
}

namespace {

// The curve with transfers, but not start-up, slower by a factor.
TimeCurve slower(const TimeCurve& curve, double slowdown) {
  const TimeCurve::Table fraction = bandwidth_share(curve);
  Tables t = tables_of(curve);
  for (std::size_t i = 0; i < kPoints; ++i) {
    const double more = std::log(1 + (slowdown - 1) * fraction[i]);
    t.time[i] += more;
    t.low[i] += more - kBandOfSharing * more;
    t.high[i] += more + kBandOfSharing * more;
  }
  return finished(t, curve, EstimateSource::analytic);
}

// Slowdown of an all_to_all on PCIe: all traffic that leaves a PCIe domain (a switch or a socket) shares one
// link. Rings cross the link once and are not slowed. 1 where nothing is shared.
double shared_pcie_slowdown(const Node& node, const CollectiveGroup& group) {
  const double n = group.n_ranks, domain = node.intra.gpus_per_pcie_domain.value_or(0);
  if (node.intra.kind != LinkKind::pcie || group.op != CollectiveOp::all_to_all || domain < 1 || n <= domain)
    return 1;
  return std::max(1.0, domain * (n - domain) / n / bus_factor(group.op, group.n_ranks));
}

}  // namespace

std::optional<ResolvedCollective> CollectiveModel::from_other_systems(const CollectiveGroup& group,
                                                                      CollectiveOp op) const {
  if (!related_ || group.n_nodes > 1) return std::nullopt;
  auto curve = related_->curve(device_, node_, op, group.n_ranks);
  if (!curve) return std::nullopt;
  const double slowdown = shared_pcie_slowdown(node_, group);
  if (slowdown > 1) curve = slower(*curve, slowdown);
  return ResolvedCollective{*curve,
                            related_->has_family(device_, node_)
                                ? "from measured nodes of this architecture and kind of link"
                                : "from measured nodes of other architectures and the estimate of NCCL"};
}

// A related collective moves the same bytes over the same links: all_reduce = reduce_scatter + all_gather, a
// broadcast sends as much as an all_gather of the same buffer, and so on. Each row gives factors for size and
// time.
std::optional<ResolvedCollective> CollectiveModel::from_related(const CollectiveGroup& group) const {
  struct Relation {
    CollectiveOp op, from;
    double size_factor, time_factor;
  };
  const double n = group.n_ranks;
  using enum CollectiveOp;
  const std::array relations = {
      Relation{reduce_scatter, all_gather, 1, 1},
      Relation{all_gather, reduce_scatter, 1, 1},
      Relation{all_gather, all_reduce, 1, 0.5},
      Relation{reduce_scatter, all_reduce, 1, 0.5},
      Relation{all_reduce, all_gather, 1, 2},
      Relation{all_reduce, reduce_scatter, 1, 2},
      Relation{broadcast, all_gather, n / (n - 1), 1},
      Relation{broadcast, all_reduce, n / (n - 1), 0.5},
      Relation{reduce, reduce_scatter, n / (n - 1), 1},
      Relation{reduce, all_reduce, n / (n - 1), 0.5},
      Relation{all_to_all, all_gather, 1, 1},
      Relation{all_to_all, all_reduce, 1, 0.5},
      Relation{gather, all_gather, 1, 1},
      Relation{gather, all_reduce, 1, 0.5},
      Relation{scatter, all_gather, 1, 1},
      Relation{scatter, all_reduce, 1, 0.5},
      Relation{send, send_receive, 1, 1},
      Relation{receive, send_receive, 1, 1},
  };
  for (const Relation& r : relations) {
    if (r.op != group.op) continue;
    if (auto found = from_curves(group, r.from)) {
      // Send and receive are the same transfer as send_receive; the other pairs are only similar, so their
      // band is wider.
      const bool same = r.op == send || r.op == receive;
      return ResolvedCollective{
          transformed(found->curve, r.size_factor, r.time_factor, same ? 0 : kRelatedBand,
                      same ? EstimateSource::fitted : EstimateSource::analytic),
          fmt::format("from {}, {}", to_string(r.from), found->how)};
    }
  }
  // One pair: in an all_to_all on two ranks, each rank sends half of its buffer; in an all_gather it receives
  // half. So a message of m bytes asks for a size of 2 m.
  if (group.op == send_receive || group.op == send || group.op == receive) {
    CollectiveGroup pair = group;
    pair.n_ranks = 2;
    for (const CollectiveOp from : {send_receive, all_to_all, all_gather, all_reduce}) {
      if (auto found = from_curves(pair, from)) {
        const double size = from == send_receive ? 1 : from == all_reduce ? 1 : 2;
        const double time = 1;
        return ResolvedCollective{
            transformed(found->curve, size, time, kRelatedBand, EstimateSource::analytic),
            fmt::format("from {} on two ranks, {}", to_string(from), found->how)};
      }
    }
  }
  return std::nullopt;
}

// A torus: load of the busiest link. Else a ring over the links of the node, with hop latencies growing as
// the square root of the steps.
ResolvedCollective CollectiveModel::inside_node(const CollectiveGroup& group) const {
  const IntraNode& intra = node_.intra;
  const double hop = intra.latency ? intra.latency->value() : kHop_us;
  if (intra.kind == LinkKind::torus) {
    const TorusLoad load = torus_load(group.op, intra, group.n_ranks);
    return {analytic_curve(hop * (1 + load.hops), load.messages_per_link,
                           kTorusEfficiency * torus_link_bandwidth(intra).value() / 1e9,
                           kAnalyticCollectiveBand, EstimateSource::analytic),
            "from the links of the torus"};
  }
  const bool is_pair = group.op == CollectiveOp::send || group.op == CollectiveOp::receive ||
                       group.op == CollectiveOp::send_receive;
  const double GBps = ring_bandwidth(node_, is_pair ? 2 : group.n_ranks).value() / 1e9;
  const double steps = ring_steps(group.op, group.n_ranks);
  const double carried = bus_factor(group.op, group.n_ranks) * shared_pcie_slowdown(node_, group);
  return {analytic_curve(kKernelStartup_us + hop * std::sqrt(std::max(steps, 1.0)), carried,
                         kIntraEfficiency * GBps, kAnalyticCollectiveBand, EstimateSource::analytic),
          "from the bandwidth of the node's links"};
}

// Hierarchical composition: the slower of the two levels sets the transfer time, and the start-ups add up. In
// a ring over all ranks every link carries factor x message / bus bandwidth, inside nodes as between them.
// Traffic that leaves a node uses its NICs, which all ranks of the node share.
ResolvedCollective CollectiveModel::across_nodes(const CollectiveGroup& group) const {
  const Network& network = *node_.network;
  const std::uint32_t per_node = group.ranks_per_node();
  const std::uint32_t fewest = group.min_ranks_per_node > 0 ? group.min_ranks_per_node : per_node;
  const double adapters = std::min(network.nics_per_node, std::max(fewest, 1U));
  const double hop = network.latency ? network.latency->value() : kNetworkHop_us;
  const double GBps =
      network_efficiency(group.op, network) * adapters * network.bandwidth_per_nic.value() / 1e9;

  // Between nodes. `carried`: share of the message that crosses the boundary of a node.
  const double n = group.n_ranks;
  double carried = bus_factor(group.op, group.n_ranks);
  if (group.op == CollectiveOp::all_to_all) {
    carried = per_node * (n - per_node) / n;  // every rank of the node sends to all outside
  } else if (group.op == CollectiveOp::send || group.op == CollectiveOp::receive ||
             group.op == CollectiveOp::send_receive) {
    carried = per_node;
  }
  const double depth = std::ceil(std::log2(static_cast<double>(std::max(group.n_nodes, 2U))));
  const double passes = group.op == CollectiveOp::all_reduce ? 2 : 1;
  const TimeCurve outside = analytic_curve(kKernelStartup_us + passes * hop * depth, carried, GBps,
                                           kAnalyticCollectiveBand, EstimateSource::analytic);
  if (per_node < 2) return {outside, "from the bandwidth of the network"};

  // Inside the nodes.
  CollectiveGroup local = group;
  local.n_ranks = per_node;
  local.n_nodes = 1;
  local.groups_per_node = 1;
  auto found = from_curves(local, group.op);
  if (!found) found = from_related(local);
  const ResolvedCollective inside = found ? std::move(*found) : inside_node(local);
  const double factor_ratio = bus_factor(group.op, group.n_ranks) / bus_factor(group.op, per_node);
  Tables t;
  for (std::size_t i = 0; i < kPoints; ++i) {
    const double bytes = std::exp2(TimeCurve::log2_bytes(i));
    const double in_us = std::exp(inside.curve.ln_time()[i]);
    const double out_transfer_us = carried * bytes / (1000 * GBps);
    t.time[i] = std::log(std::max(in_us * (1 + (factor_ratio - 1) * kExtraTransferShare), out_transfer_us) +
                         passes * hop * depth);
    t.low[i] = t.time[i] - kAnalyticCollectiveBand;
    t.high[i] = t.time[i] + kAnalyticCollectiveBand;
  }
  return {finished(t, outside, EstimateSource::analytic),
          fmt::format("composed of the node ({}) and the bandwidth of the network", inside.how)};
}

Result<ResolvedCollective> CollectiveModel::resolve(const CollectiveGroup& group) const {
  if (group.op == CollectiveOp::unknown) return Error{"a collective that stepcast does not know"};
  if (group.n_ranks == 0 || group.n_nodes == 0 || group.n_nodes > group.n_ranks)
    return Error{fmt::format("a group of {} ranks on {} nodes", group.n_ranks, group.n_nodes)};
  if (group.n_ranks == 1) {
    return ResolvedCollective{
        analytic_curve(kKernelStartup_us, 0, 1, kAnalyticCollectiveBand, EstimateSource::assumed),
        "one rank has no other to communicate with"};
  }
  if (group.op == CollectiveOp::barrier) {
    CollectiveGroup small = group;
    small.op = CollectiveOp::all_reduce;
    STEPCAST_ASSIGN(ResolvedCollective all_reduce, resolve(small));
    // Every size costs as much as 4 bytes, which is point 8 of the table.
    Tables t;
    t.time.fill(all_reduce.curve.ln_time()[8]);
    t.low.fill(all_reduce.curve.ln_low()[8]);
    t.high.fill(all_reduce.curve.ln_high()[8]);
    return ResolvedCollective{finished(t, all_reduce.curve, EstimateSource::fitted),
                              fmt::format("an all_reduce of 4 bytes, {}", all_reduce.how)};
  }
  if (group.n_nodes > 1 && !node_.network) {
    return Error{
        fmt::format("a group on {} nodes, but the platform says nothing of a network", group.n_nodes)}
        .advice("add node.network to the platform file");
  }

  auto found = from_curves(group, group.op);
  if (!found) found = from_related(group);
  ResolvedCollective resolved = found               ? std::move(*found)
                                : group.n_nodes > 1 ? across_nodes(group)
                                                    : inside_node(group);
  if (group.n_nodes == 1) return resolved;

  // Groups that share the NICs: the curve was measured (or composed) for one group alone.
  const Network& network = *node_.network;
  const double nics = std::max(network.nics_per_node, 1U);
  const double alone = std::max(1.0, group.ranks_per_node() / nics);
  const double together =
      std::max(1.0, static_cast<double>(group.ranks_per_node()) * group.groups_per_node / nics);
  double slowdown = together / alone * std::max(1.0, group.network_slowdown);
  const bool crosses_rails = !group.rail_aligned && network.rail_optimized.value_or(false);
  if (crosses_rails && group.ranks_per_node() < node_.gpus_per_node) slowdown /= kCrossRailShare;
  if (slowdown <= 1.0001) return resolved;
  return ResolvedCollective{
      slower(resolved.curve, slowdown),
      fmt::format("{}; {:.3g} times the load on the links between nodes", resolved.how, slowdown)};
}

}  // namespace stepcast
