#include "stepcast/report/chakra_export.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stepcast/base/output_file.h"
#include "stepcast/trace/chakra_writer.h"

namespace stepcast {
namespace {

// Node 0 of the list is the beginning of the step, and task t is node t + 1. Ids in the file are one larger,
// because protobuf omits fields with the value 0.
constexpr std::uint32_t kBegin = 0;
std::uint32_t node_of(std::size_t task) {
  return task == kNoTask ? kBegin : static_cast<std::uint32_t>(task + 1);
}

// Numbers process groups from 1. Groups with the same ranks but different purposes get different numbers.
class Communicators {
 public:
  // The number of a group; a new group gets the next number.
  std::size_t number(std::string_view label, const std::vector<std::uint32_t>& ranks) {
    const auto [found, is_new] = numbers_.emplace(std::pair{std::string{label}, ranks}, numbers_.size() + 1);
    return found->second;
  }
  // The content of comm_groups.json.
  [[nodiscard]] std::string json() const {
    std::map<std::size_t, const std::vector<std::uint32_t>*> by_number;
    for (const auto& [group, number] : numbers_) by_number[number] = &group.second;
    std::string out = "{";
    for (const auto& [number, ranks] : by_number)
      out += fmt::format("{}\n  \"{}\": [{}]", number > 1 ? "," : "", number, fmt::join(*ranks, ", "));
    return out + "\n}\n";
  }

 private:
  std::map<std::pair<std::string, std::vector<std::uint32_t>>, std::size_t> numbers_;
};

// Makes the graphs of a program.
class Exporter {
 public:
  // With `ranks`, single ranks are exported; otherwise one rank per class.
  Exporter(const FlatProgram& flat, const Costs& costs, const RankTable* ranks = nullptr)
      : flat_(flat), program_(flat.program()), costs_(costs), ranks_(ranks) {
    // Collectives between the same rank classes share a group.
    for (std::size_t i = 0; i < program_.collectives().size(); ++i) {
      std::set<std::uint32_t> classes;
      for (const CollectiveMember& m : program_.collectives()[i].members)
        classes.insert(m.rank_class.index());
      auto [found, is_new] = groups_.emplace(std::move(classes), groups_.size());
      group_of_.push_back(found->second);
    }
  }

  // The graph of rank class `c`. `k`: the index of the rank in its class, if single ranks are exported.
  OperationGraph graph(RankClassId c, std::span<const RankStep> steps, std::size_t k = 0) {
    OperationGraph graph;
    const RankClass& rank_class = program_.rank_class(c);
    graph.rank =
        rank_class.recorded_rank >= 0 ? rank_class.recorded_rank : static_cast<std::int32_t>(c.index());
    if (ranks_ != nullptr) graph.rank = static_cast<std::int32_t>(ranks_->of_class[c.index()][k]);
    place_in_class_ = k;
    GraphNode begin;
    begin.id = 1;
    begin.name = graph.names.intern("begin of the step");
    begin.on_cpu = true;
    begin.lane = static_cast<std::int64_t>(rank_class.lanes.size());
    if (c.index() < steps.size()) {
      begin.duration_us = steps[c.index()].begin_us;
      if (steps[c.index()].facts) mark(c, *steps[c.index()].facts, graph);
    } else {
      begin.duration_us = 0;
    }
    graph.nodes.push_back(begin);
    for (std::size_t t = 0; t < flat_.task_count(c); ++t) add(c, t, graph);
    return graph;
  }
  [[nodiscard]] const Communicators& communicators() const { return communicators_; }

 private:
  // Marks the step in the metadata of the graph.
  void mark(RankClassId c, const RecordedStepFacts& facts, OperationGraph& graph) {
    if (!facts.step_end_task.valid()) return;
    const std::size_t end =
        flat_.flat({.rank_class = c, .rank = 0, .instance = InstanceId{0}, .task = facts.step_end_task});
    graph.step = StepMark{.number = facts.step_number,
                          .start_us = facts.step_us.start_us,
                          .begin_node = kBegin,
                          .end_node = node_of(end),
                          .ends_at_start = facts.step_ends_at_start};
  }

