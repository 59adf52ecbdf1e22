#include "stepcast/simulate/engine.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/stop.h"
#include "stepcast/base/units.h"

namespace stepcast {
namespace {

// Adds without overflow: returns the maximum of size_t instead, which the memory limit then rejects.
std::size_t saturating_add(std::size_t a, std::size_t b) {
  std::size_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::size_t>::max() : sum;
}
std::size_t saturating_multiply(std::size_t a, std::size_t b) {
  std::size_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::size_t>::max() : product;
}

// Read-only arrays of one block as plain pointers, for the inner loop.
struct BlockArrays {
  BlockArrays(const Block& block, std::span<const double> duration_us_, std::span<const double> delay_us_)
      : lane(block.lane_codes().data()),
        first_edge(block.first_edge().data()),
        source(block.sources().data()),
        duration_us(duration_us_.data()),
        delay_us(delay_us_.data()) {}
  const std::uint16_t* lane;
  const std::uint32_t* first_edge;
  const std::uint32_t* source;
  const double* duration_us;
  const double* delay_us;
};

// Computes start and end of tasks first .. end - 1 of one block, for kRanks ranks of a class at once. A task
// starts at the latest of the time its lane is free and, for each incoming edge, source time + delay.
//
// The times of rank r begin at times + r * stride. The state of its lanes is lane_free[lane * kRanks + r].
// Several ranks per task hide the latency of the dependency chain of one rank, and the block is read from
// memory only once for all of them.
template <std::size_t kRanks>
void sweep_tasks(const BlockArrays& block, std::uint32_t first, std::uint32_t end, double* times,
                 std::size_t stride, double* lane_free) {
  std::uint32_t edge = block.first_edge[first];
  for (std::uint32_t t = first; t < end; ++t) {
    double* lane = lane_free + std::size_t{block.lane[t]} * kRanks;
    double start[kRanks];
    for (std::size_t r = 0; r < kRanks; ++r) start[r] = lane[r];
    const std::uint32_t end_edge = block.first_edge[t + 1];
    for (; edge < end_edge; ++edge) {
      const double* source = times + block.source[edge];
      const double delay = block.delay_us[edge];
      for (std::size_t r = 0; r < kRanks; ++r) {
        const double from = source[r * stride] + delay;
        start[r] = start[r] < from ? from : start[r];
      }
    }
    const double duration = block.duration_us[t];
    double* out = times + std::size_t{2} * t;
    for (std::size_t r = 0; r < kRanks; ++r) {
      const double finish = start[r] + duration;
      out[r * stride] = start[r];
      out[r * stride + 1] = finish;
      lane[r] = finish;
    }
  }
}

}  // namespace

// ---------------------------------------------------------------------------------------------------------
// Timeline

std::span<const Interval> Timeline::instance(RankClassId c, std::uint32_t rank, InstanceId i) const {
  const auto& rank_class = layout_->rank_classes[c.index()];
  const auto& instance = layout_->instances[rank_class.first_instance + i.index()];
  return {intervals_.data() + places_[c.index()].first_interval +
              std::size_t{copy_of(c, rank)} * rank_class.intervals_per_rank + instance.first_interval,
          instance.task_count};
}

std::span<const double> Timeline::lane_free_us(RankClassId c, std::uint32_t rank) const {
  const std::size_t lanes = layout_->rank_classes[c.index()].lane_count;
  return {lane_free_.data() + places_[c.index()].first_lane + copy_of(c, rank) * lanes, lanes};
}

double Timeline::start_offset_us(RankClassId c, std::uint32_t rank) const {
  return start_offset_[places_[c.index()].first_rank + copy_of(c, rank)];
}

double Timeline::rank_end_us(RankClassId c, std::uint32_t rank) const {
  double end = start_offset_us(c, rank);
  for (const double free : lane_free_us(c, rank)) end = std::max(end, free);
  return end;
}

double Timeline::end_us() const {
  double end = -std::numeric_limits<double>::infinity();
  for (const double offset : start_offset_) end = std::max(end, offset);
  for (const double free : lane_free_) end = std::max(end, free);
  return std::isfinite(end) ? end : 0;
}

std::size_t Timeline::memory_bytes() const {
  return intervals_.memory_bytes() + places_.capacity() * sizeof(Place) +
         (lane_free_.capacity() + start_offset_.capacity()) * sizeof(double);
}

// ---------------------------------------------------------------------------------------------------------
// Plan

Result<Plan> Plan::compile(const Program& program) {
  STEPCAST_ASSIGN(ExecutionOrder order, order_execution(program));
  Plan plan;
  plan.program_ = &program;
  plan.order_ = std::move(order);

  auto layout = std::make_shared<detail::TimelineLayout>();
  for (const RankClass& c : program.rank_classes()) {
    detail::TimelineLayout::RankClass& rank_class = layout->rank_classes.emplace_back();
    rank_class.first_instance = static_cast<std::uint32_t>(layout->instances.size());
    rank_class.lane_count = static_cast<std::uint32_t>(c.lanes.size());
    rank_class.multiplicity = c.multiplicity;
    for (const BlockInstance& i : c.instances) {
      const Block& block = program.block(i.block);
      detail::TimelineLayout::Instance& instance = layout->instances.emplace_back();
      instance.first_interval = rank_class.intervals_per_rank;
      instance.block = i.block.index();
      instance.task_count = block.task_count();
      rank_class.intervals_per_rank = saturating_add(
          rank_class.intervals_per_rank, std::size_t{block.task_count()} + (block.in_ports().size() + 1) / 2);

      Lanes& lanes = plan.lanes_.emplace_back();
      lanes.first = plan.bound_lanes_.size();
      for (std::size_t l = 0; l < i.lanes.size(); ++l) lanes.as_class = lanes.as_class && i.lanes[l] == l;
      if (!lanes.as_class) plan.bound_lanes_.insert(plan.bound_lanes_.end(), i.lanes.begin(), i.lanes.end());
      plan.max_block_lanes_ = std::max(plan.max_block_lanes_, block.lanes().size());
    }
  }
  for (const Collective& collective : program.collectives()) {
    plan.first_member_.push_back(plan.members_.size());
    for (const CollectiveMember& m : collective.members) {
      const std::size_t flat = layout->rank_classes[m.rank_class.index()].first_instance + m.instance.index();
      const detail::TimelineLayout::Instance& instance = layout->instances[flat];
      const std::size_t lane = program.blocks()[instance.block].lane_codes()[m.task.index()];
      Member& member = plan.members_.emplace_back();
      member.rank_class = m.rank_class.index();
      member.block = instance.block;
      member.task = m.task.index();
      member.lane = static_cast<std::uint32_t>(
          plan.lanes_[flat].as_class ? lane : plan.bound_lanes_[plan.lanes_[flat].first + lane]);
      member.interval = instance.first_interval + m.task.index();
    }
  }
  plan.first_member_.push_back(plan.members_.size());
  plan.layout_ = std::move(layout);
  return plan;
}

std::size_t Plan::memory_bytes() const {
  const auto bytes = [](const auto& v) { return v.capacity() * sizeof(v[0]); };
  return sizeof(Plan) + bytes(order_.steps) + bytes(order_.first_instance) + bytes(order_.first_port) +
         bytes(order_.port_sources) + bytes(order_.first_membership) + bytes(order_.memberships) +
         bytes(layout_->rank_classes) + bytes(layout_->instances) + bytes(lanes_) + bytes(bound_lanes_) +
         bytes(first_member_) + bytes(members_);
}

// Sizes the arrays of `timeline` for the classes of the plan and sets every rank to its start offset. The
// first interval of every rank contains its start offset (see TimelineLayout).
Status Plan::prepare(const SimulateOptions& options, Timeline& timeline) const {
  const auto& classes = layout_->rank_classes;
  timeline.unfolded_ = options.unfold;
  timeline.layout_ = layout_;
  timeline.places_.assign(classes.size(), {});
  std::size_t intervals = 0, lanes = 0, ranks = 0;
  for (std::size_t c = 0; c < classes.size(); ++c) {
    Timeline::Place& place = timeline.places_[c];
    place.copies = options.unfold ? classes[c].multiplicity : 1;
    place.first_interval = intervals;
    place.first_lane = lanes;
    place.first_rank = ranks;
    intervals = saturating_add(intervals, saturating_multiply(place.copies, classes[c].intervals_per_rank));
    lanes = saturating_add(lanes, saturating_multiply(place.copies, classes[c].lane_count));
    ranks += place.copies;
  }
  const std::size_t bytes = saturating_add(saturating_multiply(intervals, sizeof(Interval)),
                                           saturating_multiply(saturating_add(lanes, ranks), sizeof(double)));
  if (bytes > options.max_timeline_bytes) {
    return Error{"the timeline is too large"}
        .found(fmt::format("{:.3g} GiB for {} tasks", static_cast<double>(bytes) / kGiB,
                           program_->expanded_task_count()))
        .expected(fmt::format("at most {:.3g} GiB", static_cast<double>(options.max_timeline_bytes) / kGiB))
        .advice("fold equal ranks into one class, or raise max_timeline_bytes");
  }
  if (!options.start_offset_us.empty() && options.start_offset_us.size() != ranks) {
    return Error{"wrong number of start offsets"}
        .found(std::to_string(options.start_offset_us.size()))
        .expected(fmt::format("{}, one for each {}, or none", ranks, options.unfold ? "rank" : "rank class"));
  }
  for (std::size_t r = 0; r < options.start_offset_us.size(); ++r) {
    if (!std::isfinite(options.start_offset_us[r])) {
      return Error{fmt::format("invalid start offset {}", r)}
          .found(fmt::format("{} us", options.start_offset_us[r]))
          .expected("a finite time");
    }
  }
  if (!timeline.intervals_.resize(intervals)) {
    return Error{"no memory for the timeline"}
        .found(fmt::format("{:.3g} GiB needed", static_cast<double>(bytes) / kGiB))
        .advice("fold equal ranks into one class");
  }
  timeline.start_offset_ = options.start_offset_us;
  timeline.start_offset_.resize(ranks, 0.0);
  timeline.lane_free_.resize(lanes);
  for (std::size_t c = 0; c < classes.size(); ++c) {
    const Timeline::Place& place = timeline.places_[c];
    for (std::size_t r = 0; r < place.copies; ++r) {
      const double offset = timeline.start_offset_[place.first_rank + r];
      timeline.intervals_.data()[place.first_interval + r * classes[c].intervals_per_rank] = {offset, offset};
      const auto free = timeline.lane_free_.begin() +
                        static_cast<std::ptrdiff_t>(place.first_lane + r * classes[c].lane_count);
      std::fill(free, free + static_cast<std::ptrdiff_t>(classes[c].lane_count), offset);
    }
  }
  return Ok{};
}

namespace detail {

// One run of a Plan over one set of costs: executes the steps of the ExecutionOrder.
class Sweep {
 public:
  Sweep(const Plan& plan, const Costs& costs, Timeline& timeline)
      : plan_(plan),
        costs_(costs),
        layout_(*plan.layout_),
        places_(timeline.places_.data()),
        times_(&timeline.intervals_.data()->start_us),
        lane_free_(timeline.lane_free_.data()),
        lane_scratch_(plan.max_block_lanes_ * kTile) {
    const std::span<const Block> blocks = plan.program_->blocks();
    blocks_.reserve(blocks.size());
    for (std::size_t b = 0; b < blocks.size(); ++b)
      blocks_.emplace_back(blocks[b], costs.duration_us(BlockId{b}), costs.delay_us(BlockId{b}));
  }

