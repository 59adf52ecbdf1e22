// How NCCL chooses: it estimates every algorithm and protocol as latency + bytes / bandwidth and takes the
// least. Where that choice changes, measured curves bend, and how the estimate grows with ranks and nodes is how they
// grow. Its absolute times are rough: models multiply them by what was measured (related_systems.h).
//
//   const NcclFabric fabric = nccl_fabric(platform.device, platform.node, 8);
//   nccl_estimate(fabric, CollectiveOp::all_reduce, 8, 1, 1 << 20)    // {35.9 us, tree, ll128}
//
// Figures and rules: tuning of NCCL as of 2025 (NVIDIA/nccl, src/graph/tuning.cc, BSD-3-Clause), in our words.
// Left out: the correction of trees by size, user settings, PAT, CollNet, and NVLS for buffers that were registered
// (all_gather and reduce_scatter). Added: what a rank of a ring copies within its own memory, and the clock of the GPU.
#pragma once

#include <cstdint>
#include <string_view>

#include "stepcast/operation/collective_kind.h"
#include "stepcast/platform/device_generation.h"
#include "stepcast/platform/platform.h"

namespace stepcast {

enum class NcclAlgorithm : std::uint8_t { ring, tree, nvls, nvls_tree };
// Words with flags (lowest latency, half the bandwidth at most), 120 of 128 bytes useful, chunks with fences.
enum class NcclProtocol : std::uint8_t { ll, ll128, simple };
[[nodiscard]] std::string_view to_string(NcclAlgorithm algorithm);
[[nodiscard]] std::string_view to_string(NcclProtocol protocol);

// What the choice depends on apart from the group.
struct NcclFabric {
  // Caps differ by generation; what is none of these counts as the nearest before it.
  NcclGeneration generation = NcclGeneration::ampere;
  bool nvlink = true;     // false: PCIe
  bool switched = false;  // behind NVSwitch, whose SHARP Hopper and later use
  double link_GBps = 0;   // bus bandwidth of a ring inside a node
  // Of what NCCL's table says of a call and of hops inside a node: GPUs of higher clock are faster.
  double latency_scale = 1;
  double network_GBps = 0;  // of a ring over nodes; 0: there is no network
};

// What each of the first GPUs of a node can send to its neighbours in a ring over them: in a mesh over the links between
// them alone, through PCIe where direct links do not join them.
[[nodiscard]] BytesPerSecond ring_bandwidth(const Node& node, std::uint32_t n_gpus);

// Of a group with `ranks_per_node` ranks on each of its nodes.
[[nodiscard]] NcclFabric nccl_fabric(const Device& device, const Node& node, std::uint32_t ranks_per_node);

struct NcclEstimate {
  double time_us = 0;
  NcclAlgorithm algorithm = NcclAlgorithm::ring;
  NcclProtocol protocol = NcclProtocol::simple;
};

// The choice for a message (`size` of nccl-tests). all_reduce, all_gather and reduce_scatter are as in NCCL; others
// count as an all_gather, whose ring they resemble. At least two ranks, `n_nodes` dividing them.
[[nodiscard]] NcclEstimate nccl_estimate(const NcclFabric& fabric, CollectiveOp op, std::uint32_t n_ranks,
                                         std::uint32_t n_nodes, double message_bytes);

}  // namespace stepcast
