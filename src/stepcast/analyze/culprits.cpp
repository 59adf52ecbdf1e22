#include "stepcast/analyze/culprits.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "stepcast/analyze/collective_list.h"
#include "stepcast/analyze/critical_path.h"
#include "stepcast/analyze/detail/rank_parts.h"
#include "stepcast/analyze/operator_times.h"
#include "stepcast/base/names.h"

namespace stepcast {
namespace {

// A rank has data skew in an operator if it has more than this many times the work of the median rank.
constexpr double kSkew = 1.05;

double& at(CulpritTimes& times, Culprit culprit) { return times[static_cast<std::size_t>(culprit)]; }

// The culprit of idle time in front of a task.
Culprit culprit_of(IdleCause cause) {
  switch (cause) {
    case IdleCause::cpu:
    case IdleCause::between_steps: return Culprit::host;
    case IdleCause::other_stream: return Culprit::gpu;
    default: return Culprit::rest;
  }
}

// The culprit of the delay of an edge.
Culprit culprit_of(EdgeOrigin origin) {
  switch (origin) {
    case EdgeOrigin::launch:
    case EdgeOrigin::thread_handoff:
    case EdgeOrigin::synchronization: return Culprit::host;
    case EdgeOrigin::stream_order:
    case EdgeOrigin::event:
    case EdgeOrigin::tensor:
    case EdgeOrigin::device_busy: return Culprit::gpu;
    default: return Culprit::rest;
  }
}

// The culprit of a task. Kernels count as GPU here; add_step() moves the share of data skew.
Culprit culprit_of(const Program& program, const TaskInfo& info) {
  switch (info.kind) {
    case TaskKind::cpu_segment:
    case TaskKind::cpu_call:
    case TaskKind::sync_enter:
    case TaskKind::sync_return: return Culprit::host;
    case TaskKind::memcpy:
      return detail::crosses_host_link(program.names.text(info.name)) ? Culprit::pcie : Culprit::gpu;
    case TaskKind::memset: return Culprit::gpu;
    case TaskKind::collective: return Culprit::network;
    case TaskKind::wait: return Culprit::rest;
    case TaskKind::kernel: break;
  }
  return info.kernel_class == KernelClass::communication ? Culprit::network : Culprit::gpu;
}

// One search. Preparation: for each operator and rank, the share of its time that is due to more work than
// the median rank has.
class Search {
 public:
  explicit Search(const CulpritInput& input)
      : in_(input), occurrences_(collective_occurrences(input.flat, input.times)) {
    for (const OperatorTimes& op : operator_times(input.flat, input.times, input.windows)) {
      std::vector<double> shares(input.flat.class_count(), 0.0);
      for (std::size_t c = 0; c < shares.size(); ++c) {
        const double ratio = work_ratio(op, c);
        if (ratio > kSkew) shares[c] = 1 - 1 / ratio;
      }
      skew_.emplace(op.op, std::move(shares));
    }
  }

  StepCulprits run() {
    const std::size_t n = in_.flat.class_count();
    result_.tie_us = in_.tie_us;
    result_.ranks.resize(n);
    std::vector<std::vector<Interval>> waits_of(occurrences_.size() * n);
    for (std::size_t c = 0; c < n; ++c) add_own(c, waits_of);
    for (std::size_t i = 0; i < occurrences_.size(); ++i)
      if (occurrences_[i].members.size() >= 2) add_waits(i, waits_of);
    return std::move(result_);
  }

 private:
  // Adds what a rank does or waits for itself, and collects its waiting in collectives by occurrence and
  // rank.
  void add_own(std::size_t c, std::vector<std::vector<Interval>>& waits_of) {
    RankCulprits& rank = result_.ranks[c];
    rank.rank_class = RankClassId{c};
    rank.step_us = in_.windows[c].length_us();
    const detail::RankParts parts = detail::rank_parts(in_.flat, in_.times, in_.costs, RankClassId{c},
                                                       in_.windows[c], in_.rank_start_us[c], occurrences_);
    at(rank.own_us, Culprit::gpu) += parts.computation.total_us() + parts.device_copies.total_us();
    at(rank.own_us, Culprit::network) += parts.transfer.total_us();
    at(rank.own_us, Culprit::pcie) += parts.copies.total_us();
    for (const detail::IdleGap& gap : parts.gaps)
      at(rank.own_us, culprit_of(gap.cause)) += gap.time.length_us();
    for (const detail::RankWait& wait : parts.waits)
      waits_of[wait.occurrence * in_.flat.class_count() + c].push_back(wait.time);
  }

