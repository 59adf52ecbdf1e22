#include "stepcast/analyze/operator_times.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "stepcast/analyze/binding.h"
#include "stepcast/analyze/collective_list.h"
#include "stepcast/analyze/detail/rank_parts.h"
#include "stepcast/base/statistics.h"
#include "stepcast/operation/operation.h"
#include "stepcast/program/stack_fold.h"

namespace stepcast {

std::string_view operator_of(const Program& program, const TaskInfo& info) {
  return info.stack.valid() ? program.names.text(program.stacks.name(info.stack)) : std::string_view{};
}

std::vector<OperatorTimes> operator_times(const FlatProgram& flat, const TaskTimes& times,
                                          std::span<const Interval> windows) {
  const Program& program = flat.program();
  const std::size_t n = flat.class_count();
  std::map<std::string_view, OperatorTimes> by_op;
  for (std::size_t c = 0; c < n; ++c) {
    const RankClassId id{c};
    for (std::size_t t = 0; t < flat.task_count(id); ++t) {
      const TaskInfo& info = flat.info(id, t);
      const bool on_gpu = flat.lane_of(id, t).kind == LaneKind::gpu_stream;
      const bool sends = info.kind == TaskKind::collective || info.kernel_class == KernelClass::communication;
      // Communication is not work of an operator: its time depends on other ranks.
      if (info.kind == TaskKind::wait || (on_gpu && sends)) continue;
      const Interval& all = times.at(id, t);
      const double us = std::min(all.end_us, windows[c].end_us) - std::max(all.start_us, windows[c].start_us);
      // A task without length counts if it lies in the window; of others, only a part inside the window.
      if (us < 0 || (us == 0 && all.length_us() > 0)) continue;
      OperatorTimes& op = by_op[operator_of(program, info)];
      if (op.gpu_us.empty())
        for (std::vector<double>* v : {&op.gpu_us, &op.host_us, &op.flops, &op.bytes}) v->resize(n, 0.0);
      (on_gpu ? op.gpu_us : op.host_us)[c] += us;
      const Operation* operation = on_gpu ? program.works.operation(info.work) : nullptr;
      if (operation == nullptr) continue;
      const Work work = work_of(*operation);
      op.flops[c] += work.flops.value() * info.work_times;
      op.bytes[c] += work.bytes().value() * info.work_times;
    }
  }
  std::vector<OperatorTimes> all;
  for (auto& [name, op] : by_op) {
    op.op = name;
    all.push_back(std::move(op));
  }
  return all;
}

double work_ratio(const OperatorTimes& op, std::size_t rank_class) {
  double ratio = 0;
  bool known = false;
  // The larger of both ratios: an operator may be bound by either of them.
  for (const std::vector<double>* amounts : {&op.flops, &op.bytes}) {
    const double own = (*amounts)[rank_class], middle = median(*amounts);
    if (own <= 0 && middle <= 0) continue;
    known = true;
    ratio = std::max(ratio, middle > 0 ? own / middle : std::numeric_limits<double>::infinity());
  }
  return known ? ratio : 1;
}

std::vector<OperatorComparison> compare_operators(std::span<const OperatorTimes> operators,
                                                  std::size_t most) {
  std::vector<OperatorComparison> all;
  for (const OperatorTimes& op : operators) {
    for (const bool on_gpu : {true, false}) {
      OperatorComparison one;
      one.op = op.op;
      one.on_gpu = on_gpu;
      one.times_us = on_gpu ? op.gpu_us : op.host_us;
      if (one.times_us.size() < 2) continue;
      one.median_us = median(one.times_us);
      const auto slowest = std::max_element(one.times_us.begin(), one.times_us.end());
      one.slowest = static_cast<std::size_t>(slowest - one.times_us.begin());
      if (on_gpu) one.work_ratio = work_ratio(op, one.slowest);
      if (one.excess_us() > 0) all.push_back(std::move(one));
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const OperatorComparison& a, const OperatorComparison& b) {
    return a.excess_us() > b.excess_us();
  });
  if (most != 0 && all.size() > most) all.resize(most);
  return all;
}

namespace {

// Finds the outermost operator of a stack, cached per stack. Names of operators contain "::"; labels of
// modules, steps and data loaders do not.
class OutermostOperators {
 public:
  explicit OutermostOperators(const Program& program) : program_(program), known_(program.stacks) {}