  void run() {
    // Number of order steps between two checks whether the caller has asked to stop.
    constexpr std::size_t kLookUp = 4096;
    for (std::size_t i = 0; i < plan_.order_.steps.size(); ++i) {
      const OrderStep& step = plan_.order_.steps[i];
      switch (step.kind) {
        case OrderStep::Kind::sweep: sweep(step); break;
        case OrderStep::Kind::fill_port: fill_port(step); break;
        case OrderStep::Kind::complete: complete(step); break;
      }
      if (i % kLookUp == kLookUp - 1 && is_stop_requested()) return;
    }
  }

 private:
  // Ranks computed together by sweep_tasks.
  static constexpr std::size_t kTile = 8;

  // First of the times of a rank: two doubles per interval of TimelineLayout.
  double* rank_times(std::uint32_t c, std::size_t rank) const {
    return times_ + 2 * (places_[c].first_interval + rank * layout_.rank_classes[c].intervals_per_rank);
  }

  // Sets an in-port of an instance: time of the moment that wrote its slot + delay of the out-port, or the
  // start offset of the rank if no earlier instance wrote the slot.
  void fill(const detail::TimelineLayout::Instance& instance, std::uint32_t c, const PortSource& source,
            std::size_t port, double* rank) const {
    double& value = rank[2 * (instance.first_interval + instance.task_count) + port];
    if (source.instance == PortSource::kStartOffset) {
      value = rank[0];
    } else {
      const auto& from = layout_.instances[layout_.rank_classes[c].first_instance + source.instance];
      value = rank[2 * from.first_interval + source.moment.code()] + source.delay_us;
    }
  }

