// BlockBuilder::finish: validation, topological sort (only when the tasks were not added in such an order)
// and conversion of the edge list to arrays indexed by target task (CSR).
#include "stepcast/program/block.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/names.h"

namespace stepcast {
namespace {

// While a block is built, Moment codes from here on are in-ports and smaller codes are tasks (2 codes each).
constexpr std::uint32_t kFirstPortCode = 0x80000000u;
constexpr std::uint32_t kMaxTasks = kFirstPortCode / 2;
constexpr std::size_t kMaxLanes = 0xffff;
constexpr std::uint32_t kNone = 0xffffffff;

bool is_length(double us) { return std::isfinite(us) && us >= 0; }

// `parts` with separators; beyond `most` parts the middle is replaced by "... (N more)" and the last part is
// kept.
std::string joined(const std::vector<std::string>& parts, std::string_view separator, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i == most && parts.size() > most + 1) {
      text += fmt::format("{}... ({} more)", separator, parts.size() - 1 - most);
      text += separator;
      text += parts.back();
      break;
    }
    if (i > 0) text += separator;
    text += parts[i];
  }
  return text;
}

}  // namespace

std::string_view to_string(TaskKind kind) {
  return name_of<TaskKind::wait>(kind,
                                 {"cpu_segment", "cpu_call", "sync_enter", "sync_return", "kernel", "memcpy",
                                  "memset", "collective", "wait"},
                                 "unknown");
}

std::string_view to_string(EdgeOrigin origin) {
  return name_of<EdgeOrigin::dependency>(origin,
                                         {"launch", "stream_order", "event", "synchronization", "tensor",
                                          "thread_handoff", "device_busy", "recorded_offset", "dependency"},
                                         "unknown");
}

std::size_t Block::memory_bytes() const {
  const auto bytes = [](const auto& v) { return v.capacity() * sizeof(v[0]); };
  return sizeof(Block) + bytes(lanes_) + bytes(in_ports_) + bytes(out_ports_) + bytes(lane_of_) +
         bytes(first_edge_) + bytes(sources_) + bytes(duration_us_) + bytes(delay_us_) + bytes(tasks_) +
         bytes(edge_infos_) + bytes(overlaps_) + bytes(collective_tasks_);
}

LaneId BlockBuilder::add_lane(Lane lane) {
  lanes_.push_back(std::move(lane));
  return LaneId{lanes_.size() - 1};
}

InPortId BlockBuilder::add_in_port(std::string name) {
  in_ports_.push_back(std::move(name));
  return InPortId{in_ports_.size() - 1};
}

TaskId BlockBuilder::add_task(LaneId lane, TaskInfo info, Microseconds duration) {
  lane_of_.push_back(lane.index());
  if (part_.valid()) info.part = part_;
  tasks_.push_back(info);
  duration_us_.push_back(duration.value());
  return TaskId{tasks_.size() - 1};
}

void BlockBuilder::set_duration(TaskId task, Microseconds duration) {
  if (task.index() < duration_us_.size())
    duration_us_[task.index()] = duration.value();
  else
    unknown_task_ = task.index();
}

void BlockBuilder::add_edge(Moment from, TaskId to, Microseconds delay, EdgeInfo info) {
  edges_.push_back({from, to, delay.value(), info});
}

void BlockBuilder::add_overlap(TaskId computation, TaskId transfer) {
  overlaps_.push_back({computation, transfer});
}

OutPortId BlockBuilder::add_out_port(std::string name, Moment source, Microseconds delay) {
  out_ports_.push_back({std::move(name), source, delay});
  return OutPortId{out_ports_.size() - 1};
}

std::string BlockBuilder::describe(std::uint32_t task) const {
  if (task >= tasks_.size()) return fmt::format("task {}", task);
  const std::uint32_t lane = lane_of_[task];
  return fmt::format("task {} ({} on lane \"{}\")", task, to_string(tasks_[task].kind),
                     lane < lanes_.size() ? std::string_view{lanes_[lane].name} : std::string_view{"?"});
}