  // Adds the node of task `t` with its dependencies. Chakra dependencies start at the end of a node, so a
  // dependency on the start of a task gets a delay that is shorter by the duration of that task.
  void add(RankClassId c, std::size_t t, OperationGraph& graph) {
    const TaskInfo& info = flat_.info(c, t);
    GraphNode node;
    node.id = t + 2;
    node.name = graph.names.intern(info.name.valid() ? program_.names.text(info.name) : to_string(info.kind));
    node.on_cpu = flat_.lane_of(c, t).kind == LaneKind::cpu_thread;
    node.lane = flat_.lane(c, t);
    node.duration_us = flat_.duration_us(c, t, costs_);
    describe(c, t, info, graph, node);
    std::map<std::uint32_t, double> waits_for;  // node -> delay from the end of that node
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

  // Sets what the node does: the operation, group and bytes of a transfer, or the FLOPs and bytes of a
  // kernel.
  void describe(RankClassId c, std::size_t t, const TaskInfo& info, OperationGraph& graph, GraphNode& node) {
    const CollectiveWork* transfer = program_.works.collective(info.work);
    const CollectiveId joined = flat_.collective_of(c, t);
    if (transfer != nullptr || joined.valid()) {
      node.kind = GraphNode::Kind::collective;
      node.on_cpu = false;
      node.op = transfer != nullptr ? transfer->op : program_.collectives()[joined.index()].op;
      if (transfer != nullptr) node.bytes = put_in(*transfer);
      if (ranks_ != nullptr) {
        name_ranks(c, transfer, joined, graph, node);
      } else if (joined.valid() && program_.collectives()[joined.index()].members.size() > 1) {
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

  // Sets the process group of a transfer of a single rank, or the peer of a send or receive.
  void name_ranks(RankClassId c, const CollectiveWork* transfer, CollectiveId joined, OperationGraph& graph,
                  GraphNode& node) {
    const auto own = static_cast<std::uint32_t>(*graph.rank);
    const RankGroup* group = transfer != nullptr && transfer->group.valid()
                                 ? &program_.groups()[transfer->group.index()]
                                 : nullptr;
    const Collective* collective = joined.valid() ? &program_.collectives()[joined.index()] : nullptr;
    const auto rank_in = [&](const CollectiveMember& member) {
      return ranks_->of_class[member.rank_class.index()][place_in_class_];
    };
    if (collective != nullptr && collective->members.size() > 1) {
      node.tag = static_cast<std::int64_t>(joined.index()) + 1;
      const bool aligned = collective->grouping == CollectiveGrouping::aligned;
      // Two aligned members with a root are a point-to-point transfer.
      if (aligned && collective->members.size() == 2 && collective->kind == CollectiveKind::rooted_from) {
        const bool sends = collective->members[collective->root].rank_class == c;
        node.kind = sends ? GraphNode::Kind::send : GraphNode::Kind::receive;
        node.peer = static_cast<std::int32_t>(
            rank_in(collective->members[sends ? 1 - collective->root : collective->root]));
        return;
      }
      std::vector<std::uint32_t> all;
      if (group != nullptr) all = ranks_->group(*group, own);
      // The layout does not know the group: use the members of the collective.
      if (all.size() < 2) {
        for (const CollectiveMember& member : collective->members) {
          const std::vector<std::uint32_t>& of_class = ranks_->of_class[member.rank_class.index()];
          if (aligned)
            all.push_back(rank_in(member));
          else
            all.insert(all.end(), of_class.begin(), of_class.end());
        }
        std::ranges::sort(all);
      }
      set_group(group != nullptr ? group->label : "all of a collective", all, transfer, graph, node);
      return;
    }
    std::vector<std::uint32_t> all;
    if (group != nullptr) all = ranks_->group(*group, own);
    if (all.empty()) all = {own};
    set_group(group != nullptr ? group->label : "transfers", all, transfer, graph, node);
  }
  // Sets the number of the group. The bytes of an all-gather depend on the number of ranks, which is known
  // here.
  void set_group(std::string_view label, const std::vector<std::uint32_t>& ranks,
                 const CollectiveWork* transfer, OperationGraph& graph, GraphNode& node) {
    node.group = graph.names.intern(std::to_string(communicators_.number(label, ranks)));
    if (transfer != nullptr && transfer->op == CollectiveOp::all_gather)
      node.bytes = transfer->message.value() / static_cast<double>(ranks.size());
  }

  // The bytes that one rank contributes, as Chakra counts them. For an all-gather that is the message divided
  // by the number of ranks.
  double put_in(const CollectiveWork& work) const {
    if (work.op != CollectiveOp::all_gather || !work.group.valid()) return work.message.value();
    const std::size_t n = program_.groups()[work.group.index()].ranks.size();
    return n > 0 ? work.message.value() / static_cast<double>(n) : work.message.value();
  }

  const FlatProgram& flat_;
  const Program& program_;
  const Costs& costs_;
  const RankTable* ranks_ = nullptr;
  std::size_t place_in_class_ = 0;
  Communicators communicators_;
  std::map<std::set<std::uint32_t>, std::size_t> groups_;  // sets of rank classes
  std::vector<std::size_t> group_of_;                      // [CollectiveId] index of the group
};

}  // namespace

std::vector<RankStep> steps_of(const RecordedProgram& recorded) {
  std::vector<RankStep> steps;
  for (std::size_t c = 0; c < recorded.facts.size(); ++c)
    steps.push_back({recorded.start_offset_us[c], recorded.facts[c]});
  return steps;
}

std::vector<OperationGraph> operation_graphs(const FlatProgram& flat, const Costs& costs,
                                             std::span<const RankStep> steps) {
  Exporter exporter{flat, costs};
  std::vector<OperationGraph> graphs;
  for (std::size_t c = 0; c < flat.class_count(); ++c)
    graphs.push_back(exporter.graph(RankClassId{c}, steps));
  return graphs;
}

RankTable RankTable::of_single_ranks(const Program& program) {
  RankTable table;
  std::set<std::uint32_t> known;
  for (std::size_t c = 0; c < program.rank_classes().size(); ++c) {
    const std::int32_t recorded = program.rank_class(RankClassId{c}).recorded_rank;
    table.of_class.push_back(
        {recorded >= 0 ? static_cast<std::uint32_t>(recorded) : static_cast<std::uint32_t>(c)});
    known.insert(table.of_class.back().front());
  }
  // If only some ranks of a group were recorded, the group contains those.
  table.group = [known](const RankGroup& of, std::uint32_t rank) {
    std::vector<std::uint32_t> ranks;
    for (const std::uint32_t r : of.ranks)
      if (known.contains(r)) ranks.push_back(r);
    std::ranges::sort(ranks);
    return std::ranges::find(ranks, rank) == ranks.end() ? std::vector<std::uint32_t>{} : ranks;
  };
  return table;
}

RankTable RankTable::of_layout(const Program& program, const RankGroups& groups) {
  RankTable table;
  for (std::size_t c = 0; c < program.rank_classes().size(); ++c)
    table.of_class.push_back(groups.stage(static_cast<std::uint32_t>(c)));
  table.group = [&groups](const RankGroup& of, std::uint32_t rank) {
    for (int kind = 0; kind < kGroupKindCount; ++kind)
      if (to_string(static_cast<GroupKind>(kind)) == of.label)
        return groups.with(static_cast<GroupKind>(kind), rank);
    return std::vector<std::uint32_t>{};
  };
  return table;
}

namespace {

// Readers take every trace of a folder: those of an earlier export would count as ranks of this one.
Status refuse_other_traces(const std::filesystem::path& folder,
                           const std::vector<std::filesystem::path>& written) {
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator{folder, failure}) {
    const std::string name = entry.path().filename().string();
    const bool trace = (name.starts_with("step.") && name.ends_with(".et")) || name == "comm_groups.json";
    if (!trace || std::ranges::find(written, folder / name) != written.end()) continue;
    return Error::at(folder.string(), "")
        .found(fmt::format("{} of another export", name))
        .expected("a folder without Chakra traces")
        .advice("remove them, or name another folder");
  }
  return Ok{};
}

}  // namespace

Result<std::vector<std::filesystem::path>> write_chakra_per_rank(
    const std::filesystem::path& folder, const FlatProgram& flat, const Costs& costs,
    std::span<const RankStep> steps, const RankTable& ranks, std::span<const std::filesystem::path> inputs) {
  STEPCAST_TRY(make_folder(folder));
  // All files are opened before the first is written: if one cannot be written, no file is written.
  std::vector<OutputFile> outputs;
  std::vector<std::filesystem::path> written;
  const auto add = [&](const std::string& name) -> Status {
    written.push_back(folder / name);
    STEPCAST_ASSIGN(OutputFile output, OutputFile::at(written.back(), inputs));
    outputs.push_back(std::move(output));
    return Ok{};
  };
  for (const std::vector<std::uint32_t>& of_class : ranks.of_class)
    for (const std::uint32_t rank : of_class) STEPCAST_TRY(add(fmt::format("step.{}.et", rank)));
  STEPCAST_TRY(add("comm_groups.json"));
  STEPCAST_TRY(refuse_other_traces(folder, written));
  Exporter exporter{flat, costs, &ranks};
  auto output = outputs.begin();
  for (std::size_t c = 0; c < flat.class_count(); ++c)
    for (std::size_t k = 0; k < ranks.of_class[c].size(); ++k)
      STEPCAST_TRY((output++)->write(chakra_text(exporter.graph(RankClassId{c}, steps, k))));
  STEPCAST_TRY(output->write(exporter.communicators().json()));
  return written;
}

Result<std::vector<std::filesystem::path>> write_chakra(const std::filesystem::path& folder,
                                                        std::span<const OperationGraph> graphs,
                                                        std::span<const std::filesystem::path> inputs) {
  STEPCAST_TRY(make_folder(folder));
  std::vector<OutputFile> outputs;
  std::vector<std::filesystem::path> written;
  for (const OperationGraph& graph : graphs) {
    written.push_back(folder / fmt::format("step.{}.et", graph.rank.value_or(0)));
    STEPCAST_ASSIGN(OutputFile output, OutputFile::at(written.back(), inputs));
    outputs.push_back(std::move(output));
  }
  STEPCAST_TRY(refuse_other_traces(folder, written));
  for (std::size_t i = 0; i < graphs.size(); ++i) STEPCAST_TRY(outputs[i].write(chakra_text(graphs[i])));
  return written;
}

}  // namespace stepcast
