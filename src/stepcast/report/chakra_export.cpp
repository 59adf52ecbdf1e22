#include "stepcast/report/chakra_export.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/output_file.h"
#include "stepcast/trace/chakra_writer.h"

namespace stepcast {
namespace {

// Node 0 of the list is the begin of the step; task t is node t + 1. Ids are one more, as protobuf leaves out zeroes.
constexpr std::uint32_t kBegin = 0;
std::uint32_t node_of(std::size_t task) {
  return task == kNoTask ? kBegin : static_cast<std::uint32_t>(task + 1);
}

class Exporter {
 public:
  Exporter(const FlatProgram& flat, const Costs& costs)
      : flat_(flat), program_(flat.program()), costs_(costs) {
    for (std::size_t i = 0; i < program_.collectives().size(); ++i) {
      std::set<std::uint32_t> classes;
      for (const CollectiveMember& m : program_.collectives()[i].members)
        classes.insert(m.rank_class.index());
      auto [found, is_new] = groups_.emplace(std::move(classes), groups_.size());
      group_of_.push_back(found->second);
    }
  }

  OperationGraph graph(RankClassId c, double start_us) {
    OperationGraph graph;
    const RankClass& rank_class = program_.rank_class(c);
    graph.rank =
        rank_class.recorded_rank >= 0 ? rank_class.recorded_rank : static_cast<std::int32_t>(c.index());
    GraphNode begin;
    begin.id = 1;
    begin.name = graph.names.intern("begin of the step");
    begin.on_cpu = true;
    begin.lane = static_cast<std::int64_t>(rank_class.lanes.size());
    begin.duration_us = start_us;
    graph.nodes.push_back(begin);
    for (std::size_t t = 0; t < flat_.task_count(c); ++t) add(c, t, graph);
    return graph;
  }

 private:
  void add(RankClassId c, std::size_t t, OperationGraph& graph) {
    const TaskInfo& info = flat_.info(c, t);
    GraphNode node;
    node.id = t + 2;
    node.name = graph.names.intern(info.name.valid() ? program_.names.text(info.name) : to_string(info.kind));
    node.on_cpu = flat_.lane_of(c, t).kind == LaneKind::cpu_thread;
    node.lane = flat_.lane(c, t);
    node.duration_us = flat_.duration_us(c, t, costs_);
    describe(c, t, info, graph, node);
    std::map<std::uint32_t, double> waits_for;  // node -> delay from its end
    const std::size_t previous = flat_.previous_on_lane(c, t);
    waits_for[node_of(previous)] = 0;
    flat_.for_each_source(c, t, costs_, [&](const FlatSource& source) {
      double delay_us = source.delay_us;
      if (source.task != kNoTask && !source.from_end) delay_us -= flat_.duration_us(c, source.task, costs_);
      const auto [found, is_new] = waits_for.emplace(node_of(source.task), delay_us);
      if (!is_new) found->second = std::max(found->second, delay_us);
    });
    node.first_dependency = graph.dependencies.size();
    for (const auto& [dependency, delay_us] : waits_for) {
      graph.dependencies.push_back(dependency);
      graph.delays_us.push_back(delay_us);
    }
    node.end_dependency = graph.dependencies.size();
    graph.nodes.push_back(node);
  }

  void describe(RankClassId c, std::size_t t, const TaskInfo& info, OperationGraph& graph,
                GraphNode& node) const {
    const CollectiveWork* transfer = program_.works.collective(info.work);
    const CollectiveId joined = flat_.collective_of(c, t);
    if (transfer != nullptr || joined.valid()) {
      node.kind = GraphNode::Kind::collective;
      node.on_cpu = false;
      node.op = transfer != nullptr ? transfer->op : program_.collectives()[joined.index()].op;
      if (transfer != nullptr) node.bytes = put_in(*transfer);
      if (joined.valid() && program_.collectives()[joined.index()].members.size() > 1) {
        node.group = graph.names.intern(std::to_string(group_of_[joined.index()]));
        node.tag = static_cast<std::int64_t>(joined.index()) + 1;
      } else {
        const bool named = transfer != nullptr && transfer->group.valid();
        const std::string label =
            named ? program_.groups()[transfer->group.index()].label : std::string{"transfers"};
        node.group = graph.names.intern(fmt::format("{} of {}", label, program_.rank_class(c).name));
      }
      return;
    }
    if (const Operation* operation = program_.works.operation(info.work); operation != nullptr) {
      const Work work = work_of(*operation);
      node.flops = work.flops.value() * info.work_times;
      node.bytes = work.bytes().value() * info.work_times;
    }
  }

  // Chakra counts what one rank puts in.
  double put_in(const CollectiveWork& work) const {
    if (work.op != CollectiveOp::all_gather || !work.group.valid()) return work.message.value();
    const std::size_t n = program_.groups()[work.group.index()].ranks.size();
    return n > 0 ? work.message.value() / static_cast<double>(n) : work.message.value();
  }

  const FlatProgram& flat_;
  const Program& program_;
  const Costs& costs_;
  std::map<std::set<std::uint32_t>, std::size_t> groups_;  // of rank classes
  std::vector<std::size_t> group_of_;                      // [CollectiveId]
};

}  // namespace

std::vector<OperationGraph> operation_graphs(const FlatProgram& flat, const Costs& costs,
                                             std::span<const double> start_offset_us) {
  Exporter exporter{flat, costs};
  std::vector<OperationGraph> graphs;
  for (std::size_t c = 0; c < flat.class_count(); ++c)
    graphs.push_back(exporter.graph(RankClassId{c}, c < start_offset_us.size() ? start_offset_us[c] : 0));
  return graphs;
}

Result<std::vector<std::filesystem::path>> write_chakra(const std::filesystem::path& folder,
                                                        std::span<const OperationGraph> graphs,
                                                        std::span<const std::filesystem::path> inputs) {
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem) {
    return Error::at(folder.string(), "")
        .found(fmt::format("a folder that cannot be made: {}", problem.message()))
        .expected("a place to write Chakra traces to");
  }
  std::vector<OutputFile> outputs;
  std::vector<std::filesystem::path> written;
  for (const OperationGraph& graph : graphs) {
    written.push_back(folder / fmt::format("step.{}.et", graph.rank.value_or(0)));
    STEPCAST_ASSIGN(OutputFile output, OutputFile::at(written.back(), inputs));
    outputs.push_back(std::move(output));
  }
  for (std::size_t i = 0; i < graphs.size(); ++i) STEPCAST_TRY(outputs[i].write(chakra_text(graphs[i])));
  return written;
}

}  // namespace stepcast