Error BlockBuilder::broken(std::uint32_t task, std::string problem) const {
  return Error::at("", fmt::format("block \"{}\", {}", name_, describe(task)), std::move(problem));
}

Status BlockBuilder::check_moment(Moment moment, const std::string& place) const {
  if (moment.code() >= kFirstPortCode) {
    if (moment == Moment{}) return Error::at("", place, "waits for a moment that was never set");
    const std::uint32_t port = moment.code() - kFirstPortCode;
    if (port < in_ports_.size()) return Ok{};
    return Error::at("", place, "waits for an unknown in-port")
        .found(fmt::format("in-port {}", port))
        .expected(fmt::format("one of {}", in_ports_.size()));
  }
  if (moment.code() / 2 < tasks_.size()) return Ok{};
  return Error::at("", place, "waits for an unknown task")
      .found(fmt::format("task {}", moment.code() / 2))
      .expected(fmt::format("one of {}", tasks_.size()));
}

Status BlockBuilder::check_parts() const {
  const std::string block = fmt::format("block \"{}\"", name_);
  if (lanes_.size() > kMaxLanes) {
    return Error::at("", block, "too many lanes")
        .found(std::to_string(lanes_.size()))
        .expected(fmt::format("at most {}", kMaxLanes));
  }
  if (tasks_.size() > kMaxTasks) {
    return Error::at("", block, "too many tasks")
        .found(std::to_string(tasks_.size()))
        .expected(fmt::format("at most {}", kMaxTasks));
  }
  if (unknown_task_ != kNone || duration_us_.size() != tasks_.size()) {
    return Error::at("", block, "set_duration was given an unknown task")
        .found(fmt::format("task {}", unknown_task_));
  }
  for (std::uint32_t t = 0; t < tasks_.size(); ++t) {
    if (lane_of_[t] >= lanes_.size()) {
      return broken(t, "runs on an unknown lane")
          .found(fmt::format("lane {}", lane_of_[t]))
          .expected(fmt::format("one of {}", lanes_.size()));
    }
    if (!is_length(duration_us_[t])) {
      return broken(t, "invalid duration")
          .found(fmt::format("{} us", duration_us_[t]))
          .expected("a finite time that is not negative");
    }
  }
  for (std::size_t e = 0; e < edges_.size(); ++e) {
    const PendingEdge& edge = edges_[e];
    // The text is built only for broken edges, because a block has thousands of edges.
    const auto place = [&] {
      return fmt::format("{}, edge {} into {}", block, e, describe(edge.to.index()));
    };
    if (edge.to.index() >= tasks_.size()) {
      return Error::at("", place(), "leads to an unknown task")
          .expected(fmt::format("one of {}", tasks_.size()));
    }
    const bool from_task = edge.from.code() < kFirstPortCode && edge.from.code() / 2 < tasks_.size();
    if (!from_task) STEPCAST_TRY(check_moment(edge.from, place()));
    if (!is_length(edge.delay_us)) {
      return Error::at("", place(), "invalid delay")
          .found(fmt::format("{} us", edge.delay_us))
          .expected("a finite time that is not negative");
    }
    const float share = edge.info.share_of_source;
    if (!(std::isfinite(share) && share >= 0)) {
      return Error::at("", place(), "invalid share of the source's duration")
          .found(fmt::format("{}", share))
          .expected("a finite number that is not negative");
    }
    if (edge.from.code() >= kFirstPortCode) {
      if (share > 0)
        return Error::at("", place(), "its delay is a share of a task's duration, but it leaves an in-port");
      continue;
    }
    const std::uint32_t from = edge.from.code() / 2;
    const std::uint32_t to = edge.to.index();
    if (from == to) return Error::at("", place(), "makes the task wait for itself");
    if (from > to && lane_of_[from] == lane_of_[to]) {
      return Error::at("", place(), "runs against the order of its lane")
          .found(fmt::format("a wait for {}, which was added later", describe(from)))
          .expected("the tasks of a lane added in the order in which they run");
    }
  }
  for (const Overlap& overlap : overlaps_) {
    for (const TaskId task : {overlap.computation, overlap.transfer}) {
      if (task.index() < tasks_.size()) continue;
      return Error::at("", block, "an overlap of an unknown task")
          .found(fmt::format("task {}", task.index()))
          .expected(fmt::format("one of {}", tasks_.size()));
    }
  }
  for (const OutPort& port : out_ports_) {
    const std::string place = fmt::format("{}, out-port \"{}\"", block, port.name);
    STEPCAST_TRY(check_moment(port.source, place));
    if (!is_length(port.delay.value())) {
      return Error::at("", place, "invalid delay")
          .found(fmt::format("{} us", port.delay.value()))
          .expected("a finite time that is not negative");
    }
  }
  return Ok{};
}

