#include "stepcast/simulate/scenarios.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stepcast/simulate/engine.h"

namespace stepcast {

double ScenarioEnds::end_us(std::size_t scenario) const {
  double end = 0;
  for (std::size_t c = 0; c + 1 < first_lane_.size(); ++c)
    end = std::max(end, rank_end_us(scenario, RankClassId{c}));
  return end;
}

double ScenarioEnds::rank_end_us(std::size_t scenario, RankClassId c) const {
  double end = 0;
  for (const double free : lane_free_us(scenario, c)) end = std::max(end, free);
  return end;
}

std::span<const double> ScenarioEnds::lane_free_us(std::size_t scenario, RankClassId c) const {
  const std::size_t first = first_lane_[c.index()], end = first_lane_[c.index() + 1];
  return std::span{lane_free_}.subspan(scenario * first_lane_.back() + first, end - first);
}

namespace detail {

// Computes kWidth scenarios of a Plan at once. Every time, duration and delay is an array of kWidth
// neighbouring values, one per scenario, so that each task is a few vector instructions. The arithmetic and
// its order are those of Sweep, therefore the results have the same bits.
//
// Ranks are always folded: one representative rank per class.
template <std::size_t kWidth>
class ScenarioSweep {
 public:
  // `first_interval`, `first_lane`: [class], one more at the end. `times`: 2 * kWidth doubles for each
  // interval of all classes, owned by the caller.
  ScenarioSweep(const Plan& plan, std::span<const std::size_t> first_interval,
                std::span<const std::size_t> first_lane, const ScenarioOptions& options, double* times)
      : plan_(plan),
        options_(options),
        layout_(*plan.layout_),
        first_interval_(first_interval),
        first_lane_(first_lane),
        times_(times),
        lane_free_(first_lane.back() * kWidth) {
    for (const Block& block : plan.program_->blocks()) {
      blocks_.push_back({block.lane_codes().data(), block.first_edge().data(), block.sources().data(),
                         std::vector<double>(std::size_t{block.task_count()} * kWidth),
                         std::vector<double>(std::size_t{block.edge_count()} * kWidth)});
    }
  }

  // Computes exactly kWidth scenarios. Writes `lane_free` as [scenario, lane of all classes] and `watched` as
  // [scenario, watched moment].
  void run(std::span<const Costs> scenarios, std::span<double> lane_free, std::span<double> watched) {
    take(scenarios);
    for (std::size_t c = 0; c < layout_.rank_classes.size(); ++c) {
      const double offset = options_.start_offset_us.empty() ? 0.0 : options_.start_offset_us[c];
      std::fill_n(rank_times(static_cast<std::uint32_t>(c)), 2 * kWidth, offset);
      std::fill(lane_free_.begin() + static_cast<std::ptrdiff_t>(kWidth * first_lane_[c]),
                lane_free_.begin() + static_cast<std::ptrdiff_t>(kWidth * first_lane_[c + 1]), offset);
    }
    for (const OrderStep& step : plan_.order_.steps) {
      switch (step.kind) {
        case OrderStep::Kind::sweep: sweep(step); break;
        case OrderStep::Kind::fill_port: fill(step.rank_class, flat_instance(step), step.first); break;
        case OrderStep::Kind::complete: complete(step); break;
      }
    }
    const std::size_t lanes = first_lane_.back();
    for (std::size_t s = 0; s < kWidth; ++s)
      for (std::size_t l = 0; l < lanes; ++l) lane_free[s * lanes + l] = lane_free_[l * kWidth + s];
    const std::size_t n = options_.watched.size();
    for (std::size_t w = 0; w < n; ++w) {
      const WatchedMoment& moment = options_.watched[w];
      const std::uint32_t c = moment.rank_class.index();
      const std::size_t flat = layout_.rank_classes[c].first_instance + moment.instance.index();
      const double* at = instance_times(c, flat) +
                         kWidth * (std::size_t{2} * moment.task.index() + (moment.at_start ? 0 : 1));
      for (std::size_t s = 0; s < kWidth; ++s) watched[s * n + w] = at[s];
    }
  }

 private:
  // Arrays of one block: the structure is shared, durations and delays are stored per scenario.
  struct BlockOfScenarios {
    const std::uint16_t* lane;
    const std::uint32_t* first_edge;
    const std::uint32_t* source;
    std::vector<double> duration_us, delay_us;  // [task or edge, scenario]
  };

  // Copies the costs of the scenarios, transposed to [task or edge, scenario].
  void take(std::span<const Costs> scenarios) {
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      for (std::size_t s = 0; s < kWidth; ++s) {
        const std::span<const double> durations = scenarios[s].duration_us(BlockId{b});
        const std::span<const double> delays = scenarios[s].delay_us(BlockId{b});
        for (std::size_t t = 0; t < durations.size(); ++t)
          blocks_[b].duration_us[t * kWidth + s] = durations[t];
        for (std::size_t e = 0; e < delays.size(); ++e) blocks_[b].delay_us[e * kWidth + s] = delays[e];
      }
    }
  }

