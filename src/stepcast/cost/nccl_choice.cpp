#include "stepcast/cost/nccl_choice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

// NCCL's tuning tables and cost formulas.

namespace stepcast {
namespace {

using PerProtocol = std::array<double, 3>;  // LL, LL128, Simple

// Latencies in us, by protocol: of a call, and of a hop over each kind of link.
constexpr PerProtocol kTreeBase = {6.8, 14.0, 8.4}, kRingBase = {6.6, 14.0, 8.4};
constexpr PerProtocol kTreeNvlink = {0.6, 1.25, 4.0}, kRingNvlink = {0.6, 1.9, 3.4};
constexpr PerProtocol kTreePcie = {1.0, 1.9, 4.0}, kRingPcie = {1.0, 2.5, 5.7};
constexpr PerProtocol kTreeNetwork = {5.0, 8.5, 14.0}, kRingNetwork = {2.7, 4.0, 14.0};
constexpr double kNvls_us = 25.0, kNvlsNetwork_us = 18.0, kNvlsTreeNetwork_us = 20.9;

// Bandwidths in GB/s. Caps per channel are on 1, 2 and 4 or more nodes.
// Caps of one GPU generation.
struct Caps {
  double ring_ll_GBps;  // of all channels together
  double ring_ll128_GBps;
  std::array<double, 3> tree_GBps, tree_ll128_GBps;
  double nvls_efficiency;                // of the links; 0: no NVLS
  std::array<double, 2> nvls_tree_GBps;  // on 2 nodes, on 4 or more
  double channels;
};
// By NcclGeneration: Volta, Ampere, Hopper, Blackwell.
constexpr std::array<Caps, 4> kCaps{{
    {39.0, 20.0, {26.5, 18.5, 10.0}, {20.0, 20.0, 20.0}, 0, {0, 0}, 12},
    {87.7, 20.0, {24.0, 23.6, 17.8}, {20.0, 20.0, 20.0}, 0, {0, 0}, 24},
    {141.0, 36.7, {38.7, 41.4, 36.0}, {36.7, 36.7, 29.0}, 0.85, {57.7, 45.5}, 24},
    {282.0, 40.0, {70.0, 42.8, 24.0}, {55.6, 31.7, 20.0}, 0.74, {96.0, 80.0}, 24},
}};
constexpr double kLl128Share = 0.92, kTreeShare = 0.92;
constexpr double kTreeLlShare = 1 / 3.8;
constexpr double kTreeLl128InNode = 7.0 / 9.0, kTreeLl128Beyond = 120.0 / 128.0;
// Share of the nominal link bandwidth that NCCL's search for rings uses: 240 of 300, 370 of 450 and 720 of
// 900 GB/s.
constexpr double kLinkShare = 0.8;
constexpr double kNetworkShare = 0.9;
// The latencies were measured when Volta was new. Half of each is taken as work of SMs, which scales with
// their clock, the rest as transfer between GPUs. Assumed; of the shares 0, 0.5 and 1, 0.5 gives the lowest
// error on held-out machines.
constexpr double kClockOfLatencies_MHz = 1530;
constexpr double kLatencyOfSms = 0.5;
constexpr double kGBps = 1e9;

// The group of a collective.
struct Group {
  bool all_reduce = false;
  double n = 1, nodes = 1, per_node = 1;
  std::size_t nodes_index = 0;  // index into arrays of caps by number of nodes
};

// Transfer time in us.
double bytes_over(double bytes, double GBps) { return bytes / (1000 * GBps); }

// Evaluates all algorithms for one message and keeps the fastest.
class Choice {
 public:
  Choice(const NcclFabric& fabric, const Group& group, double bytes)
      : fabric_(fabric),
        caps_(kCaps[static_cast<std::size_t>(fabric.generation)]),
        group_(group),
        bytes_(bytes),
        bus_bandwidth_(group.nodes > 1 ? std::min(fabric.link_GBps, fabric.network_GBps) : fabric.link_GBps) {
  }

  NcclEstimate least() {
    ring();
    if (group_.all_reduce) tree();
    if (group_.all_reduce && caps_.nvls_efficiency > 0 && fabric_.switched && group_.per_node > 2) nvls();
    return best_;
  }

