#include "stepcast/analyze/critical_path.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "stepcast/analyze/binding.h"
#include "stepcast/analyze/body_profiles.h"

namespace stepcast {
namespace {

// A task of a rank class.
struct Place {
  RankClassId rank_class;
  std::size_t task = kNoTask;
};

// The member with the arrival that decided when member `m` could begin its transfer: the root if data comes
// from the root, otherwise the last to arrive.
std::size_t deciding_member(const Collective& collective, const std::vector<CollectiveStretch>& stretches,
                            std::size_t m) {
  const auto later = [&](std::size_t a, std::size_t b) {  // b if it arrived later than a, else a
    return stretches[b].arrival_us > stretches[a].arrival_us + kTimeToleranceUs ? b : a;
  };
  if (collective.kind == CollectiveKind::rooted_from) return later(m, collective.root);
  std::size_t last = m;  // on a tie the path stays on this rank
  for (std::size_t other = 0; other < stretches.size(); ++other) last = later(last, other);
  return last;
}

// The shares, longest first.
std::vector<PathShare> sorted(const std::map<std::string, PathShare>& shares) {
  std::vector<PathShare> list;
  for (const auto& [what, share] : shares) list.push_back({what, share.time_us, share.steps});
  // Compared as float, so that times that differ by rounding only are ordered by name.
  std::stable_sort(list.begin(), list.end(), [](const PathShare& a, const PathShare& b) {
    return static_cast<float>(a.time_us) > static_cast<float>(b.time_us);
  });
  return list;
}

// The body that a step of the path goes through; null for others.
const BodyProfile* body_of(const FlatProgram& flat, const PathStep& step) {
  if (flat.bodies() == nullptr || step.kind != PathStep::Kind::task) return nullptr;
  return body_of(flat, flat.info(step.rank_class, step.task));
}

// Sums the steps of a path by name. Steps with equal keys must have equal names; several keys may have the
// same name. `key` is called for every step, `name` only once per key. Both are called with the FlatProgram
// that contains the step, since steps inside a body belong to another one.
template <class Key, class Name>
std::vector<PathShare> share_by(const FlatProgram& flat, const CriticalPath& path, const Key& key,
                                const Name& name) {
  std::map<std::string, PathShare> shares;
  std::unordered_map<std::uint64_t, PathShare*> known;
  struct Recent {
    std::uint64_t key = 0;
    PathShare* share = nullptr;
  };
  // A direct-mapped cache in front of the hash table: paths have many steps with few distinct keys.
  std::array<Recent, 256> recent;
  const auto add = [&](const FlatProgram& in, const PathStep& step, RankClassId rank_class, double times) {
    const std::uint64_t of_step = key(in, step, rank_class);
    // Fibonacci hashing: the highest 8 bits select one of 256 entries.
    Recent& last = recent[of_step * 0x9e3779b97f4a7c15U >> 56U];
    if (last.share == nullptr || last.key != of_step) {
      PathShare*& share = known[of_step];
      if (share == nullptr) share = &shares[name(in, step, rank_class)];
      last = {of_step, share};
    }
    last.share->time_us += times * step.time.length_us();
    last.share->steps += static_cast<std::uint64_t>(times);
  };
  // How often the path goes through each body. The steps of a body are added once, with this factor.
  std::map<std::pair<const BodyProfile*, RankClassId>, double> through;
  for (const PathStep& step : path.steps) {
    if (const BodyProfile* body = body_of(flat, step); body != nullptr)
      ++through[{body, step.rank_class}];
    else
      add(flat, step, step.rank_class, 1);
  }
  for (const auto& [of, times] : through)
    for (const PathStep& step : of.first->path.steps) add(flat.bodies()->flat(), step, of.second, times);
  return sorted(shares);
}

// The key of step_class() for share_by().
std::uint64_t class_key(const FlatProgram& flat, const PathStep& step) {
  const auto number = [](auto value) { return static_cast<std::uint64_t>(value); };
  if (step.kind == PathStep::Kind::edge) return number(step.kind) | number(step.edge.origin) << 8U;
  if (step.kind != PathStep::Kind::task) return number(step.kind);
  const TaskInfo& info = flat.info(step.rank_class, step.task);
  return number(step.kind) | number(info.kind) << 8U | number(info.kernel_class) << 16U;
}

// The key of path_step_name() for share_by(). The highest bit separates it from keys of class_key().
std::uint64_t name_key(const FlatProgram& flat, const PathStep& step) {
  if (step.kind != PathStep::Kind::task) return class_key(flat, step);
  const TaskInfo& info = flat.info(step.rank_class, step.task);
  const std::uint64_t op = info.stack.valid() ? flat.program().stacks.name(info.stack).index() + 1 : 0;
  return std::uint64_t{1} << 63U | op << 32U | info.name.index();
}

// The class of a step: "cpu", "kernels: gemm", "delay: launch".
std::string step_class(const FlatProgram& flat, const PathStep& step) {
  switch (step.kind) {
    case PathStep::Kind::edge: return fmt::format("delay: {}", to_string(step.edge.origin));
    case PathStep::Kind::start_offset: return "late start";
    case PathStep::Kind::unexplained: return "unexplained";
    case PathStep::Kind::task: break;
  }
  const TaskInfo& info = flat.info(step.rank_class, step.task);
  switch (info.kind) {
    case TaskKind::cpu_segment:
    case TaskKind::cpu_call:
    case TaskKind::sync_enter:
    case TaskKind::sync_return: return "cpu";
    case TaskKind::memcpy:
    case TaskKind::memset: return "copies";
    case TaskKind::collective: return "communication";
    case TaskKind::wait: return "waiting";
    case TaskKind::kernel: break;
  }
  if (info.kernel_class == KernelClass::communication) return "communication";
  return fmt::format("kernels: {}", to_string(info.kernel_class));
}

// Walks backwards from the end of the path: from a task to its binding constraint, until it reaches the start
// of a rank. `at_` is the current task, and `until_us_` the time up to which the path is not known yet.
class PathWalk {
 public:
  PathWalk(const FlatProgram& flat, const TaskTimes& times, const Costs& costs,
           std::span<const double> rank_start_us, const CriticalPathOptions& options)
      : flat_(flat), times_(times), costs_(costs), rank_start_us_(rank_start_us), options_(options) {
    if (!rank_start_us.empty())
      first_start_us_ = *std::min_element(rank_start_us.begin(), rank_start_us.end());
  }

