// NCCL's choice of algorithm and protocol: latency + bytes / bandwidth for each; it takes the
// minimum. Measured curves bend where the choice changes, and they grow with ranks and nodes like the
// estimate. The absolute times are rough, so models multiply them by measured ratios (related_systems.h).
//
//   const NcclFabric fabric = nccl_fabric(platform.device, platform.node, 8);
//   nccl_estimate(fabric, CollectiveOp::all_reduce, 8, 1, 1 << 20)    // {35.9 us, tree, ll128}
//
// Figures and rules: tuning of NCCL as of 2025 (NVIDIA/nccl, src/graph/tuning.cc, BSD-3-Clause),
// reimplemented. Left out: the size correction of trees, user settings, PAT, CollNet, and NVLS for registered
// buffers (all_gather and reduce_scatter). Added: the copy of a ring rank within its memory, and the clock of
// the GPU.
#pragma once

#include <cstdint>
#include <string_view>

#include "stepcast/operation/collective_kind.h"
#include "stepcast/platform/device_generation.h"
#include "stepcast/platform/platform.h"

namespace stepcast {

enum class NcclAlgorithm : std::uint8_t { ring, tree, nvls, nvls_tree };
// LL: words with flags (lowest latency, at most half the bandwidth). LL128: 120 of 128 bytes are payload.
// Simple: chunks with fences.
enum class NcclProtocol : std::uint8_t { ll, ll128, simple };
[[nodiscard]] std::string_view to_string(NcclAlgorithm algorithm);
[[nodiscard]] std::string_view to_string(NcclProtocol protocol);

// Inputs of the choice other than the group.
struct NcclFabric {
  // Bandwidth caps differ by generation; other generations use the nearest earlier one.
  NcclGeneration generation = NcclGeneration::ampere;
  bool nvlink = true;     // false: PCIe
  bool switched = false;  // behind NVSwitch; Hopper and later use its SHARP
  double link_GBps = 0;   // bus bandwidth of a ring inside a node
  // Factor on NCCL's latencies of a call and of hops inside a node: GPUs with a higher clock are faster.
  double latency_scale = 1;
  double network_GBps = 0;  // of a ring over nodes; 0: no network
};

// Bandwidth of each of the first `n_gpus` GPUs of a node to its neighbours in a ring over them. In a mesh
// only the links between these GPUs count; without direct links the ring uses PCIe.
[[nodiscard]] BytesPerSecond ring_bandwidth(const Node& node, std::uint32_t n_gpus);

// The fabric of a group with `ranks_per_node` ranks on each of its nodes.
[[nodiscard]] NcclFabric nccl_fabric(const Device& device, const Node& node, std::uint32_t ranks_per_node);

// The chosen algorithm and protocol, and their estimated time.
struct NcclEstimate {
  double time_us = 0;
  NcclAlgorithm algorithm = NcclAlgorithm::ring;
  NcclProtocol protocol = NcclProtocol::simple;
};

// The choice for a message (`size` of nccl-tests). all_reduce, all_gather and reduce_scatter are as in NCCL;
// other collectives use the ring of an all_gather. Needs at least two ranks, divisible by `n_nodes`.
[[nodiscard]] NcclEstimate nccl_estimate(const NcclFabric& fabric, CollectiveOp op, std::uint32_t n_ranks,
                                         std::uint32_t n_nodes, double message_bytes);

}  // namespace stepcast