 private:
  // Keeps the candidate if it is faster than the best so far.
  void consider(NcclAlgorithm algorithm, std::size_t protocol, double latency_us, double transfer_us) {
    const double time_us = latency_us + transfer_us;
    if (best_.time_us > 0 && best_.time_us <= time_us) return;
    best_ = {time_us, algorithm, static_cast<NcclProtocol>(protocol)};
  }

  void ring() {
    const double passes = group_.all_reduce ? 2 : 1;
    const double steps = passes * (group_.n - 1), over_network = passes * (group_.nodes - 1);
    const PerProtocol GBps = {std::min(bus_bandwidth_ / 2, caps_.ring_ll_GBps),
                              std::min(kLl128Share * bus_bandwidth_, caps_.channels * caps_.ring_ll128_GBps),
                              bus_bandwidth_};
    const PerProtocol& inside = fabric_.nvlink ? kRingNvlink : kRingPcie;
    // With one GPU per node, a hop of a ring over the network costs as much as a hop of a tree.
    const PerProtocol& outside = group_.per_node > 1 ? kRingNetwork : kTreeNetwork;
    // A rank also copies its local share, at the rate of its channels instead of a link: on two GPUs with
    // fast links this adds half of the transfer time.
    const double own_us = bytes_over(bytes_ / group_.n, caps_.channels * caps_.ring_ll128_GBps);
    for (std::size_t p = 0; p < 3; ++p) {
      consider(NcclAlgorithm::ring, p,
               fabric_.latency_scale * (kRingBase[p] + (steps - over_network) * inside[p]) +
                   over_network * outside[p],
               bytes_over(bytes_ * steps / group_.n, GBps[p]) + own_us);
    }
  }

  void tree() {
    const double GBps =
        std::min(kTreeShare * bus_bandwidth_, caps_.channels * caps_.tree_GBps[group_.nodes_index]);
    const PerProtocol by_protocol = {GBps * kTreeLlShare,
                                     std::min(GBps * (group_.nodes > 1 ? kTreeLl128Beyond : kTreeLl128InNode),
                                              caps_.channels * caps_.tree_ll128_GBps[group_.nodes_index]),
                                     GBps};
    const PerProtocol& inside = fabric_.nvlink ? kTreeNvlink : kTreePcie;
    for (std::size_t p = 0; p < 3; ++p) {
      consider(NcclAlgorithm::tree, p,
               fabric_.latency_scale * (kTreeBase[p] + 2 * (group_.per_node - 1) * inside[p]) +
                   2 * std::log2(group_.nodes) * kTreeNetwork[p],
               bytes_over(2 * bytes_, by_protocol[p]));
    }
  }

  void nvls() {
    const double inside_GBps =
        2 * fabric_.link_GBps * caps_.nvls_efficiency * (caps_.channels - 1) / caps_.channels;
    const double call_us = fabric_.latency_scale * kNvls_us;
    if (group_.nodes == 1) {
      // The switch adds: the bytes that a rank sends and receives do not grow with the ranks.
      consider(NcclAlgorithm::nvls, 2, call_us,
               bytes_over(bytes_ * 2 * (group_.n - 1) / group_.n, inside_GBps));
    } else {
      const double cap = caps_.channels * caps_.nvls_tree_GBps[group_.nodes_index - 1];
      const double GBps = std::min({inside_GBps, fabric_.network_GBps * (group_.nodes == 2 ? 2 : 1), cap});
      consider(NcclAlgorithm::nvls_tree, 2,
               call_us + kNvlsNetwork_us + 2 * std::log2(group_.nodes) * kNvlsTreeNetwork_us,
               bytes_over(2 * bytes_, GBps));
    }
  }

