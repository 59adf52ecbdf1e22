#include "stepcast/platform/platform_choice.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/text.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/platform/torus.h"

namespace stepcast {
namespace {

// Relative difference up to which two bandwidths are the same network.
constexpr double kSameBandwidth = 0.05;
// GPUs from which an NVLink domain is a rack: the largest shipped single system has 16.
constexpr std::int64_t kFewestOfARack = 32;

// Only letters and digits, in lower case.
std::string plain(std::string_view text) {
  std::string result;
  for (const char c : text)
    if (c >= 'A' && c <= 'Z')
      result += static_cast<char>(c - 'A' + 'a');
    else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
      result += c;
  return result;
}

// Whether the name of a device occurs in `gpu`, as "B200" in "B200-SXM-180GB". Returns the length of the
// longest such name or alias in letters; 0: none. Longer is better: "NVIDIA H100-PCIe-80GB" contains
// H100-PCIe, but of another card only H100.
std::size_t alias_match_length(std::string_view gpu, const std::string& name,
                               const std::vector<std::string>& aliases) {
  const std::string text = plain(gpu);
  const auto held = [&](const std::string& called) -> std::size_t {
    const std::string wanted = plain(called);
    const std::size_t at = text.find(wanted), end = at + wanted.size();
    if (wanted.size() < 3 || at == std::string::npos) return 0;
    // A longer model number is another GPU (an L40 is not an L4), a suffix is not (L4-24GB).
    // Letters up to the end of the name, and the position in `gpu` after it.
    std::size_t letters = 0, behind = 0;
    while (letters < end && behind < gpu.size()) letters += plain(gpu.substr(behind++, 1)).size();
    const bool longer_number = is_digit(wanted.back()) && behind < gpu.size() && is_digit(gpu[behind]);
    return longer_number ? 0 : wanted.size();
  };
  std::size_t most = held(name);
  for (const std::string& alias : aliases) most = std::max(most, held(alias));
  return most;
}

// Quality of a match between platform and machine: compared member by member, larger is better.
using Fit = std::tuple<bool, std::size_t, bool, bool, bool, bool, double>;

// None if the platform has no network or another GPU.
std::optional<Fit> fit_of(const Platform& platform, const MachineDescription& machine) {
  if (!platform.node.network) return std::nullopt;
  const bool called = platform.device.matches_name(machine.gpu);
  const std::size_t held =
      called ? 0 : alias_match_length(machine.gpu, platform.device.name, platform.device.aliases);
  if (!called && held == 0) return std::nullopt;
  const Network& network = *platform.node.network;
  const bool same_node = machine.gpus_per_node > 0 && platform.node.gpus_per_node == machine.gpus_per_node;
  const bool same_kind = !machine.network_kind.empty() && network.kind.starts_with(machine.network_kind);
  double octaves = 0;
  if (machine.node_bandwidth_Gbps)
    octaves = std::abs(std::log2(network.bandwidth_per_node().value() * 8e-9 / *machine.node_bandwidth_Gbps));
  const bool same_bandwidth = machine.node_bandwidth_Gbps && octaves < std::log2(1 + kSameBandwidth);
  return Fit{called, held, same_node, same_kind, same_bandwidth, platform.name.starts_with("dgx"), -octaves};
}

// The best platform with this GPU, or the bare device if none has a node.
Result<Platform> by_gpu(const MachineDescription& machine,
                        std::span<const std::filesystem::path> search_dirs) {
  std::optional<Fit> best;
  Result<Platform> chosen = Error{"no platform"};
  for (const PlatformListing& listing : list_platforms(search_dirs).platforms) {
    const bool called = same_name(listing.device, machine.gpu) ||
                        std::ranges::any_of(listing.device_aliases, [&](const std::string& alias) {
                          return same_name(alias, machine.gpu);
                        });
    if (!called && alias_match_length(machine.gpu, listing.device, listing.device_aliases) == 0) continue;
    Result<Platform> candidate = load_platform(listing.name, search_dirs);
    if (!candidate) continue;
    const std::optional<Fit> fit = fit_of(*candidate, machine);
    if (!fit || (best && !(*fit > *best))) continue;
    best = fit;
    chosen = std::move(candidate);
  }
  return best ? std::move(chosen) : load_device(machine.gpu, search_dirs);
}

}  // namespace

void adapt_to(const MachineDescription& machine, Platform& platform, std::string& note) {
  if (machine.gpus_per_node > 0 && platform.node.gpus_per_node != machine.gpus_per_node) {
    Node& node = platform.node;
    const auto n_gpus = static_cast<std::uint32_t>(machine.gpus_per_node);
    const std::uint32_t old_gpus = std::exchange(node.gpus_per_node, n_gpus);
    node.segment.reset();  // it belongs to the shipped node
    if (node.intra.kind == LinkKind::torus) {
      // A smaller slice; if no box of the axes has this size, a line. Where chips are not full, each device
      // becomes a chip.
      const std::uint32_t per_chip = node.intra.devices_per_chip.value_or(1);
      if (n_gpus % per_chip != 0) {
        node.intra.devices_per_chip.reset();
        node.intra.bandwidth_per_gpu = node.intra.bandwidth_per_gpu * per_chip;
      }
      if (node.network) {
        const double of_old = static_cast<double>(n_gpus) / old_gpus;
        node.network->nics_per_node =
            std::max(1U, static_cast<std::uint32_t>(node.network->nics_per_node * of_old));
      }
      node.intra.axes = slice_axes(node.intra, n_gpus / node.intra.devices_per_chip.value_or(1));
    }
    // Keeps the links and PCIe domains of the remaining GPUs.
    if (node.intra.gpus_per_pcie_domain)
      node.intra.gpus_per_pcie_domain = std::min(*node.intra.gpus_per_pcie_domain, n_gpus);
    std::erase_if(node.intra.links, [&](const Link& l) { return std::max(l.gpu_a, l.gpu_b) >= n_gpus; });
    if (node.intra.kind == LinkKind::mixed && node.intra.links.empty()) {
      node.intra.kind = LinkKind::pcie;
      node.intra.bandwidth_per_gpu = node.intra.pcie_bandwidth_per_gpu.value_or(node.intra.bandwidth_per_gpu);
    }
    note += fmt::format("{} GPUs per node as described; ", machine.gpus_per_node);
  }
  if (!machine.node_bandwidth_Gbps || !platform.node.network) return;
  Network& network = *platform.node.network;
  const double stated = *machine.node_bandwidth_Gbps * 1e9 / 8;
  if (std::abs(stated / network.bandwidth_per_node().value() - 1) <= kSameBandwidth) return;
  network.bandwidth_per_nic = BytesPerSecond{stated / network.nics_per_node};
  std::erase_if(platform.curves, [](const CollectiveCurve& c) { return c.n_nodes > 1; });
  note += fmt::format("{} Gb/s between nodes as described; ", *machine.node_bandwidth_Gbps);
}

bool could_be_named(std::string_view gpu, const Device& device) {
  if (device.matches_name(gpu) || alias_match_length(gpu, device.name, device.aliases) > 0) return true;
  const std::string word = plain(gpu);
  return word.size() >= 2 && plain(device.name).find(word) != std::string::npos;
}

Result<std::string> default_node_for_gpu(std::string_view gpu,
                                         std::span<const std::filesystem::path> search_dirs) {
  const PlatformListings all = list_platforms(search_dirs);
  const PlatformListing* best = nullptr;
  const auto rank = [](const PlatformListing& p) {
    return p.name.starts_with("dgx") ? 0 : p.name.starts_with("8x") ? 1 : 2;
  };
  for (const PlatformListing& p : all.platforms) {
    if (p.role != PlatformListing::Role::node || p.gpus_per_node < 2 || !same_name(p.device, gpu)) continue;
    if (best == nullptr || rank(p) < rank(*best)) best = &p;
  }
  if (best == nullptr) return Error{fmt::format("no shipped node holds several {}", gpu)};
  return best->name;
}

Result<std::string> default_node_for_gpu(std::string_view gpu) {
  const std::vector<std::filesystem::path> dirs = platform_search_dirs();
  return default_node_for_gpu(gpu, dirs);
}

std::optional<std::string> default_node_for(const Platform& platform, std::int64_t n_gpus) {
  if (n_gpus < 2 || platform.node.gpus_per_node > 1 || platform.node.network) return std::nullopt;
  Result<std::string> node = default_node_for_gpu(platform.device.name);
  if (!node) return std::nullopt;
  return *std::move(node);
}

Result<PlatformChoice> load_meant_platform(const std::string& name, std::int64_t n_gpus,
                                           std::optional<std::int64_t> gpus_per_node) {
  PlatformChoice meant;
  STEPCAST_ASSIGN(meant.platform, load_platform(name));
  if (const auto node = default_node_for(meant.platform, n_gpus)) {
    meant.note = node_note(name, *node);
    STEPCAST_ASSIGN(meant.platform, load_platform(*node));
  }
  if (gpus_per_node) {
    std::string ignored;
    adapt_to({.gpus_per_node = *gpus_per_node}, meant.platform, ignored);
    STEPCAST_TRY(meant.platform.check());
  }
  return meant;
}

std::optional<std::string> rack_of_trays(std::string_view gpu, std::int64_t gpus_per_node,
                                         std::int64_t n_gpus) {
  const std::vector<std::filesystem::path> dirs = platform_search_dirs();
  const PlatformListings all = list_platforms(dirs);
  for (const PlatformListing& p : all.platforms) {
    const auto held = static_cast<std::int64_t>(p.gpus_per_node);
    if (p.role != PlatformListing::Role::node || held < kFewestOfARack || gpus_per_node < 1 ||
        gpus_per_node >= kFewestOfARack || held % gpus_per_node != 0 || n_gpus > held)
      continue;
    if (same_name(p.device, gpu) || alias_match_length(gpu, p.device, p.device_aliases) > 0) return p.name;
  }
  return std::nullopt;
}

std::string node_note(std::string_view gpu, std::string_view node) {
  return fmt::format("{} is a GPU: in a {}, its usual node", gpu, node);
}

Result<PlatformChoice> platform_for(const MachineDescription& machine,
                                    std::span<const std::filesystem::path> search_dirs) {
  PlatformChoice choice;
  Result<Platform> named = machine.name.empty() ? Result<Platform>{Error{"no platform or GPU is given"}}
                                                : load_platform(machine.name, search_dirs, machine.gpu);
  if (!named && !machine.gpu.empty()) {
    named = by_gpu(machine, search_dirs);
    if (named) {
      choice.note = machine.name.empty() ? fmt::format("{} is assumed to be {}; ", named->name, machine.gpu)
                                         : fmt::format("platform '{}' is not shipped: {} is used instead; ",
                                                       machine.name, named->name);
    }
  }
  if (!named) return std::move(named).error();
  choice.platform = std::move(*named);
  adapt_to(machine, choice.platform, choice.note);
  return choice;
}

Result<PlatformChoice> platform_for(const MachineDescription& machine) {
  const std::vector<std::filesystem::path> dirs = platform_search_dirs();
  return platform_for(machine, dirs);
}

}  // namespace stepcast