  // Sources of the in-ports of an instance, numbered over all classes.
  std::span<const PortSource> ports_of(std::size_t instance) const {
    const auto& first = plan_.order_.first_port;
    return std::span{plan_.order_.port_sources}.subspan(first[instance],
                                                        first[instance + 1] - first[instance]);
  }

  // Step fill_port: one in-port of one instance, on all ranks of the class.
  void fill_port(const OrderStep& step) const {
    const std::uint32_t c = step.rank_class;
    const std::size_t flat = layout_.rank_classes[c].first_instance + step.instance;
    const PortSource& source = ports_of(flat)[step.first];
    for (std::size_t r = 0; r < places_[c].copies; ++r)
      fill(layout_.instances[flat], c, source, step.first, rank_times(c, r));
  }

  // Step sweep: a range of tasks of one instance, on all ranks of the class. Ranks are taken in tiles of 8,
  // then 4, then one by one.
  void sweep(const OrderStep& step) {
    const std::size_t copies = places_[step.rank_class].copies;
    std::size_t rank = 0;
    for (; rank + kTile <= copies; rank += kTile) sweep_ranks<kTile>(step, rank);
    for (; rank + 4 <= copies; rank += 4) sweep_ranks<4>(step, rank);
    for (; rank < copies; ++rank) sweep_ranks<1>(step, rank);
  }

