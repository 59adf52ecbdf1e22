// Rebuilds the dependencies of a pipeline timeline from recorded times, since the file does not contain the
// schedule. Each operator is assumed to have waited for the operator of its rank that ended last before it
// started; transfers that start at the same time on several ranks are one transfer.
#include "stepcast/rebuild/pipeline_program.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stepcast/base/statistics.h"

namespace stepcast {
namespace {

// Tolerance in microseconds for equal times. The times of the file are floating-point microseconds since its
// start. The ends of a transfer agree within 1 us if its starts do, and starts of unrelated transfers differ
// by at least 80 us.
constexpr double kSameMomentUs = 5;
// Operators that wait for a transfer can start up to 8 us before its recorded end, which is 400 to 800 us
// after its start. The tolerance is therefore this share of the duration.
constexpr double kOverrunShare = 0.05;
constexpr std::size_t kLanes = 5;
constexpr std::uint32_t kNone = 0xffffffff;

// An operator, or the transfers that a rank started in one call (a batch of sends and receives).
struct Piece {
  std::int32_t rank = 0;
  std::uint8_t lane = 0;
  bool transfer = false;
  bool point_to_point = false;
  std::string name;
  double start_us = 0, duration_us = 0;
  std::uint32_t before = kNone;  // the piece of its rank that it waited for
  std::uint32_t transfer_id = kNone;
  [[nodiscard]] double end_us() const { return start_us + duration_us; }
};

// One step, with times in microseconds.
struct Step {
  double start_us = 0, end_us = 0;
  std::vector<Piece> pieces;  // by rank, then by start
  std::vector<std::vector<std::uint32_t>> transfers;
};

bool is_point_to_point(std::string_view name) { return name.ends_with("-send") || name.ends_with("-recv"); }

// Adds the operators of a step; sends and receives that start at the same time become one piece.
void merge_batches(Step& step, std::span<const PipelineOp> ops, const StringTable& names) {
  for (const PipelineOp& op : ops) {
    const std::string_view name = names.text(op.name);
    const bool point_to_point = op.is_transfer() && is_point_to_point(name);
    if (point_to_point && !step.pieces.empty()) {
      Piece& last = step.pieces.back();
      if (last.point_to_point && last.rank == op.rank && op.start_us - last.start_us <= kSameMomentUs) {
        last.name += fmt::format(" + {}", name);
        last.duration_us = std::max(last.duration_us, op.duration_us);
        continue;
      }
    }
    step.pieces.push_back({.rank = op.rank,
                           .lane = op.lane,
                           .transfer = op.is_transfer(),
                           .point_to_point = point_to_point,
                           .name = std::string{name},
                           .start_us = op.start_us,
                           .duration_us = op.duration_us});
  }
}

// For each piece, the earlier piece of its rank that ended last before it started.
void find_predecessors(Step& step) {
  std::size_t first = 0;
  for (std::size_t i = 0; i < step.pieces.size(); ++i) {
    if (step.pieces[i].rank != step.pieces[first].rank) first = i;
    Piece& piece = step.pieces[i];
    double latest = 0;
    // Pieces are sorted by start, so a predecessor is among the last few of each lane.
    std::array<bool, kLanes> seen{};
    for (std::size_t j = i; j-- > first;) {
      const Piece& other = step.pieces[j];
      if (other.end_us() > piece.start_us + std::max(kSameMomentUs, kOverrunShare * other.duration_us))
        continue;
      if (std::exchange(seen[other.lane], true)) continue;
      if (piece.before == kNone || other.end_us() > latest) {
        piece.before = static_cast<std::uint32_t>(j);
        latest = other.end_us();
      }
      if (std::ranges::all_of(seen, [](bool s) { return s; })) break;
    }
  }
}

// Joins transfers of different ranks that start at the same time and have the same kind.
void find_transfers(Step& step) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < step.pieces.size(); ++i)
    if (step.pieces[i].transfer) order.push_back(i);
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
    return step.pieces[a].start_us < step.pieces[b].start_us;
  });
  for (const std::uint32_t i : order) {
    Piece& piece = step.pieces[i];
    for (std::size_t t = step.transfers.size(); t-- > 0;) {
      const Piece& leader = step.pieces[step.transfers[t].front()];
      if (leader.start_us < piece.start_us - kSameMomentUs) break;
      const bool same_kind = piece.point_to_point ? leader.point_to_point : leader.name == piece.name;
      const bool other_ranks = std::ranges::none_of(
          step.transfers[t], [&](std::uint32_t m) { return step.pieces[m].rank == piece.rank; });
      if (!same_kind || !other_ranks) continue;
      piece.transfer_id = static_cast<std::uint32_t>(t);
      step.transfers[t].push_back(i);
      break;
    }
    if (piece.transfer_id == kNone) {
      piece.transfer_id = static_cast<std::uint32_t>(step.transfers.size());
      step.transfers.push_back({i});
    }
  }
}

