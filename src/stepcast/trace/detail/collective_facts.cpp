#include "stepcast/trace/detail/collective_facts.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stepcast::detail {
namespace {

double bytes_of(std::int64_t elements, DType dtype) {
  const double element = element_size(dtype).value();
  return elements >= 0 && element > 0 ? static_cast<double>(elements) * element : -1;
}

void take_sizes(CollectiveFacts& facts, std::int64_t in, std::int64_t out, DType dtype) {
  if (facts.bytes >= 0) return;
  facts.bytes = bytes_of(std::max(in, out), dtype);
  facts.bytes_in = bytes_of(in, dtype);
  if (facts.bytes >= 0) facts.dtype = dtype;
}

void take(CollectiveFacts& facts, const RankGraph& g, const CollectiveInfo& info) {
  if (facts.op == CollectiveOp::unknown) facts.op = info.op;
  take_sizes(facts, info.in_elements, info.out_elements, info.dtype);
  if (facts.group_size < 0) facts.group_size = info.group_size;
  if (facts.communicator.empty() && (info.process_group.valid() || !info.group_ranks.empty())) {
    facts.group_name = std::string(g.recorded->names.text(info.process_group));
    facts.communicator = fmt::format("{}|{}", facts.group_name, fmt::join(info.group_ranks, ","));
    facts.group_ranks = info.group_ranks;
  }
}

void take(CollectiveFacts& facts, const EtCollective& et) {
  if (facts.op == CollectiveOp::unknown) facts.op = et.op;
  if (et.elements_in >= 0) take_sizes(facts, et.elements_in, et.elements_out, et.dtype);
}

}  // namespace

CollectiveFacts collective_facts(const RankGraph& g, const GpuWork& w) {
  CollectiveFacts facts;
  const GpuOp& op = g.recorded->gpu_ops[w.recorded];
  if (op.collective >= 0)
    take(facts, g, g.recorded->collective_infos[static_cast<std::size_t>(op.collective)]);
  const std::int32_t comm_op = w.call == kNone ? kNone : g.calls[static_cast<std::size_t>(w.call)].comm_op;
  if (comm_op != kNone) {
    const CpuOp& cpu = g.recorded->cpu_ops[static_cast<std::size_t>(comm_op)];
    if (cpu.collective >= 0)
      take(facts, g, g.recorded->collective_infos[static_cast<std::size_t>(cpu.collective)]);
    if (!g.et_node_of_op.empty() && g.execution_trace != nullptr) {
      const std::int32_t node = g.et_node_of_op[static_cast<std::size_t>(comm_op)];
      const std::int32_t c =
          node == kNone ? kNone : g.execution_trace->nodes[static_cast<std::size_t>(node)].collective;
      if (c != kNone) take(facts, g.execution_trace->collectives[static_cast<std::size_t>(c)]);
    }
  }
  if (facts.op == CollectiveOp::unknown) facts.op = parse_collective_op(g.recorded->names.text(op.name));
  return facts;
}

bool is_known(const CollectiveFacts& facts) {
  return facts.op != CollectiveOp::unknown && (facts.bytes >= 0 || facts.op == CollectiveOp::barrier);
}

Bytes message_of(const CollectiveFacts& facts) {
  const bool own = facts.op == CollectiveOp::all_to_all || facts.op == CollectiveOp::send ||
                   facts.op == CollectiveOp::receive || facts.op == CollectiveOp::send_receive;
  const double bytes = own && facts.bytes_in > 0 ? facts.bytes_in : facts.bytes;
  return Bytes{std::max(bytes, 0.0)};
}

std::vector<std::vector<GroupId>> add_groups(Program& program, const std::vector<RankGraph>& ranks,
                                             const CollectiveMatch& match) {
  std::vector<std::uint32_t> present;  // ascending, as the ranks are
  for (const RankGraph& g : ranks) present.push_back(static_cast<std::uint32_t>(g.rank));
  std::vector<std::uint32_t> world = present;
  const auto size = ranks.front().recorded->world_size;
  const bool world_known = (size && *size > 0) || present.size() > 1;
  if (size && *size > 0) {
    world.resize(static_cast<std::size_t>(*size));
    std::iota(world.begin(), world.end(), 0U);
  }
  const auto group_of = [&](const RankGraph& g, const GpuWork& w) {
    const CollectiveFacts facts = collective_facts(g, w);
    RankGroup group;
    if (!facts.group_ranks.empty()) {
      for (const std::int32_t rank : facts.group_ranks)
        group.ranks.push_back(static_cast<std::uint32_t>(rank));
    } else if (w.collective != kNone) {
      for (const auto& [position, work] : match.collectives[static_cast<std::size_t>(w.collective)].members)
        group.ranks.push_back(present[static_cast<std::size_t>(position)]);
    } else if (world_known &&
               (facts.group_size < 0 || static_cast<std::size_t>(facts.group_size) == world.size())) {
      group.ranks = world;
    }
    std::ranges::sort(group.ranks);
    if (!facts.group_name.empty())
      group.label = facts.group_name;
    else if (group.ranks == world || (group.ranks.empty() && facts.group_size < 0))
      group.label = "all ranks";
    else if (group.ranks.empty())
      group.label = fmt::format("{} ranks", facts.group_size);
    else
      group.label = fmt::format("ranks {}", fmt::join(group.ranks, ","));
    return program.add_group(std::move(group));
  };
  std::vector<std::vector<GroupId>> groups;
  for (const RankGraph& g : ranks) {
    std::vector<GroupId>& of_rank = groups.emplace_back(g.gpu.size());
    for (std::size_t i = 0; i < g.gpu.size(); ++i)
      if (g.gpu[i].communication) of_rank[i] = group_of(g, g.gpu[i]);
  }
  return groups;
}

}  // namespace stepcast::detail
