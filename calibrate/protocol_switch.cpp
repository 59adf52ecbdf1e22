#include "calibrate/protocol_switch.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "calibrate/collective_fit.h"

namespace stepcast {
namespace {

constexpr int kFirstLog2 = 16, kLastLog2 = 30;
constexpr int kStepsPerOctave = 8;
constexpr double kReachOctaves = 1;    // around the switch estimated by NCCL
constexpr double kDenseOctaves = 0.6;  // closer neighbours show a bend

std::string size_text(double log2_bytes) {
  const auto log2 = static_cast<int>(std::lround(log2_bytes));
  return log2 >= 20 ? fmt::format("{}M", 1 << (log2 - 20)) : fmt::format("{}K", 1 << (log2 - 10));
}

}  // namespace

std::vector<ProtocolSwitch> protocol_switches(const NcclFabric& fabric, CollectiveOp op,
                                              std::uint32_t n_ranks, std::uint32_t n_nodes) {
  std::vector<ProtocolSwitch> switches;
  NcclEstimate before;
  for (int i = kFirstLog2 * kStepsPerOctave; i <= kLastLog2 * kStepsPerOctave; ++i) {
    const double bytes = std::exp2(static_cast<double>(i) / kStepsPerOctave);
    const NcclEstimate now = nccl_estimate(fabric, op, n_ranks, n_nodes, bytes);
    const bool is_other = now.algorithm != before.algorithm || now.protocol != before.protocol;
    if (before.time_us > 0 && is_other) switches.push_back({bytes, before, now});
    before = now;
  }
  return switches;
}

std::string denser_sizes_command(const CollectiveMeasurements& measured, const Device& device,
                                 const Node& node) {
  using enum CollectiveOp;
  const bool is_modelled = measured.collective == all_reduce || measured.collective == all_gather ||
                           measured.collective == reduce_scatter;
  if (device.vendor != "NVIDIA" || !is_modelled || measured.n_ranks < 2 || measured.samples.empty())
    return {};
  std::set<double> sizes;  // log2
  for (const CollectiveSample& s : measured.samples) sizes.insert(std::log2(s.message_bytes));
  const NcclFabric fabric = nccl_fabric(device, node, measured.n_ranks / std::max(measured.n_nodes, 1U));
  double from = 1e300, to = -1e300;
  for (const ProtocolSwitch& s :
       protocol_switches(fabric, measured.collective, measured.n_ranks, measured.n_nodes)) {
    const double x = std::log2(s.message_bytes);
    const auto after = sizes.lower_bound(x);
    if (after == sizes.begin() || after == sizes.end()) continue;  // outside of the measured sizes
    if (*after - *std::prev(after) < kDenseOctaves) continue;
    from = std::min(from, std::floor(x - kReachOctaves));
    to = std::max(to, std::ceil(x + kReachOctaves));
  }
  if (from > to) return {};
  std::string command = measuring_command(measured.collective, measured.n_nodes, measured.gpus_per_node);
  const std::string all = "-b 8 -e 4G -f 2";
  return command.replace(command.find(all), all.size(),
                         fmt::format("-b {} -e {} -f 1.41", size_text(from), size_text(to)));
}

}  // namespace stepcast