Result<std::vector<std::uint32_t>> BlockBuilder::sorted_tasks() const {
  const auto n = static_cast<std::uint32_t>(tasks_.size());
  std::vector<std::uint32_t> order(n);
  for (std::uint32_t t = 0; t < n; ++t) order[t] = t;
  // Usual case: no edge leads to an earlier task, so the order of insertion is already topological.
  const bool sorted = std::none_of(edges_.begin(), edges_.end(), [](const PendingEdge& e) {
    return e.from.code() < kFirstPortCode && e.from.code() / 2 > e.to.index();
  });
  if (sorted) return order;

  // Kahn's algorithm. The order of a lane adds an edge from each of its tasks to the next one.
  // waits: number of predecessors of a task that are not in the order yet.
  std::vector<std::uint32_t> lane_next(n, kNone);
  std::vector<std::uint32_t> waits(n, 0);
  std::vector<std::uint32_t> last_of_lane(lanes_.size(), kNone);
  for (std::uint32_t t = 0; t < n; ++t) {
    std::uint32_t& last = last_of_lane[lane_of_[t]];
    if (last != kNone) {
      lane_next[last] = t;
      ++waits[t];
    }
    last = t;
  }
  // Outgoing edges as CSR: followers of task t are followers[first_follower[t] .. first_follower[t + 1]).
  std::vector<std::uint32_t> first_follower(n + 1, 0);
  const auto is_between_tasks = [](const PendingEdge& e) { return e.from.code() < kFirstPortCode; };
  for (const PendingEdge& e : edges_) {
    if (!is_between_tasks(e)) continue;
    ++first_follower[e.from.code() / 2 + 1];
    ++waits[e.to.index()];
  }
  for (std::uint32_t t = 0; t < n; ++t) first_follower[t + 1] += first_follower[t];
  std::vector<std::uint32_t> followers(first_follower[n]);
  std::vector<std::uint32_t> fill(first_follower.begin(), first_follower.end() - 1);
  for (const PendingEdge& e : edges_)
    if (is_between_tasks(e)) followers[fill[e.from.code() / 2]++] = e.to.index();

  // A priority queue by number keeps the order of insertion among ready tasks.
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t t = 0; t < n; ++t)
    if (waits[t] == 0) ready.push(t);
  order.clear();
  const auto release = [&](std::uint32_t t) {
    if (--waits[t] == 0) ready.push(t);
  };
  while (!ready.empty()) {
    const std::uint32_t t = ready.top();
    ready.pop();
    order.push_back(t);
    if (lane_next[t] != kNone) release(lane_next[t]);
    for (std::uint32_t i = first_follower[t]; i < first_follower[t + 1]; ++i) release(followers[i]);
  }
  if (order.size() == n) return order;

  // Every remaining task waits for another remaining task, so following `waits_for` must reach a cycle.
  std::vector<std::uint32_t> waits_for(n, kNone);
  const auto is_left = [&](std::uint32_t t) { return waits[t] > 0; };
  for (std::uint32_t t = 0; t < n; ++t)
    if (is_left(t) && lane_next[t] != kNone) waits_for[lane_next[t]] = t;
  for (const PendingEdge& e : edges_)
    if (is_between_tasks(e) && is_left(e.from.code() / 2)) waits_for[e.to.index()] = e.from.code() / 2;
  std::vector<bool> seen(n, false);
  std::uint32_t t = 0;
  // The walk ends at a task that it has seen before, which is on the cycle.
  while (!is_left(t)) ++t;
  while (!seen[t]) {
    seen[t] = true;
    t = waits_for[t];
  }
  std::vector<std::string> circle{describe(t)};
  for (std::uint32_t u = waits_for[t]; u != t; u = waits_for[u]) circle.push_back(describe(u));
  circle.push_back(describe(t));
  return Error::at("", fmt::format("block \"{}\"", name_),
                   "tasks wait for each other in a circle: " + joined(circle, ", which waits for ", 10));
}