  double* rank_times(std::uint32_t c) const { return times_ + 2 * kWidth * first_interval_[c]; }
  double* instance_times(std::uint32_t c, std::size_t flat) const {
    return rank_times(c) + 2 * kWidth * layout_.instances[flat].first_interval;
  }
  std::size_t flat_instance(const OrderStep& step) const {
    return layout_.rank_classes[step.rank_class].first_instance + step.instance;
  }

  // Sets one in-port: see Sweep::fill.
  void fill(std::uint32_t c, std::size_t flat, std::size_t port) const {
    const PortSource& source = plan_.order_.port_sources[plan_.order_.first_port[flat] + port];
    double* value =
        instance_times(c, flat) + kWidth * (std::size_t{2} * layout_.instances[flat].task_count + port);
    const double* from = rank_times(c);
    double delay = 0;
    if (source.instance != PortSource::kStartOffset) {
      const std::size_t writer = layout_.rank_classes[c].first_instance + source.instance;
      from = instance_times(c, writer) + kWidth * source.moment.code();
      delay = source.delay_us;
    }
    for (std::size_t s = 0; s < kWidth; ++s) value[s] = from[s] + delay;
  }

  void sweep(const OrderStep& step) {
    const std::uint32_t c = step.rank_class;
    const std::size_t flat = flat_instance(step);
    const BlockOfScenarios& block = blocks_[layout_.instances[flat].block];
    const Plan::Lanes& bound = plan_.lanes_[flat];
    const std::uint16_t* lane_map = bound.as_class ? nullptr : plan_.bound_lanes_.data() + bound.first;
    const std::size_t ports = plan_.order_.first_port[flat + 1] - plan_.order_.first_port[flat];
    for (std::size_t p = 0; step.fills_ports && p < ports; ++p) fill(c, flat, p);
    sweep_tasks(block, step.first, step.end, instance_times(c, flat), lane_map,
                lane_free_.data() + kWidth * first_lane_[c]);
  }

  // Computes start and end of tasks first .. end - 1, as sweep_tasks of engine.cpp but over scenarios instead
  // of ranks.
  static void sweep_tasks(const BlockOfScenarios& block, std::uint32_t first, std::uint32_t end,
                          double* times, const std::uint16_t* lane_map, double* lane_free) {
    if (first == end) return;
    std::uint32_t edge = block.first_edge[first];
    for (std::uint32_t t = first; t < end; ++t) {
      const std::size_t code = block.lane[t];
      double* lane = lane_free + kWidth * (lane_map == nullptr ? code : lane_map[code]);
      double start[kWidth];
      for (std::size_t s = 0; s < kWidth; ++s) start[s] = lane[s];
      const std::uint32_t end_edge = block.first_edge[t + 1];
      for (; edge < end_edge; ++edge) {
        const double* source = times + kWidth * block.source[edge];
        const double* delay = block.delay_us.data() + kWidth * edge;
        for (std::size_t s = 0; s < kWidth; ++s) {
          const double from = source[s] + delay[s];
          start[s] = start[s] < from ? from : start[s];
        }
      }
      const double* duration = block.duration_us.data() + kWidth * t;
      double* out = times + 2 * kWidth * t;
      for (std::size_t s = 0; s < kWidth; ++s) {
        const double finish = start[s] + duration[s];
        out[s] = start[s];
        out[kWidth + s] = finish;
        lane[s] = finish;
      }
    }
  }

  double* member_times(const Plan::Member& member) const {
    return rank_times(member.rank_class) + 2 * kWidth * member.interval;
  }

  // Completes a collective. Ranks of a class are identical here, so each member class has a single arrival
  // and the grouping (aligned or spanning) does not matter.
  void complete(const OrderStep& step) {
    const Collective& collective = plan_.program_->collectives()[step.collective];
    const std::span<const Plan::Member> members{
        plan_.members_.data() + plan_.first_member_[step.collective],
        plan_.members_.data() + plan_.first_member_[step.collective + 1]};
    double transfer[kWidth];
    const auto begin_at = [&](const Plan::Member& m) { std::copy_n(member_times(m), kWidth, transfer); };
    const auto not_before = [&](const Plan::Member& m) {
      const double* arrival = member_times(m);
      for (std::size_t s = 0; s < kWidth; ++s) transfer[s] = std::max(transfer[s], arrival[s]);
    };
    if (collective.kind == CollectiveKind::rooted_from) {
      begin_at(members[step.member]);
      not_before(members[collective.root]);
      leave(members[step.member], transfer);
      return;
    }
    begin_at(members[0]);
    for (const Plan::Member& m : members.subspan(1)) not_before(m);
    for (const Plan::Member& m : members) leave(m, transfer);
  }