// The pieces and transfers of a step; empty if the file does not have it.
std::optional<Step> find_step(const PipelineTimeline& timeline, std::int64_t number) {
  const auto [begin, end] =
      std::equal_range(timeline.ops.begin(), timeline.ops.end(), PipelineOp{.step = number, .name = {}},
                       [](const PipelineOp& a, const PipelineOp& b) { return a.step < b.step; });
  if (begin == end) return std::nullopt;
  Step step;
  step.start_us = begin->start_us;
  step.end_us = begin->end_us();
  for (auto op = begin; op != end; ++op) {
    step.start_us = std::min(step.start_us, op->start_us);
    step.end_us = std::max(step.end_us, op->end_us());
  }
  merge_batches(step, {begin, end}, timeline.names);
  find_predecessors(step);
  find_transfers(step);
  return step;
}

// When the piece could start: the end of its predecessor, or the start of the step.
double ready_us(const Step& step, const Piece& piece) {
  return piece.before == kNone ? step.start_us : step.pieces[piece.before].end_us();
}

// The names by which launch delays are learned: of the piece and of its predecessor.
std::pair<std::string, std::string> key_of(const Step& step, const Piece& piece) {
  return {piece.name, piece.before == kNone ? std::string{} : step.pieces[piece.before].name};
}

// Builds the Program of one step.
class StepProgram {
 public:
  StepProgram(const PipelineTimeline& timeline, const Step& step, const LaunchDelays& delays)
      : timeline_(timeline), step_(step), delays_(delays) {}

  Result<RecordedProgram> run(std::int64_t number) {
    for (const std::vector<std::uint32_t>& members : step_.transfers) work_.push_back(work_of(members));
    tasks_.resize(step_.pieces.size());
    class_of_.resize(step_.pieces.size());
    for (std::size_t first = 0; first < step_.pieces.size();) {
      std::size_t end = first;
      while (end < step_.pieces.size() && step_.pieces[end].rank == step_.pieces[first].rank) ++end;
      STEPCAST_TRY(add_rank(first, end, number));
      first = end;
    }
    for (const std::vector<std::uint32_t>& members : step_.transfers) {
      Collective collective{.op = step_.pieces[members.front()].point_to_point
                                      ? CollectiveOp::send_receive
                                      : op_of(step_.pieces[members.front()].name),
                            .name = out_.program.names.intern(step_.pieces[members.front()].name)};
      for (const std::uint32_t m : members)
        collective.members.push_back({class_of_[m], InstanceId{0}, tasks_[m]});
      out_.program.add_collective(std::move(collective));
    }
    return std::move(out_);
  }

 private:
  static CollectiveOp op_of(std::string_view name) {
    if (name.find("all-reduce") != std::string_view::npos) return CollectiveOp::all_reduce;
    if (name.find("reduce-scatter") != std::string_view::npos) return CollectiveOp::reduce_scatter;
    if (name.find("all-gather") != std::string_view::npos) return CollectiveOp::all_gather;
    return CollectiveOp::unknown;
  }

  // The file does not contain message sizes, so the work has a group but no bytes.
  WorkId work_of(const std::vector<std::uint32_t>& members) {
    constexpr std::array<std::string_view, kLanes> kGroups{"", "pipeline", "tensor", "data", ""};
    const Piece& first = step_.pieces[members.front()];
    RankGroup group{std::string{kGroups[first.lane]}, {}};
    for (const std::uint32_t m : members)
      group.ranks.push_back(static_cast<std::uint32_t>(step_.pieces[m].rank));
    std::ranges::sort(group.ranks);
    return out_.program.works.intern(
        CollectiveWork{.op = first.point_to_point ? CollectiveOp::send_receive : op_of(first.name),
                       .dtype = DType::unknown,
                       .message = Bytes{},
                       .group = out_.program.add_group(std::move(group))});
  }

