#include "stepcast/predict/step_orbit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <ranges>
#include <span>
#include <string_view>
#include <utility>

#include "stepcast/predict/replay.h"

namespace stepcast {
namespace {

constexpr std::uint32_t kNone = 0xffffffff;
// The period is found when the largest growth is equal in kSameGrowth consecutive copies. After kMostCopies
// copies, the mean growth of the later half is used instead.
constexpr int kSameGrowth = 3, kMostCopies = 48;
// Relative tolerance for equal growth.
constexpr double kSame = 1e-9;

const Block& block_of(const RecordedProgram& recorded, std::size_t c) {
  return recorded.program.block_of(RankClassId{c}, InstanceId{0});
}

// The longest step of all ranks, in microseconds.
double longest_step_us(const RecordedProgram& recorded, const Timeline& timeline) {
  double us = 0;
  for (std::size_t c = 0; c < recorded.facts.size(); ++c)
    us = std::max(us, simulated_step(recorded, timeline, RankClassId{c}).length_us());
  return us;
}

// The state that a rank takes over from the previous copy, expressed as edges from the begin of its step.
// Task numbers are those of the recorded block.
struct Carried {
  // GPU work that was running when the step began.
  struct LeftOver {
    std::uint32_t task = 0;
    // The task that it corresponds to: equally far from the end of its lane.
    std::uint32_t in_copy_before = 0;
    std::uint32_t on_lane_before = kNone;
    std::uint32_t edge = kNone;  // of the chained block; the same below
  };
  // The first task of the step itself on a lane; it waits until the previous copy has freed the lane.
  struct FirstOnLane {
    std::uint16_t lane = 0;
    std::uint32_t task = 0;
    std::uint32_t edge = kNone;
    std::vector<std::uint16_t> behind;  // lanes that must be free before it
  };
  // The longest wait for worker processes that load data; kNone if no wait is long enough.
  struct LoaderWait {
    std::uint32_t task = kNone;
    std::uint32_t edge = kNone;
  };
  std::vector<LeftOver> left_over;
  std::vector<FirstOnLane> first;
  LoaderWait loader;
  // Sync calls for which the record has no work to wait for. They wait for all streams.
  std::vector<std::uint32_t> waits;
  std::vector<std::uint32_t> wait_edges;
  // [edge of the chained block] in the recorded one; kNone: carried.
  std::vector<std::uint32_t> recorded_edge;
};

// Thresholds, assumed: a step with a longer wait for its data loader gets batches at the loader's pace
// instead of from a full queue. The wait must exceed both.
constexpr double kLoaderWaitUs = 1000, kLoaderShareOfStep = 0.02;

// Whether a frame of the stack is the next() of a PyTorch DataLoader with worker processes.
bool is_in_loader(const Program& program, StackId stack) {
  for (; stack.valid(); stack = program.stacks.parent(stack)) {
    const std::string_view name = program.names.text(program.stacks.name(stack));
    if (name.find("DataLoader)#_MultiProcessing") != std::string_view::npos) return true;
  }
  return false;
}

// The longest CPU task inside a data loader that exceeds both thresholds; kNone if there is none.
std::uint32_t loader_wait(const RecordedProgram& recorded, std::size_t c) {
  const Block& block = block_of(recorded, c);
  double longest_us = std::max(kLoaderWaitUs, kLoaderShareOfStep * recorded.facts[c].step_us.length_us());
  std::uint32_t found = kNone;
  for (std::uint32_t t = 0; t < block.task_count(); ++t) {
    if (block.tasks()[t].kind != TaskKind::cpu_segment || block.duration_us()[t] <= longest_us ||
        !is_in_loader(recorded.program, block.tasks()[t].stack))
      continue;
    longest_us = block.duration_us()[t];
    found = t;
  }
  return found;
}

// Whether a task is the end of a synchronising call for which the recording has no GPU work.
bool waits_for_streams(const Block& block, std::uint32_t t) {
  if (block.tasks()[t].kind != TaskKind::sync_return) return false;
  for (std::uint32_t e = block.first_edge()[t]; e < block.first_edge()[t + 1]; ++e)
    if (block.edge_infos()[e].origin == EdgeOrigin::synchronization) return false;
  return true;
}

// Finds everything in the block of rank class c that depends on the previous copy.
Carried what_is_carried(const RecordedProgram& recorded, std::size_t c) {
  const Block& block = block_of(recorded, c);
  Carried carried;
  carried.loader.task = loader_wait(recorded, c);
  const std::vector<bool> left_over = left_over_tasks(block);
  std::vector<std::vector<std::uint32_t>> on_lane(block.lanes().size());
  for (std::uint32_t t = 0; t < block.task_count(); ++t) {
    on_lane[block.lane_codes()[t]].push_back(t);
    if (waits_for_streams(block, t)) carried.waits.push_back(t);
  }
  // Overlapping work of one stream is on several lanes.
  std::map<std::int64_t, std::vector<std::uint16_t>> of_stream;
  for (std::size_t l = 0; l < on_lane.size(); ++l) {
    if (block.lanes()[l].kind == LaneKind::gpu_stream && block.lanes()[l].recorded >= 0)
      of_stream[block.lanes()[l].recorded].push_back(static_cast<std::uint16_t>(l));
  }
  for (std::size_t l = 0; l < on_lane.size(); ++l) {
    const std::vector<std::uint32_t>& tasks = on_lane[l];
    const auto first_own = static_cast<std::size_t>(
        std::find_if(tasks.begin(), tasks.end(), [&](std::uint32_t t) { return !left_over[t]; }) -
        tasks.begin());
    for (std::size_t i = 0; i < first_own; ++i)
      carried.left_over.push_back(
          {tasks[i], tasks[tasks.size() - first_own + i], i > 0 ? tasks[i - 1] : kNone});
    if (first_own == tasks.size()) continue;
    const auto lane = static_cast<std::uint16_t>(l);
    Carried::FirstOnLane first{.lane = lane, .task = tasks[first_own], .behind = {lane}};
    const auto stream = of_stream.find(block.lanes()[l].recorded);
    if (block.lanes()[l].kind == LaneKind::gpu_stream && stream != of_stream.end() &&
        stream->second.front() == lane)
      first.behind = stream->second;
    carried.first.push_back(std::move(first));
  }
  return carried;
}

// The recorded block with an additional in-port for the begin of the step. Edges into left-over work are
// replaced by edges from that port, and every carried dependency gets one. The delays of these edges are set
// for each copy.
Result<Block> chained_block(const Block& block, Carried& carried) {
  BlockBuilder builder{block.name(), block.role()};
  for (const Lane& lane : block.lanes()) builder.add_lane(lane);
  for (const std::string& port : block.in_ports()) builder.add_in_port(port);
  const InPortId begin = builder.add_in_port("begin of the step");
  // [task] address that receives the number of a carried edge.
  std::multimap<std::uint32_t, std::uint32_t*> added;
  std::vector<bool> left_over(block.task_count(), false);
  for (Carried::LeftOver& work : carried.left_over) {
    added.emplace(work.task, &work.edge);
    left_over[work.task] = true;
  }
  for (Carried::FirstOnLane& first : carried.first) added.emplace(first.task, &first.edge);
  carried.wait_edges.assign(carried.waits.size(), kNone);
  for (std::size_t i = 0; i < carried.waits.size(); ++i)
    added.emplace(carried.waits[i], &carried.wait_edges[i]);
  if (carried.loader.task != kNone) added.emplace(carried.loader.task, &carried.loader.edge);
  const std::uint32_t n = block.task_count();
  for (std::uint32_t t = 0; t < n; ++t) {
    const TaskId task =
        builder.add_task(LaneId{std::size_t{block.lane_codes()[t]}}, block.tasks()[t], Microseconds{});
    for (std::uint32_t e = block.first_edge()[t]; e < block.first_edge()[t + 1] && !left_over[t]; ++e) {
      const std::uint32_t code = block.sources()[e];
      builder.add_edge(code < 2 * n ? Moment{code} : BlockBuilder::arrival_at(InPortId{code - 2 * n}), task,
                       Microseconds{}, block.edge_infos()[e]);
      carried.recorded_edge.push_back(e);
    }
    const auto [first_added, last_added] = added.equal_range(t);
    for (auto it = first_added; it != last_added; ++it) {
      *it->second = static_cast<std::uint32_t>(carried.recorded_edge.size());
      builder.add_edge(BlockBuilder::arrival_at(begin), task, Microseconds{}, {});
      carried.recorded_edge.push_back(kNone);
    }
  }
  return std::move(builder).finish();
}

}  // namespace

// Simulates the chained copies one after the other. All use one Program; the delays of its carried edges
// contain the state that the previous copy left.
class StepOrbit::Chain {
 public:
  explicit Chain(const RecordedProgram& recorded) : recorded_(recorded) {
    for (std::size_t c = 0; c < recorded.facts.size(); ++c) carried_.push_back(what_is_carried(recorded, c));
  }