  // Copies lane states in, computes the tasks on kRanks neighbouring ranks, and copies the lane states back.
  template <std::size_t kRanks>
  void sweep_ranks(const OrderStep& step, std::size_t rank) {
    const std::uint32_t c = step.rank_class;
    const auto& rank_class = layout_.rank_classes[c];
    const std::size_t flat = rank_class.first_instance + step.instance;
    const auto& instance = layout_.instances[flat];
    const BlockArrays& block = blocks_[instance.block];
    const std::size_t stride = 2 * rank_class.intervals_per_rank;
    double* times = rank_times(c, rank);

    // Lane states are interleaved for the ranks of a tile: [lane of the block, rank]. A single rank with an
    // identity lane mapping works directly on the states of its class.
    double* state = lane_free_ + places_[c].first_lane + rank * rank_class.lane_count;
    const Plan::Lanes& bound = plan_.lanes_[flat];
    const std::uint16_t* lane_map = plan_.bound_lanes_.data() + bound.first;
    const bool in_place = kRanks == 1 && bound.as_class;
    double* lanes = in_place ? state : lane_scratch_.data();
    const std::size_t lane_count = in_place ? 0 : plan_.program_->blocks()[instance.block].lanes().size();
    for (std::size_t l = 0; l < lane_count; ++l) {
      const double* from = state + (bound.as_class ? l : lane_map[l]);
      for (std::size_t r = 0; r < kRanks; ++r) lanes[l * kRanks + r] = from[r * rank_class.lane_count];
    }
    if (step.fills_ports) {
      const std::span<const PortSource> ports = ports_of(flat);
      for (std::size_t p = 0; p < ports.size(); ++p)
        for (std::size_t r = 0; r < kRanks; ++r) fill(instance, c, ports[p], p, times + r * stride);
    }
    sweep_tasks<kRanks>(block, step.first, step.end, times + 2 * instance.first_interval, stride, lanes);
    for (std::size_t l = 0; l < lane_count; ++l) {
      double* to = state + (bound.as_class ? l : lane_map[l]);
      for (std::size_t r = 0; r < kRanks; ++r) to[r * rank_class.lane_count] = lanes[l * kRanks + r];
    }
  }