  // Charges the waiting in collective `i` to the path that led to the arrival of the last rank.
  void add_waits(std::size_t i, const std::vector<std::vector<Interval>>& waits_of) {
    const CollectiveOccurrence& occurrence = occurrences_[i];
    const CollectiveArrival& last = occurrence.members[occurrence.last];
    ++result_.collectives;
    double before = occurrence.start_us();
    for (std::size_t m = 0; m < occurrence.members.size(); ++m)
      if (m != occurrence.last) before = std::max(before, occurrence.members[m].arrival_us);
    const bool tie = last.arrival_us - before <= in_.tie_us;
    if (tie) ++result_.ties;
    RankCulprits& cause = result_.ranks[last.rank_class.index()];
    if (!tie) ++cause.came_last;
    // The path back from the last arrival, as far as the first arrival: no rank waits before that.
    const CriticalPath path = critical_path(in_.flat, in_.times, in_.costs, in_.rank_start_us,
                                            {.to_rank = last.rank_class,
                                             .to_task = last.task,
                                             .to_start = true,
                                             .from_us = occurrence.start_us()});
    for (const CollectiveArrival& m : occurrence.members) {
      // `all`: the whole waiting of a member. `alone`: only the part in which its GPU does nothing else.
      CulpritTimes all{}, alone{};
      add_path(path, {m.arrival_us, m.arrival_us + m.wait_us}, all);
      for (const Interval& wait : waits_of[i * in_.flat.class_count() + m.rank_class.index()])
        add_path(path, wait, alone);
      RankCulprits& rank = result_.ranks[m.rank_class.index()];
      for (std::size_t k = 0; k < kCulpritCount; ++k) {
        rank.through_others_us[k] += alone[k];
        if (!tie) cause.caused_by_us[k] += all[k];
      }
      rank.waited_us += m.wait_us;
      if (!tie) cause.caused_wait_us += m.wait_us;
    }
  }

  // Adds what the path did in `time`. The part that the path does not cover is the rest.
  void add_path(const CriticalPath& path, Interval time, CulpritTimes& times) const {
    double left = time.length_us();
    if (left <= 0) return;
    for (const PathStep& step : path.steps) {
      const double us = detail::clip(step.time, time).length_us();
      if (us <= 0) continue;
      left -= us;
      add_step(step, us, times);
    }
    at(times, Culprit::rest) += std::max(0.0, left);
  }

  // Adds `us` microseconds of one step of a path. A kernel with data skew is split: the share beyond the
  // median rank's work is skew, the remainder is GPU time.
  void add_step(const PathStep& step, double us, CulpritTimes& times) const {
    switch (step.kind) {
      case PathStep::Kind::edge: at(times, culprit_of(step.edge.origin)) += us; return;
      case PathStep::Kind::start_offset: at(times, Culprit::late_start) += us; return;
      case PathStep::Kind::unexplained: at(times, Culprit::rest) += us; return;
      case PathStep::Kind::task: break;
    }
    const TaskInfo& info = in_.flat.info(step.rank_class, step.task);
    const Culprit culprit = culprit_of(in_.flat.program(), info);
    double skewed = 0;
    if (culprit == Culprit::gpu && info.kind == TaskKind::kernel) {
      const auto of_op = skew_.find(operator_of(in_.flat.program(), info));
      if (of_op != skew_.end()) skewed = us * of_op->second[step.rank_class.index()];
    }
    at(times, Culprit::data_skew) += skewed;
    at(times, culprit) += us - skewed;
  }

  const CulpritInput& in_;
  std::vector<CollectiveOccurrence> occurrences_;
  // [operator][rank class] share of the time due to skew.
  std::map<std::string_view, std::vector<double>> skew_;
  StepCulprits result_;
};

}  // namespace

std::string_view to_string(Culprit culprit) {
  return name_of<Culprit::rest>(
      culprit, {"gpu", "host", "pcie", "network", "data_skew", "late_start", "rest"}, "rest");
}

double StepCulprits::of(Culprit culprit) const {
  const auto k = static_cast<std::size_t>(culprit);
  double sum = 0;
  for (const RankCulprits& rank : ranks) sum += rank.own_us[k] + rank.through_others_us[k];
  return ranks.empty() ? 0 : sum / static_cast<double>(ranks.size());
}

const RankCulprits* StepCulprits::worst() const {
  const RankCulprits* most = nullptr;
  double caused = 0, second = 0;
  for (const RankCulprits& rank : ranks) {
    caused += rank.caused_wait_us;
    if (most == nullptr || rank.caused_wait_us > most->caused_wait_us) {
      second = most == nullptr ? 0 : most->caused_wait_us;
      most = &rank;
    } else {
      second = std::max(second, rank.caused_wait_us);
    }
  }
  // The waiting in ties belongs to an unknown rank. If it could lift the second rank above the first, the
  // result is a null pointer.
  const bool may_be_another = most != nullptr && second + (all_waiting_us() - caused) >= most->caused_wait_us;
  return may_be_another ? nullptr : most;
}

double StepCulprits::step_us() const {
  double sum = 0;
  for (const RankCulprits& rank : ranks) sum += rank.step_us;
  return ranks.empty() ? 0 : sum / static_cast<double>(ranks.size());
}

double StepCulprits::all_waiting_us() const {
  double sum = 0;
  for (const RankCulprits& rank : ranks) sum += rank.waited_us;
  return sum;
}

StepCulprits find_culprits(const CulpritInput& input) { return Search{input}.run(); }

}  // namespace stepcast
