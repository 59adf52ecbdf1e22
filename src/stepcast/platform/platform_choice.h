// Which platform stands for a machine that somebody describes: by name, or by its GPU, node and network.
//
//   STEPCAST_ASSIGN(const PlatformChoice found, platform_for({.gpu = "A100-SXM4-80GB", .gpus_per_node = 8,
//                                                             .node_bandwidth_Gbps = 800}));
//   // found.platform.name == "8xa100-800g"
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "stepcast/base/result.h"
#include "stepcast/platform/platform.h"

namespace stepcast {

// What is known of a machine; what is empty or 0 is not.
struct MachineDescription {
  std::string name;  // of a platform, a product or a machine: "DGX H100", "p4d.24xlarge"
  std::string gpu;   // as measurements call it: "H100-SXM5-80GB", "NVIDIA A100-PCIE-40GB"
  std::int64_t gpus_per_node = 0;
  std::string network_kind;                   // "RoCE", "InfiniBand", "EFA"
  std::optional<double> node_bandwidth_Gbps;  // of all adapters of a node, one direction
};

struct PlatformChoice {
  Platform platform;
  std::string note;  // how it differs from what ships or from what was asked for; empty: not at all
};

// The shipped platform of that name. Where there is none, one that holds the GPU: the one whose node, kind of network
// and bandwidth are as described, in this order of weight; of equals a vendor's own system (DGX), then the nearest
// bandwidth, then the first by name. Its node and network then get the size and the bandwidth that are described;
// curves that were measured between its nodes are dropped with their network. An error if no platform has the GPU.
[[nodiscard]] Result<PlatformChoice> platform_for(const MachineDescription& machine,
                                                  std::span<const std::filesystem::path> search_dirs);
[[nodiscard]] Result<PlatformChoice> platform_for(const MachineDescription& machine);

// The name of the node that this GPU is usually bought or rented in: of the shipped ones that hold several of it a
// vendor's own system (DGX), then one that is called after the GPU (8x...), then the first by name.
[[nodiscard]] Result<std::string> default_node_for_gpu(std::string_view gpu,
                                                       std::span<const std::filesystem::path> search_dirs);
[[nodiscard]] Result<std::string> default_node_for_gpu(std::string_view gpu);

// Where a GPU was named and several of it are asked for: its usual node. Nothing where `platform` is a node or a cluster,
// or no node that ships holds the GPU.
[[nodiscard]] std::optional<std::string> default_node_for(const Platform& platform, std::int64_t n_gpus);
// The platform of that name; where a GPU is named and several of it are asked for, its usual node, and node_note(). With
// nodes of so many GPUs, if it is said.
[[nodiscard]] Result<PlatformChoice> load_meant_platform(const std::string& name, std::int64_t n_gpus,
                                                         std::optional<std::int64_t> gpus_per_node = {});
// Nodes of this GPU with so few of them may be trays of a rack that is one NVLink domain: the shipped platform of the rack, if
// one holds trays of that size and all `n_gpus`. Nothing where the nodes are systems of their own.
[[nodiscard]] std::optional<std::string> rack_of_trays(std::string_view gpu, std::int64_t gpus_per_node,
                                                       std::int64_t n_gpus);
// "h100 is a GPU: taken in a dgx-h100, its usual node".
[[nodiscard]] std::string node_note(std::string_view gpu, std::string_view node);

// Whether measurements that call their GPU so may be of this device: "H100", "NVIDIA H100 80GB HBM3" of an
// "H100-SXM5-80GB".
[[nodiscard]] bool could_be_named(std::string_view gpu, const Device& device);

// The second half alone: `platform` with the node size and bandwidth of `machine`; appends to `note`.
void adapt_to(const MachineDescription& machine, Platform& platform, std::string& note);

}  // namespace stepcast