  CriticalPath walk() {
    path_.time = {first_start_us_, first_start_us_};
    find_end();
    if (at_.task == kNoTask) return std::move(path_);  // a Program without tasks
    path_.time.end_us = until_us_;
    path_.last_rank = at_.rank_class;
    // Whether the path contains the current task, or only leads to its start.
    bool through = !(options_.to_task && options_.to_start);
    while (true) {
      const double start_us = through ? pass_task() : times_.at(at_.rank_class, at_.task).start_us;
      const Binding binding =
          binding_of(flat_, times_, costs_, at_.rank_class, at_.task, rank_start_us_[at_.rank_class.index()]);
      // The task waited for something before the window that no edge describes: the path begins here.
      if (options_.from_us && start_us <= *options_.from_us + kTimeToleranceUs &&
          binding.arrival_us + kTimeToleranceUs < start_us) {
        path_.time.start_us = start_us;
        break;
      }
      pass_binding(binding, start_us);
      if (binding.kind == Binding::Kind::rank_start || binding.source.task == kNoTask) {
        if (until_us_ > first_start_us_ + kTimeToleranceUs)
          add(PathStep::Kind::start_offset, {first_start_us_, until_us_});
        break;
      }
      if (options_.from_us && until_us_ <= *options_.from_us) {
        path_.time.start_us = std::max(first_start_us_, until_us_);
        break;
      }
      through = binding.source.from_end;
      at_.task = binding.source.task;
    }
    std::reverse(path_.steps.begin(), path_.steps.end());
    return std::move(path_);
  }

 private:
  // Appends a step at the current task. Steps are appended from last to first.
  void add(PathStep::Kind kind, Interval time, const EdgeInfo& edge = {}) {
    path_.steps.push_back(
        {.kind = kind, .rank_class = at_.rank_class, .task = at_.task, .edge = edge, .time = time});
  }

  // Sets the end of the path: the requested task, otherwise the task that ends last on one rank or on all
  // ranks.
  void find_end() {
    until_us_ = -std::numeric_limits<double>::infinity();
    for (std::size_t c = 0; c < flat_.class_count(); ++c) {
      if (options_.to_rank && options_.to_rank->index() != c) continue;
      if (options_.to_task) {
        const Interval& target = times_.at(RankClassId{c}, *options_.to_task);
        at_ = {RankClassId{c}, *options_.to_task};
        until_us_ = options_.to_start ? target.start_us : target.end_us;
        continue;
      }
      const std::span<const Interval> of_class = times_.of(RankClassId{c});
      double later_than_us = until_us_ + kTimeToleranceUs;
      for (std::size_t t = 0; t < of_class.size(); ++t) {
        if (of_class[t].end_us <= later_than_us) continue;
        until_us_ = of_class[t].end_us;
        later_than_us = until_us_ + kTimeToleranceUs;
        at_ = {RankClassId{c}, t};
      }
    }
  }