  // `alone`: the single step, simulated with `costs`. If it leaves no state and waits for no loader, it is
  // the result.
  Result<StepPeriod> run(const Costs& costs, const Timeline& alone) {
    take(alone);
    over_us_.assign(carried_.size(), {});
    for (std::size_t c = 0; c < carried_.size(); ++c) {
      const std::span<const Interval> at = alone.instance(RankClassId{c}, 0, InstanceId{0});
      for (const Carried::LeftOver& work : carried_[c].left_over) over_us_[c].push_back(at[work.task].end_us);
    }
    const bool loads = std::any_of(carried_.begin(), carried_.end(),
                                   [](const Carried& one) { return one.loader.task != kNone; });
    if (!loads && nothing_carried()) return StepPeriod{.us = length_us_, .alone_us = length_us_};
    if (plan_ == nullptr) STEPCAST_TRY(compile());
    take_costs(costs);
    if (loads) STEPCAST_TRY(take_loaders(costs));
    return chain();
  }

 private:
  // Builds the chained Program from the recorded one and compiles it.
  Status compile() {
    for (std::size_t c = 0; c < carried_.size(); ++c) {
      STEPCAST_ASSIGN(Block chained, chained_block(block_of(recorded_, c), carried_[c]));
      RankClass rank_class = recorded_.program.rank_class(RankClassId{c});
      BlockInstance instance = rank_class.instances.front();
      instance.in_slots.push_back(rank_class.slot_count++);  // never written, so it contains the rank's start
      instance.block = program_.add_block(std::move(chained));
      rank_class.instances.clear();
      program_.add_instance(program_.add_rank_class(std::move(rank_class)), std::move(instance));
    }
    for (const Collective& collective : recorded_.program.collectives()) program_.add_collective(collective);
    STEPCAST_ASSIGN(Plan plan, Plan::compile(program_));
    plan_ = std::make_unique<Plan>(std::move(plan));
    return Ok{};
  }