  const NcclFabric& fabric_;
  const Caps& caps_;
  Group group_;
  double bytes_, bus_bandwidth_;  // GB/s
  NcclEstimate best_;
};

// Bandwidth of a GPU to its neighbours in a ring over the first GPUs of a node; none if the ring has to use
// PCIe.
std::optional<BytesPerSecond> links_of_ring(const Node& node, std::uint32_t n_gpus) {
  const IntraNode& intra = node.intra;
  const bool is_mesh = intra.kind == LinkKind::nvlink_mesh || intra.kind == LinkKind::xgmi_mesh;
  if ((!is_mesh && intra.kind != LinkKind::mixed) || n_gpus < 2) return intra.bandwidth_per_gpu;
  if (intra.links.empty()) {
    if (is_mesh) {  // links to GPUs outside of the group are idle
      const double peers = std::max(node.gpus_per_node, n_gpus) - 1.0;
      return BytesPerSecond{intra.bandwidth_per_gpu.value() * (n_gpus - 1.0) / peers};
    }
    if (n_gpus > 2) return std::nullopt;  // a linked island is a pair
    return intra.bandwidth_per_gpu;
  }
  std::vector<double> of_gpu(n_gpus, 0.0);
  std::vector<std::uint32_t> island(n_gpus);
  std::iota(island.begin(), island.end(), 0U);
  for (const Link& link : intra.links) {
    if (link.gpu_a >= n_gpus || link.gpu_b >= n_gpus) continue;
    of_gpu[link.gpu_a] += link.bandwidth.value();
    of_gpu[link.gpu_b] += link.bandwidth.value();
    const std::uint32_t from = island[link.gpu_b], to = island[link.gpu_a];
    std::replace(island.begin(), island.end(), from, to);
  }
  // The links do not connect all GPUs of the group.
  if (std::ranges::adjacent_find(island, std::not_equal_to<>{}) != island.end()) return std::nullopt;
  return std::min(intra.bandwidth_per_gpu, BytesPerSecond{*std::ranges::min_element(of_gpu)});
}

}  // namespace

std::string_view to_string(NcclAlgorithm algorithm) {
  constexpr std::array<std::string_view, 4> kNames = {"ring", "tree", "NVLS", "NVLS tree"};
  return kNames[static_cast<std::size_t>(algorithm)];
}

std::string_view to_string(NcclProtocol protocol) {
  constexpr std::array<std::string_view, 3> kNames = {"LL", "LL128", "Simple"};
  return kNames[static_cast<std::size_t>(protocol)];
}

BytesPerSecond ring_bandwidth(const Node& node, std::uint32_t n_gpus) {
  const IntraNode& intra = node.intra;
  return links_of_ring(node, n_gpus).value_or(intra.pcie_bandwidth_per_gpu.value_or(intra.bandwidth_per_gpu));
}

NcclFabric nccl_fabric(const Device& device, const Node& node, std::uint32_t ranks_per_node) {
  NcclFabric fabric;
  fabric.generation = generation_of(device).nccl;
  const IntraNode& intra = node.intra;
  fabric.nvlink = intra.kind != LinkKind::pcie && links_of_ring(node, ranks_per_node).has_value();
  fabric.switched = intra.kind == LinkKind::nvswitch;
  if (device.clock_MHz)
    fabric.latency_scale = 1 - kLatencyOfSms + kLatencyOfSms * kClockOfLatencies_MHz / *device.clock_MHz;
  fabric.link_GBps = kLinkShare * ring_bandwidth(node, ranks_per_node).value() / kGBps;
  if (node.network) {
    const double adapters = std::min(node.network->nics_per_node, std::max(ranks_per_node, 1U));
    fabric.network_GBps = kNetworkShare * adapters * node.network->bandwidth_per_nic.value() / kGBps;
  }
  // GPUs that are alone in their nodes reach each other only over the network.
  if (ranks_per_node == 1) fabric.link_GBps = fabric.network_GBps;
  return fabric;
}

NcclEstimate nccl_estimate(const NcclFabric& fabric, CollectiveOp op, std::uint32_t n_ranks,
                           std::uint32_t n_nodes, double message_bytes) {
  Group group;
  group.all_reduce = op == CollectiveOp::all_reduce;
  group.n = n_ranks;
  group.nodes = n_nodes;
  group.per_node = std::max(1.0, group.n / group.nodes);
  group.nodes_index = n_nodes == 1 ? 0 : n_nodes < 4 ? 1 : 2;
  return Choice{fabric, group, message_bytes}.least();
}

}  // namespace stepcast