  // Adds the current task and returns when it began. At a collective, the walk continues from the member that
  // decided when it ran, and the step begins with the arrival of that member.
  double pass_task() {
    double begin_us = times_.at(at_.rank_class, at_.task).start_us;
    Place arrived = at_;
    if (const CollectiveId id = flat_.collective_of(at_.rank_class, at_.task); id.valid()) {
      const Collective& collective = flat_.program().collectives()[id.index()];
      collective_stretches(flat_, times_, id, stretches_);
      const std::vector<CollectiveStretch>& stretches = stretches_;
      std::size_t own = 0;
      for (std::size_t m = 0; m < collective.members.size(); ++m) {
        const CollectiveMember& member = collective.members[m];
        if (member.rank_class == at_.rank_class && place_of(member).task == at_.task) own = m;
      }
      const std::size_t last = deciding_member(collective, stretches, own);
      arrived = place_of(collective.members[last]);
      begin_us = stretches[last].arrival_us;
    }
    add(PathStep::Kind::task, {begin_us, until_us_});
    at_ = arrived;
    return begin_us;
  }

  // Adds what lies between the start of the current task and the end of its constraint: unexplained time and
  // the delay of the edge.
  void pass_binding(const Binding& binding, double start_us) {
    if (start_us > binding.arrival_us + kTimeToleranceUs)
      add(PathStep::Kind::unexplained, {binding.arrival_us, start_us});
    until_us_ = std::min(start_us, binding.arrival_us);
    if (binding.kind != Binding::Kind::edge || binding.source.delay_us <= 0) return;
    add(PathStep::Kind::edge, {until_us_ - binding.source.delay_us, until_us_}, binding.source.info);
    until_us_ -= binding.source.delay_us;
  }

  // The task of a collective's member.
  [[nodiscard]] Place place_of(const CollectiveMember& member) const {
    return {
        member.rank_class,
        flat_.flat(
            {.rank_class = member.rank_class, .rank = 0, .instance = member.instance, .task = member.task})};
  }

  const FlatProgram& flat_;
  const TaskTimes& times_;
  const Costs& costs_;
  std::span<const double> rank_start_us_;
  const CriticalPathOptions& options_;
  double first_start_us_ = 0;
  Place at_;
  double until_us_ = 0;
  CriticalPath path_;
  std::vector<CollectiveStretch> stretches_;  // of the current collective
};

}  // namespace

CriticalPath critical_path(const FlatProgram& flat, const TaskTimes& times, const Costs& costs,
                           std::span<const double> rank_start_us, const CriticalPathOptions& options) {
  return PathWalk{flat, times, costs, rank_start_us, options}.walk();
}

std::vector<PathShare> path_by_class(const FlatProgram& flat, const CriticalPath& path) {
  const auto key = [](const FlatProgram& in, const PathStep& step, RankClassId /*rank*/) {
    return class_key(in, step);
  };
  return share_by(flat, path, key, [](const FlatProgram& in, const PathStep& step, RankClassId /*rank*/) {
    return step_class(in, step);
  });
}

std::vector<PathShare> path_by_rank(const FlatProgram& flat, const CriticalPath& path) {
  const auto key = [](const FlatProgram& /*in*/, const PathStep& step, RankClassId rank_class) {
    const bool late = step.kind == PathStep::Kind::start_offset;
    return std::uint64_t{rank_class.index()} * 2 + (late ? 1 : 0);
  };
  return share_by(flat, path, key, [&](const FlatProgram& /*in*/, const PathStep& step, RankClassId of) {
    const std::string& rank = flat.program().rank_class(of).name;
    return step.kind == PathStep::Kind::start_offset ? fmt::format("late start of {}", rank) : rank;
  });
}

std::string path_step_name(const FlatProgram& flat, const PathStep& step) {
  if (step.kind != PathStep::Kind::task) return step_class(flat, step);
  const Program& program = flat.program();
  const TaskInfo& info = flat.info(step.rank_class, step.task);
  const std::string_view name = program.names.text(info.name);
  if (!info.stack.valid()) return std::string{name};
  const std::string_view op = program.names.text(program.stacks.name(info.stack));
  return op == name || name.empty() ? std::string{op} : fmt::format("{} ({})", op, name);
}

std::vector<PathShare> path_by_name(const FlatProgram& flat, const CriticalPath& path) {
  const auto key = [](const FlatProgram& in, const PathStep& step, RankClassId /*rank*/) {
    return name_key(in, step);
  };
  return share_by(flat, path, key, [](const FlatProgram& in, const PathStep& step, RankClassId /*rank*/) {
    return path_step_name(in, step);
  });
}

std::uint64_t step_count(const FlatProgram& flat, const CriticalPath& path) {
  std::uint64_t steps = 0;
  for (const PathStep& step : path.steps) {
    const BodyProfile* body = body_of(flat, step);
    steps += body == nullptr ? 1 : body->path.steps.size();
  }
  return steps;
}

}  // namespace stepcast