  // Sets durations and delays of the chained blocks to those of the recorded ones.
  void take_costs(const Costs& costs) {
    costs_ = std::make_unique<Costs>(program_);
    for (std::size_t c = 0; c < carried_.size(); ++c) {
      const BlockId was = recorded_.program.rank_class(RankClassId{c}).instances.front().block, now{c};
      std::copy(costs.duration_us(was).begin(), costs.duration_us(was).end(),
                costs_->duration_us(now).begin());
      for (std::size_t e = 0; e < carried_[c].recorded_edge.size(); ++e) {
        if (carried_[c].recorded_edge[e] != kNone)
          costs_->delay_us(now)[e] = costs.delay_us(was)[carried_[c].recorded_edge[e]];
      }
    }
  }

  // A loader that kept the recorded step waiting delivers one batch per recorded step time, multiplied by the
  // factor on its wait.
  Status take_loaders(const Costs& costs) {
    STEPCAST_ASSIGN(const Plan plan, Plan::compile(recorded_.program));
    STEPCAST_ASSIGN(const Timeline as_recorded,
                    plan.simulate(Costs{recorded_.program},
                                  {.unfold = false, .start_offset_us = recorded_.start_offset_us}));
    delivered_us_.assign(carried_.size(), 0);
    loading_us_.assign(carried_.size(), 0);
    for (std::size_t c = 0; c < carried_.size(); ++c) {
      const std::uint32_t wait = carried_[c].loader.task;
      if (wait == kNone) continue;
      const BlockId block = recorded_.program.rank_class(RankClassId{c}).instances.front().block;
      const double speed =
          costs.duration_us(block)[wait] / recorded_.program.block(block).duration_us()[wait];
      loading_us_[c] = speed * longest_step_us(recorded_, as_recorded);
      delivered_us_[c] = as_recorded.instance(RankClassId{c}, 0, InstanceId{0})[wait].end_us;
      costs_->duration_us(BlockId{c})[wait] = 0;
    }
    return Ok{};
  }