  // Ends the member's collective task at `transfer` + its duration and frees its lane.
  void leave(const Plan::Member& member, const double* transfer) {
    const double* duration = blocks_[member.block].duration_us.data() + kWidth * member.task;
    double* end = member_times(member) + kWidth;
    double* lane = lane_free_.data() + kWidth * (first_lane_[member.rank_class] + member.lane);
    for (std::size_t s = 0; s < kWidth; ++s) {
      end[s] = transfer[s] + duration[s];
      lane[s] = end[s];
    }
  }

  const Plan& plan_;
  const ScenarioOptions& options_;
  const TimelineLayout& layout_;
  std::span<const std::size_t> first_interval_, first_lane_;
  double* times_;
  std::vector<double> lane_free_;  // [lane of all classes, scenario]
  std::vector<BlockOfScenarios> blocks_;
};

}  // namespace detail

namespace {

// Errors: a wrong number of start offsets, a negative or non-finite offset, a watched moment of a task that
// does not exist.
Status check_options(const Program& program, const ScenarioOptions& options) {
  const std::size_t classes = program.rank_classes().size();
  if (!options.start_offset_us.empty() && options.start_offset_us.size() != classes) {
    return Error{"start offsets of scenarios"}
        .found(fmt::format("{}", options.start_offset_us.size()))
        .expected(fmt::format("one per rank class: {}", classes));
  }
  for (const double offset : options.start_offset_us) {
    if (!std::isfinite(offset) || offset < 0) {
      return Error{"a start offset of scenarios"}
          .found(fmt::format("{} us", offset))
          .expected("a finite time that is not negative");
    }
  }
  for (const WatchedMoment& moment : options.watched) {
    const bool known =
        moment.rank_class.index() < classes &&
        moment.instance.index() < program.rank_class(moment.rank_class).instances.size() &&
        moment.task.index() < program.block_of(moment.rank_class, moment.instance).task_count();
    if (!known) return Error{"a moment to watch is of no task of the program"};
  }
  return Ok{};
}

}  // namespace

Result<ScenarioEnds> Plan::simulate(std::span<const Costs> scenarios, const ScenarioOptions& options) const {
  constexpr std::size_t kTile = 8;
  STEPCAST_TRY(check_options(*program_, options));
  for (std::size_t s = 0; s < scenarios.size(); ++s)
    if (Status checked = scenarios[s].check(*program_); !checked.ok())
      return Error{fmt::format("scenario {}: {}", s, checked.error().message())};
  ScenarioEnds ends;
  std::vector<std::size_t> first_interval{0};
  ends.first_lane_.push_back(0);
  bool fits = true;
  for (const auto& rank_class : layout_->rank_classes) {
    std::size_t next = 0;
    fits = fits && !__builtin_add_overflow(first_interval.back(), rank_class.intervals_per_rank, &next);
    first_interval.push_back(next);
    ends.first_lane_.push_back(ends.first_lane_.back() + rank_class.lane_count);
  }
  // Fewer than eight scenarios run one by one: a partly filled tile would cost as much as a full one.
  const std::size_t width = scenarios.size() < kTile ? 1 : kTile;
  const std::size_t most = options.max_bytes / (sizeof(Interval) * width);
  detail::IntervalStore times;
  if (!fits || first_interval.back() > most || !times.resize(first_interval.back() * width)) {
    return Error{"too many tasks for parallel scenarios"}
        .found(fmt::format("{} tasks, {} scenarios at once", program_->expanded_task_count(), width))
        .expected(
            fmt::format("times of at most {:.3g} GiB", static_cast<double>(options.max_bytes) / 1073741824.0))
        .advice("fold equal ranks into one class, or raise max_bytes");
  }
  ends.scenarios_ = scenarios.size();
  const std::size_t lanes = ends.first_lane_.back();
  ends.lane_free_.resize(scenarios.size() * lanes);
  ends.n_watched_ = options.watched.size();
  ends.watched_.resize(scenarios.size() * ends.n_watched_);
  if (first_interval.back() == 0) return ends;
  std::size_t done = 0;
  const auto run = [&](auto&& sweep, std::size_t at_once) {
    for (; done + at_once <= scenarios.size(); done += at_once) {
      sweep.run(scenarios.subspan(done, at_once),
                std::span{ends.lane_free_}.subspan(done * lanes, at_once * lanes),
                std::span{ends.watched_}.subspan(done * ends.n_watched_, at_once * ends.n_watched_));
    }
  };
  double* memory = &times.data()->start_us;
  if (width == kTile)
    run(detail::ScenarioSweep<kTile>{*this, first_interval, ends.first_lane_, options, memory}, kTile);
  if (done < scenarios.size())
    run(detail::ScenarioSweep<1>{*this, first_interval, ends.first_lane_, options, memory}, 1);
  return ends;
}

}  // namespace stepcast