  std::string_view of(StackId stack) {
    const Outermost outermost = known_.of(stack, [&](Outermost outer, StackId frame) {
      const std::string_view name = program_.names.text(program_.stacks.name(frame));
      if (name.starts_with("ProfilerStep")) return outer;
      if (outer.op.empty() && name.find("::") != std::string_view::npos) outer.op = name;
      if (outer.label.empty()) outer.label = name;
      return outer;
    });
    return outermost.op.empty() ? outermost.label : outermost.op;
  }

 private:
  struct Outermost {
    std::string_view op, label;
  };
  const Program& program_;
  StackFold<Outermost> known_;
};

}  // namespace

std::vector<AwaitedOperator> awaited_operators(const FlatProgram& flat, const TaskTimes& times,
                                               const Costs& costs, std::span<const Interval> windows,
                                               std::span<const double> rank_start_us) {
  const Program& program = flat.program();
  const std::size_t n = flat.class_count();
  const std::vector<CollectiveOccurrence> occurrences = collective_occurrences(flat, times);
  std::map<std::string_view, AwaitedOperator> by_op;
  OutermostOperators outermost(program);
  for (std::size_t c = 0; c < n; ++c) {
    const RankClassId id{c};
    const detail::RankParts parts =
        detail::rank_parts(flat, times, costs, id, windows[c], rank_start_us[c], occurrences);
    std::vector<std::vector<std::size_t>> lanes(program.rank_class(id).lanes.size());
    for (std::size_t lane = 0; lane < lanes.size(); ++lane)
      lanes[lane] = flat.lane_tasks(id, static_cast<std::uint16_t>(lane));
    for (const detail::IdleGap& gap : parts.gaps) {
      if (gap.cause != IdleCause::cpu || gap.next_task == kNoTask) continue;
      FlatSource source = binding_of(flat, times, costs, id, gap.next_task, rank_start_us[c]).source;
      // If the work had been launched but waited for something else, the gap ends with the launch: use the
      // launch call.
      if (source.task != kNoTask && flat.lane_of(id, source.task).kind != LaneKind::cpu_thread)
        source = launch_of(flat, times, costs, id, gap.next_task).value_or(source);
      std::map<std::string_view, double> in_gap;
      double left = gap.time.length_us();
      // Split the gap among the tasks of the launching thread that overlap it.
      if (source.task != kNoTask) {
        const std::span<const std::size_t> lane = lanes[flat.lane(id, source.task)];
        auto task = std::partition_point(lane.begin(), lane.end(), [&](std::size_t t) {
          return times.at(id, t).end_us <= gap.time.start_us;
        });
        for (; task != lane.end() && times.at(id, *task).start_us < gap.time.end_us; ++task) {
          const double us = detail::clip(times.at(id, *task), gap.time).length_us();
          if (us <= 0) continue;
          in_gap[outermost.of(flat.info(id, *task).stack)] += us;
          left -= us;
        }
        // The delay between the end of the launch call and the start of the work belongs to the operator that
        // launched it.
        const double after = gap.time.end_us - std::max(gap.time.start_us, times.at(id, source.task).end_us);
        const double delay = std::clamp(after, 0.0, std::max(0.0, left));
        if (delay > 0) {
          in_gap[outermost.of(flat.info(id, gap.next_task).stack)] += delay;
          left -= delay;
        }
      }
      // What remains is time in which the launching thread waited.
      if (left > kTimeToleranceUs) in_gap[kThreadWaits] += left;
      for (const auto& [op, us] : in_gap) {
        AwaitedOperator& awaited = by_op[op];
        awaited.ranks_us.resize(n, 0.0);
        awaited.gpu_idle_us += us;
        awaited.ranks_us[c] += us;
        ++awaited.gaps;
      }
    }
  }
  std::vector<AwaitedOperator> all;
  for (auto& [op, awaited] : by_op) {
    awaited.op = op;
    all.push_back(std::move(awaited));
  }
  std::stable_sort(all.begin(), all.end(), [](const AwaitedOperator& a, const AwaitedOperator& b) {
    return a.gpu_idle_us > b.gpu_idle_us;
  });
  return all;
}

}  // namespace stepcast
