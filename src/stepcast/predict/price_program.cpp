// Prices every distinct work once, then sets the durations of all tasks from these prices.
#include "stepcast/predict/price_program.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace stepcast {
namespace {

std::size_t index_of(KernelClass kernel_class) { return static_cast<std::size_t>(kernel_class); }

// Whether a task occupies a GPU stream with work.
bool runs_on_gpu(TaskKind kind) {
  switch (kind) {
    case TaskKind::kernel:
    case TaskKind::memcpy:
    case TaskKind::memset:
    case TaskKind::collective: return true;
    case TaskKind::cpu_segment:
    case TaskKind::cpu_call:
    case TaskKind::sync_enter:
    case TaskKind::sync_return:
    case TaskKind::wait: return false;
  }
  return false;
}

PricedWork known(Estimate once) { return {true, once, {}}; }
PricedWork unknown(std::string why) { return {false, {}, std::move(why)}; }

// An estimate without a band.
Estimate exactly(double time_us, EstimateSource source) {
  return {Microseconds{time_us}, Microseconds{time_us}, Microseconds{time_us}, source};
}

// Visitor of TaskWork: the price of one repetition, or the reason why there is none.
struct PriceOfWork {
  StepPricer& prices;
  std::span<const GroupPlacement> groups;

  PricedWork operator()(std::monostate) const { return unknown("no operation is known"); }
  PricedWork operator()(const Operation& operation) const { return known(prices.price(operation)); }
  PricedWork operator()(const CollectiveWork& work) const {
    if (!work.group.valid() || work.group.index() >= groups.size()) return unknown("its group is not known");
    if (work.message.value() <= 0) return unknown("its message is not known");
    const GroupPlacement& place = groups[work.group.index()];
    if (place.n_ranks <= 1) return unknown("a group of one rank");
    const Result<Estimate> once = prices.price(work.op, work.message, place);
    return once.ok() ? known(*once) : unknown(once.error().message());
  }
  PricedWork operator()(const HostWork& work) const {
    const StepAssumptions& assume = prices.assumptions();
    switch (work.activity) {
      case HostWork::Activity::overhead: return unknown("no overheads of the platform's host are known");
      case HostWork::Activity::kernel_launches:
        return known(exactly(assume.host_launch_us, EstimateSource::assumed));
      case HostWork::Activity::compiled_kernel_launches:
        return known(exactly(assume.compiled_host_launch_us, EstimateSource::assumed));
      case HostWork::Activity::between_steps:
        return known(exactly(assume.step_fixed_us, EstimateSource::assumed));
    }
    return unknown("no overheads of the platform's host are known");
  }
  PricedWork operator()(const Waiting&) const { return known(exactly(0, EstimateSource::measured)); }
};

// Sets the durations of the tasks of a block that have a known work, then slows down computations that
// overlap transfers.
void price_tasks(const Program& program, const Block& block, std::span<const PricedWork> works,
                 const StepPricer& prices, std::span<double> durations) {
  // Depends on the kind of collective if the work of the transfer is known.
  const auto overlap_slowdown = [&](const TaskInfo& transfer) {
    const CollectiveWork* work =
        transfer.work.valid() ? std::get_if<CollectiveWork>(&program.works.of(transfer.work)) : nullptr;
    return work != nullptr ? prices.overlap_slowdown(work->op) : prices.assumptions().overlap_slowdown;
  };
  for (std::size_t t = 0; t < durations.size(); ++t) {
    const TaskInfo& task = block.tasks()[t];
    if (!task.work.valid() || !works[task.work.index()].known) continue;
    durations[t] = works[task.work.index()].once.time.value() * task.work_times;
  }
  const std::span<const Overlap> overlaps = block.overlaps();
  // Overlaps are sorted by computation: one iteration for each computation with all of its transfers.
  for (std::size_t begin = 0, end = 0; begin < overlaps.size(); begin = end) {
    double transfers_us = 0, slowed_us = 0;
    for (; end < overlaps.size() && overlaps[end].computation == overlaps[begin].computation; ++end) {
      const std::size_t transfer = overlaps[end].transfer.index();
      transfers_us += durations[transfer];
      slowed_us += durations[transfer] * overlap_slowdown(block.tasks()[transfer]);
    }
    // The same rule as in lay_out().
    double& us = durations[overlaps[begin].computation.index()];
    if (us > 0 && transfers_us > 0) us *= 1 + std::min(1.0, transfers_us / us) * (slowed_us / transfers_us);
  }
}

// [BlockId] number of executions over all ranks.
std::vector<double> runs_of_blocks(const Program& program) {
  std::vector<double> runs(program.blocks().size(), 0.0);
  for (const RankClass& ranks : program.rank_classes()) {
    for (const BlockInstance& instance : ranks.instances) {
      runs[instance.block.index()] += static_cast<double>(ranks.multiplicity);
    }
  }
  return runs;
}

}  // namespace

