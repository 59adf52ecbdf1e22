#include "stepcast/analyze/achieved_rates.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "stepcast/base/names.h"
#include "stepcast/cost/collective_curve.h"
#include "stepcast/operation/operation.h"

namespace stepcast {
namespace {

// The name of a link inside a node for reports.
std::string_view link_name(LinkKind kind) {
  return name_of<LinkKind::torus>(
      kind, {"", "NVSwitch", "NVLink mesh", "xGMI mesh", "PCIe", "NVLink and PCIe", "torus"},
      "NVLink and PCIe");
}

// Sets the link that a group of these world ranks is limited by, and its bandwidth: the network per GPU if
// the ranks are on several nodes, otherwise the link inside a node. Ranks are assumed to fill nodes in order.
void add_link(const Platform& platform, const std::vector<std::int64_t>& ranks, GroupTraffic& traffic) {
  const auto per_node = static_cast<std::int64_t>(std::max<std::uint32_t>(1, platform.node.gpus_per_node));
  std::set<std::int64_t> nodes;
  for (const std::int64_t rank : ranks) nodes.insert(rank / per_node);
  if (nodes.size() > 1) {
    if (!platform.node.network) return;
    traffic.link = platform.node.network->kind;
    traffic.link_GBps =
        platform.node.network->bandwidth_per_node().value() * 1e-9 / static_cast<double>(per_node);
    return;
  }
  const IntraNode& intra = platform.node.intra;
  if (intra.kind == LinkKind::none) return;
  traffic.link = link_name(intra.kind);
  traffic.link_GBps = intra.bandwidth_per_gpu.value() * 1e-9;
}

// Bus bandwidth in GB/s as nccl-tests defines it: bytes / time times the factor of the operation (all-reduce:
// 2 (n - 1) / n). Nothing if bytes, time or the factor is not above 0.
std::optional<double> bus_bandwidth_of(std::string_view operation, std::uint32_t n_ranks, double bytes,
                                       double us) {
  if (bytes <= 0 || us <= 0) return std::nullopt;
  const double factor = bus_factor(parse_collective_op(operation), n_ranks);
  if (factor <= 0) return std::nullopt;
  return factor * bytes / us * 1e-3;
}

// Adds one collective, and keeps the rate of the largest message, which is least affected by latency.
void add_message(double bytes, double us, GroupTraffic& traffic) {
  traffic.message_bytes += bytes;
  traffic.transfer_us += us;
  if (bytes <= traffic.largest_message_bytes) return;
  traffic.largest_message_bytes = bytes;
  traffic.largest_bus_GBps = bus_bandwidth_of(traffic.operation, traffic.n_ranks, bytes, us);
}

// The values of the map with their bus bandwidth, in descending order of transfer and waiting time.
template <class Groups>
std::vector<GroupTraffic> longest_first(Groups& groups) {
  std::vector<GroupTraffic> all;
  for (auto& [key, traffic] : groups) {
    traffic.bus_GBps =
        bus_bandwidth_of(traffic.operation, traffic.n_ranks, traffic.message_bytes, traffic.transfer_us);
    all.push_back(std::move(traffic));
  }
  std::ranges::stable_sort(all, std::greater{},
                           [](const GroupTraffic& g) { return g.transfer_us + g.wait_us; });
  return all;
}

// The type with most FLOPs of matrix work; of all work if there is no matrix work. The second member says
// which of the two it is. Nothing if no work is known.
std::optional<std::pair<DType, bool>> main_type(const std::map<std::pair<DType, bool>, double>& flops) {
  std::optional<std::pair<DType, bool>> most;
  for (const bool matrix : {true, false}) {
    double largest = 0;
    for (const auto& [type, n] : flops) {
      if (type.second != matrix || n <= largest) continue;
      largest = n;
      most = type;
    }
    if (most) return most;
  }
  return most;
}

}  // namespace

std::vector<GroupTraffic> traffic_by_group(const Forecast& forecast, const Platform* platform) {
  std::map<std::tuple<std::string, std::string, std::size_t>, GroupTraffic> groups;
  for (const ForecastCollective& collective : forecast.collectives) {
    const std::size_t n = collective.members.size();
    if (n < 2) continue;
    const auto [it, fresh] = groups.try_emplace({collective.group, collective.operation, n});
    GroupTraffic& traffic = it->second;
    if (fresh) {
      traffic.group = collective.group;
      traffic.operation = collective.operation;
      traffic.n_ranks = static_cast<std::uint32_t>(n);
      std::vector<std::int64_t> ranks;
      for (const ForecastMember& member : collective.members) {
        // Recorded classes know their rank; otherwise the class number is used as the rank.
        const ForecastClass& c = forecast.classes[member.rank_class];
        ranks.push_back(c.rank.value_or(static_cast<std::int64_t>(member.rank_class)));
      }
      if (platform != nullptr) add_link(*platform, ranks, traffic);
    }
    ++traffic.n;
    traffic.wait_us += collective.total_wait_us / static_cast<double>(n);
    if (!collective.message_bytes) continue;
    add_message(*collective.message_bytes, collective.transfer_us, traffic);
  }
  return longest_first(groups);
}

std::vector<GroupTraffic> traffic_of_absent_ranks(const FlatProgram& flat, const TaskTimes& times,
                                                  std::span<const Interval> windows,
                                                  const Platform* platform) {
  const Program& program = flat.program();
  std::map<std::pair<std::size_t, CollectiveOp>, GroupTraffic> groups;  // key: GroupId and operation
  for (std::size_t c = 0; c < flat.class_count(); ++c) {
    const RankClassId id{c};
    for (std::size_t t = 0; t < flat.task_count(id); ++t) {
      const CollectiveWork* work = program.works.collective(flat.info(id, t).work);
      if (work == nullptr || !work->group.valid() || work->message.value() <= 0) continue;
      // Collectives with several recorded members are synchronised by the replay and belong to
      // traffic_by_group().
      const CollectiveId joined = flat.collective_of(id, t);
      if (joined.valid() && program.collectives()[joined.index()].members.size() > 1) continue;
      const Interval& at = times.at(id, t);
      const RankGroup& group = program.groups()[work->group.index()];
      if (group.ranks.size() < 2 || at.start_us < windows[c].start_us || at.start_us >= windows[c].end_us)
        continue;
      const auto [it, fresh] = groups.try_emplace({work->group.index(), work->op});
      GroupTraffic& traffic = it->second;
      if (fresh) {
        traffic.group = group.label;
        traffic.operation = to_string(work->op);
        traffic.n_ranks = static_cast<std::uint32_t>(group.ranks.size());
        traffic.holds_waiting = true;
        if (platform != nullptr) add_link(*platform, {group.ranks.begin(), group.ranks.end()}, traffic);
      }
      ++traffic.n;
      add_message(work->message.value(), at.length_us(), traffic);
    }
  }
  return longest_first(groups);
}

AchievedRates achieved_rates(const FlatProgram& flat, const TaskTimes& times,
                             std::span<const Interval> windows, const Forecast& forecast,
                             const Platform* platform) {
  const Program& program = flat.program();
  AchievedRates rates;
  std::array<ClassRate, kKernelClassCount> classes{};
  std::map<std::pair<DType, bool>, double> flops_of_type;
  for (std::size_t c = 0; c < flat.class_count(); ++c) {
    const RankClassId id{c};
    RankUtilization& rank = rates.ranks.emplace_back();
    rank.step_us = windows[c].length_us();
    rank.busy_us = 1e3 * forecast.classes[c].gpu_active_ms;
    rank.computing_us = 1e3 * forecast.classes[c].computation_ms;
    for (std::size_t t = 0; t < flat.task_count(id); ++t) {
      const TaskInfo& info = flat.info(id, t);
      if (info.kind != TaskKind::kernel || info.kernel_class == KernelClass::communication) continue;
      const Interval& at = times.at(id, t);
      // A kernel counts with all its work if it begins inside the window, since work cannot be split.
      if (at.start_us < windows[c].start_us || at.start_us >= windows[c].end_us) continue;
      const double us = at.length_us();
      ClassRate& of_class = classes[static_cast<std::size_t>(info.kernel_class)];
      of_class.kernel_class = info.kernel_class;
      of_class.time_us += us;
      rank.kernel_us += us;
      const Operation* operation = program.works.operation(info.work);
      if (operation == nullptr) continue;
      const Work work = work_of(*operation);
      const double flops = work.flops.value() * info.work_times,
                   bytes = work.bytes().value() * info.work_times;
      flops_of_type[{operation->dtype, work.matrix}] += flops;
      of_class.known_us += us;
      of_class.flops += flops;
      of_class.bytes += bytes;
      rank.known_us += us;
      rank.flops += flops;
      rank.bytes += bytes;
    }
  }
  for (const ClassRate& of_class : classes)
    if (of_class.time_us > 0) rates.classes.push_back(of_class);
  std::ranges::stable_sort(rates.classes, std::greater{}, &ClassRate::time_us);
  if (platform == nullptr) return rates;
  if (platform->device.memory_bandwidth.value() > 0)
    rates.peak_GBps = platform->device.memory_bandwidth.value() * 1e-9;
  if (const auto type = main_type(flops_of_type)) {
    const std::optional<FlopsPerSecond> peak =
        type->second ? platform->device.peak(type->first) : platform->device.vector(type->first);
    if (peak) {
      rates.peak_tflops = peak->value() * 1e-12;
      rates.peak_type = to_string(type->first);
    }
  }
  return rates;
}

}  // namespace stepcast