  // Adds the block of one rank with the pieces [first, end), and its facts and measured times.
  Status add_rank(std::size_t first, std::size_t end, std::int64_t number) {
    constexpr std::array<std::string_view, kLanes> kLaneNames{
        "computation", "pipeline transfers", "tensor transfers", "data transfers", "other work"};
    const std::int32_t rank = step_.pieces[first].rank;
    BlockBuilder block{fmt::format("rank {}", rank)};
    // The start of the step, for operators without a predecessor.
    const LaneId begin_lane = block.add_lane({LaneKind::gpu_stream, "begin of the step"});
    const TaskId begin = block.add_task(
        begin_lane, {.kind = TaskKind::wait, .name = out_.program.names.intern("begin of the step")},
        Microseconds{});
    std::array<LaneId, kLanes> lanes;
    std::vector<TaskId> task_of(end - first);
    for (std::size_t i = first; i < end; ++i) {
      const Piece& piece = step_.pieces[i];
      if (!lanes[piece.lane].valid())
        lanes[piece.lane] =
            block.add_lane({LaneKind::gpu_stream, std::string{kLaneNames[piece.lane]}, piece.lane});
      TaskInfo info{.kind = piece.transfer ? TaskKind::collective : TaskKind::kernel,
                    .kernel_class = piece.transfer ? KernelClass::communication : KernelClass::other,
                    .name = out_.program.names.intern(piece.name),
                    .recorded_event = static_cast<std::uint32_t>(i)};
      if (piece.transfer) info.work = work_[piece.transfer_id];
      const TaskId task = block.add_task(lanes[piece.lane], info, Microseconds{piece.duration_us});
      task_of[i - first] = task;
      const auto delay = delays_.find(key_of(step_, piece));
      const TaskId source = piece.before == kNone ? begin : task_of[piece.before - first];
      block.add_edge(BlockBuilder::end_of(source), task,
                     Microseconds{delay == delays_.end() ? 0.0 : delay->second}, {.inferred = true});
    }
    RankClass rank_class{.name = fmt::format("rank {}", rank)};
    rank_class.lanes.assign(block.lanes().begin(), block.lanes().end());
    rank_class.recorded_rank = rank;
    auto finished = std::move(block).finish_with_map();
    if (!finished.ok()) return std::move(finished).error().in_file(timeline_.file);
    std::vector<Interval> measured(finished->block.task_count());
    RecordedStepFacts facts{.rank = rank, .step_number = number};
    for (std::size_t i = first; i < end; ++i) {
      const Piece& piece = step_.pieces[i];
      tasks_[i] = finished->new_id[task_of[i - first].index()];
      class_of_[i] = RankClassId{out_.facts.size()};
      measured[tasks_[i].index()] = {piece.start_us - step_.start_us, piece.end_us() - step_.start_us};
      if (measured[tasks_[i].index()].end_us < facts.step_us.end_us) continue;
      facts.step_us.end_us = measured[tasks_[i].index()].end_us;
      facts.step_end_task = tasks_[i];
    }
    facts.gpu_window_end_us = facts.step_us.end_us;
    out_.facts.push_back(facts);
    out_.measured.push_back(std::move(measured));
    out_.start_offset_us.push_back(0);
    RecordedFileFacts files{.profiler = timeline_.file,
                            .world_size = static_cast<std::int32_t>(timeline_.ranks.size()),
                            .event_count = end - first};
    out_.files.push_back(std::move(files));
    out_.host.emplace_back();
    out_.coverage.emplace_back();
    const BlockId id = out_.program.add_block(std::move(finished->block));
    out_.program.add_instance(out_.program.add_rank_class(std::move(rank_class)), {.block = id});
    return Ok{};
  }

  const PipelineTimeline& timeline_;
  const Step& step_;
  const LaunchDelays& delays_;
  RecordedProgram out_;
  std::vector<WorkId> work_;           // [transfer]
  std::vector<TaskId> tasks_;          // [piece]
  std::vector<RankClassId> class_of_;  // [piece]
};

}  // namespace

// Medians per pair of names over the given steps.
LaunchDelays learn_launch_delays(const PipelineTimeline& timeline, std::span<const std::int64_t> steps) {
  std::map<std::pair<std::string, std::string>, std::vector<double>> seen;
  for (const std::int64_t number : steps) {
    const std::optional<Step> step = find_step(timeline, number);
    if (!step) continue;
    for (std::uint32_t i = 0; i < step->pieces.size(); ++i) {
      const Piece& piece = step->pieces[i];
      if (piece.transfer) {
        const std::vector<std::uint32_t>& members = step->transfers[piece.transfer_id];
        const auto last = std::ranges::max_element(members, [&](std::uint32_t a, std::uint32_t b) {
          return ready_us(*step, step->pieces[a]) < ready_us(*step, step->pieces[b]);
        });
        if (*last != i) continue;  // it waited for other members
      }
      seen[key_of(*step, piece)].push_back(std::max(0.0, piece.start_us - ready_us(*step, piece)));
    }
  }
  LaunchDelays delays;
  for (auto& [key, values] : seen) delays[key] = median(std::move(values));
  return delays;
}

Result<RecordedProgram> pipeline_program(const PipelineTimeline& timeline, std::int64_t number,
                                         const LaunchDelays& delays) {
  const std::optional<Step> step = find_step(timeline, number);
  if (!step) {
    return Error::at(timeline.file, fmt::format("step {} does not exist", number))
        .found(fmt::format("steps {}", fmt::join(timeline.steps, ", ")));
  }
  return StepProgram{timeline, *step, delays}.run(number);
}

}  // namespace stepcast