Result<BlockBuilder::Finished> BlockBuilder::finish_with_map() && {
  STEPCAST_TRY(check_parts());
  STEPCAST_ASSIGN(const std::vector<std::uint32_t> order, sorted_tasks());
  const std::size_t n = tasks_.size();

  Finished finished;
  finished.new_id.resize(n);
  for (std::size_t position = 0; position < n; ++position)
    finished.new_id[order[position]] = TaskId{position};
  // Ports follow directly after the codes of the tasks in a finished block.
  const auto renumbered = [&](Moment m) {
    if (m.code() >= kFirstPortCode)
      return Moment{static_cast<std::uint32_t>(2 * n) + (m.code() - kFirstPortCode)};
    return Moment{2 * finished.new_id[m.code() / 2].index() + m.code() % 2};
  };

  Block& block = finished.block;
  block.name_ = std::move(name_);
  block.role_ = role_;
  block.lanes_ = std::move(lanes_);
  block.in_ports_ = std::move(in_ports_);
  block.out_ports_ = std::move(out_ports_);
  for (OutPort& port : block.out_ports_) port.source = renumbered(port.source);

  block.lane_of_.resize(n);
  block.duration_us_.resize(n);
  block.tasks_.resize(n);
  for (std::size_t position = 0; position < n; ++position) {
    const std::uint32_t t = order[position];
    block.lane_of_[position] = static_cast<std::uint16_t>(lane_of_[t]);
    block.duration_us_[position] = duration_us_[t];
    block.tasks_[position] = tasks_[t];
    // Tasks are visited in their final order, so the list is sorted.
    if (tasks_[t].kind == TaskKind::collective) block.collective_tasks_.push_back(TaskId{position});
  }

  // Counting sort of the edges by target; edges of one target keep their order of insertion.
  block.first_edge_.assign(n + 1, 0);
  for (const PendingEdge& e : edges_) ++block.first_edge_[finished.new_id[e.to.index()].index() + 1];
  for (std::size_t t = 0; t < n; ++t) block.first_edge_[t + 1] += block.first_edge_[t];
  block.sources_.resize(edges_.size());
  block.delay_us_.resize(edges_.size());
  block.edge_infos_.resize(edges_.size());
  std::vector<std::uint32_t> next(block.first_edge_.begin(), block.first_edge_.end() - 1);
  for (const PendingEdge& e : edges_) {
    const std::uint32_t position = next[finished.new_id[e.to.index()].index()]++;
    block.sources_[position] = renumbered(e.from).code();
    block.delay_us_[position] = e.delay_us;
    block.edge_infos_[position] = e.info;
  }
  for (const Overlap& o : overlaps_)
    block.overlaps_.push_back({finished.new_id[o.computation.index()], finished.new_id[o.transfer.index()]});
  std::sort(block.overlaps_.begin(), block.overlaps_.end());
  return finished;
}

Result<Block> BlockBuilder::finish() && {
  STEPCAST_ASSIGN(Finished finished, std::move(*this).finish_with_map());
  return std::move(finished.block);
}

}  // namespace stepcast