  // Simulates copies until the growth is constant, starting from the state that the single step left.
  Result<StepPeriod> chain() {
    StepPeriod period{.us = length_us_, .alone_us = length_us_};
    double begun_us = 0;  // begin of the copy since the first one
    // End of every lane since the first copy, at half of the copies.
    std::vector<std::vector<double>> halfway;
    double halfway_step_us = 0;
    Timeline timeline;
    int same = 0;
    for (int copy = 2; copy <= kMostCopies; ++copy) {
      const double before_us = length_us_;
      carry();
      STEPCAST_TRY(plan_->simulate(*costs_, {.unfold = false, .start_offset_us = recorded_.start_offset_us},
                                   timeline));
      begun_us += before_us;
      ++period.copies;
      const std::vector<std::vector<double>> before = ends_us_;
      take(timeline);
      const double was_us = period.us;
      period.us = length_us_;
      period.rank_class = {};
      for (const double us : loading_us_) period.us = std::max(period.us, us);
      for (std::size_t c = 0; c < ends_us_.size(); ++c) {
        for (std::size_t l = 0; l < ends_us_[c].size(); ++l) {
          // Ends are relative to the begin of their copy, so the length of the previous copy is added.
          const double growth_us = before_us + (ends_us_[c][l] - before[c][l]);
          if (growth_us <= period.us * (1 + kSame)) continue;
          period.us = growth_us;
          period.rank_class = RankClassId{c};
          period.lane = static_cast<std::uint16_t>(l);
        }
      }
      same = copy > 2 && std::abs(period.us - was_us) <= kSame * period.us ? same + 1 : 0;
      if (same == kSameGrowth - 1) return settled(std::move(period), std::move(timeline));
      if (copy == kMostCopies / 2) {
        halfway = ends_us_;
        for (std::vector<double>& rank : halfway)
          for (double& us : rank) us += begun_us;
        halfway_step_us = begun_us + length_us_;
      }
    }
    constexpr int kCounted = kMostCopies - kMostCopies / 2;
    const double copies = kCounted;
    period.us = (begun_us + length_us_ - halfway_step_us) / copies;
    for (std::size_t c = 0; c < ends_us_.size(); ++c)
      for (std::size_t l = 0; l < ends_us_[c].size(); ++l)
        period.us = std::max(period.us, (begun_us + ends_us_[c][l] - halfway[c][l]) / copies);
    return settled(std::move(period), std::move(timeline));
  }

  // One period of a rank. It starts with the first work of its busiest stream, so that it contains all work
  // of a step.
  [[nodiscard]] Interval one_period(const Timeline& timeline, RankClassId c, double period_us) const {
    const Block& block = block_of(recorded_, c.index());
    const std::span<const Interval> at = timeline.instance(c, 0, InstanceId{0});
    std::vector<double> busy_us(block.lanes().size(), 0), first_us(block.lanes().size(), 0);
    for (std::uint32_t t = 0; t < block.task_count(); ++t) {
      const std::size_t lane = block.lane_codes()[t];
      if (block.lanes()[lane].kind != LaneKind::gpu_stream || at[t].length_us() <= 0) continue;
      if (busy_us[lane] == 0) first_us[lane] = at[t].start_us;
      busy_us[lane] += at[t].length_us();
    }
    const auto longest = std::ranges::max_element(busy_us);
    const double start_us = longest == busy_us.end() || *longest == 0
                                ? simulated_step(recorded_, timeline, c).start_us
                                : first_us[static_cast<std::size_t>(longest - busy_us.begin())];
    return {start_us, start_us + period_us};
  }

  // Adds the last copy, its windows, and the last task of the stream that sets the period.
  StepPeriod settled(StepPeriod period, Timeline timeline) const {
    SettledStep step;
    for (std::size_t c = 0; c < carried_.size(); ++c)
      step.windows.push_back(one_period(timeline, RankClassId{c}, period.us));
    if (period.bound_by_stream()) {
      const std::span<const std::uint16_t> lanes =
          block_of(recorded_, period.rank_class.index()).lane_codes();
      const auto last = std::ranges::find(lanes | std::views::reverse, period.lane);
      if (last != lanes.rend())
        step.last = {.rank_class = period.rank_class,
                     .rank = 0,
                     .instance = InstanceId{0},
                     .task = TaskId{static_cast<std::size_t>(lanes.rend() - last - 1)}};
    }
    step.timeline = std::move(timeline);
    period.settled = std::move(step);
    return period;
  }

  // Stores the state that a copy leaves, in times since the begin of that copy.
  void take(const Timeline& timeline) {
    length_us_ = longest_step_us(recorded_, timeline);
    ends_us_.clear();
    left_us_.assign(carried_.size(), {});
    for (std::size_t c = 0; c < carried_.size(); ++c) {
      const std::span<const double> free = timeline.lane_free_us(RankClassId{c});
      ends_us_.emplace_back(free.begin(), free.end());
      const std::span<const Interval> at = timeline.instance(RankClassId{c}, 0, InstanceId{0});
      for (const Carried::LeftOver& work : carried_[c].left_over)
        left_us_[c].push_back(at[work.in_copy_before].end_us);
    }
  }

