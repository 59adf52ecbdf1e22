// Selection of the platform for a described machine: by name, or by its GPU, node and network.
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

// Known properties of a machine; empty or 0: unknown.
struct MachineDescription {
  std::string name;  // of a platform, a system or a machine: "DGX H100", "p4d.24xlarge"
  std::string gpu;   // as in measurements: "H100-SXM5-80GB", "NVIDIA A100-PCIE-40GB"
  std::int64_t gpus_per_node = 0;
  std::string network_kind;                   // "RoCE", "InfiniBand", "EFA"
  std::optional<double> node_bandwidth_Gbps;  // sum over the NICs of a node, one direction
};

// The selected platform.
struct PlatformChoice {
  Platform platform;
  std::string note;  // difference from the shipped platform or from the description; empty: none
};

// The shipped platform with the name of the machine. Without one, the shipped platform with its GPU that fits
// best: by node, then kind of network, then bandwidth; ties go to a vendor's system (DGX), then to the
// nearest bandwidth, then to the first name. Its node and network are then changed to the described size and
// bandwidth; curves measured between nodes are dropped if the network changes. Error: no platform has the
// GPU.
[[nodiscard]] Result<PlatformChoice> platform_for(const MachineDescription& machine,
                                                  std::span<const std::filesystem::path> search_dirs);
[[nodiscard]] Result<PlatformChoice> platform_for(const MachineDescription& machine);

// Name of the usual node of a GPU: of the shipped nodes with several such GPUs, a vendor's system (DGX), else
// one named after the GPU (8x...), else the first by name. Error: none has several of them.
[[nodiscard]] Result<std::string> default_node_for_gpu(std::string_view gpu,
                                                       std::span<const std::filesystem::path> search_dirs);
[[nodiscard]] Result<std::string> default_node_for_gpu(std::string_view gpu);

// The usual node of a platform that is a single GPU, where several GPUs are requested. None if `platform` is
// a node or a cluster, or if no shipped node has the GPU.
[[nodiscard]] std::optional<std::string> default_node_for(const Platform& platform, std::int64_t n_gpus);
// The platform of that name. Where the name is a GPU and several are requested, its usual node, with
// node_note() as the note. `gpus_per_node`: changes the size of the node.
[[nodiscard]] Result<PlatformChoice> load_meant_platform(const std::string& name, std::int64_t n_gpus,
                                                         std::optional<std::int64_t> gpus_per_node = {});
// Nodes of this GPU with only `gpus_per_node` GPUs may be trays of a rack that is one NVLink domain. Returns
// the shipped rack, if one consists of trays of that size and has `n_gpus` GPUs. None where the nodes are
// separate systems.
[[nodiscard]] std::optional<std::string> rack_of_trays(std::string_view gpu, std::int64_t gpus_per_node,
                                                       std::int64_t n_gpus);
// Note for load_meant_platform(): "h100 is a GPU: taken in a dgx-h100, its usual node".
[[nodiscard]] std::string node_note(std::string_view gpu, std::string_view node);

// Whether a GPU name in measurements may mean this device: "H100", "NVIDIA H100 80GB HBM3" for an
// "H100-SXM5-80GB".
[[nodiscard]] bool could_be_named(std::string_view gpu, const Device& device);

// Changes `platform` to the node size and bandwidth of `machine` (the second half of platform_for); appends
// the changes to `note`.
void adapt_to(const MachineDescription& machine, Platform& platform, std::string& note);

}  // namespace stepcast
