#include "stepcast/retrace/detail/block_edit.h"

#include <algorithm>
#include <utility>

namespace stepcast::detail {

// Edges with a launch origin give the launch time of GPU work; other tasks count as launched at their start.
BlockEdit::BlockEdit(const Block& block, std::span<const Interval> measured) : block_(block) {
  const std::uint32_t n = block.task_count();
  order_.resize(block.lanes().size());
  for (std::uint32_t t = 0; t < n; ++t) {
    const std::uint16_t lane = block.lane_codes()[t];
    tasks_.push_back({block.tasks()[t], block.duration_us()[t], measured[t], lane, false});
    order_[lane].push_back(t);
  }
  launched_us_.reserve(n);
  for (std::uint32_t t = 0; t < n; ++t) {
    launched_us_.push_back(measured[t].start_us);
    for (std::uint32_t e = block.first_edge()[t]; e < block.first_edge()[t + 1]; ++e) {
      const std::uint32_t code = block.sources()[e];
      const bool port = code >= 2 * n;
      edges_.push_back({port ? code - 2 * n : code / 2, t, port, !port && code % 2 == 0, block.delay_us()[e],
                        block.edge_infos()[e]});
      if (block.edge_infos()[e].origin == EdgeOrigin::launch && !port) {
        launched_us_[t] = measured[code / 2].start_us;
      }
    }
  }
}

std::uint32_t BlockEdit::last_launched(std::uint16_t lane, double us) const {
  std::uint32_t last = kNoTask;
  for (const std::uint32_t t : order_[lane]) {
    if (launched_us_[t] >= us) break;
    if (!tasks_[t].removed) last = t;
  }
  return last;
}

std::uint32_t BlockEdit::add(EditedTask copy, double launched_us) {
  copy.removed = false;
  copy.measured = {launched_us, launched_us};
  tasks_.push_back(copy);
  launched_us_.push_back(launched_us);
  return static_cast<std::uint32_t>(tasks_.size() - 1);
}

std::uint32_t BlockEdit::insert_after(std::uint32_t before, EditedTask copy) {
  copy.lane = tasks_[before].lane;
  const double us = tasks_[before].measured.end_us;
  const std::uint32_t id = add(copy, us);
  std::vector<std::uint32_t>& order = order_[tasks_[before].lane];
  auto place = std::next(std::find(order.begin(), order.end(), before));
  // New tasks have numbers from task_count() on. Skip earlier insertions after the same task to keep their order.
  while (place != order.end() && *place >= block_.task_count()) ++place;
  order.insert(place, id);
  return id;
}

std::uint32_t BlockEdit::insert_before(std::uint32_t next, EditedTask copy) {
  copy.lane = tasks_[next].lane;
  const std::uint32_t id = add(copy, tasks_[next].measured.start_us);
  std::vector<std::uint32_t>& order = order_[tasks_[next].lane];
  order.insert(std::find(order.begin(), order.end(), next), id);
  return id;
}

std::uint32_t BlockEdit::insert_launched(std::uint16_t lane, double launched_us, EditedTask copy) {
  copy.lane = lane;
  const std::uint32_t id = add(copy, launched_us);
  std::vector<std::uint32_t>& order = order_[lane];
  const auto place = std::find_if(order.begin(), order.end(), [&](std::uint32_t t) {
    // Earlier insertions at the same time come first.
    return launched_us_[t] > launched_us || (launched_us_[t] == launched_us && t < block_.task_count());
  });
  order.insert(place, id);
  return id;
}

void BlockEdit::connect(std::uint32_t from, std::uint32_t to, double delay_us, const EdgeInfo& info,
                        bool from_start) {
  edges_.push_back({from, to, false, from_start, delay_us, info});
}

Result<EditedBlock> BlockEdit::finish() && {
  // The nearest remaining task before and after each task on its lane.
  std::vector<std::uint32_t> before(tasks_.size(), kNoTask), behind(tasks_.size(), kNoTask);
  for (const std::vector<std::uint32_t>& order : order_) {
    std::uint32_t last = kNoTask;
    for (const std::uint32_t t : order) {
      before[t] = last;
      if (!tasks_[t].removed) last = t;
    }
    last = kNoTask;
    for (auto t = order.rbegin(); t != order.rend(); ++t) {
      behind[*t] = last;
      if (!tasks_[*t].removed) last = *t;
    }
  }
  BlockBuilder builder{block_.name(), block_.role()};
  for (const Lane& lane : block_.lanes()) builder.add_lane(lane);
  for (const std::string& port : block_.in_ports()) builder.add_in_port(port);
  std::vector<TaskId> id(tasks_.size());
  for (std::size_t lane = 0; lane < order_.size(); ++lane) {
    for (const std::uint32_t t : order_[lane]) {
      if (tasks_[t].removed) continue;
      id[t] = builder.add_task(LaneId{lane}, tasks_[t].info, Microseconds{tasks_[t].duration_us});
    }
  }
  const auto on_cpu = [&](std::uint32_t t) {
    return block_.lanes()[tasks_[t].lane].kind == LaneKind::cpu_thread;
  };
  // Reconnect the edges of removed tasks to the neighbours on the lane. A reconnected edge within one CPU thread is dropped: the
  // order of the thread implies it.
  for (EditedEdge edge : edges_) {
    const bool relinked = tasks_[edge.to].removed || (!edge.from_port && tasks_[edge.from].removed);
    if (tasks_[edge.to].removed) {
      if (!on_cpu(edge.to) || behind[edge.to] == kNoTask) continue;
      edge.to = behind[edge.to];
    }
    if (!edge.from_port && tasks_[edge.from].removed) {
      const bool same_lane = tasks_[edge.from].lane == tasks_[edge.to].lane;
      if ((!on_cpu(edge.from) && !same_lane) || before[edge.from] == kNoTask) continue;
      edge.from = before[edge.from];
      edge.from_start = false;
    }
    if (edge.from_port) {
      builder.add_edge(BlockBuilder::arrival_at(InPortId{edge.from}), id[edge.to],
                       Microseconds{edge.delay_us}, edge.info);
      continue;
    }
    if (relinked && on_cpu(edge.to) && tasks_[edge.from].lane == tasks_[edge.to].lane) continue;
    builder.add_edge(
        edge.from_start ? BlockBuilder::start_of(id[edge.from]) : BlockBuilder::end_of(id[edge.from]),
        id[edge.to], Microseconds{edge.delay_us}, edge.info);
  }
  STEPCAST_ASSIGN(BlockBuilder::Finished finished, std::move(builder).finish_with_map());
  EditedBlock edited;
  edited.measured.resize(finished.block.task_count());
  edited.of_task.resize(tasks_.size());
  for (std::uint32_t t = 0; t < tasks_.size(); ++t) {
    const std::uint32_t stands = !tasks_[t].removed ? t : on_cpu(t) ? before[t] : kNoTask;
    if (stands == kNoTask) continue;
    edited.of_task[t] = finished.new_id[id[stands].index()];
    if (stands == t) edited.measured[edited.of_task[t].index()] = tasks_[t].measured;
  }
  edited.block = std::move(finished.block);
  return edited;
}

Result<RecordedProgram> with_blocks(RecordedProgram recorded, std::vector<EditedBlock> blocks,
                                    std::vector<NewCollective> added,
                                    const std::map<std::size_t, double>& message_bytes) {
  const Program before = std::move(recorded.program);
  recorded.program = Program{};
  Program& program = recorded.program;
  program.names = before.names;
  program.stacks = before.stacks;
  program.works = before.works;
  for (const RankGroup& group : before.groups()) program.add_group(group);
  for (std::size_t c = 0; c < before.rank_classes().size(); ++c) {
    recorded.measured[c] = std::move(blocks[c].measured);
    RecordedStepFacts& facts = recorded.facts[c];
    if (facts.step_end_task.valid()) facts.step_end_task = blocks[c].of_task[facts.step_end_task.index()];
    RankClass rank_class = before.rank_class(RankClassId{c});
    rank_class.instances.front().block = program.add_block(std::move(blocks[c].block));
    program.add_rank_class(std::move(rank_class));
  }
  // Adds a collective if all of its tasks remain.
  const auto add = [&](Collective collective, auto&& task_of) {
    bool all = true;
    for (std::size_t m = 0; m < collective.members.size(); ++m) {
      CollectiveMember& member = collective.members[m];
      member.task = blocks[member.rank_class.index()].of_task[task_of(m)];
      all = all && member.task.valid();
    }
    if (all) program.add_collective(std::move(collective));
  };
  for (std::size_t i = 0; i < before.collectives().size(); ++i) {
    Collective collective = before.collectives()[i];
    if (const auto now = message_bytes.find(i); now != message_bytes.end())
      collective.message_bytes = now->second;
    add(std::move(collective),
        [&](std::size_t m) { return before.collectives()[i].members[m].task.index(); });
  }
  for (const NewCollective& one : added) {
    add(one.collective, [&](std::size_t m) { return one.tasks[m]; });
  }
  STEPCAST_TRY(program.check());
  return recorded;
}

Result<RecordedProgram> with_durations(RecordedProgram recorded, const Costs& costs) {
  std::vector<EditedBlock> blocks;
  for (std::size_t c = 0; c < recorded.program.rank_classes().size(); ++c) {
    const BlockId id = recorded.program.rank_class(RankClassId{c}).instances.front().block;
    const Block& block = recorded.program.block(id);
    BlockEdit edit{block, recorded.measured[c]};
    for (std::uint32_t t = 0; t < block.task_count(); ++t)
      edit.task(t).duration_us = costs.duration_us(id)[t];
    STEPCAST_ASSIGN(EditedBlock edited, std::move(edit).finish());
    blocks.push_back(std::move(edited));
  }
  return with_blocks(std::move(recorded), std::move(blocks), {});
}

}  // namespace stepcast::detail