  // Whether every lane is free, and all left-over work has ended, before the next step needs them.
  [[nodiscard]] bool nothing_carried() const {
    for (std::size_t c = 0; c < carried_.size(); ++c) {
      for (const double us : ends_us_[c])
        if (us - length_us_ > recorded_.start_offset_us[c]) return false;
      for (std::size_t i = 0; i < left_us_[c].size(); ++i)
        if (left_us_[c][i] - length_us_ > over_us_[c][i]) return false;
    }
    return true;
  }

  // Writes the stored state into the carried edges for the next copy.
  void carry() {
    for (std::size_t c = 0; c < carried_.size(); ++c) {
      const Carried& carried = carried_[c];
      const double start_us = recorded_.start_offset_us[c];
      const std::span<double> delays = costs_->delay_us(BlockId{c}),
                              durations = costs_->duration_us(BlockId{c});
      const auto since_begin = [&](double us) { return std::max(0.0, us - length_us_ - start_us); };
      std::map<std::uint32_t, double> over;  // [left-over task] end since the begin
      for (std::size_t i = 0; i < carried.left_over.size(); ++i) {
        const Carried::LeftOver& work = carried.left_over[i];
        double us = std::max(over_us_[c][i] - start_us, since_begin(left_us_[c][i]));
        const double behind_us = work.on_lane_before == kNone ? 0 : over.at(work.on_lane_before);
        us = std::max(us, behind_us);
        over[work.task] = us;
        // Cut the duration to the time since the previous left-over work on the lane, and set the delay so
        // that the work ends at `us`.
        durations[work.task] = std::min(durations[work.task], us - behind_us);
        delays[work.edge] = us - durations[work.task];
      }
      for (const Carried::FirstOnLane& first : carried.first) {
        double us = 0;
        for (const std::uint16_t lane : first.behind) us = std::max(us, since_begin(ends_us_[c][lane]));
        delays[first.edge] = us;
      }
      if (carried.loader.edge != kNone) {
        delivered_us_[c] += loading_us_[c] - length_us_;
        delays[carried.loader.edge] = std::max(0.0, delivered_us_[c] - start_us);
      }
      double streams_us = 0;
      const Block& block = program_.block(BlockId{c});
      for (std::size_t l = 0; l < ends_us_[c].size(); ++l) {
        if (block.lanes()[l].kind == LaneKind::gpu_stream)
          streams_us = std::max(streams_us, since_begin(ends_us_[c][l]));
      }
      for (const std::uint32_t edge : carried.wait_edges)
        if (edge != kNone) delays[edge] = streams_us;
    }
  }

  const RecordedProgram& recorded_;
  Program program_;
  std::vector<Carried> carried_;  // [rank class]
  std::unique_ptr<Plan> plan_;
  std::unique_ptr<Costs> costs_;
  std::vector<std::vector<double>> over_us_;  // [rank class] end of left-over work in the step alone
  std::vector<double> loading_us_;            // [rank class] time per batch; 0: no wait for a loader
  // State of the previous copy, in times since its begin:
  double length_us_ = 0;
  std::vector<std::vector<double>> ends_us_;  // [rank class][lane]
  // [rank class] end of the work that is left over for the next copy.
  std::vector<std::vector<double>> left_us_;
  std::vector<double> delivered_us_;  // [rank class] when its batch was delivered
};

StepOrbit::StepOrbit(const RecordedProgram& recorded) : recorded_(&recorded) {}
StepOrbit::~StepOrbit() = default;
StepOrbit::StepOrbit(StepOrbit&&) noexcept = default;
StepOrbit& StepOrbit::operator=(StepOrbit&&) noexcept = default;

Result<StepPeriod> StepOrbit::period(const Costs& costs) {
  if (alone_ == nullptr) {
    STEPCAST_ASSIGN(Plan plan, Plan::compile(recorded_->program));
    alone_ = std::make_unique<Plan>(std::move(plan));
  }
  STEPCAST_ASSIGN(const Timeline alone,
                  alone_->simulate(costs, {.unfold = false, .start_offset_us = recorded_->start_offset_us}));
  return period(costs, alone);
}

Result<StepPeriod> StepOrbit::period(const Costs& costs, const Timeline& alone) {
  if (chain_ == nullptr) chain_ = std::make_unique<Chain>(*recorded_);
  return chain_->run(costs, alone);
}

}  // namespace stepcast