  // Start of a member's collective task on one rank: its arrival.
  double arrival(const Plan::Member& member, std::size_t rank) const {
    return rank_times(member.rank_class, rank)[2 * member.interval];
  }
  // Latest arrival over all ranks of the member's class.
  double last_arrival(const Plan::Member& member) const {
    double last = arrival(member, 0);
    for (std::size_t r = 1; r < places_[member.rank_class].copies; ++r)
      last = std::max(last, arrival(member, r));
    return last;
  }
  // Ends the collective task at `transfer_us` + its duration and frees the lane at that time. Writing the
  // lane is correct although later steps ran in between: the order lets no task run on this lane before the
  // end is known.
  void leave(const Plan::Member& member, std::size_t rank, double transfer_us) const {
    const double end = transfer_us + costs_.duration_us(BlockId{std::size_t{member.block}})[member.task];
    rank_times(member.rank_class, rank)[2 * member.interval + 1] = end;
    lane_free_[places_[member.rank_class].first_lane +
               rank * layout_.rank_classes[member.rank_class].lane_count + member.lane] = end;
  }

  // Step complete: all members of a collective, or one non-root member of a rooted one, leave it.
  void complete(const OrderStep& step) const {
    const Collective& collective = plan_.program_->collectives()[step.collective];
    const std::span<const Plan::Member> members{
        plan_.members_.data() + plan_.first_member_[step.collective],
        plan_.members_.data() + plan_.first_member_[step.collective + 1]};
    const bool aligned = collective.grouping == CollectiveGrouping::aligned;
    // Number of groups of ranks that communicate. Aligned: one per rank number of the class. Spanning: one.
    const std::size_t groups = aligned ? places_[members[0].rank_class].copies : 1;
    for (std::size_t g = 0; g < groups; ++g) {
      const auto last = [&](const Plan::Member& m) { return aligned ? arrival(m, g) : last_arrival(m); };
      const auto all_leave = [&](const Plan::Member& m, const auto& transfer) {
        const std::size_t first = aligned ? g : 0, end = aligned ? g + 1 : places_[m.rank_class].copies;
        for (std::size_t r = first; r < end; ++r) leave(m, r, transfer(r));
      };
      if (collective.kind == CollectiveKind::rooted_from) {
        // A receiver of a rooted collective waits for its own arrival and for the root, but not for other
        // receivers.
        const Plan::Member& member = members[step.member];
        const double root = last(members[collective.root]);
        all_leave(member, [&](std::size_t r) { return std::max(arrival(member, r), root); });
        continue;
      }
      double transfer = last(members[0]);
      for (const Plan::Member& m : members.subspan(1)) transfer = std::max(transfer, last(m));
      for (const Plan::Member& m : members) all_leave(m, [&](std::size_t) { return transfer; });
    }
  }

  const Plan& plan_;
  const Costs& costs_;
  const detail::TimelineLayout& layout_;
  const Timeline::Place* places_;
  double* times_;
  double* lane_free_;
  std::vector<BlockArrays> blocks_;
  std::vector<double> lane_scratch_;
};

}  // namespace detail

Status Plan::simulate(const Costs& costs, const SimulateOptions& options, Timeline& timeline) const {
  STEPCAST_TRY(costs.check(*program_));
  STEPCAST_TRY(prepare(options, timeline));
  if (timeline.intervals_.size() > 0) detail::Sweep{*this, costs, timeline}.run();
  STEPCAST_TRY(not_stopped());
  return Ok{};
}

Result<Timeline> Plan::simulate(const Costs& costs, const SimulateOptions& options) const {
  Timeline timeline;
  STEPCAST_TRY(simulate(costs, options, timeline));
  return timeline;
}

}  // namespace stepcast