// Tasks that represent bodies are counted by their inner tasks. Unmodelled work is collected by id first and
// by text afterwards, since several ids may have the same text.
Coverage coverage_of(const Program& program, const PricedProgram& priced, std::span<const double> runs,
                     const PricedBodies* bodies) {
  Coverage coverage;
  struct Sum {
    double tasks = 0, time_us = 0;
  };
  std::map<std::tuple<NameId, KernelClass, WorkId>, Sum> unmodelled;
  const auto ranks = static_cast<double>(std::max<std::uint64_t>(1, program.rank_count()));
  std::vector<double> runs_of_body(bodies != nullptr ? bodies->tasks.size() : 0, 0.0);
  const auto add_block = [&](const Block& block, std::span<const double> durations, double of_block) {
    for (std::size_t t = 0; t < durations.size(); ++t) {
      const TaskInfo& task = block.tasks()[t];
      if (task.kind == TaskKind::wait) continue;
      if (bodies != nullptr) {
        if (const std::size_t body = bodies->tasks.index_of(task); body != TaskBodies::kNone) {
          runs_of_body[body] += of_block;
          continue;
        }
      }
      const double time_us = durations[t] * of_block / ranks;
      const bool is_known = task.work.valid() && priced.works[task.work.index()].known;
      const EstimateSource source =
          is_known ? priced.works[task.work.index()].once.source : EstimateSource::measured;
      if (!runs_on_gpu(task.kind)) {
        coverage.host_us[index_of(source)] += time_us;
        continue;
      }
      coverage.gpu_us[index_of(task.kernel_class)][index_of(source)] += time_us;
      if (is_known) continue;
      Sum& sum = unmodelled[{task.name, task.kernel_class, task.work}];
      sum.tasks += of_block;
      sum.time_us += time_us;
    }
  };
  for (std::size_t b = 0; b < runs.size(); ++b)
    if (runs[b] != 0) add_block(program.blocks()[b], priced.costs.duration_us(BlockId{b}), runs[b]);
  for (std::size_t b = 0; b < runs_of_body.size(); ++b)
    add_block(bodies->tasks.program().blocks()[b], bodies->costs.duration_us(BlockId{b}), runs_of_body[b]);
  std::map<std::tuple<std::string_view, KernelClass, std::string_view>, Sum> by_name;
  for (const auto& [key, sum] : unmodelled) {
    const auto& [name, kernel_class, work] = key;
    const std::string_view why =
        work.valid() ? std::string_view{priced.works[work.index()].unknown} : "no operation is known";
    Sum& all = by_name[{program.names.text(name), kernel_class, why}];
    all.tasks += sum.tasks;
    all.time_us += sum.time_us;
  }
  for (const auto& [key, sum] : by_name) {
    coverage.unmodelled.push_back({std::string{std::get<0>(key)}, std::get<1>(key),
                                   std::string{std::get<2>(key)}, static_cast<std::uint64_t>(sum.tasks),
                                   sum.time_us});
  }
  // Longest first; equal times stay in alphabetical order, which keeps reports reproducible.
  std::stable_sort(coverage.unmodelled.begin(), coverage.unmodelled.end(),
                   [](const auto& a, const auto& b) { return a.time_us > b.time_us; });
  return coverage;
}

Estimate PricedProgram::estimate(const TaskInfo& task, double duration_us) const {
  if (!task.work.valid() || !works[task.work.index()].known) {
    return exactly(duration_us, EstimateSource::measured);
  }
  const Estimate& once = works[task.work.index()].once;
  const double times = once.time.value() > 0 ? duration_us / once.time.value() : 0;
  return once.scaled(times);
}

Result<PricedProgram> price_program(const Program& program, StepPricer& prices,
                                    std::span<const GroupPlacement> groups) {
  if (groups.size() != program.groups().size()) {
    return Error::at("", "groups of ranks", "placements of another Program")
        .found(fmt::format("{} placements", groups.size()))
        .expected(fmt::format("{}, one per group", program.groups().size()));
  }
  PricedProgram priced{Costs{program}, {}, {}};
  priced.works.reserve(program.works.size());
  for (std::size_t w = 0; w < program.works.size(); ++w) {
    priced.works.push_back(std::visit(PriceOfWork{prices, groups}, program.works.of(WorkId{w})));
  }
  for (std::size_t b = 0; b < program.blocks().size(); ++b) {
    price_tasks(program, program.blocks()[b], priced.works, prices, priced.costs.duration_us(BlockId{b}));
  }
  priced.costs.rescale_shared_delays(program);
  priced.coverage = coverage_of(program, priced, runs_of_blocks(program));
  return priced;
}

Result<PricedBodies> price_bodies(TaskBodies bodies, const Program& program, const StepPricer& prices,
                                  PricedProgram& priced) {
  const Program& of_bodies = bodies.program();
  Costs costs{of_bodies};
  for (std::size_t b = 0; b < bodies.size(); ++b)
    price_tasks(of_bodies, of_bodies.blocks()[b], priced.works, prices, costs.duration_us(BlockId{b}));
  STEPCAST_ASSIGN(const Plan plan, Plan::compile(of_bodies));
  STEPCAST_ASSIGN(Timeline timeline, plan.simulate(costs));
  for (std::size_t b = 0; b < program.blocks().size(); ++b) {
    for (std::size_t t = 0; t < program.blocks()[b].task_count(); ++t) {
      const std::size_t body = bodies.index_of(program.blocks()[b].tasks()[t]);
      if (body != TaskBodies::kNone)
        // A body is the only instance of its rank class, so its duration is the end of that class.
        priced.costs.duration_us(BlockId{b})[t] = timeline.rank_end_us(RankClassId{body});
    }
  }
  PricedBodies result{std::move(bodies), std::move(costs), std::move(timeline)};
  priced.coverage = coverage_of(program, priced, runs_of_blocks(program), &result);
  return result;
}

std::vector<GroupPlacement> place_recorded_groups(const Program& program, std::int64_t gpus_per_node) {
  std::map<std::string_view, std::vector<RankSpan>> by_label;
  // Groups of a label share the NICs of their nodes, so each is placed together with all of them.
  for (const RankGroup& group : program.groups()) by_label[group.label].push_back(group.ranks);
  std::vector<GroupPlacement> places;
  for (const RankGroup& group : program.groups()) {
    places.push_back(place_ranks(group.ranks, gpus_per_node, by_label[group.label]));
  }
  return places;
}

}  // namespace stepcast
